// Group: the calls under way, by key, and who may join them.

// Package coalesce makes one call for equal requests. The first request for a
// key leads: it makes the call. Requests for the same key that come meanwhile
// follow: they get what the leader gets.
//
// It does what golang.org/x/sync/singleflight does, and differs in this:
//
//   - The value grows. Followers see each part as it comes, also those who join
//     in the middle.
//   - The lead can be taken over. When a leader fails, one of its followers
//     makes the next attempt and the others follow that one.
//   - A leader whose client has gone goes on for its followers. The connection
//     on which the call is made is closed when the last of them has left.
//   - It works in front of a store. A request that missed the value in the store
//     just before it was put there is told to look again, where singleflight
//     would make the call a second time.
//   - A leader may find that its value is for nobody else. Then all followers are
//     let go at once, to make calls of their own.
//
// The package makes no call, waits for nothing, reads no clock and starts no
// goroutine: each method changes or reads the state and returns. It knows
// nothing of what keys and values are.
//
//	var group coalesce.Group[string, []byte]
//
//	since := group.Mark()
//	if value, ok := store.Get(key); ok {
//		return value
//	}
//	switch leader, follower := group.Join(key, since); {
//	case leader != nil:
//		leader.Update(part) // for each part, with all that came before it
//		leader.Complete(whole)
//		leader.Retire(store.Put(key, whole) == nil)
//	case follower != nil:
//		defer follower.Leave()
//		for s := follower.Look(true); s.Phase == coalesce.Running; s = follower.Look(true) {
//			use(s.Value)
//			<-s.Changed
//		}
//	default: // the store has it by now: look again
//	}
package coalesce

import "sync"

// storedKeys is how many keys a Group remembers of values that were stored. A
// request whose mark is older than all of them is told to look again, which is
// always right.
const storedKeys = 64

// A Group is the calls under way. The zero value is ready. K names what is
// asked; V is what comes of it, as a value that is copied when it is handed
// over: what a slice in it holds must not be changed while a call runs, only
// added to.
//
// Its methods, and those of the leaders and followers that it hands out, may be
// called from any goroutine.
type Group[K comparable, V any] struct {
	mu     sync.Mutex // guards the rest; taken before the lock of a call
	calls  map[K]*call[K, V]
	stored [storedKeys]K // keys of the values that were stored last, as a ring
	count  Mark          // of values that were ever stored
}

// A Mark is a moment in the life of a Group, counted in stored values.
type Mark uint64

// Mark is to be taken before the store is asked for a key, and handed to Join
// after the store did not have it.
func (g *Group[K, V]) Mark() Mark {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// Joinable says whether there is a call for the key that a request would follow
// now. Its leader did not find the value in the store, so that there is no need
// to look there first.
func (g *Group[K, V]) Joinable(key K) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.calls[key]
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joinable()
}

// Join makes a request a follower of the call for the key, or the leader of a
// new one. It returns one of the two, or neither where a value for the key was
// stored after the mark: then the store has it, although it did not when it was
// asked. Without this, a request that looks into the store before a value is put
// there, and joins after that call was retired, would make the call again.
//
// A leader ends with Fail, with Abandon or with Retire, a follower with Leave or
// with a TakeOver that succeeds.
func (g *Group[K, V]) Join(key K, since Mark) (*Leader[K, V], *Follower[K, V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.calls[key]; c != nil && c.join() {
		return nil, &c.follower
	}
	if g.storedSince(key, since) {
		return nil, nil
	}
	if g.calls == nil {
		g.calls = make(map[K]*call[K, V])
	}
	c := newCall(g, key)
	g.calls[key] = c
	return &c.leader, nil
}

// storedSince says whether a value for the key was stored after the mark, or may
// have been: so many were stored since that nobody knows. The lock is held.
func (g *Group[K, V]) storedSince(key K, since Mark) bool {
	if g.count-since > storedKeys {
		return true
	}
	for at := since; at < g.count; at++ {
		if g.stored[at%storedKeys] == key {
			return true
		}
	}
	return false
}

// forget takes a call off the map, unless another one has its place already.
// The lock is held.
func (g *Group[K, V]) forget(c *call[K, V]) {
	if g.calls[c.key] == c {
		delete(g.calls, c.key)
	}
}

// Stats are how many there are of each at one moment.
type Stats struct {
	Calls     int // that are found by their key
	Followers int // of these calls
	Orphaned  int // calls that go on for their followers although the leader's client is lost
}

// Stats counts the calls and their followers, one by one.
func (g *Group[K, V]) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{Calls: len(g.calls)}
	for _, c := range g.calls {
		c.mu.Lock()
		s.Followers += c.followers
		if c.orphaned() {
			s.Orphaned++
		}
		c.mu.Unlock()
	}
	return s
}
