// What `kvasir check` warns of.

package command

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/planner/scale/scaletest"
)

// TestExposed: what stands open to a network is warned of, and nothing on loopback.
func TestExposed(t *testing.T) {
	open := &config.Config{Server: config.Server{Listen: "0.0.0.0:8080", Admin: ":9090"}, Workers: []config.Worker{{URL: "http://10.0.0.5:8000"}}, Peers: config.Peers{Servers: []string{"nats://10.0.0.9:4222"}}, Tracing: config.Tracing{Endpoint: "http://10.0.0.9:4318"}}
	if got := strings.Join(exposed(open), "\n"); strings.Count(got, "\n") != 5 {
		t.Errorf("an open configuration is warned of by\n%s", got)
	}
	shut := &config.Config{Server: config.Server{Listen: "127.0.0.1:8080", Admin: "unix:/run/a.sock"}, Workers: []config.Worker{{URL: "http://localhost:8000"}, {URL: "https://a:1"}}, Peers: config.Peers{Servers: []string{"nats://127.0.0.1:4222", "tls://a:4222"}}, Tracing: config.Tracing{Endpoint: "http://127.0.0.1:4318"}}
	if got := exposed(shut); len(got) != 0 {
		t.Errorf("a configuration on loopback is warned of: %v", got)
	}
}

// A planner that scales by a command is for a single Kvasir.
func TestApplyWithPeers(t *testing.T) {
	for _, c := range []struct {
		mode    string
		servers []string
		warned  bool
	}{{"apply", []string{"tls://a:4222"}, true}, {"apply", nil, false}, {"advise", []string{"tls://a:4222"}, false}} {
		got := contradicted(&config.Config{Planner: config.Planner{Mode: c.mode}, Peers: config.Peers{Servers: c.servers}})
		if warned := len(got) == 1 && strings.HasPrefix(got[0], "planner.mode: apply is for a single Kvasir"); warned != c.warned || len(got) > 1 {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestCheckSources: check --live asks each source once, says what it found, and asks the
// workers that it found, each with its source.
func TestCheckSources(t *testing.T) {
	t.Parallel()
	l := &config.Layers{BuiltIn: []byte("simulate: [{name: s, events: false}]")}
	g, _, err := l.Load()
	do(t, err)
	engines, err := wiring.StartEngines(g.Config.Simulate, func(err error) { t.Error(err) })
	do(t, err)
	defer engines.Close()
	dir := t.TempDir()
	do(t, os.WriteFile(filepath.Join(dir, "w.yaml"), []byte("- {name: found, url: "+engines.Workers[0].URL+"}\n"), 0o600))
	do(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("- {url: http://127.0.0.1:1, rol: both}\n"), 0o600))
	file := filepath.Join(dir, "kvasir.yaml")
	do(t, os.WriteFile(file, []byte("discovery: [{kind: file, path: w.yaml}, {kind: file, path: bad.yaml}]\ncache: {store: off}\n"), 0o600))
	g, _, err = (&config.Layers{File: file}).Load()
	do(t, err)
	var out bytes.Buffer
	err = checkLive(t.Context(), &out, g)
	want := `^file \S+/w\.yaml: ok \(1 worker\)
file \S+/bad\.yaml: failed: \S+/bad\.yaml:1:29: workers\[0\]\.rol: unknown key, did you mean "role"\?
found \(file \S+/w\.yaml\): ok \(vllm .*\)
cache: ok \(off\)
$`
	if !regexp.MustCompile(want).Match(out.Bytes()) || err == nil || err.Error() != "1 source of workers failed" {
		t.Errorf("it ends with %v and says\n%s", err, out.Bytes())
	}
}

// TestCheckPeers: check --live asks NATS, with the token, and says what is wrong.
func TestCheckPeers(t *testing.T) {
	t.Parallel()
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, Authorization: "right"})
	do(t, err)
	nats.Start()
	defer nats.Shutdown()
	if !nats.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not listen")
	}
	dir := t.TempDir()
	do(t, os.WriteFile(filepath.Join(dir, "right"), []byte("right"), 0o600))
	do(t, os.WriteFile(filepath.Join(dir, "wrong"), []byte("wrong"), 0o600))
	file := filepath.Join(dir, "kvasir.yaml")
	for _, c := range []struct{ peers, says, err string }{
		{"servers: [" + nats.ClientURL() + "], token_file: right", `peers: ok \(NATS at nats://127\.0\.0\.1:\d+, \S+\)`, ""},
		{"servers: [" + nats.ClientURL() + "], token_file: wrong", `peers: failed: cannot connect to NATS: .*[Aa]uthorization`, "what replicas share by failed"},
		{"servers: [nats://127.0.0.1:1]", `peers: failed: cannot connect to NATS: `, "what replicas share by failed"},
	} {
		do(t, os.WriteFile(file, []byte("simulate: [{name: s, events: false}]\ncache: {store: off}\npeers: {"+c.peers+"}\n"), 0o600))
		g, _, err := (&config.Layers{File: file}).Load()
		do(t, err)
		var out bytes.Buffer
		err = checkLive(t.Context(), &out, g)
		if !regexp.MustCompile("(?m)^"+c.says).Match(out.Bytes()) || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: it ends with %v and says\n%s", c.peers, err, out.Bytes())
		}
	}
}

