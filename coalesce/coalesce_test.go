// Groups: which requests lead, which follow, and which must look into the store again.

package coalesce

import (
	"fmt"
	"slices"
	"testing"
)

// Example has one request that leads and one that follows.
func Example() {
	var group Group[string, string]
	leader, _ := group.Join("question", group.Mark())
	_, follower := group.Join("question", group.Mark())
	leader.Update("an ans")
	fmt.Println(follower.Look(true).Value)
	leader.Complete("an answer")
	s := follower.Look(true)
	fmt.Println(s.Value, s.Phase == Completed)
	follower.Leave()
	leader.Retire(true)
	// Output:
	// an ans
	// an answer true
}

// A value stored just after a request missed it is found at the second look.
func TestStoredSinceTheLook(t *testing.T) {
	var g Group[string, int]
	before := g.Mark()
	leader, _ := g.Join("a", before)
	if leader == nil {
		t.Fatal("no call")
	}
	leader.Complete(1)
	if other, follower := g.Join("a", before); other != nil || follower == nil || follower.Look(false).Value != 1 {
		t.Error("one that is complete is not found before it is retired")
	}
	leader.Retire(true)
	if other, follower := g.Join("a", before); other != nil || follower != nil {
		t.Error("a second call though the value was stored since the look")
	}
	if other, _ := g.Join("b", before); other == nil {
		t.Error("another key")
	}
	if other, _ := g.Join("a", g.Mark()); other == nil {
		t.Error("a look after it was stored")
	}
	for i := range storedKeys + 1 {
		other, _ := g.Join(fmt.Sprint(i), g.Mark())
		other.Complete(i)
		other.Retire(true)
	}
	if other, follower := g.Join("c", before); other != nil || follower != nil {
		t.Error("too long ago to know")
	}
}

// One follower takes the lead, and the value of the leader before is dropped.
func TestTakeOver(t *testing.T) {
	var g Group[string, int]
	first, _ := g.Join("a", 0)
	_, follower := g.Join("a", 0)
	_, _ = g.Join("a", 0)
	first.Update(1)
	if follower.TakeOver() != nil {
		t.Error("from a leader that is at it")
	}
	changed := follower.Look(false).Changed
	first.Fail()
	<-changed
	second := follower.TakeOver()
	if second == nil || follower.TakeOver() != nil {
		t.Fatal("not one and only one")
	}
	if s := follower.Look(true); s.Phase != Running || s.Attempt != 2 || s.Value != 0 {
		t.Errorf("%+v", s)
	}
	second.Fail()
	follower.Leave()
	if s := g.Stats(); s != (Stats{}) {
		t.Errorf("%+v", s)
	}
}

// A value that is only for the leader releases all followers at once, and the next request begins
// a new call.
func TestAbandon(t *testing.T) {
	var g Group[string, int]
	leader, _ := g.Join("a", 0)
	_, follower := g.Join("a", 0)
	changed := follower.Look(false).Changed
	leader.Abandon()
	<-changed
	if s := follower.Look(false); s.Phase != Abandoned || s.Changed != nil {
		t.Errorf("%+v", s)
	}
	if g.Joinable("a") {
		t.Error("it takes followers")
	}
	if other, _ := g.Join("a", 0); other == nil || other == leader {
		t.Error("no other call")
	}
	leader.Abandon() // once more, as for every further part: the other call stays
	if !g.Joinable("a") {
		t.Error("the other call was forgotten")
	}
}

// A value that is complete for started followers stays so even if the leader then loses its
// client.
func TestCompletedForStartedStaysSo(t *testing.T) {
	var g Group[string, int]
	leader, _ := g.Join("a", 0)
	_, follower := g.Join("a", 0)
	leader.CompleteForStarted(1)
	leader.Fail()
	if s := follower.Look(true); s.Phase != CompletedForStarted || s.Value != 1 {
		t.Errorf("%+v", s)
	}
	if s := g.Stats(); s != (Stats{}) {
		t.Errorf("%+v", s)
	}
}

// A call is one allocation, and its operations allocate nothing.
func TestAllocations(t *testing.T) {
	var g Group[int, [20]int]
	var value [20]int
	n := testing.AllocsPerRun(100, func() {
		leader, _ := g.Join(1, 0)
		leader.Update(value)
		leader.Heartbeat()
		leader.Complete(value)
		leader.Retire(false)
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// A follower that uses parts has the leader hurry, whichever comes first, and whoever takes over.
func TestHurry(t *testing.T) {
	var g Group[string, int]
	hurries := func(l *Leader[string, int]) bool {
		select {
		case <-l.Hurried():
			return true
		default:
			return false
		}
	}
	leader, _ := g.Join("a", 0)
	if _, follower := g.Join("a", 0); hurries(leader) {
		t.Error("nobody has asked for it")
	} else if follower.Hurry(); !hurries(leader) {
		t.Error("it does not know")
	} else if follower.Hurry(); !hurries(leader) {
		t.Error("it was asked once more")
	}
	leader.Fail()
	_, follower := g.Join("a", 0)
	if !hurries(follower.TakeOver()) {
		t.Error("who takes over does not know")
	}
	leader, _ = g.Join("b", 0)
	_, follower = g.Join("b", 0)
	if follower.Hurry(); !hurries(leader) {
		t.Error("it looks later")
	}
}

// Whoever ends a call says so once, and nobody does while a follower can take over.
func TestOnEnd(t *testing.T) {
	type call struct {
		leader   *Leader[string, int]
		follower *Follower[string, int]
	}
	for name, row := range map[string]struct {
		end  func(c *call)
		want []bool
	}{
		"stored":                     {func(c *call) { c.leader.Complete(1); c.leader.Retire(true) }, []bool{true}},
		"not stored":                 {func(c *call) { c.leader.Complete(1); c.leader.Retire(false) }, []bool{false}},
		"abandoned, then retired":    {func(c *call) { c.leader.Abandon(); c.leader.Retire(true) }, []bool{false}},
		"failed":                     {func(c *call) { c.leader.Fail() }, nil},
		"failed, and the last left":  {func(c *call) { c.leader.Fail(); c.follower.Leave() }, []bool{false}},
		"the last left, then failed": {func(c *call) { c.follower.Leave(); c.leader.Fail() }, []bool{false}},
		"taken over": {func(c *call) {
			c.leader.Fail()
			if next := c.follower.TakeOver(); next.HasOnEnd() {
				next.Complete(1)
				next.Retire(true)
			}
		}, []bool{true}},
		"client and follower left": {func(c *call) {
			c.leader.LoseClient(false)
			c.follower.Leave()
			c.leader.Fail()
		}, []bool{false}},
		"some use a part": {func(c *call) { c.leader.CompleteForStarted(1); c.leader.Abandon() }, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			var g Group[string, int]
			var c call
			c.leader, _ = g.Join("a", 0)
			_, c.follower = g.Join("a", 0)
			var got []bool
			c.leader.OnEnd(func(stored bool) { got = append(got, stored) })
			row.end(&c)
			if !slices.Equal(got, row.want) || c.leader.HasOnEnd() != (row.want == nil) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}
