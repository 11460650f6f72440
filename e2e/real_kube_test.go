//go:build real

// Kvasir with a service account at a real API server (make test-real REAL=kube): workers roll over under load.

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kvasir/discovery/kubetest"
)

// What docs/discovery.md says that Kvasir's Role needs.
var kubeRules = []kubetest.Rule{
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
}

// A kubeWorker is a pod with a server behind its address.
type kubeWorker struct {
	kubetest.Pod
	server *http.Server
	ended  chan error
}

// startKubeWorker starts a server and makes its pod ready. As with hostNetwork, all have one address.
func startKubeWorker(t *testing.T, s *kubetest.Server, name string, handler http.HandlerFunc) *kubeWorker {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &kubeWorker{
		Pod:    kubetest.Pod{Namespace: "team", Name: name, IP: "127.0.0.1", Port: in.Addr().(*net.TCPAddr).Port, HostNetwork: true},
		server: &http.Server{Handler: handler}, ended: make(chan error, 1),
	}
	go func() { w.ended <- w.server.Serve(in) }()
	t.Cleanup(func() { _ = w.server.Close() }) // it may be closed
	s.Create(t, w.Pod)
	return w
}

// end is what a kubelet does with a pod that is deleted: its server stops to listen at once, finishes what it
// answers, and only then the pod is gone.
func (w *kubeWorker) end(t *testing.T, s *kubetest.Server) {
	t.Helper()
	s.Terminate(t, w.Pod)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.server.Shutdown(ctx); err != nil {
		t.Errorf("%s: %v", w.Name, err)
	}
	<-w.ended
	s.Gone(t, w.Pod)
}

// endpoints are what the controller of a Service would say of its pods.
func kubeEndpoints(t *testing.T, s *kubetest.Server, ready []*kubeWorker, leaving ...*kubeWorker) {
	t.Helper()
	var all []kubetest.Endpoint
	for i, w := range append(append([]*kubeWorker{}, ready...), leaving...) {
		is := i < len(ready)
		all = append(all, kubetest.Endpoint{Address: "192.0.2.1", Pod: w.Name, Ready: is, Serving: true, Terminating: !is})
	}
	s.Endpoints(t, "team", "vllm", nil, 8000, all...)
}

const kubeConfig = "cache: {store: 'off'}\nmodels: [{name: m, default: true, tokenizer: none}]\n" +
	"discovery: [{kind: kubernetes, namespace: team, selector: app=vllm, port: http, kubeconfig: '%s', models: [m]}]\n"

// workersOf are the workers that Kvasir has now, by its metrics.
func workersOf(t *testing.T, k *kvasir) (names []string) {
	t.Helper()
	for line := range strings.Lines(string(get(t, k.admin+"/metrics").body)) {
		if rest, ok := strings.CutPrefix(line, `kvasir_worker_source{`); ok {
			_, name, _ := strings.Cut(rest, `worker="`)
			name, _, _ = strings.Cut(name, `"`)
			names = append(names, name)
		}
	}
	return names
}

// TestRealKubeRollover rolls all workers over, one by one, under load, with the API server killed in between.
func TestRealKubeRollover(t *testing.T) {
	s := kubetest.Start(t)
	s.Namespace(t, "team")
	file := s.Kubeconfig(t, "team", s.Account(t, "team", "kvasir", kubeRules...))
	var running []*kubeWorker
	for i := range 4 {
		running = append(running, startKubeWorker(t, s, fmt.Sprintf("vllm-a-%d", i), soakAnswer))
	}
	kubeEndpoints(t, s, running)
	k := serve(t, fmt.Sprintf(kubeConfig, file), "m")
	load := &soaking{k: k}
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Add(1)
	go func() {
		defer asking.Done()
		load.askAll(ctx, soakRate(t))
	}()
	some := func() {
		before := load.sent.Load()
		eventually(t, patience, "some more requests", func() bool { return load.sent.Load() > before+100 })
	}
	roll := func(round string) {
		for i, old := range running {
			some() // a pod takes a second at least to become ready
			next := startKubeWorker(t, s, fmt.Sprintf("vllm-%s-%d", round, i), soakAnswer)
			running[i] = next
			kubeEndpoints(t, s, running, old)
			old.end(t, s)
			kubeEndpoints(t, s, running)
		}
		eventually(t, patience, "the new workers and no old one", func() bool {
			names := workersOf(t, k)
			return len(names) == len(running) && strings.Count(strings.Join(names, " "), "vllm-"+round+"-") == len(running)
		})
	}
	roll("b")
	s.Kill(t)
	stale := func() bool {
		return bytes.Contains(get(t, k.admin+"/readyz").body, []byte("cannot reach the API server"))
	}
	eventually(t, patience, "it is told that the API server is away", stale)
	some()
	s.Restore(t)
	eventually(t, patience, "the API server is back", func() bool { return !stale() })
	roll("c")
	cancel()
	asking.Wait()
	t.Logf("%d requests: %d whole, %d refused, %d interrupted, %d lost, %d mixed; %v retries; %v seconds of CPU, %.0f MB resident",
		load.sent.Load(), load.whole.Load(), load.refused.Load(), load.interrupted.Load(), load.lost.Load(), load.mixed.Load(),
		metric(t, k.admin+"/metrics", "kvasir_retries_total"), metric(t, k.admin+"/metrics", "process_cpu_seconds_total"),
		metric(t, k.admin+"/metrics", "process_resident_memory_bytes")/1e6)
	if load.whole.Load() < load.sent.Load() || load.sent.Load() == 0 {
		t.Errorf("of %d requests %d were answered whole; the first that was not: %s", load.sent.Load(), load.whole.Load(), load.first)
	}
	for line := range strings.Lines(k.output.String()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("something else than Kvasir wrote to its output: %s", line)
		}
	}
	eventually(t, patience, "/readyz has nothing to complain of", func() bool { return bytes.Contains(get(t, k.admin+"/readyz").body, []byte(`"status":"ready"`)) })
}

