// Follower: a request that gets what another one's call brings.

package coalesce

// A Follower is the handle of a request that follows a call. All followers of
// one call have the same handle, so each must leave exactly once.
type Follower[K comparable, V any] struct{ call *call[K, V] }

// A Snapshot is what a follower sees of a call at one moment.
type Snapshot[V any] struct {
	Phase   Phase
	Attempt int    // of the leader whose value it is: 1 for the first
	Value   V      // as far as it has come; whole once Phase says so
	Signs   uint64 // signs of life that leaders gave until now: a follower can tell silence by it

	// Changed is closed when a new Look would show something else. It is nil where
	// nothing changes any more.
	Changed <-chan struct{}
}

// Look returns how the call stands. Changed is closed with each sign of life of
// the leader, or, for a follower that has no use for parts, with the next phase.
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

// TakeOver makes the follower the leader of a call that is Leaderless; its place
// as a follower is given up. It returns nil where the call has a leader, because
// another follower was faster, or has ended.
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

// Leave gives the follower's place up. When the last one leaves a call that was
// made for followers alone, the call ends and its connection is closed.
func (f *Follower[K, V]) Leave() {
	c, g := f.call, f.call.group
	g.mu.Lock()
	defer g.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followers--; c.followers > 0 {
		return
	}
	if c.phase == Leaderless || c.phase == Running && c.clientLost {
		c.phase = Abandoned
		c.hangUp()
		g.forget(c)
	}
}

// Close is Leave, for what closes a lost client's connections.
func (f *Follower[K, V]) Close() error {
	f.Leave()
	return nil
}
