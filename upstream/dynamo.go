// NVIDIA Dynamo: a frontend in direct mode, behind which each worker has an instance's id.

package upstream

import (
	"context"
	"strconv"
)

var dynamo = dialect{
	name:         "dynamo",
	needsPrefill: true, // 1.6.1 answers 500 to a request that names a decode worker alone
	facts:        factsOfSource,
	directions:   instanceAndRank,
	connectors:   []*Connector{&direct},
}

// factsOfSource are what the worker has registered of itself: its frontend speaks for all of them.
func factsOfSource(_ context.Context, w *Worker) (facts, error) {
	return facts{EngineFacts: w.Settings.Facts}, nil
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
