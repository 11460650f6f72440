// Pool: the workers of one configuration generation, and how a request gets one of them.

package kvroute

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// PoolOptions is what one configuration generation says of placement.
type PoolOptions struct {
	Workers   []*Worker
	Policy    Policy
	MaxQueued int // requests that may wait at once, for each model; 0: none

	// After is the pool that this one replaces; nil: there was none. The
	// requests that wait go over to this one with Start.
	After *Pool

	// Index says which worker holds which blocks. It goes with the chain of
	// pools: that of After if there is one. nil: one of its own.
	Index *kvindex.Index

	KV          cost.KV      // numbers of the policy KV; zero: cost.DefaultKV
	Predict     cost.Predict // numbers of the policy Predict, and of Auto; zero: cost.DefaultPredict
	Temperature float64      // of both; see cost.Pick

	Disaggregate Disaggregate

	// CentralQueue lets requests wait here, short ones first, where the policy
	// Predict finds the engine they should go to busy with prompts already.
	CentralQueue bool

	Random func() uint64 // nil: math/rand/v2; must be safe for concurrent use

	// Now is the clock of requests that wait; nil: time.Now. That of After, if there is one, stays.
	Now func() time.Time

	// Alarm is for a caller whose time is not the real one. It is called with the next time at which
	// Ring is due, whenever that changes other than by Ring itself; zero: none is due. It must not call
	// the pool. nil: a timer of the pool's own. That of After, if there is one, stays.
	Alarm func(at time.Time)

	// News is told what routers before the same workers have to know of each other's
	// placements; it reports whether it took them. It is called under locks of the pool, so it
	// must neither wait nor call it. nil: nobody listens. That of After, if there is one, stays.
	News func(News) bool
}

// A Pool places requests on the workers of one configuration generation. It is
// never changed; all its methods may be called at the same time, also
// after another pool has replaced it.
type Pool struct {
	options PoolOptions // with their defaults; After is let go
	line    *line

	known atomic.Pointer[catalog]
	mu    sync.Mutex // held while known is rebuilt
}

// NewPool returns a pool over o.Workers. Nothing of o.After changes before Start,
// so that a configuration that fails later can still be dropped. A worker
// belongs to one chain of pools for good; that it comes from another is a
// panic.
func NewPool(o PoolOptions) *Pool {
	p := &Pool{options: o}
	p.options.setDefaults()
	if o.After != nil {
		p.line = o.After.line
	} else {
		p.line = newLine(p, &o)
	}
	if o.Index != nil && o.Index != p.line.index {
		panic("BUG: a pool has another index than the one before it")
	}
	for _, w := range p.options.Workers {
		if !w.line.CompareAndSwap(nil, p.line) && w.line.Load() != p.line {
			panic(fmt.Sprintf("BUG: worker %q belongs to another chain of pools", w.name))
		}
	}
	return p
}

// setDefaults makes the options those of a pool: with what zero values stand for, and
// nothing that the caller may still change.
func (o *PoolOptions) setDefaults() {
	o.Workers, o.After = slices.Clone(o.Workers), nil
	o.CentralQueue = o.CentralQueue && o.Policy.Queues() && o.MaxQueued > 0
	if o.KV == (cost.KV{}) {
		o.KV = cost.DefaultKV()
	}
	if o.Predict == (cost.Predict{}) {
		o.Predict = cost.DefaultPredict()
	}
	if o.Random == nil {
		o.Random = rand.Uint64
	}
}

// A Query is what placement has to know of a request.
type Query struct {
	Now    time.Time
	Model  string
	Tokens int       // of the prompt, estimated, where Prompt is nil; 0: unknown
	Tried  []*Worker // not to be placed there again for this request

	Prompt   *Prompt   // nil: nothing is known of its content
	Pin      Pin       // where the client wants it to go
	Override *Override // nil: the policy's numbers as they are
	Quiet    bool      // tokens show no passes of the engine: the answer comes in one piece, or is of several sequences

	// Aggregate asks for no prefill worker, after one failed. Against Always it
	// prevails; workers that need a prefill worker do not get it, unless it has no prompt.
	Aggregate    bool
	NoPrompt     bool      // nothing is generated: whoever serves the model can take it
	TriedPrefill []*Worker // not to be placed there again for this request's prompt

	// prefill is how long its prompt takes to compute on the worker that holds most
	// of it, as it was priced last. The central queue goes by it.
	prefill time.Duration

	// ahead is how long the prompts of all who wait in the central queue take, it
	// among them; 0: it does not wait.
	ahead time.Duration

	// Strict asks for ErrNoWorker where all workers are down or ejected, instead
	// of a last resort: for a caller that has another model to fall back to.
	Strict bool
}

