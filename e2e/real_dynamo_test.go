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
	"syscall"
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
type mocker struct{ role, instance, events, replay, pid string }

// startDynamo waits until all workers have registered.
func startDynamo(t *testing.T, prefill, workers int, more ...string) *dynamo {
	t.Helper()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	env := append([]string{
		fmt.Sprint("PREFILL_WORKERS=", prefill), fmt.Sprint("WORKERS=", workers), "SPEEDUP=20",
		fmt.Sprint("EVENTS=", 30000+os.Getpid()%1000), // below the range of outgoing connections
	}, more...)
	d := &dynamo{process: spawn(t, env, "../scripts/dynamo/serve.sh", port), url: "http://" + address}
	eventually(t, startPatience, "Dynamo is ready", func() bool {
		select {
		case <-d.exited:
			t.Fatalf("Dynamo ended: %v\n%s", d.state, d.output.String())
		default:
		}
		return strings.Contains(d.output.String(), "READY\n")
	})
	for _, m := range regexp.MustCompile(`WORKER role=(\w+) instance=(\d+)(?: events=(\d+) replay=(\d+))? pid=(\d+)`).FindAllStringSubmatch(d.output.String(), -1) {
		d.workers = append(d.workers, mocker{m[1], m[2], m[3], m[4], m[5]})
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

// foundIn is a configuration whose workers all come from Dynamo's own registration.
func (d *dynamo) foundIn(where string) string {
	return fmt.Sprintf("classify: {jailbreak: {action: off}, pii: {action: off}}\ncache: {store: off}\nrouting: {policy: round_robin}\n"+
		"discovery: [{kind: dynamo, %s, frontend: %q, grace: 1s}]\n", where, d.url)
}

// TestRealDynamoFound: workers that register in etcd are found with their roles and figures, prompts go to a prefill
// worker and answers to a decode worker, and one that ends is gone while the others answer.
func TestRealDynamoFound(t *testing.T) {
	const model = "m"
	s := startEtcd(t)
	d := startDynamo(t, 1, 2, "ETCD="+s.url, "WORKERS_MAY_END=1")
	k := serve(t, d.foundIn("endpoints: ['"+s.url+"']"), model)
	eventually(t, patience, "all three are found", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_worker_source") == 3 && metric(t, k.admin+"/metrics", "kvasir_worker_up") == 3
	})
	answered := map[string]bool{}
	for number := range uint64(6) {
		answer := place(t, k.url, chatAbout(model, prose(number, 300), "What is this about?", 8, false))
		if !strings.HasPrefix(answer.prefill, "prefill-") || !strings.HasPrefix(answer.worker, "backend-") {
			t.Errorf("prefilled by %q, answered by %q", answer.prefill, answer.worker)
		}
		answered[answer.worker] = true
	}
	if len(answered) != 2 {
		t.Errorf("six questions went to %v", answered)
	}

	gone := d.name(t, 2)
	if !answered[gone] {
		t.Fatalf("%s is none of %v", gone, answered)
	}
	d.signal(t, 2, syscall.SIGKILL) // its lease goes in ten seconds
	eventually(t, patience, "it is gone", func() bool { return metric(t, k.admin+"/metrics", "kvasir_worker_source") == 2 })
	for number := range uint64(4) {
		if answer := place(t, k.url, chatAbout(model, prose(number, 300), "And then?", 8, false)); answer.worker == gone {
			t.Errorf("%s is gone, and has answered", gone)
		}
	}
}

// name is what Kvasir calls a worker that it found.
func (d *dynamo) name(t *testing.T, worker int) string {
	t.Helper()
	id, err := strconv.ParseUint(d.workers[worker].instance, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("backend-%x", id)
}

func (d *dynamo) signal(t *testing.T, worker int, s syscall.Signal) {
	t.Helper()
	pid, err := strconv.Atoi(d.workers[worker].pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// TestRealDynamoFiles: workers are found in the directory of the file backend, and one that stops takes its files away.
func TestRealDynamoFiles(t *testing.T) {
	const model = "m"
	d := startDynamo(t, 0, 2, "WORKERS_MAY_END=1")
	m := regexp.MustCompile(`FILES (\S+)`).FindStringSubmatch(d.output.String())
	if m == nil {
		t.Fatal("it names no directory")
	}
	k := serve(t, d.foundIn("path: "+m[1]), model)
	eventually(t, patience, "both are found", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_worker_source") == 2 && metric(t, k.admin+"/metrics", "kvasir_worker_up") == 2
	})
	answered := map[string]bool{}
	for number := range uint64(4) {
		answered[place(t, k.url, chatAbout(model, prose(number, 300), "What is this about?", 8, false)).worker] = true
	}
	if len(answered) != 2 {
		t.Errorf("four questions went to %v", answered)
	}
	d.signal(t, 1, syscall.SIGTERM)
	eventually(t, patience, "one is gone", func() bool { return metric(t, k.admin+"/metrics", "kvasir_worker_source") == 1 })
	stays := place(t, k.url, chatAbout(model, prose(9, 300), "Who is there?", 8, false)).worker
	if want := d.name(t, 0); stays != want {
		t.Errorf("%s answers, want %s", stays, want)
	}
}
