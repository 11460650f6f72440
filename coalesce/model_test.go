// Random operations on a group, beside a plain model of it.

package coalesce

import (
	"math/rand/v2"
	"testing"
)

// A model is the specification of a group, written to be read: no locks, no map, no ring, and
// every key ever stored.
type model struct {
	calls  []*modelCall // all calls ever made
	stored []int
}

type modelCall struct {
	key     int
	listed  bool // it is found by its key
	phase   Phase
	attempt int
	value   int
	signs   uint64
	turns   int // changes of phase visible to followers

	followers  int
	led        bool // a request holds the leader's handle
	clientGone bool // the leader's client is gone
	reported   bool // it left while the call ran
	conn       *connection

	leader   *Leader[int, int]
	follower *Follower[int, int]
	watches  []watch
}

// A connection counts how often it was closed.
type connection struct {
	closed int
	ended  bool // nobody needs it: the leader's client was lost, or everything stopped, and there is no other reason to keep it
}

func (c *connection) Close() error {
	c.closed++
	return nil
}

// A watch is a follower's channel, and the state of the call when the follower got it.
type watch struct {
	changed <-chan struct{}
	parts   bool
	signs   uint64
	turns   int
}

func (m *model) listed(key int) *modelCall {
	for _, c := range m.calls {
		if c.listed && c.key == key {
			return c
		}
	}
	return nil
}

func (m *model) storedSince(key, mark int) bool {
	since := m.stored[mark:]
	if len(since) > storedKeys {
		return true
	}
	for _, k := range since {
		if k == key {
			return true
		}
	}
	return false
}

func (c *modelCall) takesFollowers() bool {
	return c.phase != CompletedForStarted && c.phase != Abandoned
}

func (c *modelCall) final() bool { return c.phase != Running && c.phase != Leaderless }

// wanted reports whether any request still wants the bytes of the connection.
func (c *modelCall) wanted() bool { return !c.clientGone || c.phase == Running && c.followers > 0 }

func (c *modelCall) turn(to Phase) {
	c.phase = to
	c.signs++
	c.turns++
}

// A run drives a group and its model with the same operations.
type run struct {
	*testing.T
	rand  *rand.Rand
	group Group[int, int]
	model
	marks []int // marks taken and not used yet
	next  int   // value
}

