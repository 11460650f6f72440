// A fleet of simulated engines in virtual time: unlike kvroute/replay's, its engines and routers can be odd ones.

package cost_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// ask is one request of a test.
type ask struct {
	at             time.Duration
	prompt, answer int
	names          []kvindex.Name // of its full blocks
}

// fleet is what requests are sent to.
type fleet struct {
	engines []sim.Options
	routers int                          // Kvasirs that do not see each other's requests; 0: one
	policy  func(*trip) int              // default: predict
	facts   func(worker int) cost.Engine // what is known of an engine; default: its sizes
	quiet   bool                         // tokens are not seen
	hang    time.Duration                // the first engine stops here; 0: never
	seed    uint64
}

// trip is one request on its way through a fleet.
type trip struct {
	ask
	number, worker int
	candidates     []cost.Candidate
	now            time.Time
	random         *rand.Rand
	mirror         *cost.Mirror
	request        *cost.Request
	sequence       *sim.Sequence
}

// outcome is what came of it.
type outcome struct {
	mean, p99, e2e time.Duration
	requests       []int // by worker
	computed       []int // prompt tokens, by worker
	reuse          float64
	preempted      int
	trips          []*trip
}

func (o *outcome) total() (n int) {
	for _, c := range o.computed {
		n += c
	}
	return n
}

// part is the mean time to first token of some of the requests, in order of arrival.
func (o *outcome) part(from, to int) (mean time.Duration) {
	for _, p := range o.trips[from:to] {
		mean += p.sequence.FirstToken - p.at
	}
	return mean / time.Duration(to-from)
}

