// Fleet: every GPU of this host, as last seen.

package gpu

import (
	"time"

	"kvasir/gpu/snapshot"
)

// A State says how far a GPU's snapshot, or telemetry as a whole, can be trusted.
type State string

// The states.
const (
	OK    State = "ok"
	Stale State = "stale" // the snapshot is older than four intervals, or there is none yet: unknown
	Lost  State = "lost"  // lost according to the driver; for the fleet also: the helper is gone
	Off   State = "off"   // no telemetry: no driver on this host, or switched off
)

// A Fleet is every GPU of this host; a GPU's position is its index. It does not change after it
// is returned.
//
// It is ok while one of its GPUs is ok. While it is lost, because the whole driver or the helper
// is gone, its GPUs are stale: their state is unknown, since broken telemetry does not mean
// broken GPUs.
type Fleet struct {
	State  State  `json:"state"`
	Why    string `json:"why,omitempty"` // reason of a state other than ok, or that the driver knows no GPU
	Driver string `json:"driver,omitempty"`
	GPUs   []GPU  `json:"gpus"`
}

// A GPU is one GPU of a Fleet.
type GPU struct {
	snapshot.GPU

	State   State    `json:"state"`
	Why     string   `json:"why,omitempty"` // reason of a state other than ok
	Workers []string `json:"workers"`       // names of the workers that it serves
	Age     int64    `json:"age_ms"`        // age of the snapshot; 0: none yet

	At    time.Time `json:"-"` // time of the snapshot; zero: none yet
	Asked bool      `json:"-"` // a poll of it has ended, with a snapshot or with an error
}
