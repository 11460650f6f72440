// Requests in line at several routers before one worker with a limit, in virtual time: whose turn is it?

package peering

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kvasir/kvroute"
)

// A crowd is routers before the same worker, each with requests in line all the time.
type crowd struct {
	t       testing.TB
	now     time.Duration
	delay   time.Duration // of messages; negative: none comes through
	random  *rand.Rand
	routers []*inLine
	mail    []posted
}

type posted struct {
	at   time.Duration
	from int
	text []byte
}

// An inLine is one of them.
type inLine struct {
	x       *Exchange
	pool    *kvroute.Pool
	worker  *kvroute.Worker
	flushes time.Duration
	alarm   time.Duration
	begun   []kvroute.Placement // in this moment
	ends    []ending
	served  int
	longest time.Duration
}

type ending struct {
	at        time.Duration
	placement kvroute.Placement
}

const never = time.Duration(1 << 62)

func newCrowd(t testing.TB, policy kvroute.Policy, limit int, delay time.Duration, routers int) *crowd {
	c := &crowd{t: t, delay: delay, random: rand.New(rand.NewPCG(1, uint64(limit)))}
	for i := range routers {
		r := &inLine{flushes: never, alarm: never}
		r.worker = kvroute.NewWorker("w", kvroute.Both, limit)
		r.worker.SetModels([]kvroute.Model{{Name: "m"}})
		r.worker.SetEngine(kvroute.EngineFacts{BlockSize: 16, Blocks: 100000, MaxBatchedTokens: 1 << 20, MaxSeqs: 256})
		r.worker.ProbeOK(begin)
		r.x = New(Options{ID: uint64(i) + 1, Name: fmt.Sprint(i), Ready: func() { r.flushes = c.now + Gather }})
		r.x.SetWorkers(begin, map[uint64]*kvroute.Worker{Key("w"): r.worker})
		r.pool = kvroute.NewPool(kvroute.PoolOptions{
			Workers: []*kvroute.Worker{r.worker}, Policy: policy, CentralQueue: policy == kvroute.Predict, MaxQueued: 1000, News: r.x.Tell, Now: c.time,
			Alarm: func(at time.Time) {
				if r.alarm = never; !at.IsZero() {
					r.alarm = at.Sub(begin)
				}
			},
		})
		c.routers = append(c.routers, r)
	}
	return c
}

func (c *crowd) time() time.Time { return begin.Add(c.now) }

// arrive brings a request to a router.
func (c *crowd) arrive(r *inLine) {
	came := c.now
	r.pool.Enter(kvroute.Query{Model: "m", Prompt: prompt(c.random.IntN(1<<20), 160)}, func(at kvroute.Placement, err error) {
		if err != nil {
			c.t.Fatal(err)
		}
		r.begun = append(r.begun, at)
		r.longest = max(r.longest, c.now-came)
		r.served++
	})
}

// step lets a millisecond pass.
func (c *crowd) step() {
	c.now += time.Millisecond
	for len(c.mail) > 0 && c.mail[0].at <= c.now {
		for i, r := range c.routers {
			if i != c.mail[0].from {
				if err := r.x.Take(c.time(), c.mail[0].text); err != nil {
					c.t.Fatal(err)
				}
			}
		}
		c.mail = c.mail[1:]
	}
	for i, r := range c.routers {
		if r.alarm <= c.now {
			r.alarm = never
			r.pool.Ring()
		}
		running := r.ends
		r.ends = nil
		for _, e := range running {
			if e.at <= c.now {
				e.placement.Release()
			} else {
				r.ends = append(r.ends, e)
			}
		}
		c.begin(r)
		switch {
		case c.now%Heartbeat == 0:
			c.post(i, r.x.Tick(c.time()))
		case r.flushes <= c.now:
			r.flushes = never
			c.post(i, r.x.Flush(c.time()))
		}
	}
	for _, r := range c.routers { // what was placed by a message
		c.begin(r)
	}
}

// begin runs what was placed, and brings as many requests as have left the line.
func (c *crowd) begin(r *inLine) {
	for len(r.begun) > 0 {
		at := r.begun[0]
		r.begun = r.begun[1:]
		at.Tokens(c.time(), 1)
		r.ends = append(r.ends, ending{c.now + time.Duration(40+c.random.IntN(40))*time.Millisecond, at})
		c.arrive(r)
	}
}

func (c *crowd) post(from int, messages [][]byte) {
	if c.delay < 0 {
		return
	}
	for _, m := range messages {
		c.mail = append(c.mail, posted{c.now + c.delay, from, bytes.Clone(m)})
	}
}

// run lets time pass, and returns how many requests were under way on the average.
func (c *crowd) run(passes time.Duration) float64 {
	sum, steps := 0, 0
	for end := c.now + passes; c.now < end; {
		c.step()
		steps++
		for _, r := range c.routers {
			sum += len(r.ends)
		}
	}
	return float64(sum) / float64(steps)
}