func TestGroupIsAsItsModel(t *testing.T) {
	phases := map[Phase]int{}
	for seed := range uint64(300) {
		r := &run{T: t, rand: rand.New(rand.NewPCG(seed, 2))}
		for range 400 {
			r.step()
			if r.check(); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		for _, c := range r.calls {
			phases[c.phase]++
		}
		r.end()
	}
	t.Log(phases)
	for _, p := range []Phase{Completed, CompletedForStarted, Abandoned} {
		if phases[p] == 0 {
			t.Errorf("no call came to phase %d", p)
		}
	}
}

const keys = 3

func (r *run) step() {
	if len(r.marks) == 0 || r.rand.IntN(8) == 0 {
		if mark := r.group.Mark(); int(mark) != len(r.stored) {
			r.Errorf("mark %d, want %d", mark, len(r.stored))
		}
		r.marks = append(r.marks, len(r.stored))
		return
	}
	if r.rand.IntN(4) == 0 {
		r.join()
		return
	}
	var some []*modelCall
	for _, c := range r.calls {
		if c.led || c.followers > 0 {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return
	}
	switch c := some[r.rand.IntN(len(some))]; {
	case c.led && (c.followers == 0 || r.rand.IntN(2) == 0):
		r.lead(c)
	case c.followers > 0:
		r.follow(c)
	}
}

func (r *run) join() {
	key, at := r.rand.IntN(keys), r.rand.IntN(len(r.marks))
	mark := r.marks[at]
	if r.rand.IntN(4) > 0 { // now and then it serves again, and gets old
		r.marks = append(r.marks[:at], r.marks[at+1:]...)
	}
	joined := r.listed(key)
	if joined != nil && !joined.takesFollowers() {
		joined = nil
	}
	if got := r.group.Joinable(key); got != (joined != nil) {
		r.Errorf("joinable: %v", got)
	}
	switch leader, follower := r.group.Join(key, Mark(mark)); {
	case joined != nil:
		if leader != nil || follower != joined.follower {
			r.Error("it does not follow")
		}
		joined.followers++
	case r.storedSince(key, mark):
		if leader != nil || follower != nil {
			r.Error("it is not told to look again")
		}
	default:
		if leader == nil || follower != nil {
			r.Fatal("it does not lead")
		}
		if before := r.listed(key); before != nil {
			before.listed = false
		}
		r.calls = append(r.calls, &modelCall{key: key, listed: true, attempt: 1, led: true, leader: leader, follower: &leader.call.follower})
	}
}

func (r *run) lead(c *modelCall) {
	l := c.leader
	switch r.rand.IntN(14) {
	case 0, 1, 2:
		r.next++
		if c.phase == Running {
			c.value = r.next
			c.signs++
		}
		l.Update(r.next)
	case 3:
		if c.phase == Running {
			c.signs++
		}
		l.Heartbeat()
	case 4:
		r.next++
		if c.phase == Running {
			c.value = r.next
			c.turn(Completed)
		}
		l.Complete(r.next)
	case 5:
		r.next++
		if c.phase == Running {
			c.value = r.next
			c.turn(CompletedForStarted)
		}
		l.CompleteForStarted(r.next)
	case 6:
		if c.phase == Running {
			c.turn(Abandoned)
		}
		c.listed = false
		if l.Abandon(); c.conn != nil {
			c.conn.ended = c.conn.ended || c.clientGone // it went on only for them
		}
	case 7, 8:
		if c.conn == nil {
			c.conn = &connection{}
			l.Bind(c.conn)
			if c.clientGone { // the leader notices it when it binds
				r.loseClient(c, false)
			}
		}
	case 9:
		r.unbind(c)
	case 10, 11:
		r.loseClient(c, r.rand.IntN(4) == 0)
	default:
		r.unbind(c)
		r.finish(c)
	}
}

func (r *run) unbind(c *modelCall) {
	held := c.conn != nil && c.conn.closed == 0
	if got := c.leader.Unbind(); got != held {
		r.Errorf("unbound: %v, want %v", got, held)
	}
	c.conn = nil
}

func (r *run) loseClient(c *modelCall, stopping bool) {
	goesOn := c.phase == Running && c.followers > 0 && !stopping
	if !stopping {
		c.clientGone = true
		c.reported = c.reported || c.phase == Running
	}
	if c.phase == Running && c.followers == 0 {
		c.phase = Abandoned
	}
	if got := c.leader.LoseClient(stopping); got != goesOn {
		r.Errorf("goes on: %v, want %v", got, goesOn)
	}
	if !goesOn && c.conn != nil {
		if c.conn.ended = true; c.conn.closed != 1 {
			r.Error("the connection of a lost client is open")
		}
	}
}

// finish ends a leader in the way that fits its phase.
func (r *run) finish(c *modelCall) {
	c.led = false
	switch {
	case c.phase == Completed:
		stored := r.rand.IntN(2) == 0
		if stored {
			r.stored = append(r.stored, c.key)
		}
		c.listed = false
		c.leader.Retire(stored)
	case r.rand.IntN(2) == 0:
		if c.phase == Running {
			c.turn(Abandoned)
		}
		c.listed = false
		c.leader.Abandon()
	case c.phase == Running && c.followers > 0:
		c.turn(Leaderless)
		c.leader.Fail()
	default:
		if c.phase == Running {
			c.phase = Abandoned
		}
		c.listed = false
		c.leader.Fail()
	}
}

func (r *run) follow(c *modelCall) {
	switch r.rand.IntN(4) {
	case 0:
		parts := r.rand.IntN(2) == 0
		s := c.follower.Look(parts)
		c.watches = append(c.watches, watch{s.Changed, parts, c.signs, c.turns})
		if (s.Changed == nil) != c.final() {
			r.Errorf("something to wait for: %v, in phase %d", s.Changed != nil, c.phase)
		}
	case 1, 2:
		leader := c.follower.TakeOver()
		if (leader != nil) != (c.phase == Leaderless) {
			r.Errorf("taken over: %v, in phase %d", leader != nil, c.phase)
		}
		if leader != nil {
			c.turn(Running)
			c.attempt++
			c.followers--
			c.value, c.led, c.clientGone, c.reported = 0, true, false, false
		}
	default:
		if c.followers--; c.followers == 0 && (c.phase == Leaderless || c.phase == Running && c.clientGone) {
			c.phase, c.listed = Abandoned, false
		}
		c.follower.Leave()
	}
}

// check compares all visible state.
func (r *run) check() {
	want := Stats{}
	for _, c := range r.calls {
		orphaned := c.phase == Running && c.clientGone && c.followers > 0
		if c.listed {
			want.Calls++
			want.Followers += c.followers
			if orphaned {
				want.Orphaned++
			}
		}
		s := c.follower.Look(false)
		if s.Phase != c.phase || s.Attempt != c.attempt || s.Value != c.value || s.Signs != c.signs {
			r.Errorf("got %+v, want phase %d, attempt %d, value %d, %d signs", s, c.phase, c.attempt, c.value, c.signs)
		}
		if l := c.leader; c.led && (l.ClientLost() != c.reported || l.Orphaned() != orphaned || l.HasFollowers() != (c.phase == Running && c.followers > 0)) {
			r.Errorf("client lost %v, orphaned %v, followers %v; want %+v", l.ClientLost(), l.Orphaned(), l.HasFollowers(), c)
		}
		switch conn := c.conn; {
		case conn == nil:
		case conn.closed > 1:
			r.Error("closed twice")
		case (c.phase == Running || c.phase == Abandoned) && !c.wanted() && conn.closed == 0:
			r.Error("open, and nobody wants what comes")
		case (c.wanted() || c.phase == Completed) && conn.closed == 1 && !conn.ended:
			r.Error("closed, and somebody wants what comes")
		}
		if c.followers == 0 {
			c.watches = nil
		}
		for _, w := range c.watches {
			closed := false
			select {
			case <-w.changed:
				closed = true
			default:
			}
			if changed := c.turns > w.turns || w.parts && c.signs > w.signs; changed != closed {
				r.Errorf("woken: %v, changed: %v", closed, changed)
			}
		}
	}
	if got := r.group.Stats(); got != want {
		r.Errorf("got %+v, want %+v", got, want)
	}
}

// end ends all requests: nothing is left behind.
func (r *run) end() {
	for _, c := range r.calls {
		for c.led || c.followers > 0 {
			if c.led {
				r.unbind(c)
				r.finish(c)
			} else if c.followers > 0 {
				c.followers--
				c.follower.Leave()
			}
		}
	}
	if s := r.group.Stats(); s != (Stats{}) {
		r.Errorf("left behind: %+v", s)
	}
}
