// Workers as people are shown them.

// Package roster has the workers as an operator is shown them: the values that the proxy fills in
// and the page's routes write as JSON. What cannot be known of a worker is absent, never zero.
package roster

import (
	"fmt"
	"time"

	"kvasir/gpu"
)

// A Worker is one worker as of now.
type Worker struct {
	Name     string   `json:"name"`
	Role     string   `json:"role"`   // both, prefill, decode
	Engine   string   `json:"engine"` // "": nobody has said yet
	Models   []string `json:"models"`
	Source   string   `json:"source"`   // config, simulate, or the source of discovery that found it
	State    string   `json:"state"`    // unknown, up, busy, ejected, down, draining
	Why      string   `json:"why"`      // of the state; "": there is nothing to say
	Draining bool     `json:"draining"` // an operator has taken it out

	TakesRequests bool `json:"takes_requests"` // by its state
	Since         Time `json:"since,omitzero"` // of the state

	Requests int  `json:"requests"`          // of this Kvasir, under way there
	Away     int  `json:"away,omitempty"`    // of other Kvasirs
	Waiting  *int `json:"waiting,omitempty"` // of all of them, those before their first token; absent without prices
	Context  *int `json:"context_tokens,omitempty"`
	Backlog  *int `json:"backlog_tokens,omitempty"`

	Blocks  Blocks   `json:"blocks"`
	Overlap int64    `json:"overlap_tokens"`   // of prompts, that it was taken to hold when it was chosen
	Tokens  *Tokens  `json:"tokens,omitempty"` // absent of a prefill worker: others count for the two
	Pace    *float64 `json:"pace,omitempty"`   // passes take so many times longer than the simulated engine's

	Ejections int64 `json:"ejections"`
	Failures  int64 `json:"failures"` // attempts

	Slow     float64 `json:"slow,omitempty"` // by telemetry of its GPUs
	Aside    bool    `json:"aside,omitempty"`
	Hardware string  `json:"hardware,omitempty"` // why it is slow or aside
	GPUs     []GPU   `json:"gpus"`
}

// Blocks are the KV blocks that a worker holds.
type Blocks struct {
	Held    int    `json:"held"`
	Of      int    `json:"of"`       // 0: not known
	KnownBy string `json:"known_by"` // events, guessed, none
}

// Tokens are those that a worker has counted, of requests that have ended.
type Tokens struct {
	In     int64 `json:"in"`
	Out    int64 `json:"out"`
	Cached int64 `json:"cached"`
}

// A GPU is one that the worker computes on.
type GPU struct {
	Index       int      `json:"index"`
	UUID        string   `json:"uuid"`
	Name        string   `json:"name"`
	Utilization *float64 `json:"utilization,omitempty"` // 0..1
	MemoryUsed  *uint64  `json:"memory_used,omitempty"` // bytes
	MemoryTotal *uint64  `json:"memory_total,omitempty"`
	Temperature *float64 `json:"temperature_c,omitempty"`
	Power       *float64 `json:"power_w,omitempty"`
	Throttled   []string `json:"throttled"` // what holds its clocks down, but for being idle
	Errors      []string `json:"errors"`
	Others      []string `json:"others"` // other workers on it
	Stale       bool     `json:"stale"`  // the figures are old
}

// GPUOf is a GPU as it is shown beside the worker.
func GPUOf(g *gpu.GPU, worker string) GPU {
	shown := GPU{
		Index: g.Index, UUID: g.UUID, Name: g.Name, MemoryUsed: g.MemoryUsed, MemoryTotal: g.MemoryTotal,
		Temperature: g.Temperature, Power: g.Power, Stale: g.State != gpu.OK,
		Throttled: []string{}, Errors: []string{}, Others: []string{},
	}
	if g.SMUtilization != nil {
		share := *g.SMUtilization / 100
		shown.Utilization = &share
	}
	for _, why := range g.ThrottleReasons {
		if why != "gpu_idle" {
			shown.Throttled = append(shown.Throttled, why)
		}
	}
	for _, other := range g.Workers {
		if other != worker {
			shown.Others = append(shown.Others, other)
		}
	}
	if g.ECCErrors != nil && *g.ECCErrors > 0 {
		shown.Errors = append(shown.Errors, fmt.Sprintf("%d uncorrected ECC errors", *g.ECCErrors))
	}
	for _, x := range g.Xids {
		shown.Errors = append(shown.Errors, fmt.Sprintf("Xid %d", x.Number))
	}
	if r := g.Recovery; r != nil && *r != "none" {
		shown.Errors = append(shown.Errors, "the driver asks for "+*r)
	}
	if g.State != gpu.OK && g.Why != "" {
		shown.Errors = append(shown.Errors, g.Why)
	}
	return shown
}

// A Time is written as RFC 3339 with milliseconds, in UTC.
type Time struct{ time.Time }

// MarshalJSON is json.Marshaler's, in place of time.Time's.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z07:00"`), nil
}
