// The package doc, the listener of one worker and what it is told.

// Package holdings keeps an index of KV blocks in step with what one worker's engine says of its cache: a subscriber
// for each data-parallel rank, whose events go into that rank's kvindex.Worker.
//
//	l := holdings.New(holdings.Options{Cache: worker.Cache})
//	err := l.Follow([]holdings.Source{{Rank: 0, Source: kvevents.Source{Events: "tcp://10.0.0.5:5557"}}})
//	...
//	l.Status() // for metrics and /readyz
//	l.Close() // leaves no goroutine, and no block that events told of
//
// What cannot be brought into agreement is counted (Kind) and told to Report; nothing is dropped in silence.
package holdings

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvindex"
)

// Source is where one data-parallel rank of the engine publishes.
type Source struct {
	Rank int
	kvevents.Source
}

// Options are what a listener is made of. Only Cache is needed. The funcs are called from the listener's goroutines,
// several at a time, and must not call the listener.
type Options struct {
	// Cache is where the blocks of a rank are kept, nil: nowhere now. It is asked again where the one before was
	// forgotten; then all is learnt anew.
	Cache func(rank int) *kvindex.Worker

	// Seed is the seed that prompts have for a LoRA adapter, empty for none, and a cache salt. nil: kvindex.SeedOf
	// without a model, for a worker's blocks are of one model.
	Seed func(lora, salt string) kvindex.Seed

	// BlockSize hears how many tokens the engine's blocks have where nothing, or another size, was assumed and its
	// events agree with each other. Cache then gives a place for such blocks. nil: a wrong size stays wrong.
	BlockSize func(tokens int)

	// Restarted hears that a rank's engine was started anew, after its blocks were forgotten.
	Restarted func(rank int)

	// Report hears what goes wrong; kvevents.Options.Report says how often.
	Report func(rank int, err error)

	// Bug hears of a panic while events were taken in; the rank is listened to anew. nil: it goes on as a panic.
	Bug func(fault any)

	Subscriber kvevents.Options // but for its Report
}

// A Listener listens to one worker. Make it with New; it is safe for concurrent use.
type Listener struct {
	options Options

	mu     sync.Mutex // guards all below, and is held while ears are stopped
	ears   []*ear     // by rank, in rising order
	closed bool
}

// New returns a listener that does nothing before Follow.
func New(o Options) *Listener {
	if o.Seed == nil {
		o.Seed = func(lora, salt string) kvindex.Seed { return kvindex.SeedOf("", lora, salt) }
	}
	if o.Report == nil {
		o.Report = func(int, error) {}
	}
	if o.Restarted == nil {
		o.Restarted = func(int) {}
	}
	return &Listener{options: o}
}

// Follow listens to these sources and no others, one for each rank. What is listened to already goes on undisturbed;
// what a rank told that is there no longer is forgotten. Sources that nobody can connect to are in the error, and
// left out.
func (l *Listener) Follow(sources []Source) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	var next []*ear
	var problems []error
	for _, s := range sources {
		if i := slices.IndexFunc(l.ears, func(e *ear) bool { return e.source == s }); i >= 0 {
			next = append(next, l.ears[i])
			l.ears = slices.Delete(l.ears, i, i+1)
			continue
		}
		if _, err := kvevents.New(s.Source, nothing{}, kvevents.Options{}); err != nil {
			problems = append(problems, fmt.Errorf("rank %d: %w", s.Rank, err))
			continue
		}
		next = append(next, newEar(l.options, s))
	}
	l.stopEars() // before others of the same rank begin
	for _, e := range next {
		e.start()
	}
	slices.SortFunc(next, func(a, b *ear) int { return a.source.Rank - b.source.Rank })
	l.ears = next
	return errors.Join(problems...)
}

// Relearn forgets what the engine told and learns it anew: for a caller that has found it started anew by other means,
// or whose Cache has become another one.
func (l *Listener) Relearn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.ears {
		e.relearn()
	}
}

// Told says whether the events of every rank have told of a restart since it was last asked. Who finds a restart by
// other means then has nothing to do: what came since would be lost where no replay socket gives it again.
func (l *Listener) Told() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := len(l.ears) > 0
	for _, e := range l.ears {
		e.sink.note(func(n *notes) { all, n.restarted = all && n.restarted, false })
	}
	return all
}

// Close stops listening and forgets what was learnt. It waits for all goroutines.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.stopEars()
}

// stopEars stops all in l.ears at once, and waits for them.
func (l *Listener) stopEars() {
	for _, e := range l.ears {
		e.stop()
	}
	for _, e := range l.ears {
		<-e.done
	}
	l.ears = nil
}

// A Status is what is known of one rank's events.
type Status struct {
	Source

	// Stats are the subscriber's counters since the source was first followed, and its state.
	kvevents.Stats

	Kinds   [Kinds]uint64  // what became of events: blocks or events, as Kind says
	Cleared map[string]int // times that the blocks were forgotten, by reason

	Held int // blocks in the index

	// Assumed and Engine are the tokens of a block that were assumed and those that the engine's events say, where
	// they differ; else 0.
	Assumed, Engine int

	Since   time.Time // of not being connected: when it was lost, or listening began; zero while connected
	Problem error     // the last one told to Report
	LostAt  time.Time // when messages were last lost for good, or could not be read; zero: never
	FullAt  time.Time // when the index last had no room for a block; zero: never
}

// Status returns what is known, by rank in rising order.
func (l *Listener) Status() []Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Status, len(l.ears))
	for i, e := range l.ears {
		all[i] = e.status()
	}
	return all
}

// nothing is a sink for a subscriber that never runs.
type nothing struct{}

func (nothing) Stored(*kvevents.Stored)   {}
func (nothing) Removed(*kvevents.Removed) {}
func (nothing) Cleared(kvevents.Cleared)  {}
