// The sources that run: started and stopped by the configuration, each with what it knows.

// Package discovery finds out where workers are: from files, from DNS, from Kubernetes. A source looks,
// again and again, and says which workers there are; what it said last holds until it
// says something else, however long that takes and whatever fails meanwhile.
//
//	set := discovery.Start(discovery.Options{Log: log, Changed: apply})
//	set.Follow(entries)            // of the configuration; again at each reload
//	set.Settle(2*time.Second)      // until all have looked once
//	merged := discovery.Merge(configured, set.Found())
//	set.Close()
//
// Nothing of it is on a request's way: Changed makes a new generation of workers, as a
// reload of the configuration does.
package discovery

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"kvasir/discovery/etcd"
	"kvasir/upstream"
)

// An Entry is one source as the configuration names it. It is plain data, and never
// changed after it was handed over.
type Entry struct {
	Kind    string        // one of KindNames
	Path    string        // of kind file: a file, or a directory of files
	Name    string        // of kind dns: what is looked up
	Port    int           // of the workers; 0: not given as a number
	Scheme  string        // of kinds dns and kubernetes: http or https
	Refresh time.Duration // of kind dns: from one look to the next
	Server  string        // of kind dns: host:port of the one to ask; "": those of the system
	Grace   time.Duration // how long there must be no worker at all before that is believed

	// Of kind kubernetes:
	Namespace     string // "": that of the service account, or of the kubeconfig's context; of kind dynamo, too: Dynamo's, "": its default
	Selector      string // labels of pods
	InferencePool string // the name of one, which has selector and ports
	PortName      string // of the workers, where it is no number
	Kubeconfig    string // "": the service account's, else as kubectl finds it

	Etcd     etcd.Options // of kinds etcd and dynamo
	Prefix   string       // of kind etcd: of the workers' keys
	Frontend string       // of kind dynamo: the URL where its workers are asked

	Worker     upstream.Settings // what a worker is where its source does not say: all but its name and URL
	Read       Read              // of kind file
	ReadWorker ReadWorker        // of kinds etcd and dynamo
}

// Read reads a file of workers. read are the SHA-256 of the files that this one names,
// such as keys, so that a change of them is seen, too. data is the file's content and
// may be kept.
type Read func(file string, data []byte) (workers []upstream.Settings, read map[string][32]byte, err error)

// ReadWorker reads one worker that a stranger describes as a JSON object. What is wrong
// with it is told without the name of its key.
type ReadWorker func(value []byte) (upstream.Settings, error)

// same says whether a source of e can go on as one of o.
func (e *Entry) same(o *Entry) bool {
	return e.at() == o.at() && e.Scheme == o.Scheme && e.Refresh == o.Refresh && e.Server == o.Server && e.Grace == o.Grace &&
		e.Frontend == o.Frontend && e.Etcd.Same(&o.Etcd) &&
		e.Worker.Same(&o.Worker) && e.Worker.MaxRequests == o.Worker.MaxRequests
}

// A place is where a source looks.
type place struct {
	kind, path, name                                         string
	port                                                     int
	namespace, selector, inferencePool, portName, kubeconfig string
	prefix                                                   string
}

// at is the entry's place. The servers of an etcd are not part of it: they change when one of
// them dies, and what was known from the others holds.
func (e *Entry) at() place {
	return place{e.Kind, e.Path, e.Name, e.Port, e.Namespace, e.Selector, e.InferencePool, e.PortName, e.Kubeconfig, e.Prefix}
}

// pace is the least time between two calls of Changed: workers that come and go many
// times a second cost a few new generations a second at most.
const pace = 500 * time.Millisecond

// restAfter is how long a source rests after a look that took so long: a rollout changes every worker
// several times. With thousands of them a look takes 30 ms.
func restAfter(took time.Duration) time.Duration { return max(100*time.Millisecond, 25*took) }

// Options are what a Set is told.
type Options struct {
	Log      zerolog.Logger
	Resolver *net.Resolver // of DNS; nil: the system's
	dnsTime  time.Duration // how long a look at DNS may take; 0: dnsTimeout

	// Changed is called when Found gives something else than before, from one goroutine,
	// at most once in half a second.
	Changed func()
}

// A Set is the sources that run.
//
//  1. A source writes what it knows only through tell, and forgets nothing by itself.
//  2. A source that is stopped tells nothing any more.
//  3. Changed is called without any lock of the Set.
type Set struct {
	o       Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // holds one: what is known has changed

	mu      sync.Mutex // guards all below, and what sources know
	sources []*source
	changed bool // Changed is due
}

// A source is one entry that runs.
type source struct {
	kind   *kind
	set    *Set
	ctx    context.Context
	cancel context.CancelFunc
	again  chan struct{} // holds one: its entry has changed

	// All below are guarded by the mutex of the set.
	name    string        // of the entry
	entry   Entry         // Follow may change it, but for its place
	looked  chan struct{} // closed when it has looked once, by this entry
	known   knowledge
	noted   time.Time // since when notes are counted
	notes   int       // lines about problems that follow each other
	errors  uint64    // looks that failed
	changes uint64    // looks that found other workers than before
}

