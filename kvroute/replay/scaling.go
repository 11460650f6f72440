// Scaling: a fleet that changes while it plays: workers that are started, and workers that are drained.

package replay

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// A Fleet is how many workers of each role there are: those that do both, or those for prefill and those for decode.
type Fleet struct {
	Workers int `json:"workers,omitempty"`
	Prefill int `json:"prefill,omitempty"`
	Decode  int `json:"decode,omitempty"`
}

// Total is how many there are together.
func (f Fleet) Total() int { return f.Workers + f.Prefill + f.Decode }

func (f Fleet) String() string {
	if f.Prefill+f.Decode > 0 {
		return fmt.Sprintf("%d+%d", f.Prefill, f.Decode)
	}
	return strconv.Itoa(f.Workers)
}

// Of is how many there are of a role.
func (f *Fleet) Of(role kvroute.Role) *int {
	switch role {
	case kvroute.Prefill:
		return &f.Prefill
	case kvroute.Decode:
		return &f.Decode
	}
	return &f.Workers
}

// Scaling changes the fleet of a replay while it plays; Options.Workers, Prefill and Decode are what it begins with.
//
// A worker that is added takes requests from Start later on, with nothing cached. Of those that are too many the ones
// that are not started yet go first, then the youngest: each gets nothing new, and is gone when what it has under way
// is done. The pool learns of both as the proxy's does of a reload.
type Scaling struct {
	First time.Duration // when Want is asked first, in the replay's time
	Start time.Duration // from when a worker is wanted until it takes requests
	Most  int           // workers there may ever be at once, those that drain not counted

	// Want says how many workers there shall be from now on, at least one of each role that there was at the beginning
	// and none of another, and when it is to be asked next; a time that is not after now: never again. seen are the
	// requests by order of arrival, zero where they are not done: what was seen of them by now.
	Want func(now time.Duration, seen []RequestResult) (want Fleet, next time.Duration)
}

// slotState is what the worker of a slot is about.
type slotState uint8

const (
	serving  slotState = iota
	starting           // from ready on it takes requests
	draining           // it gets nothing new
	gone               // another worker may have the slot
)

// A slot is the place of a worker, and of its engine. Another one may have it later, when this one is gone.
type slot struct {
	role  kvroute.Role
	state slotState
	since time.Duration // when it was wanted
	ready time.Duration
	jobs  int // under way there
}

// scaling is what a fleet keeps of it.
type scaling struct {
	slots []slot // by engine
	asks  time.Duration
	ready time.Duration // when the next worker that is starting is ready; never: none is
	made  int           // workers in all
	spent time.Duration // by the workers that are gone
}

func (f *fleet) beginScaling() {
	f.scaling = scaling{asks: never, ready: never}
	for _, role := range []kvroute.Role{kvroute.Both, kvroute.Prefill, kvroute.Decode} {
		for range *(&Fleet{f.options.Workers, f.options.Prefill, f.options.Decode}).Of(role) {
			f.scaling.slots = append(f.scaling.slots, slot{role: role})
		}
	}
	f.scaling.made = len(f.scaling.slots)
	if s := f.options.Scaling; s != nil {
		f.scaling.asks = s.First
	}
}

// scale takes in what is due of the fleet's changes, and reports whether placement has other workers than before.
func (f *fleet) scale() (changed bool, err error) {
	s := &f.scaling
	if f.now < min(s.asks, s.ready) {
		return false, nil
	}
	if s.asks <= f.now {
		want, next := f.options.Scaling.Want(f.now, f.figures.each)
		if s.asks = next; next <= f.now {
			s.asks = never
		}
		if changed, err = f.want(want); err != nil {
			return false, err
		}
	}
	s.ready = never
	for n := range s.slots {
		switch one := &s.slots[n]; {
		case one.state != starting:
		case one.ready <= f.now:
			one.state, changed = serving, true
			f.open(n)
		default:
			s.ready = min(s.ready, one.ready)
		}
	}
	if !changed {
		return false, nil
	}
	return true, f.placing.renew(f)
}