// imbalance is the work of the busiest engine, over the mean.
func (o *outcome) imbalance() float64 {
	return float64(slices.Max(o.computed)) * float64(len(o.computed)) / float64(o.total())
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func like(n int, o sim.Options) []sim.Options {
	o.BlockSize = 64
	all := make([]sim.Options, n)
	for i := range all {
		all[i] = o
	}
	return all
}

func predict(t *trip) int {
	w := cost.DefaultPredict()
	return priced(t, w.Price)
}

func kv(t *trip) int {
	w := cost.DefaultKV()
	return priced(t, w.Price)
}

func priced(t *trip, price func(time.Time, cost.Prompt, []cost.Candidate)) int {
	price(t.now, cost.Prompt{Tokens: t.prompt}, t.candidates)
	return cost.Pick(t.candidates, 0, t.random.Uint64)
}

func inTurn(t *trip) int   { return t.number % len(t.candidates) }
func anywhere(t *trip) int { return t.random.IntN(len(t.candidates)) }

func leastBusy(t *trip) int {
	for i := range t.candidates {
		t.candidates[i].Cost = float64(t.candidates[i].Load.Requests)
	}
	return cost.Pick(t.candidates, 0, t.random.Uint64)
}

// run sends asks, in order of time, and waits for all answers.
func (f fleet) run(t testing.TB, asks []ask) *outcome {
	t.Helper()
	r := newRun(f)
	for i := 0; i < len(asks) || r.busy(); {
		at := r.next()
		for ; i < len(asks) && asks[i].at <= at; i++ {
			r.send(t, i, asks[i])
			at = r.next()
		}
		if r.busy() {
			r.advance(at)
		}
	}
	return r.outcome()
}

// running is a fleet under way.
type running struct {
	fleet
	sims    []*sim.Engine
	mirrors [][]*cost.Mirror    // by router, worker
	held    []map[uint64]bool   // by worker: what its events said
	sent    []map[[2]uint64]int // by worker: router and block of unfinished requests
	random  *rand.Rand
	trips   []*trip
}

func newRun(f fleet) *running {
	f.routers = max(f.routers, 1)
	if f.policy == nil {
		f.policy = predict
	}
	r := &running{fleet: f, random: rand.New(rand.NewPCG(f.seed, 2)), mirrors: make([][]*cost.Mirror, f.routers)}
	for w, o := range f.engines {
		r.sims = append(r.sims, sim.New(o))
		r.held = append(r.held, map[uint64]bool{})
		r.sent = append(r.sent, map[[2]uint64]int{})
		facts := cost.Engine{BlockSize: o.BlockSize, Blocks: o.Blocks, Budget: o.MaxBatchedTokens, MaxSeqs: o.MaxSeqs}
		if facts.Blocks == 0 {
			facts.Blocks = 16384
		}
		if f.facts != nil {
			facts = f.facts(w)
		}
		for k := range r.mirrors {
			r.mirrors[k] = append(r.mirrors[k], cost.NewMirror(facts))
		}
	}
	return r
}

func (r *running) stopped(w int, at time.Duration) bool { return w == 0 && r.hang > 0 && at >= r.hang }

func (r *running) next() time.Duration {
	next := time.Duration(math.MaxInt64)
	for w, e := range r.sims {
		if at, busy := e.Next(); busy && !r.stopped(w, at) {
			next = min(next, at)
		}
	}
	return next
}

func (r *running) busy() bool { return r.next() < math.MaxInt64 }

// overlap is what worker w has of the names, as router k knows.
func (r *running) overlap(w, k int, names []kvindex.Name) (o kvindex.Overlap) {
	device := true
	for i, n := range names {
		here := r.held[w][uint64(n)]
		device = device && here
		if device {
			o.Device = int32(i + 1)
		}
		if !here && r.sent[w][[2]uint64{uint64(k), uint64(n)}] == 0 {
			break
		}
		o.Predicted = int32(i + 1)
	}
	return o
}

func (r *running) send(t testing.TB, i int, a ask) {
	k := i % r.routers
	p := &trip{ask: a, number: i, now: epoch.Add(a.at), random: r.random}
	for w, m := range r.mirrors[k] {
		p.candidates = append(p.candidates, cost.Candidate{
			Load: m.Load(p.now), Overlap: r.overlap(w, k, a.names), Active: m.Active(a.names),
		})
		p.candidates[w].Users = m.Users(a.names, p.candidates[w].Active)
	}
	p.worker = r.policy(p)
	p.mirror = r.mirrors[k][p.worker]
	p.request = p.mirror.Send(p.now, cost.Sent{
		Prompt: a.prompt, Hit: p.candidates[p.worker].Hit, Quiet: r.quiet, Names: a.names,
	})
	p.candidates = nil
	hashes := make([]uint64, len(a.names))
	for n, name := range a.names {
		hashes[n] = uint64(name)
		r.sent[p.worker][[2]uint64{uint64(k), uint64(name)}]++
	}
	var err error
	if p.sequence, err = r.sims[p.worker].Submit(a.at, sim.Request{
		Hashes: hashes, PromptTokens: a.prompt, MaxTokens: a.answer, Owner: p,
	}); err != nil {
		t.Fatal(err)
	}
	r.trips = append(r.trips, p)
}

func (r *running) advance(now time.Duration) {
	for w, e := range r.sims {
		if r.stopped(w, now) {
			continue
		}
		for pass, ok := e.Advance(now); ok; pass, ok = e.Advance(now) {
			for _, hash := range pass.Removed {
				delete(r.held[w], hash)
			}
			for _, b := range pass.Stored {
				r.held[w][b.Sequence.Hash(b.Index)] = true
			}
			for _, s := range pass.Tokens {
				r.token(s, epoch.Add(pass.End))
			}
		}
	}
}

func (r *running) token(s *sim.Sequence, now time.Time) {
	p := s.Owner.(*trip)
	if !r.quiet {
		p.mirror.Tokens(p.request, now, 1)
	}
	if s.Done {
		if r.quiet {
			p.mirror.Answer(p.request, now, s.Generated)
		}
		p.mirror.End(p.request, now)
		for _, name := range p.names {
			r.sent[p.worker][[2]uint64{uint64(p.number % r.routers), uint64(name)}]--
		}
	}
}

func (r *running) outcome() *outcome {
	o := &outcome{requests: make([]int, len(r.sims)), computed: make([]int, len(r.sims)), trips: r.trips}
	var ttft []time.Duration
	prompt := 0
	for _, p := range r.trips {
		o.requests[p.worker]++
		if !p.sequence.Done {
			continue // on an engine that stopped
		}
		o.computed[p.worker] += p.prompt - p.sequence.Cached
		prompt += p.prompt
		o.preempted += p.sequence.Preempted
		ttft = append(ttft, p.sequence.FirstToken-p.at)
		o.e2e += p.sequence.LastToken - p.at
	}
	slices.Sort(ttft)
	for _, d := range ttft {
		o.mean += d
	}
	o.mean /= time.Duration(len(ttft))
	o.e2e /= time.Duration(len(ttft))
	o.p99 = ttft[len(ttft)*99/100]
	o.reuse = 1 - float64(o.total())/float64(prompt)
	return o
}

// traffic makes asks.
type traffic struct {
	random *rand.Rand
	next   uint64
	asks   []ask
}

func newTraffic(seed uint64) *traffic {
	return &traffic{random: rand.New(rand.NewPCG(seed, 3)), next: 1 << 20}
}

// fresh returns names that nothing else has, for so many tokens.
func (x *traffic) fresh(tokens int) []kvindex.Name {
	names := make([]kvindex.Name, tokens/64)
	for i := range names {
		x.next++
		names[i] = kvindex.Name(x.next)
	}
	return names
}

// after appends names for more tokens to those of a prompt, which stays as it is.
func (x *traffic) after(prefix []kvindex.Name, tokens int) []kvindex.Name {
	return append(slices.Clip(prefix), x.fresh(tokens)...)
}

func (x *traffic) add(at time.Duration, names []kvindex.Name, answer int) {
	x.asks = append(x.asks, ask{at: at, prompt: len(names)*64 + 20, answer: answer, names: names})
}

// sorted returns the asks in order of time.
func (x *traffic) sorted() []ask {
	slices.SortStableFunc(x.asks, func(a, b ask) int { return int(a.at - b.at) })
	return x.asks
}

// wait is the time to the next of so many a second that come by chance.
func (x *traffic) wait(perSecond float64) time.Duration {
	return time.Duration(x.random.ExpFloat64() / perSecond * float64(time.Second))
}

// length draws a length whose mean is about so much, some of them several times as long.
func (x *traffic) length(mean int) int {
	return max(int(float64(mean)*math.Exp(x.random.NormFloat64()*0.8)/1.38), 1)
}

// conversations are so many at a rate, each with a few turns some seconds apart that repeat all before.
func conversations(seed uint64, n int, perSecond float64, prompt int) []ask {
	x := newTraffic(seed)
	start := time.Duration(0)
	for range n {
		start += x.wait(perSecond)
		names, at := x.fresh(x.length(prompt)), start
		for range 1 + x.random.IntN(6) {
			x.add(at, names, x.length(150))
			at += 5*time.Second + x.wait(0.1)
			names = x.after(names, x.length(800))
		}
	}
	return x.sorted()
}
