// The ear: one rank's subscriber, begun anew where all has to be learnt again.

package holdings

import (
	"context"
	"maps"
	"sync"
	"time"

	"kvasir/kvroute/kvevents"
)

// shortRest and longRest bound the pause before a rank is listened to anew.
const (
	shortRest = 50 * time.Millisecond
	longRest  = 5 * time.Second

	// outage is how far apart two problems of one outage may lie: what is connected
	// and lost again at once is called again after longRest.
	outage = 4 * longRest
)

// An ear listens to one rank.
type ear struct {
	options Options
	source  Source
	sink    *sink
	ctx     context.Context // over when it is to stop
	stop    context.CancelFunc
	begin   sync.Once
	done    chan struct{} // closed when it has stopped

	mu      sync.Mutex // guards all below
	now     *kvevents.Subscriber
	anew    context.CancelFunc // ends now
	past    kvevents.Stats     // of the subscribers before now
	began   time.Time
	problem error
	at      time.Time // of problem
	lost    time.Time // of the first problem of this outage
}

func newEar(o Options, source Source) *ear {
	e := &ear{options: o, source: source, done: make(chan struct{}), began: time.Now(), anew: func() {}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.sink = newSink(o, source.Rank, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.anew()
	})
	return e
}

// start begins to listen, once.
func (e *ear) start() {
	e.begin.Do(func() { go e.listen() })
}

// listen listens until it is to stop, and forgets what was learnt.
func (e *ear) listen() {
	defer close(e.done)
	pause := shortRest
	for e.ctx.Err() == nil {
		began := time.Now()
		e.listenOnce()
		if time.Since(began) > longRest {
			pause = shortRest
		}
		rest(e.ctx, pause)
		pause = min(2*pause, longRest)
	}
	if e.sink.cache != nil {
		e.sink.cache.Clear()
	}
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// listenOnce runs one subscriber, from knowing nothing on, until it is to begin anew or to stop.
func (e *ear) listenOnce() {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	if e.options.Bug != nil {
		defer func() {
			if fault := recover(); fault != nil {
				e.options.Bug(fault)
			}
		}()
	}
	o := e.options.Subscriber
	o.Report = e.report
	s, err := kvevents.New(e.source.Source, e.sink, o)
	if err != nil {
		e.report(err) // Follow has tried it
		<-ctx.Done()
		return
	}
	e.mu.Lock()
	e.anew = cancel
	e.mu.Unlock()
	if !e.sink.begin() {
		return // there is no place for blocks yet, or no longer
	}
	e.mu.Lock()
	e.past, e.now = e.sum(), s
	e.mu.Unlock()
	s.Run(ctx)
}

// report notes a problem and passes it on, but for connections that the stop itself has ended.
func (e *ear) report(err error) {
	now := time.Now()
	e.mu.Lock()
	if now.Sub(e.at) > outage {
		e.lost = now
	}
	e.problem, e.at = err, now
	e.mu.Unlock()
	e.options.Report(e.source.Rank, err)
}

// relearn begins anew.
func (e *ear) relearn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.anew()
}

// sum is the counters of all subscribers so far, and the state of the last one. The caller holds mu.
func (e *ear) sum() kvevents.Stats {
	if e.now == nil {
		return e.past
	}
	sum := e.now.Stats()
	sum.Add(e.past)
	return sum
}

func (e *ear) status() Status {
	f := Status{Source: e.source}
	e.mu.Lock()
	f.Stats = e.sum()
	f.Problem = e.problem
	if !f.Connected {
		f.Since = e.began
		if e.lost.After(f.Since) {
			f.Since = e.lost
		}
	}
	e.mu.Unlock()
	for k := range f.Kinds {
		f.Kinds[k] = e.sink.kinds[k].Load()
	}
	e.sink.note(func(n *notes) {
		f.Cleared = maps.Clone(n.cleared)
		if n.engine != 0 {
			f.Assumed, f.Engine = n.assumed, n.engine
		}
		f.LostAt, f.FullAt = n.lostAt, n.fullAt
	})
	if cache := e.options.Cache(e.source.Rank); cache != nil {
		f.Held = cache.Held()
	}
	return f
}
