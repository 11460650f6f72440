// The result: times, hits and loads of a replay, and their distributions.

package replay

import (
	"cmp"
	"slices"
	"time"

	"kvasir/kvroute"
	"kvasir/sim"
)

// A Spread is the distribution of times, in milliseconds. Between two of them, quantiles are interpolated.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// A Result is what a replay found.
type Result struct {
	Policy             string         `json:"policy"`
	Workers            int            `json:"workers"`
	Speed              float64        `json:"speed"`
	Requests           int            `json:"requests"`
	TTFT               Spread         `json:"ttft_ms"` // arrival to first token
	ITL                Spread         `json:"itl_ms"`  // between two tokens of an answer; over tokens
	E2E                Spread         `json:"e2e_ms"`  // arrival to last token
	Reuse              float64        `json:"reuse"`   // tokens cached at the first admission, of all prompt tokens
	OutputTokensPerSec float64        `json:"output_tokens_per_s"`
	Imbalance          float64        `json:"imbalance"` // tokens computed by the busiest worker of a role, over their mean
	Preemptions        int            `json:"preemptions"`
	PerWorker          []WorkerResult `json:"per_worker"`
	Replicas           *Replicas      `json:"replicas,omitempty"` // nil: there was one router
	Targets            *Kept          `json:"targets,omitempty"`  // for the caller to fill in, by Trace.Kept

	Each     []RequestResult `json:"-"` // by order of arrival
	Ceiling  float64         `json:"-"` // Trace.Ceiling: Reuse is never above it
	Duration time.Duration   `json:"-"` // first arrival to last token, in the replay's time
	Spent    time.Duration   `json:"-"` // by all workers together; with Options.Scaling each from when it was wanted until it was gone
	Refused  int             `json:"-"` // blocks that the index did not take, which no request finds
}

// Replicas is what several routers had to say to each other.
type Replicas struct {
	Routers  int     `json:"routers"`
	SyncMS   float64 `json:"sync_ms"`  // -1: they said nothing
	Messages float64 `json:"messages"` // of all of them, for each request
	Bytes    float64 `json:"bytes"`
}

// A WorkerResult is one worker's part.
type WorkerResult struct {
	Worker       int     `json:"worker"` // from 0
	Role         string  `json:"role"`   // both | prefill | decode
	Requests     int     `json:"requests"`
	PromptTokens int     `json:"prompt_tokens"`
	OutputTokens int     `json:"output_tokens"`
	Reuse        float64 `json:"reuse"`
	Busy         float64 `json:"busy"` // share of the time that it computed
	Preemptions  int     `json:"preemptions"`
}

// A RequestResult is one request's times.
type RequestResult struct {
	Worker       int // who answered
	Prefill      int // who computed the prompt for it; -1: itself
	TTFT, E2E    time.Duration
	CachedTokens int
}

// figures gathers what a Result is made of.
type figures struct {
	gaps    []gap
	each    []RequestResult
	workers []tally
	last    time.Duration
	brief   bool // no gaps
}

// A gap is the time between two tokens of an answer, and how many had the same one after the other: all that decode
// in a pass have, nearly always.
type gap struct {
	length time.Duration
	times  int
}

type tally struct {
	requests, prompt, cached, output, preemptions int
	busy                                          time.Duration
}

// roomForGaps is for how many gaps there is room from the start, so that they are not copied as they grow: pages that
// are not written to take no memory.
const roomForGaps = 1 << 22

func newFigures(t *Trace, workers int, brief bool) figures {
	g := figures{each: make([]RequestResult, len(t.Requests)), workers: make([]tally, workers), brief: brief}
	if brief {
		return g
	}
	tokens := 0
	for i := 0; i < len(t.Requests) && tokens < roomForGaps; i++ {
		tokens += t.Requests[i].AnswerTokens
	}
	g.gaps = make([]gap, 0, min(tokens, roomForGaps))
	return g
}

func (g *figures) pass(w int, p *sim.Pass) {
	t := &g.workers[w]
	t.busy += p.End - p.Start
	t.preemptions += p.Preempted
}

func (g *figures) token(j *job, now time.Duration) {
	g.workers[j.worker].output++
	if j.answering.Generated == 1 || g.brief {
		return
	}
	length := now - j.last
	if n := len(g.gaps); n > 0 && g.gaps[n-1].length == length {
		g.gaps[n-1].times++
		return
	}
	g.gaps = append(g.gaps, gap{length, 1})
}

func (g *figures) finish(j *job) {
	s := j.answering
	t := &g.workers[j.computes()]
	t.prompt += j.request.PromptTokens
	t.cached += j.cached
	g.workers[j.worker].requests++
	if j.prefill >= 0 {
		t.requests++
	}
	g.each[j.number] = RequestResult{j.worker, j.prefill, s.FirstToken - j.came, s.LastToken - j.came, j.cached}
	g.last = max(g.last, s.LastToken)
}

