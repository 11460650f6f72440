// The fleet: engines, the clock that they share, and what happens in which order.

package replay

import (
	"errors"
	"fmt"
	"math"
	"time"

	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// A Job is one request on its way. Its fields are the fleet's to write, but for Prefill.
type Job struct {
	*Request
	Number   int            // in order of arrival, from 0
	Names    []kvindex.Name // of the full blocks of the prompt
	Worker   int            // who answers; below 0: not known yet
	Prefill  int            // who computes the prompt for Worker; -1: Worker itself
	Sequence *sim.Sequence  // at Worker; nil: not there yet

	prompt *sim.Sequence // at Prefill
	noted  int           // of Names, as predicted for who computes the prompt
	came   time.Duration
	last   time.Duration // when its last token was seen
	cached int           // prompt tokens cached where the prompt was computed
}

// computes is who computes the prompt.
func (j *Job) computes() int {
	if j.Prefill >= 0 {
		return j.Prefill
	}
	return j.Worker
}

// never is the end of a pass that there is not.
const never = time.Duration(math.MaxInt64)

// A fleet plays one trace. At one moment the order is: passes end and what they tell is known; then requests arrive
// and are placed; then engines that have something to do begin a pass. So a request that arrives at the very end of a
// pass is in the next one, and is placed in the light of the pass that ended.
type fleet struct {
	*Options
	trace  *Trace
	placer Placer
	book   *index // nil: the placer does not look at it

	now     time.Duration
	most    time.Duration // that it may last
	jobs    []Job
	arrived int           // jobs that did
	arrives time.Duration // when the next one does, the first at 0; never: none is left
	done    int
	engines []*sim.Engine   // those for prefill first
	ends    []time.Duration // of the passes under way, by engine
	trouble trouble
	handing handing
	figures figures
	tokens  []uint32 // to use again
}

func newFleet(t *Trace, o *Options) (*fleet, error) {
	f := &fleet{Options: o, trace: t, jobs: make([]Job, len(t.Requests)), most: maxDays * 24 * time.Hour}
	if days := f.span().Hours() / o.Speed / 24; days > maxDays {
		return nil, fmt.Errorf("cannot replay %s: at speed %g it lasts %.0f days, more than %d", t.Name, o.Speed, days, maxDays)
	}
	for range o.workers() {
		f.engines = append(f.engines, sim.New(o.engine()))
		f.ends = append(f.ends, never)
	}
	f.figures = newFigures(t, o.workers())
	if o.Placer != nil {
		f.placer = *o.Placer
	} else {
		f.placer = f.policy()
	}
	f.beginTrouble()
	if last := f.arrival(len(f.jobs) - 1); last > f.most {
		return nil, f.tooLong(last)
	}
	if f.placer.Index {
		var err error
		if f.book, err = newIndex(o); err != nil {
			return nil, err
		}
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
	return time.Duration(math.Round(float64(r[i].Arrival-r[0].Arrival) / f.Speed))
}

// run plays to the end.
func (f *fleet) run() error {
	for f.done < len(f.jobs) {
		at := f.next()
		if at == never {
			return fmt.Errorf("BUG: %d of %d requests are stuck", len(f.jobs)-f.done, len(f.jobs))
		}
		if at > f.most {
			return f.tooLong(at)
		}
		f.now = min(at, f.trouble.asks)
		news := f.now == f.trouble.asks && f.ask()
		if f.now < at && !news {
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
		for f.arrives == f.now {
			if err := f.arrive(); err != nil {
				return err
			}
		}
		if err := f.offer(); err != nil {
			return err
		}
		for {
			began, err := f.begin()
			if err != nil {
				return err
			}
			if err := f.offer(); err != nil {
				return err
			}
			if !began {
				break
			}
		}
	}
	return nil
}

// next is when something happens next.
func (f *fleet) next() time.Duration {
	at := min(f.arrives, f.handing.next())
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
		e.Slow(f.trouble.slow(w, f.now))
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
	if f.book != nil {
		f.book.feed(w, pass)
	}
	f.figures.pass(w, pass)
	for _, s := range pass.Tokens {
		j := s.Owner.(*Job)
		if s == j.prompt {
			if err := f.prefilled(j); err != nil {
				return err
			}
			continue
		}
		f.figures.token(j, f.now)
		j.last = f.now
		if f.placer.Token != nil {
			f.placer.Token(f.time(), j)
		}
		if s.Done {
			f.finish(j)
		}
	}
	return nil
}

// finish closes the books on a job.
func (f *fleet) finish(j *Job) {
	f.trouble.active[j.Worker]--
	if f.placer.End != nil {
		f.placer.End(f.time(), j)
	}
	if f.book != nil && j.Prefill < 0 {
		f.book.done(j, f.time())
	}
	if j.Prefill < 0 {
		j.cached = j.Sequence.Cached
	}
	f.figures.finish(j)
	j.Names, j.Sequence, j.prompt = nil, nil, nil
	f.done++
	if f.Progress != nil {
		f.Progress(f.done)
	}
}

// arrive takes the next request in and places it.
func (f *fleet) arrive() error {
	j := &f.jobs[f.arrived]
	*j = Job{Request: &f.trace.Requests[f.arrived], Number: f.arrived, Worker: Waits, Prefill: -1, came: f.now}
	j.Names = f.trace.names(j.Request, f.BlockSize, &f.tokens)
	f.arrived++
	f.arrives = f.arrival(f.arrived)
	var overlaps []kvindex.Overlap
	if f.book != nil {
		overlaps = f.book.find(j.Names)
	}
	worker := f.placer.Place(f.time(), j, overlaps)
	if worker == Waits {
		return nil
	}
	return f.send(j, worker)
}

// offer lets those go that waited at the router and no longer have to.
func (f *fleet) offer() error {
	for f.placer.Next != nil {
		j, worker := f.placer.Next(f.time())
		if j == nil {
			break
		}
		if err := f.send(j, worker); err != nil {
			return err
		}
	}
	return nil
}

// send sends a job that was placed on its way.
func (f *fleet) send(j *Job, worker int) (err error) {
	j.Worker = worker
	if j.Prefill >= 0 {
		j.prompt, err = f.submit(j, j.Prefill, sim.Request{MaxTokens: 1, Hold: true})
	} else {
		j.Sequence, err = f.submit(j, worker, sim.Request{MaxTokens: j.AnswerTokens})
	}
	if err != nil {
		return err
	}
	f.trouble.sent(j)
	if f.book != nil {
		f.book.place(j, f.time())
	}
	if f.placer.Sent != nil {
		f.placer.Sent(f.time(), j)
	}
	return nil
}

// submit hands a job to an engine; r says how.
func (f *fleet) submit(j *Job, worker int, r sim.Request) (*sim.Sequence, error) {
	r.Hashes, r.PromptTokens, r.Owner = make([]uint64, len(j.Names)), j.PromptTokens, j
	for i, name := range j.Names {
		r.Hashes[i] = uint64(name)
	}
	s, err := f.engines[worker].Submit(f.now, r)
	if errors.Is(err, sim.ErrTooLong) {
		err = fmt.Errorf("%w: give its workers more blocks", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot replay the request of %s: %w", f.trace.where(j.Request), err)
	}
	return s, nil
}

// time is now for those who count in time.Time.
func (f *fleet) time() time.Time { return epoch.Add(f.now) }
