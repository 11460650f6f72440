// Listen: what a worker's engine says of its KV cache, heard for as long as the worker is asked for its health.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"kvasir/kvroute"
	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvindex"
)

const (
	learnEvery = 10 * time.Second // an engine's /metrics are some 80 KB

	// How long a thing that is over is still a reason in /readyz, and how long one
	// that may pass is none yet.
	reasonStays = 5 * time.Minute
	reasonWaits = 10 * time.Second

	maxRanks = 1024 // of one engine
)

// seedOf is the seed of prompts for a model as its worker lists it. It is the
// one that listeners give the engine's blocks: a worker's blocks are all of one
// model, whatever names it has, so that only the adapter and the salt tell them
// apart. An adapter's name as a model is its name in events.
func seedOf(m servedModel, salt string) kvindex.Seed {
	if m.parent != "" {
		return kvindex.SeedOf("", m.name, salt)
	}
	return kvindex.SeedOf("", "", salt)
}

// listening is what is heard and learnt from one worker's engine.
type listening struct {
	once     sync.Once
	listener *holdings.Listener // nil before learn
	hears    atomic.Pointer[holdings.Listener]

	// Of the goroutine that asks.
	asked   time.Time // zero: ask
	learnt  engineFacts
	sources []holdings.Source
	told    bool   // that there are no events
	trouble string // with asking, as told last

	blockSize atomic.Int64           // as the engine's own events have it; 0: they agree with what it says
	restarts  atomic.Uint64          // of the engine
	late      counterWatch           // answers that may be wrong
	expired   counterWatch           // prompts that were computed for nothing
	problem   atomic.Pointer[string] // with the addresses of events; nil: none
	elsewhere atomic.Bool            // it told an address that is not its own
	quiet     hush                   // of what its events bring into the log
}

// A counterWatch follows a counter of the engine's that should stay 0.
type counterWatch struct {
	last  atomic.Uint64
	known atomic.Bool
	grown atomic.Int64 // when it last grew, Unix nanoseconds; 0: never
}

// saw takes a reading and returns by how much the counter grew.
func (c *counterWatch) saw(n uint64, now time.Time) uint64 {
	last, known := c.last.Swap(n), c.known.Swap(true)
	if !known || n <= last { // or the engine began anew
		return 0
	}
	c.grown.Store(now.UnixNano())
	return n - last
}

// recently says whether the counter grew a short while ago.
func (c *counterWatch) recently(now time.Time) bool {
	at := c.grown.Load()
	return at != 0 && now.Sub(time.Unix(0, at)) < reasonStays
}

// learn asks the engine of a worker that is well, from time to time, what it is
// and where it publishes events, and follows those. A bug in it leaves the
// worker as well as it is.
func (p prober) learn(ctx context.Context, b *backend, probed error) {
	l := &b.listening
	if probed != nil {
		l.asked = time.Time{} // it may come back as another
		return
	}
	if now := time.Now(); now.Sub(l.asked) < learnEvery {
		return
	}
	defer func() {
		if fault := recover(); fault != nil {
			p.noteBug(fault, "the reading of an engine's metrics")
		}
	}()
	l.asked = time.Now()
	facts, err := b.askFacts(ctx)
	if err == nil {
		p.noteRestart(b, facts)
		p.noteTransfers(b, facts)
		l.learnt = facts
	}
	sources := l.sources // what cannot be asked stays as it was
	if err == nil || b.settings.KVEvents != "" {
		found, problem := b.askSources(ctx, &l.learnt)
		if problem == nil {
			sources = found
		}
		err = errors.Join(err, problem)
	}
	if ctx.Err() != nil {
		return
	}
	p.noteLearning(b, err)
	p.follow(b, l.learnt, sources)
}

// noteLearning tells the log when asking begins to fail, or is well again.
func (p prober) noteLearning(b *backend, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == b.listening.trouble {
		return
	}
	b.listening.trouble = text
	if err != nil {
		p.log.Warn().Str("worker", b.Name()).Str("problem", text).Msg("cannot learn what the engine is; what it holds is guessed or as before")
	}
}

// noteRestart forgets what an engine held that was started anew.
func (p prober) noteRestart(b *backend, facts engineFacts) {
	l := &b.listening
	if l.learnt.started == 0 || facts.started == 0 || facts.started == l.learnt.started {
		return
	}
	if l.listener != nil && l.listener.Told() {
		return // its events have said so
	}
	p.restarted(b, "its start time is another one")
	if l.listener != nil {
		l.listener.Relearn()
	}
}

// restarted notes that the engine began anew.
func (p *Proxy) restarted(b *backend, how string) {
	b.listening.restarts.Add(1)
	b.listening.blockSize.Store(0)
	b.life.Add(1) // hand-overs from the process before are not to be used
	b.Restarted()
	b.listening.quiet.tell(p.log.Info().Str("worker", b.Name()).Str("seen_by", how), "the engine was started anew; what it held is forgotten")
}

