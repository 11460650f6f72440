// Package embedded keeps answers in memory and in a file that survives a kill at any byte. It
// finds the nearest questions of a scope almost exactly: it scans one half of each 512-bit
// sketch, and compares the entries that may be near in 16-bit fixed point.
//
//	s, err := embedded.Open(embedded.Options{Path: "cache.kvasir", Embedding: classify.EmbeddingVersion()})
//	defer s.Close()
package embedded

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/cache"
)

// Options configure a Store.
type Options struct {
	Path       string // of the file; empty: memory only
	Embedding  string // name of the model that makes the vectors; entries of another model are dropped
	MaxEntries int    // 0: 100,000
	MaxBytes   int64  // memory for entries and their index; 0: 1 GiB

	wall func() time.Time // the machine's clock; tests set it back
}

// maxShare: one entry may take at most 1/maxShare of MaxBytes, so that a single answer does not
// evict all others.
const maxShare = 8

// A Store is a cache.Store. A lookup holds a lock only for one map access, and never waits for
// the disk.
type Store struct {
	o       Options
	clock   clock
	index   index
	opened  Opened
	journal *journal // nil: memory only
	keeper  keeper
	closed  atomic.Bool
	failed  atomic.Uint64

	mu    sync.Mutex // one writer at a time: guards the fields below, and changes of index
	ids   map[cache.ID]*item
	queue queue
	bytes int64
	alive int64 // bytes of live records in the file
	stats cache.Stats
}

var _ cache.Store = (*Store)(nil)

// Opened describes what Open found in the file.
type Opened struct {
	Entries int
	Expired int
	Foreign int   // entries of another embedding, dropped; -1: the whole file has another format
	Corrupt int   // unreadable records, skipped
	Cut     int64 // bytes of an incomplete record at the end, removed
}

// Open opens or creates the store. Only one process can have it open at a time.
func Open(o Options) (*Store, error) {
	if o.MaxEntries == 0 {
		o.MaxEntries = 100_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.MaxEntries < 0 || o.MaxBytes < 0 {
		return nil, fmt.Errorf("cannot open the cache: %d entries of %d bytes are less than none", o.MaxEntries, o.MaxBytes)
	}
	if o.wall == nil {
		o.wall = time.Now
	}
	s := &Store{o: o, ids: map[cache.ID]*item{}}
	s.clock = clock{start: time.Now(), wall: o.wall}
	s.index.init()
	if o.Path != "" {
		if err := s.openFile(); err != nil {
			return nil, err
		}
	}
	s.keeper.start(s)
	return s, nil
}

// Opened returns what Open found in the file.
func (s *Store) Opened() Opened { return s.opened }

// Close syncs the file and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed.Swap(true)
	s.mu.Unlock()
	if again {
		return nil
	}
	s.keeper.end()
	if s.journal == nil {
		return nil
	}
	if behind, _ := s.journal.state(); behind {
		_ = s.rewrite() // the journal keeps the error
	}
	return s.journal.close(s.clock.stamp())
}

// Equal implements cache.Store. It never waits, so it ignores until.
func (s *Store) Equal(scope cache.Scope, text []byte, _ time.Time) (*cache.Entry, error) {
	if s.closed.Load() {
		return nil, cache.ErrUnavailable
	}
	it := s.index.equal(&scope, text)
	if it == nil || !it.alive(s.clock.now()) {
		return nil, nil
	}
	it.use()
	return it.entry, nil
}

// Nearest implements cache.Store. It misses 1 in 1,000 of the entries whose similarity equals the
// floor, or equals that of the last entry returned, and hardly any above (see margin). Among
// 100,000 real questions, for 250 queries, it found all 2,017 nearest entries and all 749 of
// similarity 0.8 or more.
func (s *Store) Nearest(dst []cache.Candidate, scope cache.Scope, embedding *[cache.Dim]float32, k int, floor float64, until time.Time) ([]cache.Candidate, error) {
	if s.closed.Load() {
		return dst, cache.ErrUnavailable
	}
	g := s.index.group(&scope)
	if g == nil || k <= 0 {
		return dst, nil
	}
	var query vector
	if !query.quantise(embedding) {
		return dst, nil
	}
	found := nearest{dst: dst, from: len(dst), k: k, lowest: floorOf(floor), now: s.clock.now()}
	if err := g.search(&found, &query, until); err != nil {
		s.failed.Add(1)
		return dst, err
	}
	if found.best != nil && found.dst[len(dst)].Similarity >= useful {
		found.best.use()
	}
	return found.dst, nil
}