// TestRealKubeStream: a pod that is told to end gets nothing new, and the stream that it gives is finished.
func TestRealKubeStream(t *testing.T) {
	s := kubetest.Start(t)
	s.Namespace(t, "team")
	file := s.Kubeconfig(t, "team", s.Account(t, "team", "kvasir", kubeRules...))
	proceed := make(chan struct{})
	var asked sync.Map
	answer := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				asked.Store(name, true)
			}
			if r.Method != http.MethodPost || name != "old" {
				soakAnswer(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, roleEvent()+deltaEvent("one "))
			w.(http.Flusher).Flush()
			select {
			case <-proceed:
				_, _ = fmt.Fprint(w, deltaEvent("two")+finishEvent("stop")+dataEvent("[DONE]"))
			case <-r.Context().Done():
			}
		}
	}
	old := startKubeWorker(t, s, "old", answer("old"))
	k := serve(t, fmt.Sprintf(kubeConfig, file), "m")
	stream := open(t, k.url+"/v1/chat/completions", askModel("m", "What grows here?", true))
	stream.skip(t, 2)
	s.Terminate(t, old.Pod)
	eventually(t, patience, "the pod is no worker any more, though it is the last one", func() bool { return len(workersOf(t, k)) == 0 })
	if got := post(t, k.url+"/v1/chat/completions", askModel("m", "And there?", false)); got.status != http.StatusServiceUnavailable {
		t.Errorf("without a worker: %d %s", got.status, got.body)
	}
	startKubeWorker(t, s, "new", answer("new"))
	eventually(t, patience, "the new pod answers", func() bool {
		return post(t, k.url+"/v1/chat/completions", askModel("m", "And there?", false)).status == http.StatusOK
	})
	if _, was := asked.Load("new"); !was {
		t.Error("the old pod was asked")
	}
	close(proceed)
	if got := stream.rest(); got.end != nil || !bytes.Contains(got.body, []byte("two")) || !bytes.HasSuffix(got.body, []byte("data: [DONE]\n\n")) {
		t.Errorf("the stream ends with %v: %s", got.end, got.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := old.server.Shutdown(ctx); err != nil {
		t.Errorf("the old pod: %v", err)
	}
}

// TestRealKubeRights: check --live says which right is missing, and what was found where none is.
func TestRealKubeRights(t *testing.T) {
	s := kubetest.Start(t)
	s.Namespace(t, "team")
	startKubeWorker(t, s, "vllm-0", soakAnswer)
	check := func(account string, rules ...kubetest.Rule) string {
		file := s.Kubeconfig(t, "team", s.Account(t, "team", account, rules...))
		config := filepath.Join(t.TempDir(), "kvasir.yaml")
		if err := os.WriteFile(config, []byte(fmt.Sprintf(kubeConfig, file)), 0o600); err != nil {
			t.Fatal(err)
		}
		p := spawn(t, nil, binary(t), "check", "--live", "--config", config)
		p.mayFail = true
		<-p.exited
		return p.output.String()
	}
	for account, c := range map[string]struct {
		rules []kubetest.Rule
		want  string
	}{
		"all":    {kubeRules, "kubernetes team/app=vllm:http: ok (1 worker)"},
		"pods":   {kubeRules[:1], `kubernetes team/app=vllm:http: failed: cannot list endpointslices in namespace team: the API server forbids it; a Role there needs {apiGroups: ["discovery.k8s.io"], resources: [endpointslices], verbs: [list, watch]}`},
		"slices": {kubeRules[1:], `kubernetes team/app=vllm:http: failed: cannot list pods in namespace team: the API server forbids it; a Role there needs {apiGroups: [""], resources: [pods], verbs: [list, watch]}`},
	} {
		if got := check(account, c.rules...); !strings.Contains(got, c.want) {
			t.Errorf("%s: check says\n%s, want %s", account, got, c.want)
		}
	}
}

// TestRealKubeInCluster: in a pod, the service account is found where a kubelet puts it, with its namespace.
func TestRealKubeInCluster(t *testing.T) {
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/run").CombinedOutput(); err != nil {
		t.Skipf("SKIP real part: no mount namespace of our own, which stands for a pod's: %v: %s", err, out)
	}
	s := kubetest.Start(t)
	s.Namespace(t, "team")
	startKubeWorker(t, s, "vllm-0", soakAnswer)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kvasir.yaml": "models: [{name: m, default: true, tokenizer: none}]\ndiscovery: [{kind: kubernetes, selector: app=vllm, port: http, models: [m]}]\n",
		"token":       s.Account(t, "team", "kvasir", kubeRules...), "ca.crt": string(s.CA), "namespace": "team",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	const pod = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount &&
		cp "$1/token" "$1/ca.crt" "$1/namespace" /run/secrets/kubernetes.io/serviceaccount && exec "$2" check --live --config "$1/kvasir.yaml"`
	p := spawn(t, []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, "unshare", "-rm", "sh", "-euc", pod, "sh", dir, binary(t))
	<-p.exited
	if got := p.output.String(); !strings.Contains(got, "kubernetes app=vllm:http: ok (1 worker)") {
		t.Errorf("check says\n%s", got)
	}
}