// noteTransfers watches the counters that betray hand-overs that came too late:
// nothing else does, the answers are 200 with wrong text.
func (p prober) noteTransfers(b *backend, facts engineFacts) {
	l, now := &b.listening, time.Now()
	if n := l.late.saw(facts.late, now); n > 0 {
		p.log.Error().Str("worker", b.Name()).Uint64("count", n).
			Msg("KV blocks were fetched from this prefill worker after it had given them up: answers may have wrong text")
	}
	if n := l.expired.saw(facts.expired, now); n > 0 {
		p.log.Warn().Str("worker", b.Name()).Uint64("count", n).
			Msg("this prefill worker gave up KV blocks that nobody had fetched in time")
	}
}

// follow listens to these sources and no others, and tells placement what the engine is.
func (p prober) follow(b *backend, facts engineFacts, sources []holdings.Source) {
	l := &b.listening
	l.once.Do(func() {
		l.listener = holdings.New(p.listenerOptions(b))
		l.hears.Store(l.listener)
	})
	news := !equalSources(l.sources, sources)
	if size := int(l.blockSize.Load()); size != 0 {
		facts.BlockSize = size // the events are right
	}
	facts.Ranks = max(facts.Ranks, 1)
	for _, s := range sources {
		facts.Ranks = max(facts.Ranks, s.Rank+1)
	}
	facts.Events = len(sources) > 0
	before := b.Cache(0)
	b.SetEngine(facts.EngineFacts)
	if !news {
		if b.Cache(0) != before {
			l.listener.Relearn()
		}
		return
	}
	l.sources = sources
	err := l.listener.Follow(sources)
	l.problem.Store(problemText(err))
	switch {
	case err != nil:
		p.log.Error().Str("worker", b.Name()).Err(err).Msg("cannot listen to KV events")
	case len(sources) > 0:
		l.told = false
		p.log.Info().Str("worker", b.Name()).Int("ranks", len(sources)).Str("events", sources[0].Events).
			Str("replay", sources[0].Replay).Int("block_size", facts.BlockSize).Msg("listening to KV events")
	case !l.told:
		l.told = true
		p.log.Info().Str("worker", b.Name()).Msg("no KV events any more; what this worker holds is guessed")
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
func (p prober) listenerOptions(b *backend) holdings.Options {
	return holdings.Options{
		Cache: b.Cache,
		Seed:  func(lora, salt string) kvindex.Seed { return kvindex.SeedOf("", lora, salt) }, // as seedOf
		BlockSize: func(tokens int) {
			b.listening.blockSize.Store(int64(tokens))
			f := b.Engine()
			if f.BlockSize = tokens; b.SetEngine(f) {
				p.log.Info().Str("worker", b.Name()).Int("block_size", tokens).Msg("the engine's events say its block size")
			}
		},
		Restarted: func(int) { p.restarted(b, "its KV events count from 0 again") },
		Report:    p.reporter(b),
		Bug: func(fault any) {
			p.noteBug(fault, "listening to KV events")
		},
	}
}

// reporter tells the log of trouble with events: that of a kind each time, but
// for what may come with every event; and no more than a hush lets through, for
// what publishes may be broken in ways that come with every message.
func (p prober) reporter(b *backend) func(int, error) {
	var orphans atomic.Uint64
	h := &b.listening.quiet
	return func(rank int, err error) {
		var size *kvindex.BlockSizeError
		switch {
		case errors.As(err, &size):
			h.tell(p.log.Error().Str("worker", b.Name()).Int("rank", rank),
				fmt.Sprintf("its KV blocks have %d tokens, %d were assumed; no overlap is seen until they agree", size.Got, size.Want))
		case errors.Is(err, kvindex.ErrShape):
			if n := orphans.Add(1); bits.OnesCount64(n) == 1 {
				p.log.Warn().Str("worker", b.Name()).Int("rank", rank).Uint64("so_far", n).Err(err).Msg("a KV event makes no sense")
			}
		default:
			h.tell(p.log.Warn().Str("worker", b.Name()).Int("rank", rank).Str("problem", err.Error()), "trouble with KV events")
		}
	}
}

// A hush lets a few lines through in a while, and counts those that it does not.
type hush struct {
	mu     sync.Mutex // guards all below
	since  time.Time
	told   int
	untold uint64 // since the last line
}

const (
	hushFor   = time.Minute
	hushLines = 10
)

// tell sends e, or not.
func (h *hush) tell(e *zerolog.Event, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.since) >= hushFor {
		h.since, h.told = now, 0
	}
	if h.told == hushLines {
		h.untold++
		e.Discard()
		return
	}
	h.told++
	if h.untold > 0 {
		e.Uint64("untold", h.untold)
		h.untold = 0
	}
	e.Msg(text)
}

// close stops listening and waits for it.
func (l *listening) close() {
	if l.listener != nil {
		l.listener.Close()
	}
}

// facts are what the events' subscribers know, by rank.
func (l *listening) facts() []holdings.Facts {
	if h := l.hears.Load(); h != nil {
		return h.Facts()
	}
	return nil
}

// reasons say what about a worker's events is not as it should be.
func (l *listening) reasons(b *backend, now time.Time) (why []string) {
	add := func(format string, of ...any) {
		why = append(why, fmt.Sprintf("worker %q: ", b.Name())+fmt.Sprintf(format, of...))
	}
	if text := l.problem.Load(); text != nil {
		add("cannot listen to its KV events: %s", *text)
	}
	if l.elsewhere.Load() {
		add("it names an address of KV events on another host than that of its url, which is not asked; if it is right, set workers[].kv_events and kv_replay")
	}
	if l.late.recently(now) {
		add("KV blocks were fetched from it after it had given them up: answers may have wrong text")
	}
	for _, f := range l.facts() {
		if down := now.Sub(f.Since); !f.Since.IsZero() && down > reasonWaits {
			problem := errors.New("no answer yet")
			if f.Problem != nil {
				problem = f.Problem
			}
			add("its KV events of rank %d are not heard for %v: %v", f.Rank, down.Round(time.Second), problem)
		}
		if f.Engine != 0 {
			add("its KV blocks have %d tokens, %d were assumed", f.Engine, f.Assumed)
		}
		if !f.LostAt.IsZero() && now.Sub(f.LostAt) < reasonStays {
			add("KV events of rank %d were lost and could not be had again; what it holds is learnt anew", f.Rank)
		}
		if !f.FullAt.IsZero() && now.Sub(f.FullAt) < reasonStays {
			add("%v", kvindex.ErrFull)
		}
	}
	return why
}

// askFacts asks an engine what it is.
func (b *backend) askFacts(ctx context.Context) (engineFacts, error) {
	switch b.engine() {
	case "vllm":
		return b.askMetrics(ctx)
	case "sglang":
		return b.askServerInfo(ctx)
	}
	return engineFacts{}, nil
}

// askSources finds out where the engine's ranks publish; none: nowhere.
func (b *backend) askSources(ctx context.Context, f *engineFacts) ([]holdings.Source, error) {
	switch engine := b.engine(); {
	case b.settings.KVEvents != "":
		return configuredSources(b.settings, f.Ranks)
	case engine == "vllm":
		told, err := b.askEventSources(ctx)
		return b.ownSources(told), err
	case engine == "sglang":
		told, err := f.published(b.hostname())
		return b.ownSources(told), err
	}
	return nil, nil
}

// ownSources are those of what a worker told that lie on its own host. It may
// send us nowhere else: what is there may be anybody's. workers[].kv_events
// names what is right all the same.
func (b *backend) ownSources(told []holdings.Source) []holdings.Source {
	own := told[:0]
	elsewhere := false
	for _, s := range told {
		if !b.isOwn(s.Events) {
			elsewhere = true
			continue
		}
		if s.Replay != "" && !b.isOwn(s.Replay) {
			elsewhere, s.Replay = true, ""
		}
		own = append(own, s)
	}
	b.listening.elsewhere.Store(elsewhere)
	return own
}

// isOwn says whether an address is on the worker's own host, as the
// configuration names it: no other name is looked up.
func (b *backend) isOwn(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host, own := u.Hostname(), b.hostname()
	return strings.EqualFold(host, own) || isLoopbackHost(host) && isLoopbackHost(own)
}

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// configuredSources are those of the configuration: rank 0's, and the ports after it.
func configuredSources(w Worker, ranks int) ([]holdings.Source, error) {
	first := kvevents.Source{Events: w.KVEvents, Replay: w.KVReplay}
	sources := []holdings.Source{{Rank: 0, Source: first}}
	for rank := 1; rank < ranks; rank++ {
		s, err := first.Rank(rank)
		if err != nil {
			return nil, err
		}
		sources = append(sources, holdings.Source{Rank: rank, Source: s})
	}
	return sources, nil
}

// askEventSources asks vLLM where it publishes.
func (b *backend) askEventSources(ctx context.Context) ([]holdings.Source, error) {
	status, body, err := b.get(ctx, "/kv_event_sources")
	if err != nil || keptBack(status) {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("/kv_event_sources answers %d", status)
	}
	return readSources(body, b.hostname())
}

// keptBack says whether a route is not there, or not for us: that is no trouble.
func keptBack(status int) bool {
	return status == http.StatusNotFound || status == http.StatusForbidden || status == http.StatusUnauthorized || status == http.StatusMethodNotAllowed
}

// readSources reads where vLLM's ranks publish.
func readSources(body []byte, host string) ([]holdings.Source, error) {
	ranks, found, err := kvevents.ReadSources(body, host)
	if err != nil {
		return nil, err
	}
	var sources []holdings.Source
	for i, rank := range ranks {
		if rank >= maxRanks {
			return nil, fmt.Errorf("cannot read /kv_event_sources: data-parallel rank %d", rank)
		}
		sources = append(sources, holdings.Source{Rank: rank, Source: found[i]})
	}
	return sources, nil
}

// engineFacts are what was learnt from one reading of an engine's own figures.
type engineFacts struct {
	kvroute.EngineFacts
	started       float64 // when its process was started, in seconds since 1970; 0: it does not say
	late, expired uint64  // fetches after a lease was over; prompts whose blocks nobody fetched
	events        string  // SGLang's --kv-events-config, JSON
}
