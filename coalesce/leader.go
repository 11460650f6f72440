// Leader: the request that makes the call.

package coalesce

import "io"

// A Leader is the handle of the request that makes the call. It must not be used after Fail or
// Retire. After Abandon the request may go on for its own client, and all methods still work.
type Leader[K comparable, V any] struct{ call *call[K, V] }

// Update gives the value so far to the followers: all of it, not only the new part. It does not
// change a call that has ended.
func (l *Leader[K, V]) Update(v V) {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == Running {
		c.value = v
		c.sign()
	}
}

// Heartbeat tells followers that the leader is working although nothing new has arrived.
func (l *Leader[K, V]) Heartbeat() {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == Running {
		c.sign()
	}
}

// Complete ends a running call: the value is complete. Until Retire, requests can still join it
// and get the value at once.
func (l *Leader[K, V]) Complete(v V) { l.complete(v, Completed) }

// CompleteForStarted ends a running call with a value that is complete but must not be given to
// new followers, such as one cut off because of a limit of its leader. Followers that have passed
// on a part of it may pass on the rest. All others, and later requests, make calls of their own.
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

// Retire ends a completed call; stored says whether its value is in the store. The next request
// for the key finds the value there, or begins another call.
func (l *Leader[K, V]) Retire(stored bool) { say(l.retire(stored), stored) }

func (l *Leader[K, V]) retire(stored bool) (ended func(stored bool)) {
	c, g := l.call, l.call.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if stored {
		g.stored[g.count%storedKeys] = c.key
		g.count++
	}
	g.forget(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end()
}

// OnEnd has f called once, when the call has ended, by whoever ends it: with true if its value is
// stored, with false if it has none for anybody. A leader that fails does not end it as long as
// a follower can take over. f must not use the call.
func (l *Leader[K, V]) OnEnd(f func(stored bool)) {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = f
}

// HasOnEnd reports whether this leader, or one before it, has asked for a call of OnEnd that is still
// to come.
func (l *Leader[K, V]) HasOnEnd() bool {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended != nil
}

// Fail ends the leader's attempt without a value. One follower takes over, not all, because the
// call is likely to fail again, or its worker is overloaded already. Without followers the call
// ends. A call completed before stays complete.
func (l *Leader[K, V]) Fail() { say(l.fail(), false) }

func (l *Leader[K, V]) fail() (ended func(stored bool)) {
	c, g := l.call, l.call.group
	g.mu.Lock()
	defer g.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase == Running && c.followers > 0:
		c.turn(Leaderless)
		return nil
	case c.phase == Running:
		c.phase = Abandoned
	}
	g.forget(c)
	return c.end()
}

// Abandon ends the call for all followers, because the value is not for them. They go on at once,
// each with a call of its own. If they went one after the other, each would wait for a value that
// is probably not for it either.
//
// A leader that went on only for followers is stopped.
func (l *Leader[K, V]) Abandon() { say(l.abandon(), false) }

func (l *Leader[K, V]) abandon() (ended func(stored bool)) {
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
	return c.end()
}

// Hurried returns a channel that is closed when a follower has asked the leader to hurry, also before.
func (l *Leader[K, V]) Hurried() <-chan struct{} {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hurried == nil {
		c.hurried = make(chan struct{})
		if c.hurries {
			close(c.hurried)
		}
	}
	return c.hurried
}

// Bind sets the connection to close when no request wants the value any more.
func (l *Leader[K, V]) Bind(conn io.Closer) {
	c := l.call
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
}

// Unbind takes the connection back: from now on only the leader closes it. It returns false if
// the connection was closed already.
func (l *Leader[K, V]) Unbind() (held bool) {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	held = c.conn != nil
	c.conn = nil
	return held
}

// LoseClient records that the leader's own client is lost, and returns whether the leader goes
// on. It goes on for its followers, unless everything is stopping. Otherwise the connection is
// closed and, without followers, the next request begins another call. If the call has ended,
// only the connection is closed: whether the client got the whole value shows when it is written.
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

// ClientLost reports whether the leader's own client was lost while the call ran.
func (l *Leader[K, V]) ClientLost() bool {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clientLost
}

// Orphaned reports whether the leader's client is lost and it goes on for its followers.
func (l *Leader[K, V]) Orphaned() bool {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orphaned()
}

// HasFollowers reports whether others wait for more of the value.
func (l *Leader[K, V]) HasFollowers() bool {
	c := l.call
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == Running && c.followers > 0
}
