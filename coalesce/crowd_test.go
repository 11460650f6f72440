// Many concurrent requests that come and go: none waits for ever.

package coalesce

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A store is a cache behind a group.
type store struct {
	mu   sync.Mutex
	have map[int]string
}

func (s *store) get(key int) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.have[key]
	return v, ok
}

func (s *store) put(key int, v string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.have[key] = v
}

// A crowd is many requests for few keys. Each key has one full value, and every part that a
// request sees is a prefix of that.
type crowd struct {
	*testing.T
	group Group[int, string]
	store store
	kept  atomic.Int32 // number of values stored
}

const whole = "a value that comes in parts"

// Leaders fail, abandon their calls and lose their clients, and followers leave: every request
// that stays comes to an end, with the full value or without, and no key is stored twice.
// synctest fails the test if all remaining requests wait for each other.
func TestCrowd(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			c := &crowd{T: t, store: store{have: map[int]string{}}}
			var all sync.WaitGroup
			for i := range uint64(60) {
				all.Go(func() { c.request(rand.New(rand.NewPCG(seed, i))) })
			}
			all.Wait()
			if s := c.group.Stats(); s != (Stats{}) {
				t.Errorf("left behind: %+v", s)
			}
			if int(c.kept.Load()) != len(c.store.have) {
				t.Errorf("%d values were stored for %d keys", c.kept.Load(), len(c.store.have))
			}
		})
	}
}

// request runs one request, from its look into the store to its end.
func (c *crowd) request(r *rand.Rand) {
	key := r.IntN(4)
	pause(r)
	for {
		mark := c.group.Mark()
		if !c.group.Joinable(key) {
			if v, ok := c.store.get(key); ok {
				if v != whole {
					c.Errorf("stored: %q", v)
				}
				return
			}
			pause(r)
		}
		switch leader, follower := c.group.Join(key, mark); {
		case leader != nil:
			c.lead(r, key, leader)
			return
		case follower != nil:
			c.follow(r, key, follower)
			return
		}
	}
}

// lead makes the call, which fails now and then.
func (c *crowd) lead(r *rand.Rand, key int, l *Leader[int, string]) {
	conn := &signalling{closed: make(chan struct{})}
	l.Bind(conn)
	client := &client{lost: func() { l.LoseClient(false) }}
	if r.IntN(4) == 0 {
		time.AfterFunc(time.Duration(r.IntN(30))*time.Millisecond, client.lose)
	}
	end := func() {
		client.unbind()
		l.Unbind()
	}
	for at := range whole {
		select {
		case <-conn.closed:
			end()
			l.Fail()
			return
		case <-time.After(time.Millisecond):
		}
		if l.Update(whole[:at]); r.IntN(200) == 0 {
			if end(); r.IntN(2) == 0 {
				l.Fail()
			} else {
				l.Abandon()
			}
			return
		}
	}
	end()
	l.Complete(whole)
	pause(r)
	stored := r.IntN(2) == 0
	if stored {
		c.store.put(key, whole)
		c.kept.Add(1)
	}
	l.Retire(stored)
}

// follow waits for the value, leaves, or takes over.
func (c *crowd) follow(r *rand.Rand, key int, f *Follower[int, string]) {
	var leaves <-chan time.Time // nil: it does not leave
	if r.IntN(3) == 0 {
		leaves = time.After(time.Duration(r.IntN(60)) * time.Millisecond)
	}
	parts := r.IntN(2) == 0
	seen, attempt := "", 1
	for {
		s := f.Look(parts)
		if s.Attempt > attempt {
			seen, attempt = "", s.Attempt
		}
		if s.Attempt < attempt || len(s.Value) < len(seen) || s.Value != whole[:len(s.Value)] {
			c.Errorf("attempt %d said %q after attempt %d said %q", s.Attempt, s.Value, attempt, seen)
		}
		seen = s.Value
		switch s.Phase {
		case Completed:
			if s.Value != whole {
				c.Errorf("%q is complete", s.Value)
			}
			f.Leave()
			return
		case Abandoned:
			f.Leave()
			return
		case Leaderless:
			if l := f.TakeOver(); l != nil {
				c.lead(r, key, l)
				return
			}
		}
		select {
		case <-s.Changed:
		case <-leaves:
			f.Leave()
			return
		}
	}
}

func pause(r *rand.Rand) { time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond) }

// A signalling is a connection that signals when it is closed. A second Close panics.
type signalling struct{ closed chan struct{} }

func (c *signalling) Close() error {
	close(c.closed)
	return nil
}

// A client is the leader's own client, which may be lost while it is bound.
type client struct {
	mu   sync.Mutex
	lost func() // nil: no longer bound
}

func (c *client) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		c.lost()
	}
}

func (c *client) unbind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = nil
}
