// The watch over a worker: is it well, what does it serve, and what does its engine say.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"kvasir/kvroute/holdings"
)

const (
	watchEvery  = 2 * time.Second        // while a worker is well, give or take a fifth
	watchAgain  = 500 * time.Millisecond // while it is not, growing to watchEvery
	modelsEvery = 30 * time.Second       // adapters come and go while a worker runs
)

// Hooks are whom the watch over a worker tells what is not the worker's own concern.
// All may be called from several goroutines at once.
type Hooks struct {
	Log   zerolog.Logger
	Bug   func(fault any, what string) // what ended in a panic, which was recovered
	Short func()                       // this host had no descriptor left to connect with
	News  func()                       // the worker lists other models than before
}

// A watch is what the one goroutine that asks a worker remembers between two times.
type watch struct {
	w *Worker
	h *Hooks

	dialect  *dialect  // of the configuration, or found out; unknown before
	version  string    // of the engine; "": it does not say
	noHealth bool      // it has no /health: its list of models is asked instead
	asked    time.Time // when it last told its models; zero: ask
	listed   []string  // the models in its list, whatever the configuration says
	news     bool      // it lists other models than before, which was not told yet
	fewer    bool      // it was said in the log that not all of its models are served

	learned  time.Time          // when its engine was last asked what it is; zero: ask
	facts    facts              // what the engine said then
	sources  []holdings.Source  // of events, that are listened to
	listener *holdings.Listener // nil before the first time
	silence  bool               // it was said in the log that there are no events any more
	trouble  string             // with asking the engine, as it was last said in the log
}

func newWatch(w *Worker, h *Hooks) *watch { return &watch{w: w, h: h, dialect: &unknown} }

// Watch asks the worker whether it is well and what it is, again and again until ctx
// ends, and listens to what its engine says of its KV cache. It calls answered once,
// after the first answer or failure. A worker is watched once.
func (w *Worker) Watch(ctx context.Context, h *Hooks, answered func()) {
	t := newWatch(w, h)
	defer t.close()
	pause := watchAgain
	for first := true; ; first = false {
		err := t.askGuarded(ctx)
		if ctx.Err() != nil {
			return
		}
		t.note(err)
		if t.news {
			t.news = false
			h.News()
		}
		if first {
			answered()
		}
		if t.learn(ctx, err); ctx.Err() != nil {
			return
		}
		if err == nil {
			pause = watchEvery
		} else {
			t.asked = time.Time{} // it may come back as another
			pause = min(2*pause, watchEvery)
			if first {
				pause = watchAgain
			}
		}
		jitter := time.Duration(rand.Int64N(int64(pause)*2/5)) - pause/5
		if rest(ctx, pause+jitter); ctx.Err() != nil {
			return
		}
	}
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// close ends the listening, and waits until it has ended.
func (t *watch) close() {
	if t.listener != nil {
		t.listener.Close()
	}
}

// askGuarded is ask, with a bug in it told as a failure of the worker: whatever a
// worker answers, the other workers' requests go on.
func (t *watch) askGuarded(ctx context.Context) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			t.h.Bug(fault, "a probe")
			err = errors.New("a bug was met while asking it")
		}
	}()
	return t.ask(ctx)
}

// ask asks once whether the worker is well, and from time to time what it serves.
func (t *watch) ask(ctx context.Context) error {
	if !t.noHealth {
		status, _, err := t.w.get(ctx, "/health")
		switch {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			t.noHealth = true
		case status != http.StatusOK:
			return fmt.Errorf("/health answers %d", status)
		}
	}
	if !t.noHealth && time.Since(t.asked) < modelsEvery {
		return nil
	}
	if err := t.askModels(ctx); err != nil {
		return err
	}
	t.asked = time.Now()
	return nil
}

// note tells the worker's health how asking it went, and the log when that changes.
func (t *watch) note(err error) {
	w, now := t.w, time.Now()
	if err == nil {
		if few := w.ListsTooMany(); (few != "") != t.fewer {
			if t.fewer = few != ""; t.fewer {
				t.h.Log.Warn().Str("worker", w.Name()).Str("problem", few).Msg("not all models of the worker are served")
			}
		}
		if w.ProbeOK(now) {
			t.h.Log.Info().Str("worker", w.Name()).Str("engine", t.dialect.name).Str("version", t.version).Msg("worker is up")
		}
		return
	}
	if IsShort(err) { // a worker that could not be asked is as it was
		t.h.Short()
		return
	}
	refused := errors.Is(err, syscall.ECONNREFUSED) // nobody listens there at all
	if refused {
		w.Life.Add(1)
	}
	if w.ProbeFailed(now, err.Error(), refused) {
		t.h.Log.Warn().Str("worker", w.Name()).Str("problem", err.Error()).Msg("worker is down")
	}
}
