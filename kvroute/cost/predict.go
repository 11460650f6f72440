// Policy predict: the predicted time to first token, and what the request costs everyone else.

package cost

import (
	"math"
	"time"
)

// Predict prices in milliseconds:
//
//	T + P(n) * (Work + N/Disturb) + load + E + Fill * held / pool
//
// T is the predicted time to first token, P(n) the time to compute the n prompt tokens that the worker does not hold,
// N how many answers it is generating. The price on new work stands for everyone who comes later: without it the
// policy is greedy, spreads prefixes over all workers and collapses when they are full. load is the price of memory
// in use, Load * token * (tokens of all outstanding / pool)^3, E that of blocks that would be evicted while still warm.
// All weights are relative to the engine's own time for a token, so that they hold for fast and slow ones, and all of
// it but the work goes by that time as it is at present, times Load.Slow. The work does not: a worker that is slower for
// a while holds up those who come later for longer, and has as many fewer of them. (Priced with it, the long prompts
// crowd on the fast workers: near the limit of four, one of them slower by 3, first tokens took 679 ms against 586.)
// (docs/routing.md has the measurements.)
type Predict struct {
	Work    float64       // price of new prefill work, as a multiple of its time, where the pool is busy
	Busy    float64       // the share of its time or memory in use at which it is; below, the price is lower in proportion
	Popular float64       // so many users of a prefix halve the price of another copy of it
	Disturb float64       // so many answers being generated double the price of 1 of new work
	Stall   float64       // so many answers of a worker that need not compute prompts add a price of 1 to new work there
	Load    float64       // price of a full pool, in prompt tokens
	Evict   float64       // price of evicting a block that was just used, as a multiple of the time to compute it
	Warm    time.Duration // the age at which an evicted block is worth 1/e of that
	Fill    float64       // price of a full cache in milliseconds: settles idle-time ties

	HostCredit float64 // of a block held on the host against one on the device
	DiskCredit float64

	Handover      time.Duration // of a hand-over from prefill to decode worker, without its blocks
	TransferToken time.Duration // and for each prompt token that the decode worker does not hold
}

// DefaultPredict are the weights that measured best.
func DefaultPredict() Predict {
	return Predict{
		Work: 4, Busy: 0.5, Popular: 4, Disturb: 128, Stall: 2, Load: 4300, Evict: 1, Warm: 10 * time.Second, Fill: 0.2,
		HostCredit: 0.75, DiskCredit: 0.25,
		Handover: 5 * time.Millisecond, TransferToken: 5 * time.Microsecond,
	}
}

// Price fills in what placing p at each candidate costs, in milliseconds. While no engine's timing is
// known, they are priced by their backlog in tokens.
func (w *Predict) Price(_ time.Time, p Prompt, c []Candidate) {
	s := w.survey(c)
	for i := range c {
		w.price(p, &c[i], &s)
	}
}

// unknownToken is what a prompt token is taken to cost in milliseconds while no engine's timing is known. It does not
// change what is chosen.
const unknownToken = 0.0185

// fastest is the timing of the engine that computes prompts fastest, of those whose timing is known; nil: there is none.
// Engines whose timing is not known are taken to be like it: taken for slower than the rest, they would get no requests
// by which they could show what they are.
func fastest(c []Candidate) (best *Timing) {
	least := math.Inf(1)
	for i := range c {
		l := &c[i].Load
		if !l.Timing.known() {
			continue
		}
		if token := l.Timing.token(float64(l.Engine.Budget)); token < least {
			best, least = &l.Timing, token
		}
	}
	return best
}

// alike is the factor up to which an engine's timing is taken to be the same as the fastest one's. Without it a worker
// that seems slower by chance would get no requests by which it could show what it is.
func (l *Load) alike() float64 {
	if l.Guessed {
		return 2
	}
	return 1.1
}

// scene is what the candidates have in common.
type scene struct {
	timing *Timing // of those that have none of their own; nil: known of none
	work   float64 // price of new prefill work, as a multiple of its time
	common int     // leading tokens of the prompt that requests under way use, at the candidate where most of them do
	spared float64 // by which share the price of one more copy of these is lowered

	// unproven: some candidate has quiet requests (Sent.Quiet) of which nothing was seen yet, and its pace is not known,
	// so nobody can tell when their prompts are computed. Such prompts then count as waiting until their answers end,
	// at all candidates alike. Otherwise the candidate whose pace is known first seems to be free beside the others, and
	// gets nearly all requests until it is the one that is behind.
	unproven bool
}

