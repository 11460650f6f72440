// Leader: the request that makes the call.

package coalesce

import "io"

// A Leader is the handle of the request that makes the call. It must not be used
// after Fail or Retire. After Abandon the request may go on with its own client
// alone, and every method still does what it says.
type Leader[K comparable, V any] struct{ call *call[K, V] }

// Update hands the value to the followers, as far as it has come: all of it, not
// only what is new. A call that has ended is not changed.
func (l *Leader[K, V]) Update(v V) {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == Running {
		c.value = v
		c.sign()
	}
}

// Heartbeat tells followers that the leader is at work although nothing has come.
func (l *Leader[K, V]) Heartbeat() {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == Running {
		c.sign()
	}
}

// Complete ends a call that runs: the value is whole. Requests still join it,
// and have their value at once, until Retire.
func (l *Leader[K, V]) Complete(v V) { l.complete(v, Completed) }

// CompleteForStarted ends a call that runs with a value that is whole but is to
// be given to nobody new, such as one that was cut off for its leader's sake.
// Followers that have passed on a part of it may pass on the rest. The others,
// and whoever comes, make calls of their own.
func (l *Leader[K, V]) CompleteForStarted(v V) { l.complete(v, CompletedForStarted) }

func (l *Leader[K, V]) complete(v V, as Phase) {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == Running {
		c.value = v
		c.turn(as)
	}
}

// Retire is the end of a call that was completed, after its value was stored, or
// was not. From now on the next request for the key finds the value in the
// store, or begins another call.
func (l *Leader[K, V]) Retire(stored bool) {
	c, g := l.call, l.call.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if stored {
		g.stored[g.count%storedKeys] = c.key
		g.count++
	}
	g.forget(c)
}

// Fail ends the leader's attempt without a value. One follower takes over and
// not all: what has failed is likely to fail again, or is overloaded already.
// Without followers the call ends. One that was completed before stays complete.
func (l *Leader[K, V]) Fail() {
	c, g := l.call, l.call.group
	g.mu.Lock()
	defer g.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase == Running && c.followers > 0:
		c.turn(Leaderless)
		return
	case c.phase == Running:
		c.phase = Abandoned
	}
	g.forget(c)
}

// Abandon ends the call for all others: the value is for none of them. They go
// on at once, each with a call of its own. One by one, they would wait for
// values that are most likely not for others either.
//
// A leader that went on for them alone is stopped.
func (l *Leader[K, V]) Abandon() {
	c, g := l.call, l.call.group
	g.mu.Lock()
	defer g.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == Running {
		c.turn(Abandoned)
	}
	if c.clientLost {
		c.hangUp()
	}
	g.forget(c)
}

// Bind names the connection that is closed when nobody wants the value any more.
func (l *Leader[K, V]) Bind(conn io.Closer) {
	c := l.call
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
}

// Unbind takes the connection back: from now on only the leader closes it. It
// returns false where the connection was closed.
func (l *Leader[K, V]) Unbind() (held bool) {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	held = c.conn != nil
	c.conn = nil
	return held
}

// LoseClient says that the leader's own client is lost. While others follow, the
// leader goes on for them, unless everything is stopping. Otherwise the
// connection is closed, and without followers whoever comes now begins another
// call. Of a call that has ended the connection is closed and nothing else
// changes: whether the client had all of the value shows when it is written.
func (l *Leader[K, V]) LoseClient(stopping bool) (goesOn bool) {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase != Running:
	case c.followers > 0 && !stopping:
		c.clientLost = true
		return true
	default:
		c.clientLost = c.clientLost || !stopping
		if c.followers == 0 {
			c.phase = Abandoned
		}
	}
	c.hangUp()
	return false
}

// ClientLost says whether the leader's own client was lost while the call ran.
func (l *Leader[K, V]) ClientLost() bool {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clientLost
}

// Orphaned says whether the leader's client is lost and it goes on for its
// followers.
func (l *Leader[K, V]) Orphaned() bool {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orphaned()
}

// HasFollowers says whether others wait for more of the value.
func (l *Leader[K, V]) HasFollowers() bool {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == Running && c.followers > 0
}
