// The policies that look at no prompt, and the seam for those that do.

package replay

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
)

// What Placer.Place returns instead of a worker.
const (
	Waits = -1 // the request waits at the router: Placer.Next hands it out
	Later = -2 // Job.Prefill computes the prompt; Placer.Decode says when it has who answers
)

// A Placer places requests. Its funcs are called in the order in which things happen; all but Place may be nil.
type Placer struct {
	Index bool // keep an index of blocks and hand overlaps to Place

	// Place says which worker, from 0, answers j. With workers for prefill it may set j.Prefill to one of them.
	// overlaps are nil or those of each worker, by its number; only valid until it returns.
	Place func(now time.Time, j *Job, overlaps []kvindex.Overlap) int

	// Decode says who answers j, whose prompt is computed: asked where Place said Later.
	Decode func(now time.Time, j *Job) int

	// Next says which of those that Place let wait goes where now; nil: none. It is called after all that happens,
	// until it says nil.
	Next func(now time.Time) (*Job, int)

	Sent      func(now time.Time, j *Job)                         // to j.Worker, or to j.Prefill first
	Prefilled func(now time.Time, j *Job)                         // j.Prefill is done, and j goes to j.Worker
	Hardware  func(now time.Time, worker int, h kvroute.Hardware) // telemetry says something else; nil: nobody asks it
	Token     func(now time.Time, j *Job)                         // one more token was seen: j.Sequence.Generated in all
	End       func(now time.Time, j *Job)                         // after its last Token
}

// A picker picks one of some workers by their load: their requests under way and, of equals, the slowness.
type picker func(load []float64) int

// plain are the policies that place without a price, by name.
var plain = map[string]func(*rand.Rand) picker{
	"round_robin":  roundRobin,
	"random":       random,
	"least_loaded": leastLoaded,
	"p2c":          p2c,
}

// Policies are the names of all policies, sorted.
func Policies() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(plain)), kvPolicy, predictPolicy)))
}

// draws are the random numbers of a replay.
func (f *fleet) draws() *rand.Rand { return rand.New(rand.NewPCG(f.Seed, 0x6b766173)) }

// byLoad places by the number of requests under way.
type byLoad struct {
	first         int // so many are for prefill
	active        []int
	slow          []float64
	aside         []bool
	loads         []float64 // of those to pick from, to use again
	workers       []int     // which they are
	whole, decode picker
}

// plainPlacer places by the number of requests under way. Who answers a request whose prompt is computed elsewhere is
// picked after that, as Dynamo does.
func plainPlacer(f *fleet, newPicker func(*rand.Rand) picker) Placer {
	r, n := f.draws(), len(f.engines)
	b := &byLoad{
		first: f.Prefill, active: make([]int, n), slow: slices.Repeat([]float64{1}, n), aside: make([]bool, n),
		whole: newPicker(r), decode: newPicker(r),
	}
	return Placer{Place: b.place, Decode: b.answers, Hardware: b.hardware, End: func(_ time.Time, j *Job) { b.active[j.Worker]-- }}
}

func (b *byLoad) place(_ time.Time, j *Job, _ []kvindex.Overlap) int {
	if b.first == 0 {
		return b.pick(b.whole, 0, len(b.active))
	}
	j.Prefill = b.pick(b.whole, 0, b.first)
	return Later
}

func (b *byLoad) answers(_ time.Time, j *Job) int {
	b.active[j.Prefill]--
	return b.pick(b.decode, b.first, len(b.active))
}

func (b *byLoad) hardware(_ time.Time, worker int, h kvroute.Hardware) {
	b.slow[worker], b.aside[worker] = h.Slow, h.Aside
}

// pick lets one of the workers from first to before end be picked, and adds a request to it. Those that are aside are
// left out unless all are.
func (b *byLoad) pick(by picker, first, end int) int {
	b.loads, b.workers = b.loads[:0], b.workers[:0]
	all := !slices.Contains(b.aside[first:end], false)
	for w := first; w < end; w++ {
		if all || !b.aside[w] {
			slowness := 0.5 * (1 - 1/b.slow[w]) // below one request
			b.loads, b.workers = append(b.loads, float64(b.active[w])+slowness), append(b.workers, w)
		}
	}
	w := b.workers[by(b.loads)]
	b.active[w]++
	return w
}

// roundRobin gives each worker one in turn: request i goes to worker i modulo their number.
func roundRobin(*rand.Rand) picker {
	turn := 0
	return func(load []float64) int {
		turn++
		return (turn - 1) % len(load)
	}
}

func random(r *rand.Rand) picker {
	return func(load []float64) int { return r.IntN(len(load)) }
}

// leastLoaded takes the one with the fewest requests under way, looking from a random place on.
func leastLoaded(r *rand.Rand) picker {
	return func(load []float64) int {
		from := r.IntN(len(load))
		best := from
		for i := range load {
			if w := (from + i) % len(load); load[w] < load[best] {
				best = w
			}
		}
		return best
	}
}

// p2c takes of two drawn at random the one with fewer requests under way.
func p2c(r *rand.Rand) picker {
	return func(load []float64) int {
		a := r.IntN(len(load))
		if len(load) == 1 {
			return a
		}
		b := (a + 1 + r.IntN(len(load)-1)) % len(load)
		if load[b] < load[a] {
			return b
		}
		return a
	}
}

// policy makes the placer that Options.Policy names.
func (f *fleet) policy() Placer {
	if newPicker := plain[f.Policy]; newPicker != nil {
		return plainPlacer(f, newPicker)
	}
	return pricedPlacer(f)
}
