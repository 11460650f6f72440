// Planning: what the planner is told of requests and workers, and its metrics.

package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
	"kvasir/kvroute/replay"
	"kvasir/openai/answer"
	"kvasir/planner"
)

// planning is the proxy's side of the planner. Its zero value is none.
type planning struct {
	records atomic.Pointer[recording] // nil: nobody plans
	said    atomic.Pointer[planner.Report]
}

type recording struct {
	to    *planner.Recorder
	model string // whose requests are recorded; "": all
}

// Record has r told of each request from now on that a worker is asked to generate an answer for: of one model or,
// where it is "", of all.
func (p *Proxy) Record(r *planner.Recorder, model string) {
	p.planning.records.Store(&recording{r, model})
}

// Planned shows what the planner says in the metrics. The report is not changed any more.
func (p *Proxy) Planned(r *planner.Report) { p.planning.said.Store(r) }

// pieceNames lends the memory of the names of a prompt's pieces.
var pieceNames = sync.Pool{New: func() any { return new([]kvindex.Name) }}

// came notes a request that workers are to be asked for.
func (pl *planning) came(x *exchange) {
	r := pl.records.Load()
	if r == nil || !x.plan.route.Generates() || r.model != "" && x.plan.model != r.model {
		return
	}
	x.facts.recorded = r.came(x.arrived(), &x.plan.placing.prompt)
}

func (r *recording) came(now time.Time, prompt *kvroute.Prompt) (ticket uint64) {
	names := pieceNames.Get().(*[]kvindex.Name)
	*names = prompt.AppendNames((*names)[:0], planner.PieceTokens)
	ticket = r.to.Came(now, *names)
	pieceNames.Put(names)
	return ticket
}

// done notes how a request ended that came. One without an answer, or of which no worker counted the tokens, counts as
// an arrival only.
func (pl *planning) done(x *exchange) {
	f := &x.facts
	if f.recorded == 0 || f.usage == answer.NoUsage || f.status != 200 {
		return
	}
	pl.records.Load().to.Done(f.recorded, planner.Done{
		PromptTokens: f.usage.Prompt, AnswerTokens: f.usage.Completion, TTFT: f.firstByte, E2E: f.total, Streamed: f.streamed,
	})
}

// Sizes are the workers of a model that are up, and what is known of their engines.
type Sizes struct {
	Fleet  replay.Fleet
	Known  replay.Fleet        // with those that are not up, and those that have not said yet which models they have
	Engine kvroute.EngineFacts // of the first one, in the order of the configuration, that says its block size
	Pace   float64             // how many times longer their passes take than the simulated engine's, the median; 0: not known
	Policy kvroute.Policy
	Queue  bool
}

// Sizes says which workers there are for a model, or for all where it is "".
func (p *Proxy) Sizes(model string) Sizes {
	s := p.state.Load()
	sizes := Sizes{Policy: s.settings.Routing.Policy, Queue: s.settings.Routing.Queue && s.settings.Routing.Policy.Queues()}
	now := time.Now()
	var paces []float64
	for _, b := range s.ordered {
		_, said := b.Worker.Worker.Models()
		is := model == "" || serves(b, model)
		if is || !said {
			count(&sizes.Known, b.Role())
		}
		if !is || !b.Status(now).State.TakesRequests() {
			continue
		}
		count(&sizes.Fleet, b.Role())
		if e := b.Worker.Worker.Engine(); sizes.Engine.BlockSize == 0 {
			sizes.Engine = e
		}
		if pace, known := b.Pace(); known {
			paces = append(paces, pace)
		}
	}
	if len(paces) > 0 {
		slices.Sort(paces)
		sizes.Pace = paces[len(paces)/2]
	}
	return sizes
}

// count adds a worker to a fleet.
func count(f *replay.Fleet, role kvroute.Role) {
	switch role {
	case kvroute.Prefill:
		f.Prefill++
	case kvroute.Decode:
		f.Decode++
	default:
		f.Workers++
	}
}

// serves says whether a worker is known to serve the model.
func serves(b *backend, model string) bool {
	models, _ := b.Worker.Worker.Models()
	return slices.ContainsFunc(models, func(m kvroute.Model) bool { return m.Name == model })
}

