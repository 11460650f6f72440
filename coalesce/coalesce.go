// Group: the calls under way, by key, and who may join them.

// Package coalesce makes one call for equal requests. The first request for a key leads: it makes
// the call. Requests for the same key that arrive during the call follow: they get the leader's
// value.
//
// It is like golang.org/x/sync/singleflight, with these differences:
//
//   - The value grows. Followers see each part as it comes, also those who join
//     in the middle.
//   - The lead can be taken over. When a leader fails, one of its followers
//     makes the next attempt and the others follow that one.
//   - A leader whose client has left goes on for its followers. The connection of the call is
//     closed when the last of them has left.
//   - It works in front of a store. If a request missed the value in the store just before it was
//     put there, Join returns neither a leader nor a follower: the request looks again, where
//     singleflight would make the call a second time.
//   - A leader may find that its value is for no other request. Then all followers are released
//     at once, to make calls of their own.
//
// The package itself makes no calls, never waits, reads no clock and starts no goroutine: each
// method changes or reads the state and returns. Keys and values are opaque to it.
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

// storedKeys is how many keys of stored values a Group remembers. A request whose mark is older
// than all of them must look into the store again, which is always safe.
const storedKeys = 64

// A Group is the set of calls under way. The zero value is ready. K is the key of a request. V is
// the value; it is copied when a follower gets it. So, while a call runs, a slice in V may only
// be appended to: its elements must not change.
//
// A Group, its leaders and its followers are safe for concurrent use.
type Group[K comparable, V any] struct {
	mu     sync.Mutex // guards the fields below; locked before the lock of a call
	calls  map[K]*call[K, V]
	stored [storedKeys]K // ring of the keys of the values stored last
	count  Mark          // number of values ever stored
}

// A Mark is a point in the history of a Group: how many values were stored before it.
type Mark uint64

// Mark returns the present mark. Take it before looking into the store, and pass it to Join if
// the store does not have the key.
func (g *Group[K, V]) Mark() Mark {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// Joinable reports whether a request for the key would follow a call now. Then there is no need
// to look into the store first, because the call's leader did not find the value there.
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

// Join makes a request a follower of the call for the key, or the leader of a new one. It returns
// one of the two, or neither if a value for the key was stored after the mark: then look into the
// store again, which has it by now. Without this, a request that looks into the store before a
// value is put there, and joins after that call was retired, would make the call again.
//
// A leader ends with Fail, Abandon or Retire, a follower with Leave or a successful TakeOver.
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

// storedSince reports whether a value for the key was stored after the mark, or may have been,
// because too many were stored since to remember. The caller holds the lock.
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

// forget removes a call from the map, unless another call has replaced it already. The caller
// holds the lock.
func (g *Group[K, V]) forget(c *call[K, V]) {
	if g.calls[c.key] == c {
		delete(g.calls, c.key)
	}
}

// Stats are the present numbers of calls and followers.
type Stats struct {
	Calls     int // calls that are found by their key
	Followers int // followers of these calls
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
