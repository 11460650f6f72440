// The look at the workers' GPUs, once an interval.

// Package hardware has placement know what telemetry says of the workers' GPUs: one
// goroutine beside the requests looks at the fleet once an interval, judges each
// worker by the GPUs it runs on, and tells its kvroute.Worker. Requests see that
// worker's Hardware and nothing of this.
//
//	watch := hardware.New(log, registry, noteBug)
//	watch.Follow(&settings, workers) // again at each reload
//	fleet := watch.Fleet(now)        // what is shown to people
//	watch.Close()
package hardware

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"kvasir/gpu"
	"kvasir/kvroute"
)

// Settings is how the configuration wants this host's GPUs to be looked at.
type Settings struct {
	// Fleet is every GPU as of now; nil: nobody looks at them. It is called at any
	// time, does not wait, and works until other settings are followed.
	Fleet    func(now time.Time) *gpu.Fleet
	Missing  string // why Fleet is nil though it is asked for; "": it is not asked for
	Interval time.Duration
	Effects  gpu.Effects
}

// A Worker is a worker whose GPUs are looked at.
type Worker struct {
	Live *kvroute.Worker // placement's worker, which is told; a reload may replace it
	Own  gpu.Worker      // its name, and what its GPUs are found by
	URL  string
}

// ownersEvery is how often the GPUs of workers are looked for when nothing has changed: a
// worker may have been restarted on another GPU.
const ownersEvery = time.Second

// A Watch looks at the fleet. What it shows to people is one immutable picture.
type Watch struct {
	log     zerolog.Logger
	bug     func(fault any, what string)
	changes *prometheus.CounterVec

	following sync.Mutex    // guards stop, ended and now
	stop      chan struct{} // nil: no goroutine runs
	ended     chan struct{}
	now       chan struct{} // has one element while there are settings that were not looked at yet

	served atomic.Pointer[generation] // nil: nothing was followed yet
	shown  atomic.Pointer[picture]    // nil: nothing was seen yet, or telemetry is off

	// These belong to the goroutine alone while it runs.
	judges map[*kvroute.Worker]*judge
	owners gpu.Owners
	last   []gpu.GPU   // as they were last seen
	owned  []gpu.Owned // the GPUs of each worker as last found, in the order of the configuration
	serves gpu.Served  // the same, by GPU
	of     *generation // the generation that owned was found for
	mark   string      // the processMark at that time
	found  time.Time   // the time of that search
}

// A generation is what one configuration asks for. It is never changed.
type generation struct {
	settings *Settings
	workers  []Worker     // in the order of the configuration
	own      []gpu.Worker // of workers
	live     map[*kvroute.Worker]bool
}

func newGeneration(s *Settings, workers []Worker) *generation {
	g := &generation{settings: s, workers: workers, live: make(map[*kvroute.Worker]bool, len(workers))}
	for i := range workers {
		g.own = append(g.own, workers[i].Own)
		g.live[workers[i].Live] = true
	}
	return g
}

// A judge remembers one worker's grade between looks.
type judge struct {
	gpu.Judge
	name, url string // of the worker
	grade     string
}

// A picture is what was last seen of all workers. It is never changed.
type picture struct {
	serves  gpu.Served
	workers []workerHardware // in the order of the configuration
}

// A workerHardware is what was found out about one worker's GPUs.
type workerHardware struct {
	name    string
	named   bool   // its GPUs stand in the configuration
	gpus    int    // that it runs on
	missing string // why there is none, or what is wrong with those named
	kvroute.Hardware
}

// New makes a Watch that looks at nothing yet, and registers its metrics. bug is told
// of a panic and of what ended in it.
func New(log zerolog.Logger, metrics prometheus.Registerer, bug func(fault any, what string)) *Watch {
	h := &Watch{log: log, bug: bug}
	h.changes = promauto.With(metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "kvasir_worker_hardware_changes_total", Help: "Times that the state of a worker's GPUs became another one for placement.",
	}, []string{"worker", "state"})
	metrics.MustRegister(hardwareCollector{h}, dcgmCollector{h})
	return h
}

// Follow starts or stops looking, as s asks for, and has the workers looked at now: a
// new one may run on a GPU that is not well. Neither s nor workers may be changed
// afterwards.
func (h *Watch) Follow(s *Settings, workers []Worker) {
	g := newGeneration(s, workers)
	h.following.Lock()
	defer h.following.Unlock()
	h.served.Store(g)
	switch {
	case s.Fleet == nil:
		if h.end() {
			h.forget(workers)
		}
	case h.stop == nil:
		h.stop, h.ended, h.now = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
		h.judges = map[*kvroute.Worker]*judge{}
		go h.run(h.stop, h.ended, h.now)
	default:
		select {
		case h.now <- struct{}{}:
		default:
		}
	}
}