// Place picks a worker and takes one of its slots, and one of a prefill
// worker's where the prompt is to be computed there.
//
// Candidates are the workers that serve the model. Eligible are those of them
// that were not tried, are well and have a free slot, and the policy picks among
// these. If there are none, it goes on in this order:
//
//  1. A well worker with a free slot that is aside (Worker.SetHardware). Where all
//     well workers are aside it is as if none were.
//  2. One that said it is busy, once no well worker is left, not even a full one;
//     the one that said so longest ago first.
//  3. One that is down or ejected, once every worker of the model is, those tried
//     included: the one whose ejection ends first, then the one whose probe or
//     request failed longest ago.
//
// A prefill worker that is busy is used where the request cannot do without one.
// One that is aside is used there, too, and where everybody else who could compute
// the prompt is aside as well. One that is down is used only if the request names it.
//
// Errors: ErrUnknownModel, ErrModelUnsure, ErrNoWorker, ErrNoPrefill, ErrPin,
// ErrFull. A request that comes while others of its kind wait gets ErrFull:
// it may Wait behind them, not overtake them. With PoolOptions.CentralQueue
// ErrFull also says that the engine the request should go to has prompts enough
// for its next pass; a retry (Query.Tried) goes there nevertheless.
func (p *Pool) Place(q Query) (Placement, error) {
	if p.line.waiting.Load() > 0 {
		return p.line.place(p, &q)
	}
	at, err := p.place(&q)
	if p.line.stale.Load() { // a slot was taken and let go again
		p.line.wake()
	}
	return at, err
}

func (p *Pool) place(q *Query) (Placement, error) {
	s, err := p.find(q.Model)
	if err != nil {
		return Placement{}, err
	}
	// Nearly all requests end here where there are no prices. It saves half of the time.
	if pick := policies[p.options.Policy].pick; pick != nil && !s.decodes && q.Pin == (Pin{}) {
		if w := pick(p.eligible(q, s.workers, q.Tried, &s.turn)); w != nil && w.acquire() {
			return Placement{Worker: w, Rank: -1, PrefillRank: -1, Why: policies[p.options.Policy].name}, nil
		}
	}
	c, err := p.candidates(s, q)
	if err != nil {
		return Placement{}, err
	}
	if p.options.Policy.Priced() {
		return p.line.placer.place(p, &c, q)
	}
	return p.byLoad(&c, q)
}

// byLoad places a request without prices.
func (p *Pool) byLoad(c *candidates, q *Query) (Placement, error) {
	for {
		prefill, err := p.prefillWorker(c, q)
		if err != nil {
			return Placement{}, err
		}
		at, err := p.pick(c, q)
		if err != nil {
			return Placement{}, err
		}
		if at.Worker == nil {
			continue
		}
		if prefill != nil && c.answersAfter(at.Worker) {
			at.Prefill = prefill
		}
		// Another request may have taken the last slot since: look again. Each
		// time round somebody else got a slot, so this ends.
		if at.acquire() {
			at.Rank, at.PrefillRank = rankOf(at.Worker, q.Pin.Ranked, q.Pin.Rank), rankOf(at.Prefill, q.Pin.PrefillRanked, q.Pin.PrefillRank)
			if at.Prefill != nil {
				at.hold().pre.worker = at.Prefill
			}
			return at, nil
		}
	}
}

// pick returns the worker that the policy picks, or makes do; no worker and
// no error is to be tried again.
func (p *Pool) pick(c *candidates, q *Query) (Placement, error) {
	policy := &policies[p.options.Policy]
	if w := policy.pick(p.eligible(q, c.workers, q.Tried, &c.served.turn)); w != nil {
		return Placement{Worker: w, Why: c.why(policy.name, q)}, nil
	}
	return makeDo(c.workers, q.Tried, q.Strict, q.Now)
}

// shortPrompt is how many tokens are not worth a hand-over where there are no
// prices to say so (Dynamo's bound of conditional disaggregation).
const shortPrompt = 2048

