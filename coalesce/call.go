// Call: the state that a leader and its followers share.

package coalesce

import (
	"io"
	"sync"
)

// A call is one value on its way to several requests.
//
//  1. It has one leader while it is Running, and only the leader changes the
//     value. It has none while it is Leaderless: then any follower may become it.
//  2. While it is Running the value grows, and nothing of it is taken back. A
//     takeover begins with an empty one and a higher attempt.
//  3. Completed, CompletedForStarted and Abandoned are final.
//  4. It is found by its key while requests may join it. From Abandoned on, or
//     after Retire, the next request for the key begins another call.
//  5. The connection is closed at most once, by whoever is the last to want
//     the value, and never after Unbind.
type call[K comparable, V any] struct {
	group *Group[K, V]
	key   K

	// The two handles, which are all that anybody outside the package holds: here,
	// so that a call is one allocation.
	leader   Leader[K, V]
	follower Follower[K, V]

	mu         sync.Mutex // guards the rest
	phase      Phase
	attempt    int           // how many leaders there were, this one included
	value      V             // what the leader has got
	followers  int           // that have not left
	clientLost bool          // the leader's own client went before the value was whole
	conn       io.Closer     // on which the call is made; nil: there is nothing to close
	signs      uint64        // signs of life of the leader: updates, heartbeats, and changes of phase
	signed     chan struct{} // closed with the next sign; nil: nobody waits for it
	turned     chan struct{} // closed with the next phase; nil: nobody waits for it
}

func newCall[K comparable, V any](g *Group[K, V], key K) *call[K, V] {
	c := &call[K, V]{group: g, key: key, attempt: 1}
	c.leader.call, c.follower.call = c, c
	return c
}

// A Phase is how far a call has come.
type Phase uint8

// The phases of a call.
const (
	Running             Phase = iota // a leader makes it
	Leaderless                       // its leader failed: the next follower to ask takes over
	Completed                        // the value is whole, for everybody
	CompletedForStarted              // the value is whole, but only for followers that have used a part of it
	Abandoned                        // the value is for no follower: each makes a call of its own
)

// joinable says whether the call takes followers; the lock is held.
func (c *call[K, V]) joinable() bool {
	return c.phase != CompletedForStarted && c.phase != Abandoned
}

// join adds a follower, if the call takes any.
func (c *call[K, V]) join() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joinable() {
		return false
	}
	c.followers++
	return true
}

// orphaned says whether the leader goes on for its followers alone; the lock is held.
func (c *call[K, V]) orphaned() bool {
	return c.clientLost && c.phase == Running && c.followers > 0
}

// sign wakes followers that wait for any sign; the lock is held.
func (c *call[K, V]) sign() {
	c.signs++
	if c.signed != nil {
		close(c.signed)
		c.signed = nil
	}
}

// turn enters a phase and wakes all followers; the lock is held.
func (c *call[K, V]) turn(to Phase) {
	c.phase = to
	c.sign()
	if c.turned != nil {
		close(c.turned)
		c.turned = nil
	}
}

// hangUp closes the connection; the lock is held.
func (c *call[K, V]) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
