// NVIDIA Dynamo: a frontend in direct mode, behind which each worker has an instance's id.

package upstream

import (
	"strconv"
)

var dynamo = dialect{
	name:       "dynamo",
	directions: instanceAndRank,
	connectors: []*Connector{&direct},
}

// instanceAndRank leads to the worker behind the frontend.
func instanceAndRank(dst []byte, w *Worker, rank int) []byte {
	if w.Settings.Instance == "" {
		return appendRank(dst, "X-data-parallel-rank", rank)
	}
	return appendRank(appendLine(dst, "x-worker-instance-id", w.Settings.Instance), "x-dp-rank", rank)
}

// direct is Dynamo's way behind a frontend in direct mode: it has a protocol of its
// own, and only needs to hear which workers.
var direct = Connector{
	Name: "direct",
	Ask:  Never,
	able: func(from *Worker) bool { return from.Settings.Instance != "" },
	begin: func(l *Legs) {
		lines := appendLine(nil, "x-prefill-instance-id", l.From.Settings.Instance)
		if l.Rank >= 0 {
			lines = appendLine(lines, "x-prefill-dp-rank", strconv.Itoa(l.Rank))
		}
		l.Lines = string(lines)
	},
}