// result sums the figures up.
func (f *fleet) result() *Result {
	g := &f.figures
	r := &Result{
		Policy: f.options.Policy, Workers: len(f.engines), Speed: f.options.Speed, Requests: f.done,
		Each: g.each, Ceiling: f.trace.Ceiling(f.options.BlockSize), Duration: g.last,
		Spent: f.spent(g.last), Refused: f.placing.refused,
	}
	if n := f.options.Replicas; n > 1 {
		r.Replicas = &Replicas{n, -1, share(f.mail.messages, f.done), share(f.mail.bytes, f.done)}
		if f.options.Sync >= 0 {
			r.Replicas.SyncMS = millis(f.options.Sync)
		}
	}
	ttft, e2e := make([]time.Duration, 0, f.done), make([]time.Duration, 0, f.done)
	for _, q := range g.each {
		ttft, e2e = append(ttft, q.TTFT), append(e2e, q.E2E)
	}
	r.TTFT, r.E2E, r.ITL = spread(ttft), spread(e2e), spreadGaps(g.gaps)
	prompt, cached, output := 0, 0, 0
	for w, t := range g.workers {
		prompt, cached, output = prompt+t.prompt, cached+t.cached, output+t.output
		r.Preemptions += t.preemptions
		r.PerWorker = append(r.PerWorker, WorkerResult{
			Worker: w, Role: f.role(w).String(), Requests: t.requests, PromptTokens: t.prompt, OutputTokens: t.output,
			Reuse: share(t.cached, t.prompt), Busy: t.busy.Seconds() / g.last.Seconds(), Preemptions: t.preemptions,
		})
	}
	r.Reuse = share(cached, prompt)
	r.OutputTokensPerSec = float64(output) / g.last.Seconds()
	r.Imbalance = f.imbalance()
	return r
}

// imbalance is that of the role in which it is greater.
func (f *fleet) imbalance() float64 {
	var prefills, others []tally
	for w, t := range f.figures.workers {
		if f.role(w) == kvroute.Prefill {
			prefills = append(prefills, t)
		} else {
			others = append(others, t)
		}
	}
	return max(imbalance(prefills), imbalance(others))
}

// role is what a worker is for.
func (f *fleet) role(w int) kvroute.Role { return f.scaling.slots[w].role }

// imbalance is what the busiest of some workers computed, over their mean: 1 where all did the same.
func imbalance(workers []tally) float64 {
	work, most := 0, 0
	for _, t := range workers {
		computed := t.prompt - t.cached + t.output
		work, most = work+computed, max(most, computed)
	}
	if work == 0 {
		return 0
	}
	return float64(most) * float64(len(workers)) / float64(work)
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// spread sorts times and reads their distribution.
func spread(times []time.Duration) Spread {
	if len(times) == 0 {
		return Spread{}
	}
	slices.Sort(times)
	sum := 0.0
	for _, t := range times {
		sum += millis(t)
	}
	return quantiles(sum/float64(len(times)), len(times), func(i int) time.Duration { return times[i] })
}

// spreadGaps is spread over gaps, each as often as it was.
func spreadGaps(gaps []gap) Spread {
	n, sum, longest := 0, 0.0, time.Duration(0)
	for _, g := range gaps {
		n += g.times
		sum += millis(g.length) * float64(g.times)
		longest = max(longest, g.length)
	}
	if n == 0 {
		return Spread{}
	}
	return quantiles(sum/float64(n), n, newGapOrder(gaps, longest).nth)
}

// gapOrder tells gaps in order without sorting them all, as they are nearly as many as tokens: it counts them in classes
// of equal width, and sorts the class that is asked for.
type gapOrder struct {
	gaps    []gap
	width   time.Duration // of a class
	counts  [4096]int     // gaps of each class
	class   int           // the one that members are sorted of; -1: none yet
	before  int           // gaps of the classes before it
	members []gap
}

func newGapOrder(gaps []gap, longest time.Duration) *gapOrder {
	o := &gapOrder{gaps: gaps, class: -1}
	o.width = longest/time.Duration(len(o.counts)) + 1
	for _, g := range gaps {
		o.counts[g.length/o.width] += g.times
	}
	return o
}

// nth returns the gap that has i shorter ones before it; i is below the number of all.
func (o *gapOrder) nth(i int) time.Duration {
	class, before := 0, 0
	for before+o.counts[class] <= i {
		before += o.counts[class]
		class++
	}
	if class != o.class {
		o.sort(class, before)
	}
	k := 0
	for at := o.before + o.members[0].times; at <= i; at += o.members[k].times {
		k++
	}
	return o.members[k].length
}

func (o *gapOrder) sort(class, before int) {
	o.class, o.before, o.members = class, before, o.members[:0]
	for _, g := range o.gaps {
		if int(g.length/o.width) == class {
			o.members = append(o.members, g)
		}
	}
	slices.SortFunc(o.members, func(a, b gap) int { return cmp.Compare(a.length, b.length) })
}

// quantiles reads quantiles of n sorted times.
func quantiles(mean float64, n int, nth func(int) time.Duration) Spread {
	at := func(q float64) float64 {
		place := q * float64(n-1)
		low := int(place)
		a, b := millis(nth(low)), millis(nth(min(low+1, n-1)))
		return a + (b-a)*(place-float64(low))
	}
	return Spread{mean, at(0.5), at(0.9), at(0.99)}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
