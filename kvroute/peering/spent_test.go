// What others let accounts use: each amount once, whoever comes late, is cut off, or misses a message.

package peering

import (
	"testing"
	"time"
)

// Accounts come as sums, so that none gets lost. Of what was used before a router is heard the last minute counts.
func TestSpent(t *testing.T) {
	a, b := newRouter(t, 1), newRouter(t, 2)
	a.x.Spend(7, 100)
	meet(t, begin, a, b)
	a.x.Spend(7, 5)
	a.x.Flush(begin) // lost
	a.x.Spend(7, 6)
	a.x.Spend(8, 1)
	hear(t, begin, a.x.Flush(begin), b)
	a.x.Spend(7, -4)
	hear(t, begin, a.x.Flush(begin), b)
	if b.spent[7] != 107 {
		t.Errorf("7 has used %v, want 107", b.spent[7])
	}
	if b.spent[8] != 0 {
		t.Errorf("after a gap, of an account that is not known: %v", b.spent[8])
	}
	meet(t, begin.Add(2*time.Second), a, b) // with the snapshot
	if b.spent[7] != 107 || b.spent[8] != 1 {
		t.Errorf("after the snapshot: %v", b.spent)
	}
}

// ticks lets time pass for both.
func ticks(t *testing.T, from time.Time, passes time.Duration, a, b *router) time.Time {
	t.Helper()
	to := from.Add(passes)
	for now := from; now.Before(to); now = now.Add(Heartbeat) {
		hear(t, now, copies(a.x.Tick(now)), b)
		hear(t, now, copies(b.x.Tick(now)), a)
	}
	return to
}

// A newcomer is given back no more than was taken from it, and is not charged for what is older than a minute.
func TestNewcomerIsGivenBackNothing(t *testing.T) {
	a, other := newRouter(t, 1), newRouter(t, 3)
	a.x.Spend(7, 4000) // set aside for a long answer
	now := ticks(t, begin, 40*time.Second, a, other)
	a.x.Spend(7, 20)
	now = ticks(t, now, 40*time.Second, a, other)
	b := newRouter(t, 2)
	meet(t, now, a, b)
	if b.spent[7] != 20 {
		t.Errorf("it is charged %v, want 20", b.spent[7])
	}
	a.x.Spend(7, -3900)
	hear(t, now, a.x.Flush(now), b, other)
	if b.spent[7] != 0 {
		t.Errorf("it was given %v that was never taken", -b.spent[7])
	}
	if other.spent[7] != 120 {
		t.Errorf("who was there has %v, want 120", other.spent[7])
	}
}

// A router that was silent for a while is charged for once.
func TestCutOffIsNotChargedTwice(t *testing.T) {
	a, b := newRouter(t, 1), newRouter(t, 2)
	meet(t, begin, a, b)
	a.x.Spend(7, 100)
	hear(t, begin, a.x.Flush(begin), b)
	now := begin.Add(2 * Silent)
	b.x.Tick(now)
	if b.x.Peers() != 0 {
		t.Fatal("it is not forgotten")
	}
	a.x.Spend(7, 10)
	a.x.Flush(now) // heard by nobody
	meet(t, now, a, b)
	if b.spent[7] != 110 {
		t.Errorf("charged %v, want 110", b.spent[7])
	}
	// After so long that it is not known any more, only the last minute counts.
	now = now.Add(2 * Silent)
	b.x.Tick(now)
	now = now.Add(3 * marks * markApart)
	b.x.Tick(now)
	if len(b.x.in.gone) != 0 {
		t.Error("it is kept for ever")
	}
}

// Accounts that nobody uses any more make room for others, at both ends; one that is used again counts from there.
func TestUnusedAccountsMakeRoom(t *testing.T) {
	a, b := newRouter(t, 1), newRouter(t, 2)
	meet(t, begin, a, b)
	for key := range uint64(maxSpent) {
		a.x.Spend(key+1, 10)
	}
	a.x.Spend(maxSpent+1, 10) // one too many
	now := ticks(t, begin, (marks+2)*markApart, a, b)
	if s := a.x.Stats(); s.Dropped != 1 || len(a.x.out.accounts) != 0 || len(b.x.in.peers[1].spent) != 0 {
		t.Errorf("%d dropped; %d and %d accounts are left", s.Dropped, len(a.x.out.accounts), len(b.x.in.peers[1].spent))
	}
	a.x.Spend(1, -5) // of a long answer
	a.x.Spend(1, 2)
	a.x.Spend(maxSpent+1, 3)
	hear(t, now, copies(a.x.Flush(now)), b)
	if b.spent[1] != 12 || b.spent[maxSpent+1] != 3 {
		t.Errorf("%v and %v, want 12 and 3", b.spent[1], b.spent[maxSpent+1])
	}
	// One that nobody heard of being dropped is not in the snapshot.
	a.x.Spend(2, 7)
	hear(t, now, copies(a.x.Flush(now)), b)
	a.x.out.mu.Lock()
	delete(a.x.out.accounts, 2)
	a.x.out.mu.Unlock()
	a.x.wanted()
	now = now.Add(time.Minute)
	hear(t, now, copies(a.x.Flush(now)), b)
	if _, kept := b.x.in.peers[1].spent[2]; kept || b.spent[2] != 17 {
		t.Errorf("kept: %t, charged %v", kept, b.spent[2])
	}
}

// An account that was not used for a minute begins anew at its router. Where that was not heard, as the router
// was cut off, what it uses then is no less than what it had used: nothing is given back.
func TestAccountBeginsAnewUnheard(t *testing.T) {
	for name, silent := range map[string]bool{"a message is lost": false, "cut off": true} {
		a, b := newRouter(t, 1), newRouter(t, 2)
		meet(t, begin, a, b)
		a.x.Spend(7, 100)
		hear(t, begin, copies(a.x.Flush(begin)), b)
		now := ticks(t, begin.Add(Heartbeat), 50*time.Second, a, b)
		for range 30 { // heard by nobody; the account is dropped
			now = now.Add(Heartbeat)
			a.x.Tick(now)
			if silent {
				b.x.Tick(now)
			}
		}
		if (b.x.Peers() == 0) != silent {
			t.Fatalf("%s: %d routers are known", name, b.x.Peers())
		}
		a.x.Spend(7, 10)
		for range 3 {
			now = now.Add(Heartbeat)
			meet(t, now, a, b)
		}
		if b.spent[7] != 110 {
			t.Errorf("%s: it has used %v, want 110", name, b.spent[7])
		}
	}
}
