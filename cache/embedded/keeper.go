// Keeper: the store's background work.

package embedded

import (
	"sync"
	"time"
)

// A keeper removes expired entries, syncs the file, rewrites it when more than half of it is dead
// records, and retries after failures.
type keeper struct {
	stop chan struct{}
	done sync.WaitGroup

	wanted bool          // a rewrite is wanted although little is dead
	retry  time.Time     // when to retry a failed rewrite
	delay  time.Duration // delay before that retry

	mu      sync.Mutex
	problem string // why the last rewrite failed
}

const (
	tick       = time.Second // between two syncs: a crash of the machine loses at most this much
	round      = 64          // ticks in which every entry is checked once
	minDead    = 1 << 20     // a file with fewer bytes of dead records is not rewritten
	maxBackoff = time.Minute
)

func (k *keeper) start(s *Store) {
	k.stop = make(chan struct{})
	k.done.Add(1)
	go k.run(s)
	if s.journal != nil {
		go s.journal.write()
	}
}

// end stops the keeper and waits for its goroutine.
func (k *keeper) end() {
	close(k.stop)
	k.done.Wait()
}

func (k *keeper) run(s *Store) {
	defer k.done.Done()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.sweep()
			if s.journal != nil {
				k.keep(s)
			}
		case <-k.stop:
			return
		}
	}
}

// keep is the keeper's goroutine.
func (k *keeper) keep(s *Store) {
	j := s.journal
	behind, waiting := j.state()
	if waiting {
		j.flush()
	}
	j.sync()
	if !behind && !k.wanted && !s.mostlyDead() || time.Now().Before(k.retry) {
		return
	}
	err := s.rewrite()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.wanted, k.delay, k.problem = false, 0, ""
		return
	}
	k.delay = min(max(tick, 2*k.delay), maxBackoff)
	k.retry, k.problem = time.Now().Add(k.delay), err.Error()
}

func (k *keeper) trouble() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// mostlyDead reports whether more than half of the file is dead records.
func (s *Store) mostlyDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.journal.size.Load()
	return size-s.alive > max(minDead, size/2)
}

// sweep removes the expired entries among a part of all entries.
func (s *Store) sweep() {
	now := s.clock.now()
	s.mu.Lock()
	left := s.queue.len/round + 1
	s.mu.Unlock()
	for left > 0 {
		left = s.sweepSome(left, now)
	}
}

// sweepSome checks a few entries, so that writers do not wait long, and returns how many are left
// to check.
func (s *Store) sweepSome(n int, now int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := min(n, 256)
	n -= left
	for left > 0 {
		var it *item
		if it, left = s.queue.expired(left, now); it != nil {
			s.forget(it)
			s.stats.Expired++
		}
	}
	return n
}