// prefillWorker returns the prefill worker for the request; nil: none.
func (p *Pool) prefillWorker(c *candidates, q *Query) (*Worker, error) {
	tokens := q.tokens()
	if len(c.prefills) > 0 && (c.must || c.some || tokens == 0 || tokens >= shortPrompt) {
		e := p.eligible(q, c.prefills, q.TriedPrefill, &c.served.prefillTurn)
		e.narrow = !c.must && !c.some && c.unaided(q)
		if w := policies[p.options.Policy].pick(e); w != nil {
			return w, nil
		}
	}
	if !c.must && !c.some {
		return nil, nil
	}
	w, err := c.anyPrefillWorker(q)
	if err != nil {
		return nil, c.alone(err)
	}
	return w, nil
}

// unaided says whether a worker that is well, and not aside, would compute the
// prompt itself.
func (c *candidates) unaided(q *Query) bool {
	return slices.ContainsFunc(c.workers, func(w *Worker) bool { return !w.aside() && c.whole(w) && available(w, q.Tried, q.Now) })
}

// anyPrefillWorker returns a prefill worker that is busy, or one that the request names.
func (c *candidates) anyPrefillWorker(q *Query) (*Worker, error) {
	for {
		at, err := makeDo(c.prefills, q.TriedPrefill, !c.anyRole, q.Now)
		switch {
		case errors.Is(err, ErrFull):
			return nil, err
		case err != nil:
			return nil, ErrNoPrefill
		case at.Worker != nil:
			return at.Worker, nil
		}
		// A slot has become free meanwhile.
		for _, w := range c.prefills {
			if available(w, q.TriedPrefill, q.Now) {
				return w, nil
			}
		}
	}
}

// rankOf returns the rank that is named to a worker picked without prices.
func rankOf(w *Worker, named bool, rank int) int {
	if w == nil || !named || w.Engine().Ranks == 1 {
		return -1
	}
	return rank
}

// acquire takes a slot of each worker, or of none.
func (at *Placement) acquire() bool {
	if !at.Worker.acquire() {
		return false
	}
	if at.Prefill == nil || at.Prefill.acquire() {
		return true
	}
	// Whoever calls may have the line's mu: it settles what this sets.
	at.Worker.active.Add(-1)
	at.Worker.tellSlots()
	at.Worker.line.Load().stale.Store(true)
	return false
}

// tokens returns the prompt's length; 0: not known.
func (q *Query) tokens() int {
	if q.Prompt != nil {
		return q.Prompt.Tokens()
	}
	return q.Tokens
}

// makeDo picks where the policy found nobody: among the busy, and at last
// among the down and ejected; of each, those that are aside come last. No worker
// and no error means that a slot has become free meanwhile.
func makeDo(workers, tried []*Worker, strict bool, now time.Time) (Placement, error) {
	var busy, dead rest // the best of each that has a free slot
	var anyWell, anyAside, anyBusy, anyDead, anyAlive bool
	for _, w := range workers {
		h := w.sick.Load()
		state := Up
		if h != nil {
			state = h.state(now)
		}
		anyAlive = anyAlive || state <= Busy
		if slices.Contains(tried, w) {
			continue
		}
		free := w.free()
		switch {
		case state <= Up && free:
			return Placement{}, nil
		case state <= Up && w.aside():
			anyAside = true
		case state <= Up:
			anyWell = true
		case state == Busy:
			anyBusy = true
			if free {
				busy.offer(w, h, func(other *health) bool { return h.lastBusy.Before(other.lastBusy) })
			}
		default:
			anyDead = true
			if free {
				dead.offer(w, h, func(other *health) bool { return h.sooner(other, now) })
			}
		}
	}
	switch {
	case anyWell:
		return Placement{}, ErrFull
	case busy.worker != nil:
		return Placement{Worker: busy.worker, Why: "busy"}, nil
	case anyBusy || anyAside:
		return Placement{}, ErrFull
	case !anyDead || anyAlive || strict:
		return Placement{}, ErrNoWorker
	case dead.worker != nil:
		return Placement{Worker: dead.worker, Why: "last_resort", LastResort: true}, nil
	}
	return Placement{}, ErrFull
}

// rest is the best that is left of some workers.
type rest struct {
	worker *Worker
	health *health
	aside  bool
}

// offer takes w if it is better: not aside where the other one is, or alike in that
// and better by health.
func (r *rest) offer(w *Worker, h *health, better func(*health) bool) {
	aside := w.aside()
	if r.worker == nil || r.aside && !aside || aside == r.aside && better(r.health) {
		r.worker, r.health, r.aside = w, h, aside
	}
}