// survey looks at all candidates.
func (w *Predict) survey(c []Candidate) (s scene) {
	s.timing = fastest(c)
	all := 0
	for i := range c {
		if !c[i].Aside {
			all++
		}
	}
	busy, users, most := 0.0, 0, 0
	for i := range c {
		if c[i].Aside {
			continue
		}
		l := &c[i].Load
		if l.Unproven > 0 && !l.Timing.known() {
			s.unproven = true
		}
		token := unknownToken
		if s.timing != nil {
			token = s.timing.token(float64(l.Engine.Budget))
		}
		busy += max(l.Flow*token*l.slow()/1000, l.used()) / float64(all)
		common := min(c[i].Active*l.Engine.BlockSize, int(c[i].Overlap.Device)*c[i].blockTokens())
		if common == 0 {
			continue
		}
		users += c[i].Users
		if c[i].Users > most {
			most, s.common = c[i].Users, common
		}
	}
	s.work = w.Work * min(busy/w.Busy, 1)
	s.spared = float64(users) / (float64(users) + w.Popular)
	return s
}

func (w *Predict) price(p Prompt, c *Candidate, s *scene) {
	l := &c.Load
	c.Hit = c.hit(p.Tokens, w.HostCredit, w.DiskCredit)
	fresh := float64(max(p.Tokens-c.Hit, 1))
	if p.Leg == DecodeLeg {
		fresh = 0
	}
	token, ttft := unknownToken, 0.0
	budget, disturbed := float64(l.Engine.Budget), float64(l.Decoding)/w.Disturb
	multiple := s.work + disturbed
	if timing := s.timing; timing != nil {
		if l.Timing.known() && l.Timing.token(budget) > l.alike()*timing.token(budget) {
			timing = &l.Timing // else alike: what was learned of them differs by chance
		}
		present := timing.times(l.slow())
		token = present.token(budget)
		ttft = l.ttft(fresh, &present, s.unproven)
		c.compute = present.chunked(fresh, budget)
	} else {
		// The linear form: it lacks the fixed part of a pass, hence its weights one higher and a fifth lower. That a
		// prompt is computed counts only where it was seen: by a wrong guess one worker would get all that it holds.
		token *= l.slow()
		ttft = token * (float64(max(l.Backlog+l.InPass, l.Unproven)) + fresh)
		c.compute = token * fresh
		multiple += 1 - 0.2*disturbed
	}
	work := c.compute / l.slow() * multiple
	copied := -token * s.spared * min(max(float64(s.common-c.Hit), 0), fresh) * (1 + s.work/l.slow())
	full := l.used() + float64(p.Tokens-min(c.Active*l.Engine.BlockSize, p.Tokens))/float64(l.Engine.tokens())
	load := w.Load * token * full * full * full
	evict := w.evict(l, fresh) * token * float64(l.Engine.BlockSize)
	fill := w.Fill * float64(l.Held) / float64(l.Engine.Blocks)
	c.TTFT = duration(ttft)
	c.Cost = ttft + work + copied + load + evict + fill
	c.Parts = Parts{{"ttft", ttft}, {"work", work}, {"copied", copied}, {"load", load}, {"evict", evict}, {"fill", fill}}
}

// evict is how many warm blocks the request would evict, each by what it is still worth.
func (w *Predict) evict(l *Load, fresh float64) float64 {
	size := float64(l.Engine.BlockSize)
	blocks := math.Ceil(fresh / size)
	free := float64(l.Engine.Blocks-l.Held) - float64(l.Streamed)/size - float64(l.Decoding)
	over := blocks - free
	if over <= 0 {
		return 0
	}
	return w.Evict * min(over, blocks) * math.Exp(-l.EvictAge.Seconds()/w.Warm.Seconds())
}

// Handed reports whether it pays to let prefill compute the prompt and decode make the answer, against whole doing
// both, and says by how many milliseconds (negative: it does not pay). Each was priced for its leg. Beside the prices it
// counts that the prompt would hold up every answer of a worker that is there for answers, and how long the prompts
// that wait in a central queue keep each side busy, 0 where there is room now: they are in no engine's backlog, and without
// them prefill workers would always seem about to be free (docs/routing.md).
func (w *Predict) Handed(p Prompt, whole, prefill, decode *Candidate, wholeWaits, prefillWaits time.Duration) (gain float64, pays bool) {
	held := whole.compute * float64(whole.Load.Decoding) / w.Stall
	gain = whole.Cost + millis(wholeWaits) + held - (prefill.Cost + millis(prefillWaits) + millis(w.Transfer(p, decode)) + decode.Cost)
	return gain, gain > 0
}

// Transfer is how long handing the prompt's blocks to the decode worker takes.
func (w *Predict) Transfer(p Prompt, decode *Candidate) time.Duration {
	return w.Handover + time.Duration(max(p.Tokens-decode.Hit, 0))*w.TransferToken
}
