// Call: the state that a leader and its followers share.

package coalesce

import (
	"io"
	"sync"
)

// A call is the production of one value that several requests share.
//
//  1. While it is Running it has one leader, and only the leader changes the value. While it is
//     Leaderless any follower may become the leader.
//  2. While it is Running the value only grows. A takeover begins with an empty value and a
//     higher attempt.
//  3. Completed, CompletedForStarted and Abandoned are final.
//  4. It is found by its key while requests may join it. Once it is Abandoned or retired, the
//     next request for the key begins another call.
//  5. ended is called at most once, without a lock, and after it no follower can take over.
//  6. The connection is closed at most once, when the last request that wants the value leaves,
//     and never after Unbind.
type call[K comparable, V any] struct {
	group *Group[K, V]
	key   K

	// The two handles are all that callers of the package hold. They lie here so that a call is
	// one allocation.
	leader   Leader[K, V]
	follower Follower[K, V]

	mu         sync.Mutex // guards the fields below
	phase      Phase
	attempt    int               // number of the present leader, from 1
	value      V                 // what the leader has received so far
	followers  int               // followers that have not left
	clientLost bool              // the leader's own client left before the value was complete
	conn       io.Closer         // connection of the call; nil: nothing to close
	signs      uint64            // number of signs of life of the leader: updates, heartbeats and changes of phase
	ended      func(stored bool) // called once the call has ended, see Leader.OnEnd; nil: nobody asks
	hurries    bool              // a follower asked the leader to hurry
	hurried    chan struct{}     // closed when one does; nil: the leader does not look
	signed     chan struct{}     // closed at the next sign; nil: no follower waits for it
	turned     chan struct{}     // closed at the next change of phase; nil: no follower waits for it
}

func newCall[K comparable, V any](g *Group[K, V], key K) *call[K, V] {
	c := &call[K, V]{group: g, key: key, attempt: 1}
	c.leader.call, c.follower.call = c, c
	return c
}

// A Phase is the state of a call.
type Phase uint8

// The phases of a call.
const (
	Running             Phase = iota // a leader makes the call
	Leaderless                       // the leader failed: the first follower to call TakeOver leads
	Completed                        // the value is complete, for every request
	CompletedForStarted              // the value is complete, but only for followers that have used a part of it
	Abandoned                        // the value is not for followers: each makes a call of its own
)

// joinable reports whether the call accepts followers. The caller holds the lock.
func (c *call[K, V]) joinable() bool {
	return c.phase != CompletedForStarted && c.phase != Abandoned
}

// join adds a follower, if the call accepts any.
func (c *call[K, V]) join() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joinable() {
		return false
	}
	c.followers++
	return true
}

// orphaned reports whether the leader goes on only for its followers. The caller holds the lock.
func (c *call[K, V]) orphaned() bool {
	return c.clientLost && c.phase == Running && c.followers > 0
}

// sign wakes the followers that wait for any sign of life. The caller holds the lock.
func (c *call[K, V]) sign() {
	c.signs++
	if c.signed != nil {
		close(c.signed)
		c.signed = nil
	}
}

// turn enters a phase and wakes all followers. The caller holds the lock.
func (c *call[K, V]) turn(to Phase) {
	c.phase = to
	c.sign()
	if c.turned != nil {
		close(c.turned)
		c.turned = nil
	}
}

// end takes out what is to be called now that the call has ended. The caller holds the lock, and
// calls it by say when it has let go of that.
func (c *call[K, V]) end() (ended func(stored bool)) {
	ended, c.ended = c.ended, nil
	return ended
}

// say calls what is to be called now that a call has ended; nil: nothing is.
func say(ended func(stored bool), stored bool) {
	if ended != nil {
		ended(stored)
	}
}

// hangUp closes the connection. The caller holds the lock.
func (c *call[K, V]) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
