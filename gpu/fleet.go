// Fleet: every GPU of this host as it was last seen.

package gpu

import (
	"time"

	"kvasir/gpu/snapshot"
)

// A State says what a GPU's snapshot, or telemetry as a whole, is worth.
type State string

// The states.
const (
	OK    State = "ok"
	Stale State = "stale" // older than four intervals, or none yet: unknown
	Lost  State = "lost"  // the driver says so; of the fleet also: who asks it is gone
	Off   State = "off"   // nobody asks: no driver here, or switched off
)

// A Fleet is every GPU of this host, each at the position that is its index. It
// is not changed once it is handed out.
//
// It is ok while one of its GPUs is. While it is lost because the driver as a
// whole or the helper is gone, its GPUs are stale: nothing is known of them,
// and that telemetry broke is no sign that they did.
type Fleet struct {
	State  State  `json:"state"`
	Why    string `json:"why,omitempty"` // of a state other than ok, or that the driver knows no GPU
	Driver string `json:"driver,omitempty"`
	GPUs   []GPU  `json:"gpus"`
}

// A GPU is one of them.
type GPU struct {
	snapshot.GPU

	State   State    `json:"state"`
	Why     string   `json:"why,omitempty"` // of a state other than ok
	Workers []string `json:"workers"`       // that it serves
	Age     int64    `json:"age_ms"`        // of the snapshot; 0 while there is none

	At    time.Time `json:"-"` // of the snapshot; zero: there was none yet
	Asked bool      `json:"-"` // a poll of it has ended, with a snapshot or with an error
}
