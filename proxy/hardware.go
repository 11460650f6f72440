// Hardware: what telemetry says of the workers' GPUs, told to placement by one goroutine beside the requests.

package proxy

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"kvasir/gpu"
	"kvasir/kvroute"
)

// ownersEvery is how often the GPUs of workers are looked for when nothing has changed: a worker may be
// started anew on another one.
const ownersEvery = time.Second

// hardware looks at the fleet once an interval and tells placement what it means for each worker. Requests
// see a Worker's Hardware and nothing of this; what is shown to people is one immutable picture.
type hardware struct {
	p     *Proxy
	stop  chan struct{} // nil: no goroutine runs
	ended chan struct{}
	now   chan struct{}           // has one while there are settings that were not looked at yet
	shown atomic.Pointer[picture] // nil: nothing was seen yet, or telemetry is off

	// Of the goroutine alone, but while none runs.
	judges map[*kvroute.Worker]*judge
	owners gpu.Owners
	last   []gpu.GPU   // as they were last seen
	owned  []gpu.Owned // what was last found, in the order of the configuration
	served gpu.Served
	of     *state    // of whose workers
	mark   string    // of the fleet's GPUs and processes then
	found  time.Time // when
}

// A judge is what is remembered of one worker.
type judge struct {
	gpu.Judge
	name, url string // of it
	grade     string
}

// A picture is what was last seen. It is never changed.
type picture struct {
	served  gpu.Served
	workers []workerHardware // in the order of the configuration
}

// A workerHardware is what was found of one worker.
type workerHardware struct {
	name    string
	named   bool   // its GPUs stand in the configuration
	gpus    int    // that it runs on
	missing string // why there is none, or what is wrong with those named
	kvroute.Hardware
}

// follow starts or stops looking, as the settings that are served now ask for, and has new ones looked at now: a new
// worker may be one whose GPU is not well. Its callers hold applying.
func (h *hardware) follow(s *state) {
	switch asked := s != nil && s.settings.GPU.Fleet != nil; {
	case asked && h.stop == nil:
		h.stop, h.ended, h.now = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
		h.judges = map[*kvroute.Worker]*judge{}
		go h.run(h.stop, h.ended, h.now)
	case asked:
		select {
		case h.now <- struct{}{}:
		default:
		}
	case !asked && h.stop != nil:
		close(h.stop)
		<-h.ended
		h.stop = nil
		h.of, h.judges, h.last = nil, nil, nil
		h.shown.Store(nil)
		if s != nil {
			h.forget(s)
		}
	}
}

// forget takes back what was said of workers.
func (h *hardware) forget(s *state) {
	for _, b := range s.backends {
		if b.SetHardware(kvroute.Hardware{}) {
			h.p.log.Info().Str("worker", b.Name()).Msg("telemetry is off: the worker's GPUs count as well")
		}
	}
}

func (h *hardware) run(stop, ended, now chan struct{}) {
	defer close(ended)
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-stop:
			return
		case <-now:
		case <-next.C:
		}
		s := h.p.state.Load()
		h.lookGuarded(s)
		next.Reset(max(s.settings.GPU.Interval, time.Millisecond))
	}
}

// lookGuarded is look, with a bug in it told and passed over: requests go on by what was said before.
func (h *hardware) lookGuarded(s *state) {
	defer func() {
		if fault := recover(); fault != nil {
			h.p.noteBug(fault, "looking at GPUs")
		}
	}()
	if s.settings.GPU.Fleet != nil {
		h.look(s, time.Now())
	}
}

