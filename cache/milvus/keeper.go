// Keeper: the goroutine that connects, notices when the server works again, and deletes expired
// rows.

package milvus

import (
	"context"
	"math/rand/v2"
	"time"

	"kvasir/cache"
)

const (
	beginTime  = 15 * time.Second // to connect, and to create and load the collection
	firstWait  = 100 * time.Millisecond
	maxWait    = 10 * time.Second
	lookEvery  = time.Second
	greetTime  = 3 * time.Second
	sweepEvery = time.Minute
	sweepTime  = 10 * time.Second
	sweepRows  = 1000
	sweepTurns = 20              // most batches of sweepRows per sweep
	sweepAfter = 1 * time.Minute // rows are deleted this long after they expire, because replicas' clocks differ
)

// keep keeps a session open as long as the store is.
func (s *Store) keep() {
	defer close(s.kept)
	wait := firstWait
	for s.ctx.Err() == nil {
		began := time.Now()
		if on, err := s.begin(); err != nil {
			s.setTrouble(s.words(err))
		} else {
			s.setTrouble("")
			s.session.Store(on)
			signal(s.queue.more)
			s.watch(on)
			s.session.Store(nil)
			on.end()
			if time.Since(began) > maxWait {
				wait = firstWait
			}
		}
		if !s.sleep(wait + rand.N(wait/2)) {
			return
		}
		wait = min(2*wait, maxWait)
	}
}

func (s *Store) begin() (*session, error) {
	ctx, cancel := context.WithTimeout(s.ctx, beginTime)
	defer cancel()
	select { // drop a message that is about the previous session
	case <-s.lost:
	default:
	}
	return begin(ctx, &s.o, s.name)
}

// sleep returns false if the store is closed meanwhile.
func (s *Store) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// watch returns when the session can no longer be used.
func (s *Store) watch(on *session) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var swept time.Time
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.lost:
			s.setTrouble("the collection " + s.name + " of Milvus at " + s.o.Address + " is gone or not loaded; looking for it again")
			return
		case <-s.opened:
			if err := s.greet(on); err != nil {
				s.setTrouble(s.words(err))
				return
			}
		case now := <-tick.C:
			if s.breaker.state(now) == stateHalfOpen {
				s.try()
			}
			if now.Sub(swept) >= sweepEvery {
				swept = now
				s.sweep(on, now)
			}
		}
	}
}

// greet checks, when lookups fail, whether the server is there at all. A server that is only slow
// is checked again later; otherwise the connection is made again.
func (s *Store) greet(on *session) error {
	ctx, cancel := context.WithTimeout(s.ctx, greetTime)
	defer cancel()
	return on.greet(ctx)
}

// try makes the one call that a half open breaker allows, if no request makes it. Otherwise a
// server that works again would be reported as broken until the next request.
func (s *Store) try() {
	_ = s.ask(time.Time{}, func(ctx context.Context, on *session) error {
		_, err := on.get(ctx, keyOf(cache.Scope{}, nil))
		return err
	})
}

// sweep deletes expired rows, at most some thousands, and counts the rest.
func (s *Store) sweep(on *session, now time.Time) {
	ctx, cancel := context.WithTimeout(s.ctx, sweepTime)
	defer cancel()
	expired := expiredBy(now.Add(-sweepAfter))
	for range sweepTurns {
		keys, _, err := on.names(ctx, expired, sweepRows)
		if err != nil || len(keys) == 0 {
			break
		}
		// A key may have been written again meanwhile: then its row is not expired.
		if on.delete(ctx, among(keys)+" && "+expired) != nil {
			break
		}
		s.n.expired.Add(uint64(len(keys)))
	}
	if n, err := on.count(ctx, aliveAt(now)); err == nil {
		s.n.entries.Store(n)
	}
}
