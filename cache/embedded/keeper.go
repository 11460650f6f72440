// Keeper: what a store does in the background.

package embedded

import (
	"sync"
	"time"
)

// A keeper drops what has expired, syncs the file, rewrites it when more than half of
// it is dead, and retries what failed.
type keeper struct {
	stop chan struct{}
	done sync.WaitGroup

	wanted bool          // a rewrite, though little is dead
	retry  time.Time     // when a rewrite that failed is tried again
	delay  time.Duration // until then

	mu      sync.Mutex
	problem string // why the file cannot be made smaller
}

const (
	tick       = time.Second // between two rounds: what a crash of the machine loses at most
	round      = 64          // ticks in which every entry is looked at
	minDead    = 1 << 20     // bytes of dead records for which nothing is rewritten
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

// end waits for what the keeper is doing.
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

// keep is the goroutine that looks after the file.
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

// mostlyDead says whether more than half of the file is records that are no longer needed.
func (s *Store) mostlyDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.journal.size.Load()
	return size-s.alive > max(minDead, size/2)
}

// sweep drops what is expired among a part of the entries.
func (s *Store) sweep() {
	now := s.clock.now()
	s.mu.Lock()
	left := s.queue.len/round + 1
	s.mu.Unlock()
	for left > 0 {
		left = s.sweepSome(left, now)
	}
}

// sweepSome looks at a few entries, so that nobody waits for long, and returns
// how many are left.
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
