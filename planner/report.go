// The report: what the planner of a running Kvasir said last, for metrics and the admin listener.

package planner

import (
	"slices"
	"time"

	"kvasir/kvroute/replay"
)

// A Report is what was said last, and how often what was. Fields are missing that are not known.
type Report struct {
	Mode  string    `json:"mode"`
	Model string    `json:"model,omitempty"`
	At    time.Time `json:"at"`
	State string    `json:"state"` // in words: the reason of the last plan, or why there is none

	Apart       bool          `json:"apart"` // prefill and decode have workers of their own
	Wanted      *replay.Fleet `json:"wanted,omitempty"`
	Up          *replay.Fleet `json:"up,omitempty"`
	Replay      *replay.Fleet `json:"replay,omitempty"`
	FormulaSays *replay.Fleet `json:"formula,omitempty"`

	Forecast  *Forecast    `json:"forecast,omitempty"`
	Formula   *Formula     `json:"formula_means,omitempty"`
	Predicted *replay.Kept `json:"predicted,omitempty"`
	Enough    bool         `json:"enough"` // what the replay says keeps the goal
	Goal      float64      `json:"goal,omitempty"`
	Reachable float64      `json:"reachable,omitempty"`
	Measured  *Measured    `json:"measured,omitempty"`
	Played    int          `json:"played,omitempty"` // requests of a replay

	Pace    float64       `json:"pace"`
	Took    time.Duration `json:"-"`
	TookMS  float64       `json:"took_ms"`
	Applied *replay.Fleet `json:"applied,omitempty"` // what the command was run for and did not refuse, or what Kubernetes has
	Problem string        `json:"problem,omitempty"` // of the last plan, command, or question to Kubernetes

	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`

	Decisions [Useless + 1]uint64          `json:"-"` // by Verdict
	Failures  [KubernetesFailed + 1]uint64 `json:"-"`
}

// Kubernetes is what is known of the targets there, and of the Kvasirs that plan for them.
type Kubernetes struct {
	Leads    bool     `json:"leads"`            // this one scales
	Leader   string   `json:"leader,omitempty"` // who does
	Replicas int      `json:"replicas"`         // of Kvasir that plan together, with this one
	Others   float64  `json:"others_arrivals_per_second"`
	DryRun   bool     `json:"dry_run"` // mode advise
	Stuck    bool     `json:"stuck"`   // a change takes so long that it is not waited for
	Targets  []Target `json:"targets"`
}

// A Target has the replicas of one role.
type Target struct {
	Role     string `json:"role"`
	Target   string `json:"target"`
	Replicas int    `json:"replicas"` // that it is to have
	Ready    int    `json:"ready"`
	Changing string `json:"changing,omitempty"` // what is under way
}

// A Failure is what did not succeed.
type Failure uint8

// The failures.
const (
	PlanFailed Failure = iota
	PlanStopped
	CommandFailed
	KubernetesFailed
)

var failures = [...]string{PlanFailed: "plan", PlanStopped: "stopped", CommandFailed: "command", KubernetesFailed: "kubernetes"}

// FailureNames are the names of all.
func FailureNames() []string { return slices.Clone(failures[:]) }

// Take fills in what a piece of advice says.
func (r *Report) Take(a *Advice, played int) {
	r.State, r.Wanted, r.FormulaSays, r.Forecast, r.Formula, r.Played = a.Reason.String(), &a.Want, &a.Formula.Fleet, &a.Forecast, &a.Formula, played
	r.Decisions[a.Reason.Verdict]++
	if a.Reason.Stopped {
		r.Failures[PlanStopped]++
	}
	r.Replay, r.Predicted, r.Goal, r.Reachable, r.Enough = nil, nil, 0, 0, false
	if a.Replay != nil {
		r.Replay, r.Predicted, r.Goal, r.Reachable, r.Enough = &a.Replay.Fleet, &a.Replay.Kept, a.Replay.Goal, a.Replay.Reachable, a.Replay.Enough
	}
}