// A plannerCollector reads what the planner said last; nothing while it has said nothing.
type plannerCollector struct{ planning *planning }

var (
	plannerWorkers   = prometheus.NewDesc("kvasir_planner_workers", "Workers by role: wanted, up, what the targets in Kubernetes are to have, and what the replay and the formula say is needed.", []string{"role", "kind"}, nil)
	plannerRate      = prometheus.NewDesc("kvasir_planner_arrivals_per_second", "Requests a second that are forecast, by how.", []string{"by"}, nil)
	plannerTTFT      = prometheus.NewDesc("kvasir_planner_predicted_ttft_seconds", "Time to the first token, at the share asked for, that is predicted for what is needed.", nil, nil)
	plannerITL       = prometheus.NewDesc("kvasir_planner_predicted_itl_seconds", "Time between tokens, at the share asked for, that is predicted for what is needed.", nil, nil)
	plannerShare     = prometheus.NewDesc("kvasir_planner_predicted_share", "Share of the requests that is predicted to keep both targets with what is needed.", nil, nil)
	plannerGoal      = prometheus.NewDesc("kvasir_planner_goal_share", "Share of the requests that is to keep both targets.", nil, nil)
	plannerPace      = prometheus.NewDesc("kvasir_planner_pace", "How many times longer passes are taken to be than the simulated engine's.", nil, nil)
	plannerTook      = prometheus.NewDesc("kvasir_planner_plan_seconds", "Time that the last plan took to make.", nil, nil)
	plannerLeads     = prometheus.NewDesc("kvasir_planner_leads", "1 where this Kvasir is the one that scales what planner.kubernetes names.", nil, nil)
	plannerDecisions = prometheus.NewDesc("kvasir_planner_decisions_total", "Plans, by what they decided.", []string{"decision"}, nil)
	plannerFailures  = prometheus.NewDesc("kvasir_planner_failures_total", "What did not succeed: a plan, one that was cut short, the command, a question to Kubernetes.", []string{"what"}, nil)
)

// Describe is prometheus.Collector's.
func (c plannerCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		plannerWorkers, plannerRate, plannerTTFT, plannerITL, plannerShare, plannerGoal, plannerPace, plannerTook, plannerLeads, plannerDecisions, plannerFailures,
	} {
		to <- d
	}
}

// Collect is prometheus.Collector's.
func (c plannerCollector) Collect(to chan<- prometheus.Metric) {
	r := c.planning.said.Load()
	if r == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	count := func(d *prometheus.Desc, value uint64, label string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), label)
	}
	for kind, f := range map[string]*replay.Fleet{"wanted": r.Wanted, "up": r.Up, "replay": r.Replay, "formula": r.FormulaSays} {
		if f == nil {
			continue
		}
		for role, n := range map[string]int{"both": f.Workers, "prefill": f.Prefill, "decode": f.Decode} {
			if n > 0 || r.Apart == (role != "both") {
				gauge(plannerWorkers, float64(n), role, kind)
			}
		}
	}
	if k := r.Kubernetes; k != nil {
		leads := 0.0
		if k.Leads {
			leads = 1
		}
		gauge(plannerLeads, leads)
		for _, t := range k.Targets {
			gauge(plannerWorkers, float64(t.Replicas), t.Role, "target")
		}
	}
	if f := r.Forecast; f != nil {
		gauge(plannerRate, f.Window, "window")
		gauge(plannerRate, f.Trend, "trend")
	}
	if k := r.Predicted; k != nil {
		gauge(plannerTTFT, k.TTFT/1000)
		gauge(plannerITL, k.ITL/1000)
		gauge(plannerShare, k.Share)
		gauge(plannerGoal, r.Goal)
	}
	gauge(plannerPace, r.Pace)
	gauge(plannerTook, r.Took.Seconds())
	for i, name := range planner.Verdicts() {
		count(plannerDecisions, r.Decisions[i], name)
	}
	for i, name := range planner.FailureNames() {
		count(plannerFailures, r.Failures[i], name)
	}
}