// look judges every worker by the fleet as it is now.
func (h *hardware) look(s *state, now time.Time) {
	fleet := s.settings.GPU.Fleet(now)
	h.remember(fleet)
	h.find(s, fleet, now)
	next := &picture{served: h.served, workers: make([]workerHardware, 0, len(s.ordered))}
	for i, b := range s.ordered {
		own := &h.owned[i]
		j := h.judgeOf(s, i)
		gpus := make([]gpu.GPU, len(own.GPUs))
		for n, at := range own.GPUs {
			gpus[n] = fleet.GPUs[at]
		}
		c := j.Judge.Judge(now, s.settings.GPU.Effects, gpus, *own, b.Active())
		b.SetHardware(kvroute.Hardware{Slow: c.Slow, Aside: c.Aside, Why: strings.Join(c.Reasons, "; ")})
		w := workerHardware{name: b.Name(), named: len(s.settings.Workers[i].GPUs) > 0, gpus: len(gpus), missing: own.Why, Hardware: b.Hardware()}
		h.note(j, &w)
		next.workers = append(next.workers, w)
	}
	for w := range h.judges {
		if s.backends[w] == nil {
			delete(h.judges, w)
		}
	}
	h.shown.Store(next)
}

// judgeOf returns the judge of a worker. A worker whose configuration has changed has none yet: it
// gets that of the worker with its name or URL, which it replaces.
func (h *hardware) judgeOf(s *state, i int) *judge {
	is, w := s.ordered[i].Worker.Worker, &s.settings.Workers[i]
	if h.judges[is] == nil {
		h.judges[is] = &judge{}
		for old, j := range h.judges {
			if s.backends[old] == nil && (j.name == w.Name || j.url == w.URL) {
				delete(h.judges, old)
				h.judges[is] = j
				break
			}
		}
	}
	j := h.judges[is]
	j.name, j.url = w.Name, w.URL
	return j
}

// remember fills in the GPUs that a new monitor has not polled yet, as the one before it saw them:
// a changed interval says nothing new of a GPU.
func (h *hardware) remember(f *gpu.Fleet) {
	if len(f.GPUs) == 0 && f.State != gpu.OK {
		f.GPUs = make([]gpu.GPU, len(h.last))
		for i := range f.GPUs {
			f.GPUs[i].State, f.GPUs[i].Why = gpu.Stale, f.Why
		}
	}
	for i := range f.GPUs {
		if g := &f.GPUs[i]; g.At.IsZero() && i < len(h.last) {
			state, why := g.State, g.Why
			*g = h.last[i]
			g.State, g.Why = state, why
		}
	}
	h.last = f.GPUs
}

// find looks for the workers' GPUs where that may have changed.
func (h *hardware) find(s *state, fleet *gpu.Fleet, now time.Time) {
	mark := processMark(fleet.GPUs)
	if h.of == s && h.mark == mark && now.Sub(h.found) < ownersEvery {
		return
	}
	workers := s.settings.GPUWorkers()
	h.owned = h.owners.Find(fleet.GPUs, workers)
	h.served = gpu.Serving(fleet.GPUs, workers, h.owned)
	h.of, h.mark, h.found = s, mark, now
}

// processMark tells the GPUs and who runs on them from others.
func processMark(gpus []gpu.GPU) string {
	b := make([]byte, 0, 64*len(gpus))
	for i := range gpus {
		b = fmt.Appendf(b, "%d %s", gpus[i].Index, gpus[i].UUID)
		for _, p := range gpus[i].Processes {
			b = fmt.Appendf(b, " %d", p.PID)
		}
		b = append(b, ';')
	}
	return string(b)
}

// note logs and counts when a worker's grade is another one than before, not each new figure.
func (h *hardware) note(j *judge, w *workerHardware) {
	grade := w.grade()
	if grade == j.grade || j.grade == "" && grade == "normal" {
		j.grade = grade
		return
	}
	j.grade = grade
	h.p.metrics.hardwareChanges.WithLabelValues(w.name, grade).Inc()
	if grade == "normal" {
		h.p.log.Info().Str("worker", w.name).Msg("the worker's GPUs are well again")
		return
	}
	h.p.log.Warn().Str("worker", w.name).Str("hardware", grade).Float64("slow", thousandths(w.Slow)).Str("why", w.Why).Msg("the worker's GPUs are not well")
}

// grade is normal, slow or aside.
func (w *workerHardware) grade() string {
	switch {
	case w.Aside:
		return "aside"
	case w.Slow > 1:
		return "slow"
	}
	return "normal"
}

// close stops looking.
func (h *hardware) close() {
	h.p.applying.Lock()
	defer h.p.applying.Unlock()
	h.follow(nil)
}
