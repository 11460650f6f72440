// `kvasir register`: a key in a real etcd for as long as it runs, however it or etcd ends; and the whole way, from
// registered workers to answers.

package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// register starts `kvasir register` for a worker that need not be there, by a lease of two seconds.
func register(t *testing.T, etcd, worker string, more ...string) *process {
	t.Helper()
	return spawn(t, nil, binary(t), append([]string{"register", "--etcd", etcd, "--url", worker, "--lease", "2s"}, more...)...)
}

func (p *process) says(t *testing.T, text string, times int) {
	t.Helper()
	eventually(t, patience, "it says "+text, func() bool { return strings.Count(p.output.String(), text) >= times })
}

// keyOf is the value of a key and the number of its lease; "": there is none.
func keyOf(t *testing.T, c *clientv3.Client, name string) (value string, lease int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := c.Get(ctx, etcdPrefix+name)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range got.Kvs {
		value, lease = string(kv.Value), kv.Lease
	}
	return value, lease
}

// TestRegister: what is written, and that it goes at once with SIGTERM, and with the lease after SIGKILL.
func TestRegister(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	p := register(t, s.url, "http://10.0.0.5:8000/", "--no-probe", "--name", "gpu-5", "--role", "prefill", "--models", "a,b", "--max-requests", "7")
	p.says(t, "registered http://10.0.0.5:8000 as kvasir/workers/gpu-5, by a lease of 2s\n", 1)
	value, lease := keyOf(t, c, "gpu-5")
	if want := `{"max_requests":7,"models":["a","b"],"name":"gpu-5","role":"prefill","url":"http://10.0.0.5:8000/"}`; value != want || lease == 0 {
		t.Errorf("the key has %s by lease %x, want %s", value, lease, want)
	}
	follow(t, ofEtcd("", s.url)).until("10.0.0.5:8000", "")
	p.stop(t)
	if value, _ := keyOf(t, c, "gpu-5"); value != "" {
		t.Errorf("after SIGTERM there is %s", value)
	}
	if !strings.HasSuffix(p.output.String(), "removed kvasir/workers/gpu-5\n") {
		t.Errorf("it said %q", p.output.String())
	}

	killed := register(t, s.url, "http://10.0.0.5:8000", "--no-probe")
	killed.mayFail = true
	killed.says(t, "registered ", 1)
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-killed.exited
	if value, _ := keyOf(t, c, "10.0.0.5:8000"); value != `{"url":"http://10.0.0.5:8000"}` {
		t.Errorf("right after SIGKILL there is %q", value)
	}
	eventually(t, patience, "the lease ends", func() bool { value, _ := keyOf(t, c, "10.0.0.5:8000"); return value == "" })
}

// TestRegisterEtcdRestarted: the key is there again after an etcd that came back with its data, one without, and when
// somebody removed it.
func TestRegisterEtcdRestarted(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	p := register(t, s.url, "http://a:1", "--no-probe")
	there := func() bool { value, _ := keyOf(t, c, "a:1"); return value != "" }
	p.says(t, "registered ", 1)

	s.stop()
	p.says(t, "cannot keep kvasir/workers/a:1 in etcd, and goes on trying: ", 1)
	s.start()
	p.says(t, "registered ", 2)
	if !there() {
		t.Error("the key is not there after etcd came back")
	}
	s.stop()
	s.wipe()
	s.start()
	eventually(t, patience, "the key is there in the new etcd", there)
	put(t, c, "a:1=")
	eventually(t, patience, "the key that was removed is there again", there)
	p.stop(t)
	if there() {
		t.Error("the key is there after SIGTERM")
	}
}

// TestRegisterTwice: of two that keep one key the later has it, and the other one takes it back when that is gone.
func TestRegisterTwice(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	c := s.client()
	first := register(t, s.url, "http://a:1", "--no-probe", "--name", "gpu")
	first.says(t, "registered ", 1)
	second := register(t, s.url, "http://b:1", "--no-probe", "--name", "gpu")
	second.says(t, "registered ", 1)
	first.says(t, "another process has written kvasir/workers/gpu, which stays as long as that keeps it: give each worker a name of its own\n", 1)
	if value, _ := keyOf(t, c, "gpu"); !strings.Contains(value, "http://b:1") {
		t.Errorf("the key has %s", value)
	}
	second.stop(t)
	first.says(t, "registered ", 2)
	if value, _ := keyOf(t, c, "gpu"); !strings.Contains(value, "http://a:1") {
		t.Errorf("the key has %s", value)
	}
}

// TestRegisteredWorkers: two workers register themselves when they answer, serve, and one leaves under load: no request
// is lost.
func TestRegisteredWorkers(t *testing.T) {
	t.Parallel()
	s := startEtcd(t)
	leaving := register(t, s.url, simulate(t).url(), "--name", "leaving")
	k := serve(t, `
discovery: [{kind: etcd, endpoints: ["`+s.url+`"], grace: 0s}]
classify: {jailbreak: {action: "off"}, pii: {action: "off"}}
cache: {store: "off"}
routing: {policy: round_robin}
`, "sim")
	address := freeAddress(t)
	early := register(t, s.url, "http://"+address, "--name", "early")
	early.says(t, "waiting for the worker at http://"+address+" before it is registered: connection refused\n", 1)
	spawn(t, nil, binary(t), "simulate", "--listen", address, "--model", "sim")
	early.says(t, "registered ", 1)
	eventually(t, patience, "both serve", func() bool {
		return metric(t, k.admin+"/metrics", `kvasir_worker_source`) == 2 && metric(t, k.admin+"/metrics", "kvasir_worker_up") == 2
	})

	var asking sync.WaitGroup
	var asked, failed, byBoth atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				answer := post(t, k.url+"/v1/chat/completions", chat(true, 8))
				asked.Add(1)
				if answer.status != http.StatusOK || answer.end != nil || !strings.HasSuffix(string(answer.body), "data: [DONE]\n\n") {
					failed.Add(1)
				}
				if answer.header.Get("x-kvasir-worker") == "leaving" {
					byBoth.Add(1)
				}
			}
		})
	}
	eventually(t, patience, "both answer", func() bool { return byBoth.Load() > 20 })
	if err := leaving.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	eventually(t, patience, "one has left", func() bool { return metric(t, k.admin+"/metrics", `kvasir_worker_source`) == 1 })
	from := asked.Load()
	eventually(t, patience, "the other one goes on", func() bool { return asked.Load() > from+50 })
	cancel()
	asking.Wait()
	t.Logf("%d requests, %d failed", asked.Load(), failed.Load())
	if failed.Load() > 0 {
		t.Errorf("of %d requests %d failed", asked.Load(), failed.Load())
	}
}
