// Follower: a request that gets the value of another request's call.

package coalesce

// A Follower is the handle of a request that follows a call. All followers of
// one call have the same handle, so each must leave exactly once.
type Follower[K comparable, V any] struct{ call *call[K, V] }

// A Snapshot is the state of a call at one moment, as a follower sees it.
type Snapshot[V any] struct {
	Phase   Phase
	Attempt int    // number of the leader that made Value, from 1
	Value   V      // the value so far; complete once Phase says so
	Signs   uint64 // number of signs of life so far; a follower can detect silence by it

	// Changed is closed when a new Look would return something else. It is nil if nothing will
	// change any more.
	Changed <-chan struct{}
}

// Look returns the state of the call. If parts is set, Changed is closed at the leader's next
// sign of life; otherwise, for a follower that cannot use parts, at the next change of phase.
func (f *Follower[K, V]) Look(parts bool) Snapshot[V] {
	c := f.call
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := &c.turned
	if parts {
		changed = &c.signed
	}
	if *changed == nil && (c.phase == Running || c.phase == Leaderless) {
		*changed = make(chan struct{})
	}
	return Snapshot[V]{c.phase, c.attempt, c.value, c.signs, *changed}
}

// Hurry asks the leader, and whoever takes over from it, not to wait for long for a value that comes as a whole: the
// follower uses parts.
func (f *Follower[K, V]) Hurry() {
	c := f.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hurries && c.hurried != nil {
		close(c.hurried)
	}
	c.hurries = true
}

// TakeOver makes the follower the leader of a Leaderless call; it is then no longer a follower.
// It returns nil if the call has a leader, because another follower was faster, or if it has
// ended.
func (f *Follower[K, V]) TakeOver() *Leader[K, V] {
	c := f.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != Leaderless {
		return nil
	}
	var empty V
	c.value, c.clientLost = empty, false
	c.attempt++
	c.followers--
	c.turn(Running)
	return &c.leader
}

// Leave ends the follower. When the last one leaves a call that went on only for followers, the
// call ends and its connection is closed.
func (f *Follower[K, V]) Leave() { say(f.leave(), false) }

func (f *Follower[K, V]) leave() (ended func(stored bool)) {
	c, g := f.call, f.call.group
	g.mu.Lock()
	defer g.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followers--; c.followers > 0 {
		return nil
	}
	if c.phase != Leaderless && !(c.phase == Running && c.clientLost) {
		return nil
	}
	c.phase = Abandoned
	c.hangUp()
	g.forget(c)
	return c.end()
}

// Close is Leave, as an io.Closer, for code that closes a lost client's connections.
func (f *Follower[K, V]) Close() error {
	f.Leave()
	return nil
}