// useful is the similarity from which the nearest entry counts as used. The store does not learn
// whether the entry did answer.
const useful = 0.8

// Put implements cache.Store. It returns when the entry is written to the file, and no lookup
// finds the entry earlier: every answer given from the cache is still there after a kill. If the
// file cannot be written, the entry stays in memory and Stats reports the problem.
func (s *Store) Put(e *cache.Entry, embedding *[cache.Dim]float32) error {
	it := newItem(e, embedding != nil)
	if embedding != nil && !it.vector.quantise(embedding) {
		it = newItem(e, false)
	}
	it.record = recordBytes(e, it.vector != nil)
	at := s.clock.stamp()
	it.created, it.deadline = s.clock.moment(e.Created), s.clock.moment(e.Expires)
	tooLarge := it.bytes()+groupBytes > s.o.MaxBytes/maxShare || it.record > maxRecord

	s.mu.Lock()
	switch {
	case s.closed.Load():
		s.mu.Unlock()
		return cache.ErrUnavailable
	case tooLarge:
		s.stats.Dropped++
		s.mu.Unlock()
		return cache.ErrTooLarge
	case it.deadline <= at.at:
		s.mu.Unlock()
		return nil
	}
	if old := s.index.find(it); old != nil {
		s.forget(old)
		s.stats.Deleted++
	}
	it.hidden.Store(s.journal != nil)
	s.keep(it)
	s.stats.Stored++
	written := s.journal.put(it, at)
	if b := s.evict(it, at); b != nil {
		written = b
	}
	s.mu.Unlock()
	if s.journal.wait(written) != nil {
		s.failed.Add(1)
	}
	it.hidden.Store(false)
	return nil
}

// keep adds an item to the store. It replaces an item with the same ID. The caller holds mu.
func (s *Store) keep(it *item) {
	if old := s.ids[it.entry.ID]; old != nil {
		s.forget(old)
		s.stats.Deleted++
	}
	s.ids[it.entry.ID] = it
	s.queue.push(it)
	s.bytes += s.index.add(it)
	s.alive += it.record
}

// forget is the reverse of keep. The caller holds mu.
func (s *Store) forget(it *item) {
	delete(s.ids, it.entry.ID)
	s.queue.remove(it)
	s.bytes -= s.index.remove(it)
	s.alive -= it.record
}

// evict makes room for the item put last. The caller holds mu.
func (s *Store) evict(put *item, at stamp) (written *batch) {
	for s.queue.len > s.o.MaxEntries || s.bytes > s.o.MaxBytes {
		it := s.queue.victim(put, at.at)
		if it == nil {
			return written
		}
		s.forget(it)
		if it.deadline <= at.at {
			s.stats.Expired++
			continue
		}
		s.stats.Evicted++
		written = s.journal.drop(it.entry.ID, at)
	}
	return written
}

// Delete implements cache.Store. If the file cannot be written, it returns an error: the entries
// are gone now, but the next start reads them from the file again.
func (s *Store) Delete(f cache.Filter) (int, error) {
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return 0, cache.ErrUnavailable
	}
	at := s.clock.stamp()
	n := 0
	var written *batch
	remove := func(it *item) {
		if it.deadline > at.at && f.Names(it.entry) {
			s.forget(it)
			written = s.journal.drop(it.entry.ID, at)
			n++
		}
	}
	if f.ID != nil {
		if it := s.ids[*f.ID]; it != nil {
			remove(it)
		}
	} else {
		for it := s.queue.oldest; it != nil; {
			next := it.newer
			remove(it)
			it = next
		}
	}
	s.stats.Deleted += uint64(n)
	s.mu.Unlock()
	if n == 0 {
		return 0, nil
	}
	if err := s.journal.wait(written); err != nil {
		s.failed.Add(1)
		return n, err
	}
	return n, nil
}

// Stats implements cache.Store.
func (s *Store) Stats() cache.Stats {
	s.mu.Lock()
	stats := s.stats
	stats.Entries, stats.Bytes = int64(s.queue.len), s.bytes
	s.mu.Unlock()
	stats.Failed = s.failed.Load()
	stats.Corrupt = uint64(s.opened.Corrupt)
	if err := s.journal.trouble(); err != nil {
		stats.Problem = err.Error()
	} else {
		stats.Problem = s.keeper.trouble()
	}
	return stats
}