// TestCheckTraces: check --live sends the collector a message without a span.
func TestCheckTraces(t *testing.T) {
	t.Parallel()
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer c.Close()
	file := filepath.Join(t.TempDir(), "kvasir.yaml")
	for _, tc := range []struct{ endpoint, says, err string }{
		{c.URL, `tracing: ok \(a collector at http://127\.0\.0\.1:\d+/v1/traces\)`, ""},
		{c.URL + "/other", `tracing: failed: http://127\.0\.0\.1:\d+/other/v1/traces: .*404`, "the collector of traces failed"},
		{"http://127.0.0.1:1", `tracing: failed: http://127\.0\.0\.1:1/v1/traces: .*refused`, "the collector of traces failed"},
		{"http://127.0.0.1:1, protocol: grpc", `tracing: failed: http://127\.0\.0\.1:1: `, "the collector of traces failed"},
	} {
		do(t, os.WriteFile(file, []byte("simulate: [{name: s, events: false}]\ncache: {store: off}\ntracing: {endpoint: "+tc.endpoint+"}\n"), 0o600))
		g, _, err := (&config.Layers{File: file}).Load()
		do(t, err)
		var out bytes.Buffer
		err = checkLive(t.Context(), &out, g)
		if !regexp.MustCompile("(?m)^"+tc.says).Match(out.Bytes()) || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: it ends with %v and says\n%s", tc.endpoint, err, out.Bytes())
		}
	}
}

// TestCheckUnserved: check --live tells a model that the configuration names and no worker serves.
func TestCheckUnserved(t *testing.T) {
	t.Parallel()
	l := &config.Layers{BuiltIn: []byte(`
simulate: [{name: s, events: false}, {name: p, role: prefill, model: other, events: false}]
models: [{name: sim, default: true, fallback: [other]}]
cache: {store: off}`)}
	g, _, err := l.Load()
	do(t, err)
	var out bytes.Buffer
	err = checkLive(t.Context(), &out, g)
	if want := `models: failed: model "other" (a fallback of "sim") is served by no worker; served: sim`; !strings.Contains(out.String(), want) || err == nil || err.Error() != "1 name of models that no worker serves" {
		t.Errorf("it ends with %v and says\n%s", err, out.Bytes())
	}
}

// TestCheckLivePlanner: each target and the Lease are asked for, and whether they may be written to; nothing is written.
func TestCheckLivePlanner(t *testing.T) {
	api := scaletest.Start(t)
	const vllm, lease = "/apis/apps/v1/namespaces/team/deployments/vllm", "/apis/coordination.k8s.io/v1/namespaces/team/leases/kvasir-planner"
	api.Put(vllm, scaletest.Deployment(3, 2))
	text := fmt.Sprintf("simulate: [{name: sim1, model: sim, events: false}]\nmodels: [{name: sim, default: true}]\nserver: {listen: 127.0.0.1:0}\ncache: {store: 'off'}\nplanner: {kubernetes: {both: deployment/vllm, kubeconfig: %s}}\n", api.Kubeconfig)
	check := func(bad int, want ...string) {
		t.Helper()
		g, _, err := (&config.Layers{BuiltIn: []byte(text)}).Load()
		do(t, err)
		var out bytes.Buffer
		err = checkLive(t.Context(), &out, g)
		for _, w := range want {
			if !strings.Contains(out.String(), w) || (err != nil) != (bad == 1) || bad == 1 && err.Error() != "what the planner scales failed" {
				t.Errorf("%v\n%s\nwant %s", err, out.String(), w)
			}
		}
	}
	check(0, "planner: ok (Deployment vllm with 2 of 3 replicas ready; Lease kvasir-planner, which will be made)\n")
	if api.Get(lease) != nil {
		t.Error("it has made the lease")
	}
	api.Put(lease, scaletest.Object{"spec": scaletest.Object{"holderIdentity": "pod_1"}})
	check(0, "; Lease kvasir-planner of pod_1)\n")
	for _, asked := range api.Asked() {
		if !strings.HasPrefix(asked, "GET ") && !strings.HasSuffix(asked, "?dryRun=All") {
			t.Error(asked)
		}
	}
	api.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		scaletest.Refuse(w, 403, "Forbidden", "no")
		return true
	})
	check(1, "planner: failed: cannot patch Deployment vllm in namespace team: the API server forbids it; a Role there needs", "planner: failed: cannot patch Lease kvasir-planner in namespace team: the API server forbids it")
	api.Before(nil)
	api.Delete(vllm)
	check(1, "planner: failed: cannot get Deployment vllm in namespace team: there is none")
}