// want starts the workers that are missing, and drains those that are too many. It reports whether one is drained that
// takes requests.
func (f *fleet) want(want Fleet) (drained bool, err error) {
	if (want.Workers > 0) != (f.options.Workers > 0) || (want.Prefill > 0) != (f.options.Prefill > 0) ||
		(want.Decode > 0) != (f.options.Decode > 0) || min(want.Workers, want.Prefill, want.Decode) < 0 || want.Total() > f.options.Scaling.Most {
		return false, fmt.Errorf("cannot change the fleet to %v workers: it must keep one of each role, and have at most %d", want, f.options.Scaling.Most)
	}
	for _, role := range []kvroute.Role{kvroute.Both, kvroute.Prefill, kvroute.Decode} {
		missing := *want.Of(role)
		for _, one := range f.scaling.slots {
			if one.role == role && one.state <= starting {
				missing--
			}
		}
		for ; missing > 0; missing-- {
			f.add(role)
		}
		for ; missing < 0; missing++ {
			drained = f.drain(role) || drained
		}
	}
	return drained, nil
}

// add starts a worker, in a slot that is free.
func (f *fleet) add(role kvroute.Role) {
	n := 0
	for n < len(f.scaling.slots) && f.scaling.slots[n].state != gone {
		n++
	}
	if n == len(f.scaling.slots) {
		f.scaling.slots = append(f.scaling.slots, slot{})
		f.engines, f.ends = append(f.engines, sim.New(f.options.engine())), append(f.ends, never)
		f.placing.workers = append(f.placing.workers, nil)
		f.figures.workers = append(f.figures.workers, tally{})
	}
	f.scaling.slots[n] = slot{role: role, state: starting, since: f.now, ready: f.now + f.options.Scaling.Start}
}

// open makes the worker of a slot that is ready now.
func (f *fleet) open(n int) {
	f.engines[n] = sim.New(f.options.engine())
	f.placing.workers[n] = f.newWorker(n, strconv.Itoa(f.scaling.made))
	f.scaling.made++
}

// drain lets a worker go: one that is starting, else the youngest. It reports whether it took requests.
func (f *fleet) drain(role kvroute.Role) bool {
	which := -1
	for n, one := range f.scaling.slots {
		if one.role != role || one.state > starting {
			continue
		}
		if which < 0 || one.state > f.scaling.slots[which].state ||
			one.state == f.scaling.slots[which].state && one.since >= f.scaling.slots[which].since {
			which = n
		}
	}
	one := &f.scaling.slots[which]
	took := one.state == serving
	one.state = draining
	f.leave(which)
	return took
}

// left notes that a job is done where it was.
func (f *fleet) left(j *job) {
	for _, n := range [...]int{j.worker, j.prefill} {
		if n >= 0 {
			f.scaling.slots[n].jobs--
			f.leave(n)
		}
	}
}

// leave lets a worker that drains go when it has nothing under way.
func (f *fleet) leave(n int) {
	if one := &f.scaling.slots[n]; one.state == draining && one.jobs == 0 {
		one.state = gone
		f.scaling.spent += f.now - one.since
	}
}

// spent is how long all workers were there together, those that started and drained included, up to a time.
func (f *fleet) spent(end time.Duration) time.Duration {
	sum := f.scaling.spent
	for _, one := range f.scaling.slots {
		if one.state != gone && end > one.since {
			sum = min(sum+end-one.since, math.MaxInt64/2)
		}
	}
	return sum
}

// renew makes the pool over the workers that take requests now, as a reload does.
func (p *placing) renew(f *fleet) error {
	p.options.Workers = nil // not the list of before cut short: it is the list of all workers, until that grows
	for n, one := range f.scaling.slots {
		if one.state == serving {
			p.options.Workers = append(p.options.Workers, p.workers[n])
		}
	}
	p.options.After = p.pool
	p.pool = kvroute.NewPool(p.options)
	p.pool.Start()
	return p.indexed()
}

// indexed checks that the index has room for each worker.
func (p *placing) indexed() error {
	for _, w := range p.options.Workers {
		if p.events && w.Cache(0) == nil {
			return fmt.Errorf("cannot index worker %s: %w", w.Name(), kvindex.ErrTooManyWorkers)
		}
	}
	return nil
}