// Start makes a Set without any source.
func Start(o Options) *Set {
	s := &Set{o: o, wake: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Add(1)
	go s.run()
	return s
}

// Follow makes the sources those of the entries, in their order. A source whose entry is
// the same as before goes on; one that looks at the same place in another way does so
// from now on, with all that it remembers: what is bad there just now keeps what it said.
func (s *Set) Follow(entries []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return // a reload that comes with the end
	}
	before := s.sources
	s.sources = make([]*source, 0, len(entries))
	kept := map[*source]bool{}
	for _, e := range entries {
		if i := slices.IndexFunc(before, func(b *source) bool { return !kept[b] && b.entry.at() == e.at() }); i >= 0 {
			kept[before[i]] = true
			s.sources = append(s.sources, before[i])
			before[i].follow(e)
			continue
		}
		next := &source{kind: kindOf(e.Kind), entry: e, name: e.String(), set: s, looked: make(chan struct{}), again: make(chan struct{}, 1)}
		next.ctx, next.cancel = context.WithCancel(s.ctx)
		s.sources = append(s.sources, next)
		s.running.Add(1)
		go s.look(next)
	}
	for _, b := range before {
		if !kept[b] {
			b.cancel()
		}
	}
}

// follow takes another entry of the same place. The mutex of the set is held.
func (src *source) follow(e Entry) {
	if !src.entry.same(&e) {
		if src.hasLooked() {
			src.looked = make(chan struct{})
		}
		select {
		case src.again <- struct{}{}:
		default:
		}
	}
	src.name = e.String()
	src.entry = e // also one that is the same: what reads its files knows their names
}

// hasLooked says whether it has looked by its entry. The mutex of the set is held.
func (src *source) hasLooked() bool {
	select {
	case <-src.looked:
		return true
	default:
		return false
	}
}

// now is the entry as it is now.
func (src *source) now() Entry {
	src.set.mu.Lock()
	defer src.set.mu.Unlock()
	return src.entry
}

// called is the name of its entry as it is now, for who does not hold the mutex of the set.
func (src *source) called() string {
	src.set.mu.Lock()
	defer src.set.mu.Unlock()
	return src.name
}

// look runs a source until it is stopped.
func (s *Set) look(src *source) {
	defer s.running.Done()
	defer src.cancel()
	src.kind.run(src)
}

// Settle waits until each source has looked once, but no longer than the patience: a
// source that is slow keeps nobody from what the others know.
func (s *Set) Settle(patience time.Duration) {
	within := time.NewTimer(patience)
	defer within.Stop()
	s.mu.Lock()
	var all []chan struct{}
	for _, src := range s.sources {
		all = append(all, src.looked)
	}
	s.mu.Unlock()
	for _, looked := range all {
		select {
		case <-looked:
		case <-within.C:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// Found is what every source knows, in the order of the entries.
func (s *Set) Found() []Found {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Found, len(s.sources))
	for i, src := range s.sources {
		all[i] = Found{Source: src.name, Workers: src.known.workers}
	}
	return all
}

// Status is how each source fares, in the order of the entries.
func (s *Set) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, len(s.sources))
	for i, src := range s.sources {
		all[i] = Status{
			Source: src.name, Workers: len(src.known.workers), Problem: src.known.problem, Since: src.known.since,
			Errors: src.errors, Changes: src.changes,
		}
		if !src.hasLooked() && all[i].Problem == "" {
			all[i].Problem = "it has not answered yet"
		}
	}
	return all
}

// A Status is how one source fares.
type Status struct {
	Source  string    // its name, as in the log
	Workers int       // that it knows
	Problem string    // why what it knows may be old; "": it is not
	Since   time.Time // of the problem
	Errors  uint64    // looks that failed
	Changes uint64    // looks that found other workers than before
}

// Close stops all sources and waits for them, and for a call of Changed that is under way.
func (s *Set) Close() {
	s.mu.Lock() // so that Follow starts none any more
	s.cancel()
	s.mu.Unlock()
	s.running.Wait()
}

// tell is how a source says what it found. It should look again within soon, if that is
// not 0: a list that is empty counts only if it still is when its grace ends.
func (src *source) tell(r report) (soon time.Duration) {
	s := src.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if src.ctx.Err() != nil {
		return 0
	}
	if !src.hasLooked() {
		close(src.looked)
	}
	before, now := src.known.problem, time.Now()
	changed := src.known.take(r, src.entry.Grace, now)
	if r.err != nil || r.bad != nil {
		src.errors++
	}
	src.note(before)
	if changed {
		if src.changes++; len(src.known.workers) == 0 {
			s.o.Log.Warn().Str("source", src.name).Stringer("grace", src.entry.Grace).Msg("a source of workers has none any more")
		}
		s.changed = true
		s.waken()
	}
	return src.known.left(src.entry.Grace, now)
}

// maxNotes bounds the lines about problems of one source that follow each other within noteEvery.
const (
	noteEvery = 10 * time.Second
	maxNotes  = 5
)

// note logs what is not as it was before the last look.
//
// A problem that changes all the time, as somebody writes bad values, is logged from time to
// time.
func (src *source) note(before string) {
	log, now := &src.set.o.Log, src.known.problem
	if now != "" && before != "" && now != before {
		if time.Since(src.noted) > noteEvery {
			src.noted, src.notes = time.Now(), 0
		}
		if src.notes++; src.notes > maxNotes {
			return
		}
	}
	switch {
	case now == before:
	case now == "":
		log.Info().Str("source", src.name).Int("workers", len(src.known.workers)).Msg("a source of workers is well again")
	default:
		log.Warn().Str("source", src.name).Int("workers", len(src.known.workers)).Str("problem", now).
			Msg("a source of workers is stale: what it knew before holds")
	}
}

func (s *Set) waken() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run calls Changed when it is due.
func (s *Set) run() {
	defer s.running.Done()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		}
		if !s.due() {
			continue
		}
		s.o.Changed()
		rest := time.NewTimer(pace)
		select {
		case <-s.ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// due says whether other workers are known than when it was asked last.
func (s *Set) due() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, s.changed = s.changed, false
	return changed
}
