// Policy: how one worker is chosen among those that are well and have a free slot.

package kvroute

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Policy is a row of the table below.
type Policy uint8

// The policies.
const (
	RoundRobin  Policy = iota // each in turn
	Random                    // any
	LeastLoaded               // the one with the fewest requests under way, of equals the one that is least slow
	P2C                       // of two drawn at random, the one that LeastLoaded would take
	KV                        // the cheapest by blocks held and load (cost.KV)
	Predict                   // the cheapest by predicted time, and what it costs others (cost.Predict)
)

var policies = [...]struct {
	name string
	pick func(choice) *Worker // returns nil: no candidate; pick nil: chosen by price
}{
	RoundRobin:  {"round_robin", roundRobin},
	Random:      {"random", random},
	LeastLoaded: {"least_loaded", leastLoaded},
	P2C:         {"p2c", p2c},
	KV:          {"kv", nil},
	Predict:     {"predict", nil},
}

func (p Policy) String() string { return policies[p].name }

// ParsePolicy reads the name of a policy.
func ParsePolicy(s string) (Policy, error) {
	var names []string
	for p, row := range policies {
		if s == row.name {
			return Policy(p), nil
		}
		names = append(names, row.name)
	}
	return 0, fmt.Errorf("cannot read policy %q: want %s", s, strings.Join(names, ", "))
}

// A choice is what a policy chooses from. It goes by value: behind a func value
// a pointer would move each one to the heap.
type choice struct {
	workers []*Worker // all that serve the model
	tried   []*Worker
	now     time.Time
	turn    *atomic.Uint64
	random  func() uint64
	wide    bool // also of those that are aside
	narrow  bool // never of those
}

// open says whether w is a candidate.
func (c *choice) open(w *Worker) bool {
	return (c.wide || !w.aside()) && open(w, c.tried, c.now)
}

// widen makes those candidates that are aside, after nobody else was found. It
// reports whether there are any.
func (c *choice) widen() bool {
	if c.wide || c.narrow || !slices.ContainsFunc(c.workers, (*Worker).aside) {
		return false
	}
	c.wide = true
	return true
}

// count returns how many candidates there are.
func (c *choice) count() int {
	n := 0
	for _, w := range c.workers {
		if c.open(w) {
			n++
		}
	}
	return n
}

// nth returns candidate k, counted from 0, or the last one if there are fewer by now.
func (c *choice) nth(k uint64) *Worker {
	var last *Worker
	for _, w := range c.workers {
		if !c.open(w) {
			continue
		}
		if last = w; k == 0 {
			break
		}
		k--
	}
	return last
}

// below returns a number in [0, n), n > 0. The bias is below n / 2^32.
func (c *choice) below(n int) uint64 { return c.random() >> 32 * uint64(n) >> 32 }

// roundRobin takes the next in turn. The turns of a worker that is no candidate
// go round the others: its neighbour would else get all of them.
func roundRobin(c choice) *Worker {
	turn, all := c.turn.Add(1)-1, uint64(len(c.workers))
	for {
		if w := c.workers[turn%all]; c.open(w) {
			return w
		}
		if n := c.count(); n > 0 {
			return c.nth(turn / all % uint64(n))
		}
		if !c.widen() {
			return nil
		}
	}
}

func random(c choice) *Worker {
	// Nearly always all are candidates, and one draw is enough.
	for range 2 {
		if w := c.workers[c.below(len(c.workers))]; c.open(w) {
			return w
		}
	}
	for {
		if n := c.count(); n > 0 {
			return c.nth(c.below(n))
		}
		if !c.widen() {
			return nil
		}
	}
}

// leastLoaded looks from a random place on, so that equals share the load.
func leastLoaded(c choice) *Worker {
	from := int(c.below(len(c.workers)))
	w := c.lightest(from)
	if w == nil && c.widen() {
		w = c.lightest(from)
	}
	return w
}

// lightest returns the candidate with the least load, of equals the first one
// from a place on.
func (c *choice) lightest(from int) *Worker {
	var best *Worker
	var least load
	for _, half := range [2][]*Worker{c.workers[from:], c.workers[:from]} {
		for _, w := range half {
			active := w.active.Load()
			if best != nil && active > least.active {
				continue // as most are: of these nothing else is looked at
			}
			here := load{active, w.slow()}
			if best != nil && !here.below(least) || !c.open(w) {
				continue
			}
			if best, least = w, here; here == (load{0, 1}) {
				return best // idle, at full speed
			}
		}
	}
	return best
}

func p2c(c choice) *Worker {
	n := len(c.workers)
	if n > 1 {
		i := c.below(n)
		j := (i + 1 + c.below(n-1)) % uint64(n)
		if a, b := c.workers[i], c.workers[j]; c.open(a) && c.open(b) {
			return lighter(a, b)
		}
	}
	// Some are no candidates: draw among those that are.
	n = c.count()
	if n == 0 && c.widen() {
		n = c.count()
	}
	if n < 2 {
		return c.nth(0)
	}
	i := c.below(n)
	j := (i + 1 + c.below(n-1)) % uint64(n)
	return lighter(c.nth(i), c.nth(j))
}

// lighter returns the one with less load, a if equal; nil gives way to the other.
func lighter(a, b *Worker) *Worker {
	if a == nil || b != nil && b.load().below(a.load()) {
		return b
	}
	return a
}
