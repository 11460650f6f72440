// Pool: the workers of one configuration generation, and the choice among them.
package kvroute

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// PoolOptions is what one configuration generation says of placement.
type PoolOptions struct {
	Workers   []*Worker
	Policy    Policy
	MaxQueued int // requests that may wait at once, for each model; 0: none

	// After is the pool that this one replaces; nil: there was none. The
	// requests that wait go over to this one with Start.
	After *Pool

	Random func() uint64    // nil: math/rand/v2; must be safe for concurrent use
	Now    func() time.Time // of waiting requests; nil: time.Now; taken from After if there is one
}

// A Pool chooses among the workers of one configuration generation. It is
// never changed; all its methods may be called at the same time, also
// after another pool has replaced it.
type Pool struct {
	workers   []*Worker
	policy    Policy
	maxQueued int
	random    func() uint64
	line      *line

	known atomic.Pointer[catalog]
	mu    sync.Mutex // held while known is rebuilt
}

// NewPool returns a pool over o.Workers. Nothing of o.After changes before Start,
// so that a configuration that fails later can still be dropped. A worker
// belongs to one chain of pools for good; that it comes from another is a
// panic.
func NewPool(o PoolOptions) *Pool {
	p := &Pool{
		workers:   slices.Clone(o.Workers),
		policy:    o.Policy,
		maxQueued: o.MaxQueued,
		random:    o.Random,
	}
	if p.random == nil {
		p.random = rand.Uint64
	}
	if o.After != nil {
		p.line = o.After.line
	} else {
		p.line = newLine(p, o.Now)
	}
	for _, w := range p.workers {
		if !w.line.CompareAndSwap(nil, p.line) && w.line.Load() != p.line {
			panic(fmt.Sprintf("BUG: worker %q belongs to another chain of pools", w.name))
		}
	}
	return p
}

// A Query is what placement has to know of a request.
type Query struct {
	Now    time.Time
	Model  string
	Tokens int       // of the prompt, estimated; 0: unknown. No policy asks for it yet
	Tried  []*Worker // not to be chosen again for this request

	// Strict asks for ErrNoWorker where all workers are down or ejected, instead
	// of a last resort: for a caller that has another model to fall back to.
	Strict bool
}

// A Placement is a slot on a worker.
type Placement struct {
	Worker *Worker

	// Why the worker was chosen: the policy's name, or "busy" or "last_resort"
	// where there was nothing left for the policy to choose from.
	Why string

	// LastResort: all workers of the model are down or ejected; this is the one
	// that is most likely back.
	LastResort bool
}

// Release gives the slot back. It must be called exactly once.
func (at Placement) Release() { at.Worker.release() }

// Place chooses a worker and takes one of its slots.
//
// Candidates are the workers that serve the model, were not tried, and have
// a free slot. The policy chooses among those that are well. A worker that
// said it is busy is used when no well one is left, full or not; the one that
// said so longest ago first. One that is down or ejected is used when every
// worker of the model is, tried ones included; the ejection that ends first,
// then the probe or request that failed longest ago.
//
// Errors: ErrUnknownModel, ErrModelUnsure, ErrNoWorker, ErrFull. A request
// that comes while others of its kind wait gets ErrFull: it may Wait behind
// them, not overtake them.
func (p *Pool) Place(q Query) (Placement, error) {
	if p.line.waiting.Load() > 0 {
		return p.line.place(p, &q)
	}
	return p.place(&q)
}

func (p *Pool) place(q *Query) (Placement, error) {
	s, err := p.find(q.Model)
	if err != nil {
		return Placement{}, err
	}
	policy := &policies[p.policy]
	for {
		c := choice{workers: s.workers, tried: q.Tried, now: q.Now, turn: &s.turn, random: p.random}
		at := Placement{Worker: policy.pick(c), Why: policy.name}
		if at.Worker == nil {
			if at, err = s.makeDo(q); err != nil {
				return Placement{}, err
			}
		}
		// Another request may have taken the last slot since: look again. Each
		// time round somebody else got a slot, so this ends.
		if at.Worker != nil && at.Worker.acquire() {
			return at, nil
		}
	}
}

// makeDo chooses where the policy found nobody: among the busy, and at last
// among the down and ejected. No worker and no error means that a slot has
// become free meanwhile.
func (s *served) makeDo(q *Query) (Placement, error) {
	var busy, dead *Worker   // the best of each that has a free slot
	var busyH, deadH *health // of those
	var anyWell, anyBusy, anyDead, anyAlive bool
	for _, w := range s.workers {
		h := w.sick.Load()
		state := Up
		if h != nil {
			state = h.state(q.Now)
		}
		anyAlive = anyAlive || state <= Busy
		if slices.Contains(q.Tried, w) {
			continue
		}
		free := w.free()
		switch {
		case state <= Up && free:
			return Placement{}, nil
		case state <= Up:
			anyWell = true
		case state == Busy:
			anyBusy = true
			if free && (busy == nil || h.lastBusy.Before(busyH.lastBusy)) {
				busy, busyH = w, h
			}
		default:
			anyDead = true
			if free && (dead == nil || h.sooner(deadH, q.Now)) {
				dead, deadH = w, h
			}
		}
	}
	switch {
	case anyWell:
		return Placement{}, ErrFull
	case busy != nil:
		return Placement{Worker: busy, Why: "busy"}, nil
	case anyBusy:
		return Placement{}, ErrFull
	case !anyDead || anyAlive || q.Strict:
		return Placement{}, ErrNoWorker
	case dead != nil:
		return Placement{Worker: dead, Why: "last_resort", LastResort: true}, nil
	}
	return Placement{}, ErrFull
}
