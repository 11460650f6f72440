// Learning what a worker's engine is and what it holds.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvindex"
)

const (
	learnEvery = 10 * time.Second // an engine's /metrics are some 80 KB

	maxRanks = 1024 // data-parallel ranks of one engine
)

// SeedOf is the seed of prompts for a model, as its worker lists the model: the same
// seed that listeners give the engine's blocks. A worker's blocks are all of one
// model, whatever names it has, so only the adapter and the salt tell them apart. An
// adapter's name as a model is its name in events.
func SeedOf(m Listed, salt string) kvindex.Seed {
	if m.Parent != "" {
		return kvindex.SeedOf("", m.Name, salt)
	}
	return kvindex.SeedOf("", "", salt)
}

// learn asks the engine of a worker that is well, from time to time, what it is and
// where it publishes events, and listens there. A bug in it does not count against
// the worker.
func (t *watch) learn(ctx context.Context, probed error) {
	w := t.w
	if probed != nil {
		t.learned = time.Time{} // it may come back as another
		return
	}
	if now := time.Now(); now.Sub(t.learned) < learnEvery {
		return
	}
	defer func() {
		if fault := recover(); fault != nil {
			t.h.Bug(fault, "the reading of an engine's metrics")
		}
	}()
	t.learned = time.Now()
	var said facts
	var err error
	if ask := w.dialect().facts; ask != nil {
		said, err = ask(ctx, w)
	}
	if err == nil {
		t.noteRestart(said)
		t.noteTransfers(said)
		t.facts = said
	}
	sources := t.sources // what cannot be asked stays as it was
	if err == nil || w.Settings.KVEvents != "" {
		found, problem := w.askSources(ctx, &t.facts)
		if problem == nil {
			sources = found
		}
		err = errors.Join(err, problem)
	}
	if ctx.Err() != nil {
		return
	}
	t.noteLearning(err)
	t.follow(t.facts, sources)
}

// noteLearning tells the log when asking begins to fail, or is well again.
func (t *watch) noteLearning(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == t.trouble {
		return
	}
	t.trouble = text
	if err != nil {
		t.h.Log.Warn().Str("worker", t.w.Name()).Str("problem", text).Msg("cannot learn what the engine is; what it holds is guessed or as before")
	}
}

// noteRestart forgets what an engine held that was started anew.
func (t *watch) noteRestart(said facts) {
	if t.facts.started == 0 || said.started == 0 || said.started == t.facts.started {
		return
	}
	if t.listener != nil && t.listener.Told() {
		return // its events have said so
	}
	t.restarted("its start time is another one")
	if t.listener != nil {
		t.listener.Relearn()
	}
}

// restarted notes that the engine began anew.
func (t *watch) restarted(how string) {
	w := t.w
	w.heard.restarts.Add(1)
	w.heard.blockSize.Store(0)
	w.Life.Add(1) // hand-overs from the process before are not to be used
	w.Restarted()
	w.Quiet.Tell(t.h.Log.Info().Str("worker", t.w.Name()).Str("seen_by", how), "the engine was started anew; what it held is forgotten")
}

// noteTransfers watches the counters of hand-overs that came too late. Nothing else
// shows them: the answers are 200, with wrong text.
func (t *watch) noteTransfers(said facts) {
	heard, now := &t.w.heard, time.Now()
	if n := heard.late.saw(said.late, now); n > 0 {
		t.h.Log.Error().Str("worker", t.w.Name()).Uint64("count", n).
			Msg("KV blocks were fetched from this prefill worker after it had given them up: answers may have wrong text")
	}
	if n := heard.expired.saw(said.expired, now); n > 0 {
		t.h.Log.Warn().Str("worker", t.w.Name()).Uint64("count", n).
			Msg("this prefill worker gave up KV blocks that nobody had fetched in time")
	}
}

// follow listens to these sources and no others, and tells placement what the engine is.
func (t *watch) follow(said facts, sources []holdings.Source) {
	w := t.w
	if t.listener == nil {
		t.listener = holdings.New(t.listenerOptions())
		w.heard.listener.Store(t.listener)
	}
	news := !equalSources(t.sources, sources)
	if size := int(w.heard.blockSize.Load()); size != 0 {
		said.BlockSize = size // the events are right
	}
	said.Ranks = max(said.Ranks, 1)
	for _, s := range sources {
		said.Ranks = max(said.Ranks, s.Rank+1)
	}
	said.Events = len(sources) > 0
	before := w.Cache(0)
	w.SetEngine(said.EngineFacts)
	if !news {
		if w.Cache(0) != before {
			t.listener.Relearn()
		}
		return
	}
	t.sources = sources
	err := t.listener.Follow(sources)
	w.heard.problem.Store(problemText(err))
	switch {
	case err != nil:
		t.h.Log.Error().Str("worker", t.w.Name()).Err(err).Msg("cannot listen to KV events")
	case len(sources) > 0:
		t.silence = false
		t.h.Log.Info().Str("worker", t.w.Name()).Int("ranks", len(sources)).Str("events", sources[0].Events).
			Str("replay", sources[0].Replay).Int("block_size", said.BlockSize).Msg("listening to KV events")
	case !t.silence:
		t.silence = true
		t.h.Log.Info().Str("worker", t.w.Name()).Msg("no KV events any more; what this worker holds is guessed")
	}
}

func problemText(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}

func equalSources(a, b []holdings.Source) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// listenerOptions tell a listener of a worker whom to tell what.
func (t *watch) listenerOptions() holdings.Options {
	w := t.w
	return holdings.Options{
		Cache: w.Cache,
		Seed:  func(lora, salt string) kvindex.Seed { return kvindex.SeedOf("", lora, salt) }, // as SeedOf
		BlockSize: func(tokens int) {
			w.heard.blockSize.Store(int64(tokens))
			f := w.Engine()
			if f.BlockSize = tokens; w.SetEngine(f) {
				t.h.Log.Info().Str("worker", t.w.Name()).Int("block_size", tokens).Msg("the engine's events say its block size")
			}
		},
		Restarted: func(int) { t.restarted("its KV events count from 0 again") },
		Report:    t.reporter(),
		Bug: func(fault any) {
			t.h.Bug(fault, "listening to KV events")
		},
	}
}

// reporter tells the log of trouble with events. What may come with every single
// event is told at the first, second, fourth time and so on; the rest each time, as
// far as the worker's Hush lets it through: what publishes may be broken in ways that
// show with every message.
func (t *watch) reporter() func(int, error) {
	var orphans atomic.Uint64
	quiet := &t.w.Quiet
	return func(rank int, err error) {
		var size *kvindex.BlockSizeError
		switch {
		case errors.As(err, &size):
			quiet.Tell(t.h.Log.Error().Str("worker", t.w.Name()).Int("rank", rank),
				fmt.Sprintf("its KV blocks have %d tokens, %d were assumed; no overlap is seen until they agree", size.Got, size.Want))
		case errors.Is(err, kvindex.ErrShape):
			if n := orphans.Add(1); bits.OnesCount64(n) == 1 {
				t.h.Log.Warn().Str("worker", t.w.Name()).Int("rank", rank).Uint64("so_far", n).Err(err).Msg("a KV event makes no sense")
			}
		default:
			quiet.Tell(t.h.Log.Warn().Str("worker", t.w.Name()).Int("rank", rank).Str("problem", err.Error()), "trouble with KV events")
		}
	}
}
