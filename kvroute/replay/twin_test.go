// Round robin against an independent twin of the mocker's engine, request by request.

package replay

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"
)

// twinRow is what the twin says of one request of a trace cut: a Python rewrite of the mocker's rules that was checked
// against dynamo.replay 1.6.1. Milliseconds and tokens.
type twinRow struct {
	TTFT   float64 `json:"ttft"`
	E2E    float64 `json:"e2e"`
	Cached int     `json:"cached"`
}

// The cuts are those of the engine's own test.
func TestRoundRobinEqualsTheTwin(t *testing.T) {
	for _, c := range []struct {
		file      string
		options   Options
		preempted int
	}{
		{"twin_conversation.jsonl", Options{Workers: 4, Speed: 3}, 0},
		{"twin_small_pool.jsonl", Options{Workers: 1, Blocks: 4096}, 13},
		{"twin_synthetic.jsonl", Options{Workers: 1, BlockSize: 16}, 3},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := "../../sim/testdata/" + c.file
			trace, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Run(trace, c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got.Preemptions != c.preempted {
				t.Errorf("%d preemptions, the twin has %d", got.Preemptions, c.preempted)
			}
			for i, want := range readTwin(t, path) {
				g := got.Each[i]
				if math.Abs(millis(g.TTFT)-want.TTFT) > 0.001 || math.Abs(millis(g.E2E)-want.E2E) > 0.001 || g.CachedTokens != want.Cached {
					t.Fatalf("request %d: ttft %.4f e2e %.4f cached %d, the twin says %+v",
						i, millis(g.TTFT), millis(g.E2E), g.CachedTokens, want)
				}
			}
		})
	}
}

func readTwin(t *testing.T, path string) (rows []twinRow) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var r twinRow
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}
