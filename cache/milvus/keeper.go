// Keeper: the goroutine that connects, finds out when the server is well again,
// and deletes what has expired.

package milvus

import (
	"context"
	"math/rand/v2"
	"time"

	"kvasir/cache"
)

const (
	beginTime  = 15 * time.Second // to connect, and make and load the collection
	firstWait  = 100 * time.Millisecond
	maxWait    = 10 * time.Second
	lookEvery  = time.Second
	greetTime  = 3 * time.Second
	sweepEvery = time.Minute
	sweepTime  = 10 * time.Second
	sweepRows  = 1000
	sweepTurns = 20              // times sweepRows a sweep, at most
	sweepAfter = 1 * time.Minute // replicas' clocks differ
)

// keep holds a session for as long as the store lives.
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
	select { // what the session before had lost
	case <-s.lost:
	default:
	}
	return begin(ctx, &s.o, s.name)
}

// sleep says false when the store ends meanwhile.
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

// watch returns when the session is of no use any more.
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

// greet asks whether the server is there at all, when lookups fail: one that is
// only slow is asked again later, any other one connected to anew.
func (s *Store) greet(on *session) error {
	ctx, cancel := context.WithTimeout(s.ctx, greetTime)
	defer cancel()
	return on.greet(ctx)
}

// try is the one call of a half open breaker when no request makes it: without
// it a server that is well again would be said to be ill until one comes.
func (s *Store) try() {
	_ = s.ask(time.Time{}, func(ctx context.Context, on *session) error {
		_, err := on.get(ctx, keyOf(cache.Scope{}, nil))
		return err
	})
}

// sweep deletes what has expired, some thousands of rows at most, and counts
// the rest.
func (s *Store) sweep(on *session, now time.Time) {
	ctx, cancel := context.WithTimeout(s.ctx, sweepTime)
	defer cancel()
	expired := expiredBy(now.Add(-sweepAfter))
	for range sweepTurns {
		keys, _, err := on.names(ctx, expired, sweepRows)
		if err != nil || len(keys) == 0 {
			break
		}
		// A key may have been written anew meanwhile: that row is not expired.
		if on.delete(ctx, among(keys)+" && "+expired) != nil {
			break
		}
		s.n.expired.Add(uint64(len(keys)))
	}
	if n, err := on.count(ctx, aliveAt(now)); err == nil {
		s.n.entries.Store(n)
	}
}
