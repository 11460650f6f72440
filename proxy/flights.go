// Flights: all that are under way, by what is asked.
package proxy

import (
	"crypto/sha256"
	"sync"

	"kvasir/cache"
)

// A flightKey names what is asked: requests with one key may have one answer.
// Who asks is part of the scope.
type flightKey struct {
	scope    cache.Scope
	question [16]byte // of a SHA-256
}

// keyOfFlight is that of whom the cache would give one answer for equal text: no
// white space counts less here than there.
func keyOfFlight(q *cache.Query) (k flightKey) {
	k.scope = q.Scope
	sum := sha256.Sum256(q.Normal())
	copy(k.question[:], sum[:])
	return k
}

// flights are those under way. The zero value is ready.
type flights struct {
	mu   sync.Mutex // guards all of it; taken before that of a flight
	all  map[flightKey]*flight
	kept [64]flightKey // whose answers were stored last: a ring
	ever uint64        // how many were stored at all
}

// mark is to be taken before the cache is asked, and handed to board after.
func (s *flights) mark() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ever
}

// flies says whether there is a flight of the key that takes followers.
func (s *flights) flies(key flightKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.all[key]
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// board finds the flight of a key, or begins one. It returns nil where an answer
// to the key was stored since mark: the cache has it now, though it did not when
// it was asked. Without this, a request that looks between the end of a flight
// and its own beginning would ask a worker once more.
func (s *flights) board(key flightKey, mark uint64) (f *flight, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f = s.all[key]; f != nil && f.follow() {
		return f, false
	}
	if s.ever-mark > uint64(len(s.kept)) {
		return nil, false
	}
	for ; mark < s.ever; mark++ {
		if s.kept[mark%uint64(len(s.kept))] == key {
			return nil, false
		}
	}
	if s.all == nil {
		s.all = make(map[flightKey]*flight)
	}
	f = &flight{key: key, try: 1}
	s.all[key] = f
	return f, true
}

// leave takes a follower off. The last one stops a worker that works for
// nobody any more.
func (s *flights) leave(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers--; f.followers > 0 {
		return
	}
	if f.phase == adrift || f.phase == flying && f.deaf {
		f.phase = scattered
		f.stop()
		s.forget(f)
	}
}

// fail ends the leader's try. Without followers the flight ends, too. The next
// leader is one of them and not all: what failed is likely to fail again, or is
// overloaded already.
func (s *flights) fail(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == flying && f.followers > 0 {
		f.phase = adrift
		f.turn()
		return
	}
	f.phase = scattered
	s.forget(f)
}

// scatter ends the flight without an answer for others. All go on at once: the
// next answer would not be for others either, and they would wait for each
// other one by one.
func (s *flights) scatter(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == flying {
		f.phase = scattered
		f.turn()
	}
	if f.deaf {
		f.stop() // it went on for them
	}
	s.forget(f)
}

// retire lets go of a flight that has landed, after its answer was stored, or
// was not.
func (s *flights) retire(f *flight, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored {
		s.kept[s.ever%uint64(len(s.kept))] = f.key
		s.ever++
	}
	s.forget(f)
}

// forget takes the flight off the map; the lock is held.
func (s *flights) forget(f *flight) {
	if s.all[f.key] == f {
		delete(s.all, f.key)
	}
}

func (s *flights) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