// Close stops looking. Workers keep the Hardware that they were last given.
func (h *Watch) Close() {
	h.following.Lock()
	defer h.following.Unlock()
	h.end()
}

// end stops the goroutine and waits for it; false: none runs.
func (h *Watch) end() bool {
	if h.stop == nil {
		return false
	}
	close(h.stop)
	<-h.ended
	h.stop = nil
	h.of, h.judges, h.last = nil, nil, nil
	h.shown.Store(nil)
	return true
}

// forget gives workers the Hardware of those whose GPUs nobody looks at.
func (h *Watch) forget(workers []Worker) {
	for i := range workers {
		if w := workers[i].Live; w.SetHardware(kvroute.Hardware{}) {
			h.log.Info().Str("worker", w.Name()).Msg("telemetry is off: the worker's GPUs count as well")
		}
	}
}

func (h *Watch) run(stop, ended, now chan struct{}) {
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
		g := h.served.Load()
		h.lookGuarded(g)
		next.Reset(max(g.settings.Interval, time.Millisecond))
	}
}

// lookGuarded is look, but reports a panic and goes on: placement keeps the last figures.
func (h *Watch) lookGuarded(g *generation) {
	defer func() {
		if fault := recover(); fault != nil {
			h.bug(fault, "looking at GPUs")
		}
	}()
	if g.settings.Fleet != nil {
		h.look(g, time.Now())
	}
}

// look judges every worker by the fleet as it is now.
func (h *Watch) look(g *generation, now time.Time) {
	fleet := g.settings.Fleet(now)
	h.remember(fleet)
	h.find(g, fleet, now)
	next := &picture{serves: h.serves, workers: make([]workerHardware, 0, len(g.workers))}
	for i := range g.workers {
		w, own := g.workers[i].Live, &h.owned[i]
		j := h.judgeOf(g, i)
		gpus := make([]gpu.GPU, len(own.GPUs))
		for n, at := range own.GPUs {
			gpus[n] = fleet.GPUs[at]
		}
		c := j.Judge.Judge(now, g.settings.Effects, gpus, *own, w.Active()+w.Away())
		w.SetHardware(kvroute.Hardware{Slow: c.Slow, Aside: c.Aside, Why: strings.Join(c.Reasons, "; ")})
		shown := workerHardware{name: w.Name(), named: len(g.own[i].GPUs) > 0, gpus: len(gpus), missing: own.Why, Hardware: w.Hardware()}
		h.note(j, &shown)
		next.workers = append(next.workers, shown)
	}
	for w := range h.judges {
		if !g.live[w] {
			delete(h.judges, w)
		}
	}
	h.shown.Store(next)
}

// judgeOf returns the judge of a worker. One whose settings changed has none yet: it takes
// over the judge of the worker that it replaces, which had its name or its URL.
func (h *Watch) judgeOf(g *generation, i int) *judge {
	is, w := g.workers[i].Live, &g.workers[i]
	if h.judges[is] == nil {
		h.judges[is] = &judge{}
		for old, j := range h.judges {
			if !g.live[old] && (j.name == w.Own.Name || j.url == w.URL) {
				delete(h.judges, old)
				h.judges[is] = j
				break
			}
		}
	}
	j := h.judges[is]
	j.name, j.url = w.Own.Name, w.URL
	return j
}

// remember fills in the GPUs that a new monitor has not polled yet, as the one before it saw
// them: a reload starts another monitor, but the GPUs are the same.
func (h *Watch) remember(f *gpu.Fleet) {
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
func (h *Watch) find(g *generation, fleet *gpu.Fleet, now time.Time) {
	mark := processMark(fleet.GPUs)
	if h.of == g && h.mark == mark && now.Sub(h.found) < ownersEvery {
		return
	}
	h.owned = h.owners.Find(fleet.GPUs, g.own)
	h.serves = gpu.Serving(fleet.GPUs, g.own, h.owned)
	h.of, h.mark, h.found = g, mark, now
}

// processMark changes whenever the GPUs, or the processes on them, change.
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

// note logs and counts a change of a worker's grade, not each new figure.
func (h *Watch) note(j *judge, w *workerHardware) {
	grade := w.grade()
	if grade == j.grade || j.grade == "" && grade == "normal" {
		j.grade = grade
		return
	}
	j.grade = grade
	h.changes.WithLabelValues(w.name, grade).Inc()
	if grade == "normal" {
		h.log.Info().Str("worker", w.name).Msg("the worker's GPUs are well again")
		return
	}
	h.log.Warn().Str("worker", w.name).Str("hardware", grade).Float64("slow", math.Round(w.Slow*1000)/1000).Str("why", w.Why).Msg("the worker's GPUs are not well")
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