// Four routers have requests in line all the time, the first one before the others come: none of them starves, and
// the slots are used. When they hear nothing of each other, each goes on alone.
func TestNobodyStarves(t *testing.T) {
	for _, tc := range []struct {
		policy kvroute.Policy
		limit  int
		delay  time.Duration
	}{
		{kvroute.LeastLoaded, 1, 10 * time.Millisecond},
		{kvroute.LeastLoaded, 4, time.Millisecond},
		{kvroute.LeastLoaded, 16, 10 * time.Millisecond},
		{kvroute.Predict, 4, 5 * time.Millisecond},
	} {
		name := fmt.Sprintf("%v, max_requests %d, %v", tc.policy, tc.limit, tc.delay)
		c := newCrowd(t, tc.policy, tc.limit, tc.delay, 4)
		for range 40 {
			c.arrive(c.routers[0])
		}
		c.run(2 * time.Second)
		for _, r := range c.routers[1:] {
			for range 40 {
				c.arrive(r)
			}
		}
		c.run(5 * time.Second)
		for _, r := range c.routers {
			r.served, r.longest = 0, 0
		}
		used := c.run(10 * time.Second)
		least, most, all, longest := 1<<30, 0, 0, time.Duration(0)
		for _, r := range c.routers {
			least, most, all, longest = min(least, r.served), max(most, r.served), all+r.served, max(longest, r.longest)
		}
		t.Logf("%s: %d to %d of %d, %.2f under way, longest wait %v", name, least, most, all, used, longest)
		if float64(least) < 0.2*float64(all) {
			t.Errorf("%s: one router got %d of %d", name, least, all)
		}
		if used > 1.2*float64(tc.limit) || used < 0.8*float64(tc.limit) {
			t.Errorf("%s: %.2f requests under way", name, used)
		}
		c.delay = -1
		c.run(2 * Silent)
		if alone := c.run(2 * time.Second); alone < 3.8*float64(tc.limit) {
			t.Errorf("%s: cut off, %.2f requests under way at four that are alone", name, alone)
		}
	}
}

// A router that says for ever that its requests wait, and takes no slot, costs who is beside it next to nothing.
func TestWaitsThatNeverEnd(t *testing.T) {
	for _, limit := range []int{1, 4} {
		c := newCrowd(t, kvroute.LeastLoaded, limit, time.Millisecond, 1)
		r := c.routers[0]
		for range 10 {
			c.arrive(r)
		}
		alone := c.run(10 * time.Second)
		seq := uint64(0)
		beside := 0.0
		for range 20 {
			seq++
			m := binary.AppendUvarint(appendKeyed(appendHeader(nil, 99, seq, 0), entryWaits, Key("m")), mostWaited)
			if err := r.x.Take(c.time(), m); err != nil {
				t.Fatal(err)
			}
			beside += c.run(time.Second) / 20
		}
		t.Logf("max_requests %d: %.3f under way alone, %.3f beside it", limit, alone, beside)
		if beside < 0.96*alone {
			t.Errorf("max_requests %d: %.3f under way, alone %.3f", limit, beside, alone)
		}
		m := appendHeader(nil, 99, seq+1, 0)
		if err := r.x.Take(c.time(), append(m, entryLeaving)); err != nil {
			t.Fatal(err)
		}
		if again := c.run(time.Second); again < 0.98*alone {
			t.Errorf("max_requests %d: %.3f under way after it has gone, alone %.3f", limit, again, alone)
		}
	}
}

// leaves says whether the slot of the worker, once it is free, is left to another router.
func (r *router) leaves() bool {
	r.t.Helper()
	at, err := r.pool.Place(kvroute.Query{Now: begin, Model: "m"})
	if err != nil {
		r.t.Fatal(err)
	}
	at.Release()
	if at, err = r.pool.Place(kvroute.Query{Now: begin, Model: "m"}); err == nil {
		at.Release()
	}
	return err != nil
}

// A worker that gets its limit, or its model, after others began to wait is told of them, and one that had none when
// they went is told that too: else a slot would be left to nobody each time one is freed.
func TestWaitsOfChangedWorkers(t *testing.T) {
	waiting := kvroute.News{Kind: kvroute.LineWaits, Model: "m", Since: begin.Add(-time.Second)}
	nobody := kvroute.News{Kind: kvroute.LineWaits, Model: "m"}
	for name, tc := range map[string]struct {
		change func(a, b *router, tell func(kvroute.News))
		leaves bool
	}{
		"others wait": {func(_, _ *router, tell func(kvroute.News)) { tell(waiting) }, true},
		"a limit later": {func(_, b *router, tell func(kvroute.News)) {
			b.workers[0].SetMaxRequests(0)
			tell(waiting)
			b.workers[0].SetMaxRequests(1)
		}, true},
		"they went while there was no limit": {func(_, b *router, tell func(kvroute.News)) {
			tell(waiting)
			b.workers[0].SetMaxRequests(0)
			tell(nobody)
			b.workers[0].SetMaxRequests(1)
		}, false},
		"the model later": {func(_, b *router, tell func(kvroute.News)) {
			b.workers[0].SetModels([]kvroute.Model{{Name: "other"}})
			tell(waiting)
			b.workers[0].SetModels([]kvroute.Model{{Name: "m"}})
			b.x.Tick(begin)
		}, true},
		"they wait for a model that it serves no more": {func(_, b *router, tell func(kvroute.News)) {
			b.workers[0].SetModels([]kvroute.Model{{Name: "other"}, {Name: "m"}})
			tell(kvroute.News{Kind: kvroute.LineWaits, Model: "other", Since: begin.Add(-time.Second)})
			b.workers[0].SetModels([]kvroute.Model{{Name: "m"}})
			b.x.Tick(begin)
		}, false},
		"they are gone": {func(a, b *router, tell func(kvroute.News)) {
			tell(waiting)
			a.x.Leave()
			hear(b.t, begin, copies(a.x.Flush(begin)), b)
		}, false},
	} {
		a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
		b.workers[0].SetMaxRequests(1)
		meet(t, begin, a, b)
		tc.change(a, b, func(n kvroute.News) {
			a.x.Tell(n)
			hear(t, begin, copies(a.x.Flush(begin)), b)
		})
		if got := b.leaves(); got != tc.leaves {
			t.Errorf("%s: a free slot is left to others: %t", name, got)
		}
	}
}
