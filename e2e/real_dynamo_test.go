//go:build real

// Dynamo with its mocker behind Kvasir (make test-real): its KV events in our index, its frontend in direct mode with
// the worker of our choice.

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A dynamo is a frontend with its workers, started by scripts/dynamo/serve.sh.
type dynamo struct {
	*process
	url     string
	workers []mocker
}

// A mocker is one worker behind the frontend, which knows it by a number.
type mocker struct{ role, instance, events, replay string }

// startDynamo waits until all workers have registered.
func startDynamo(t *testing.T, prefill, workers int) *dynamo {
	t.Helper()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		fmt.Sprint("PREFILL_WORKERS=", prefill), fmt.Sprint("WORKERS=", workers), "SPEEDUP=20",
		fmt.Sprint("EVENTS=", 30000+os.Getpid()%1000), // below the range of outgoing connections
	}
	d := &dynamo{process: spawn(t, env, "../scripts/dynamo/serve.sh", port), url: "http://" + address}
	eventually(t, startPatience, "Dynamo is ready", func() bool {
		select {
		case <-d.exited:
			t.Fatalf("Dynamo ended: %v\n%s", d.state, d.output.String())
		default:
		}
		return strings.Contains(d.output.String(), "READY\n")
	})
	for _, m := range regexp.MustCompile(`WORKER role=(\w+) instance=(\d+)(?: events=(\d+) replay=(\d+))?`).FindAllStringSubmatch(d.output.String(), -1) {
		d.workers = append(d.workers, mocker{m[1], m[2], m[3], m[4]})
	}
	if len(d.workers) != prefill+workers {
		t.Fatalf("%d workers in %s", len(d.workers), d.output.String())
	}
	return d
}

// config names each worker of the frontend: all at one address, told apart by their numbers.
func (d *dynamo) config(t *testing.T, model string) string {
	t.Helper()
	directory, err := filepath.Abs(filepath.Join(os.Getenv("DYNAMO_DIR"), "model"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("classify: {jailbreak: {action: off}, pii: {action: off}}\ncache: {store: off}\nworkers:\n")
	for i, w := range d.workers {
		fmt.Fprintf(&b, "  - {name: %s-%d, url: %q, engine: dynamo, role: %s, instance: %q, models: [%s]",
			w.role, i, d.url, w.role, w.instance, model)
		if w.events != "" {
			fmt.Fprintf(&b, ", kv_events: %q, kv_replay: %q", "tcp://127.0.0.1:"+w.events, "tcp://127.0.0.1:"+w.replay)
		}
		b.WriteString("}\n")
	}
	fmt.Fprintf(&b, "models:\n  - {name: %s, tokenizer: %q}\n", model, directory)
	return b.String()
}

// TestRealDynamo sends conversations that go on, and wants each back at the worker that holds it, with as many blocks
// found as the engine then says it had.
func TestRealDynamo(t *testing.T) {
	const model, blockSize = "m", 64
	d := startDynamo(t, 0, 2)
	k := serve(t, d.config(t, model), model)
	eventually(t, patience, "Kvasir listens to both workers", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_kv_events_connected") == 2
	})

	untilExact(t, k, model)

	workers := map[string]bool{}
	for number := range uint64(4) {
		text := prose(number, 3500)
		first := place(t, k.url, chatAbout(model, text, "What is this about?", 8, false))
		if first.overlap != 0 || first.cached != 0 {
			t.Errorf("conversation %d is new: %d blocks, %d tokens cached", number, first.overlap, first.cached)
		}
		workers[first.worker] = true
		for turn := range 3 {
			again := place(t, k.url, chatAbout(model, text, "Question "+strconv.Itoa(turn)+": and then?", 8, false))
			if again.worker != first.worker {
				t.Errorf("conversation %d went to %s and then to %s", number, first.worker, again.worker)
			}
			if again.overlap*blockSize != again.cached || again.cached < 3000 {
				t.Errorf("conversation %d: %d blocks of %d tokens were expected, the engine had %d of %d tokens",
					number, again.overlap, blockSize, again.cached, again.prompt)
			}
		}
	}
	if len(workers) != 2 {
		t.Errorf("four conversations went to %v", workers)
	}
}

// TestRealDynamoDisaggregated: both workers of a request are named to the frontend.
func TestRealDynamoDisaggregated(t *testing.T) {
	const model = "m"
	d := startDynamo(t, 1, 2)
	k := serve(t, d.config(t, model)+"routing: {disaggregate: always}\n", model)
	untilExact(t, k, model)
	answer := place(t, k.url, chatAbout(model, prose(9, 3500), "What is this about?", 8, false))
	if answer.prefill != "prefill-0" || !strings.HasPrefix(answer.worker, "decode-") {
		t.Errorf("prefilled by %q, answered by %q", answer.prefill, answer.worker)
	}
	again := place(t, k.url, chatAbout(model, prose(9, 3500), "And then?", 8, false))
	if again.prefill != "prefill-0" || again.overlap < 3000/64 {
		t.Errorf("prefilled by %q with %d blocks", again.prefill, again.overlap)
	}
	eventually(t, time.Minute, "nothing is under way", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_requests_in_flight") == 0
	})
}
