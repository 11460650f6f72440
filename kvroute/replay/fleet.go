// The fleet: engines, the clock that they share, and what happens in which order.

package replay

import (
	"errors"
	"fmt"
	"math"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// A job is one request on its way.
type job struct {
	request *Request
	number  int            // in order of arrival, from 0
	names   []kvindex.Name // of the full blocks of the prompt
	prompt  kvroute.Prompt // the same, as the pool knows it

	at      kvroute.Placement
	worker  int // engine that answers
	prefill int // engine that computes the prompt for it; -1: worker itself

	answering *sim.Sequence // at worker; nil: not there yet
	computing *sim.Sequence // at prefill; nil: there is none

	came   time.Duration
	last   time.Duration // when its last token was seen
	cached int           // prompt tokens cached where the prompt was computed
}

// computes is the engine that computes the prompt.
func (j *job) computes() int {
	if j.prefill >= 0 {
		return j.prefill
	}
	return j.worker
}

// never is the end of a pass that there is not.
const never = time.Duration(math.MaxInt64)

// A fleet plays one trace. At one moment the order is: passes end and what they tell is known; then requests arrive
// and are placed; then engines that have something to do begin a pass. So a request that arrives at the very end of a
// pass is in the next one, and is placed in the light of the pass that ended.
type fleet struct {
	options Options // with defaults
	trace   *Trace
	placing *placing   // of the first router
	routers []*placing // all of them
	mail    mail       // between them

	now       time.Duration
	most      time.Duration // that it may last
	jobs      []job
	arrived   int           // jobs that did
	arrives   time.Duration // when the next one does, the first at 0; never: none is left
	done      int
	stop      error           // of Options.Finished
	engines   []*sim.Engine   // those for prefill first
	ends      []time.Duration // of the passes under way, by engine
	slowdowns slowdowns
	scaling   scaling
	handing   handing
	figures   figures
	tokens    []uint32 // to use again

	// answers says who answers a job whose prompt is computed, in the place of whom the pool named when it came: tests
	// compare with Dynamo, which picks then. nil: the pool.
	answers func(*job) int
}

func newFleet(t *Trace, o *Options) (*fleet, error) {
	f := &fleet{options: *o, trace: t, jobs: make([]job, len(t.Requests)), most: maxDays * 24 * time.Hour}
	if days := f.span().Hours() / o.Speed / 24; days > maxDays {
		return nil, fmt.Errorf("cannot replay %s: at speed %g it lasts %.0f days, more than %d", t.Name, o.Speed, days, maxDays)
	}
	for range o.workers() {
		f.engines = append(f.engines, sim.New(o.engine()))
		f.ends = append(f.ends, never)
	}
	f.figures = newFigures(t, o.workers(), o.Brief)
	f.beginScaling()
	for n := range o.Replicas {
		p, err := newPlacing(f, n)
		if err != nil {
			return nil, err
		}
		f.routers = append(f.routers, p)
	}
	f.placing = f.routers[0]
	f.beginMail()
	f.beginSlowdowns()
	if last := f.arrival(len(f.jobs) - 1); last > f.most {
		return nil, f.tooLong(last)
	}
	return f, nil
}

// maxDays is how long a replay may last, in its own time.
const maxDays = 36500

// tooLong refuses a replay that would last as long: times would overflow on the way there, or telemetry be asked too often.
func (f *fleet) tooLong(at time.Duration) error {
	if days := at.Hours() / 24; days > maxDays {
		return fmt.Errorf("cannot replay %s: it lasts %.0f days or more, and may last %d: give it more bandwidth or less trouble",
			f.trace.Name, days, maxDays)
	}
	return fmt.Errorf("cannot replay %s: it lasts %v or more, in which telemetry of %d workers would be asked %.0f times, more than %d: "+
		"do without telemetry, or give it more speed or bandwidth, or less trouble", f.trace.Name, at.Round(time.Second), len(f.engines),
		at.Seconds()/TelemetryEvery.Seconds()*float64(len(f.engines)), mostAsks)
}

// span is from the first arrival to the last, in the trace's time.
func (f *fleet) span() time.Duration {
	r := f.trace.Requests
	return r[len(r)-1].Arrival - r[0].Arrival
}

// arrival is when request i comes, in the replay's time.
func (f *fleet) arrival(i int) time.Duration {
	if i >= len(f.jobs) {
		return never
	}
	r := f.trace.Requests
	return time.Duration(math.Round(float64(r[i].Arrival-r[0].Arrival) / f.options.Speed))
}

// run plays to the end.
func (f *fleet) run() error {
	for f.done < len(f.jobs) {
		if f.stop != nil {
			return f.stop
		}
		at := f.next()
		if at == never {
			return fmt.Errorf("BUG: %d of %d requests are stuck", len(f.jobs)-f.done, len(f.jobs))
		}
		if at > f.most {
			return f.tooLong(at)
		}
		f.now = min(at, f.slowdowns.asks, f.scaling.asks)
		news := f.now == f.slowdowns.asks && f.ask()
		scaled, err := f.scale()
		if err != nil {
			return err
		}
		if f.now < at && !news && !scaled {
			continue // a replay whose telemetry says nothing is as one without
		}
		for w, end := range f.ends {
			if end == f.now {
				if err := f.end(w); err != nil {
					return err
				}
			}
		}
		f.load()
		if err := f.deliver(); err != nil {
			return err
		}
		for _, p := range f.routers {
			p.ring(f.now)
		}
		if err := f.sendPlaced(); err != nil {
			return err
		}
		for f.arrives == f.now {
			if err := f.arrive(); err != nil {
				return err
			}
		}
		if err := f.sendPlaced(); err != nil {
			return err
		}
		for {
			began, err := f.begin()
			if err != nil {
				return err
			}
			if err := f.sendPlaced(); err != nil {
				return err
			}
			if !began {
				break
			}
		}
		f.collect()
	}
	return nil
}

// next is when something happens next.
func (f *fleet) next() time.Duration {
	at := min(f.arrives, f.handing.next(), f.mail.next(), f.scaling.ready)
	for _, p := range f.routers {
		at = min(at, p.alarm, p.flushes)
	}
	for _, end := range f.ends {
		at = min(at, end)
	}
	return at
}

// begin lets the engines begin their next passes that have something to do, and reports whether one did.
func (f *fleet) begin() (began bool, err error) {
	for w, end := range f.ends {
		if end != never {
			continue
		}
		e := f.engines[w]
		e.Slow(f.slowdowns.slow(w, f.now))
		for {
			pass, ended := e.Advance(f.now)
			if !ended {
				break
			}
			if err := f.see(w, pass); err != nil { // of no length
				return began, err
			}
		}
		if end, busy := e.Next(); busy {
			f.ends[w] = end
			began = true
		}
		f.admitted(w)
	}
	return began, nil
}

// end takes in what the pass of an engine that ends now brought.
func (f *fleet) end(w int) error {
	f.ends[w] = never
	pass, ended := f.engines[w].Advance(f.now)
	if !ended {
		return nil
	}
	return f.see(w, pass)
}

func (f *fleet) see(w int, pass *sim.Pass) error {
	for _, p := range f.routers {
		p.feed(w, pass)
	}
	f.figures.pass(w, pass)
	for _, s := range pass.Tokens {
		j := s.Owner.(*job)
		if s == j.computing {
			if err := f.prefilled(j); err != nil {
				return err
			}
			continue
		}
		f.figures.token(j, f.now)
		j.last = f.now
		j.at.Tokens(f.time(), 1)
		if s.Done {
			f.finish(j)
		}
	}
	return nil
}

// finish gives back what a job holds, and notes its figures.
func (f *fleet) finish(j *job) {
	j.at.Release()
	if j.prefill < 0 {
		j.cached = j.answering.Cached
	}
	f.figures.finish(j)
	f.left(j)
	j.names, j.answering, j.computing, j.prompt, j.at = nil, nil, nil, kvroute.Prompt{}, kvroute.Placement{}
	f.done++
	if f.options.Progress != nil {
		f.options.Progress(f.done)
	}
	if f.options.Finished != nil && f.stop == nil {
		f.stop = f.options.Finished(j.number, f.figures.each[j.number])
	}
}

// arrive takes the next request in and places it.
func (f *fleet) arrive() error {
	j := &f.jobs[f.arrived]
	*j = job{request: &f.trace.Requests[f.arrived], number: f.arrived, came: f.now}
	j.names = f.trace.names(j.request, f.options.BlockSize, &f.tokens)
	f.arrived++
	f.arrives = f.arrival(f.arrived)
	return f.place(j)
}

// send sends a job that was placed on its way.
func (f *fleet) send(j *job, at kvroute.Placement, err error) error {
	if err != nil {
		return fmt.Errorf("cannot replay the request of %s: %w", f.trace.where(j.request), err)
	}
	at.DropCandidates()
	j.at, j.worker, j.prefill = at, at.Worker.Peer.(int), -1
	f.scaling.slots[j.worker].jobs++
	if at.Prefill == nil {
		j.answering, err = f.submit(j, j.worker, sim.Request{MaxTokens: j.request.AnswerTokens})
		return err
	}
	j.prefill = at.Prefill.Peer.(int)
	f.scaling.slots[j.prefill].jobs++
	j.computing, err = f.submit(j, j.prefill, sim.Request{MaxTokens: 1, Hold: true})
	return err
}

// submit hands a job to an engine; r says how.
func (f *fleet) submit(j *job, engine int, r sim.Request) (*sim.Sequence, error) {
	r.Hashes, r.PromptTokens, r.Owner = make([]uint64, len(j.names)), j.request.PromptTokens, j
	for i, name := range j.names {
		r.Hashes[i] = uint64(name)
	}
	s, err := f.engines[engine].Submit(f.now, r)
	if errors.Is(err, sim.ErrTooLong) {
		err = fmt.Errorf("%w: give its workers more blocks", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot replay the request of %s: %w", f.trace.where(j.request), err)
	}
	return s, nil
}

// time is now for those who count in time.Time.
func (f *fleet) time() time.Time { return epoch.Add(f.now) }
