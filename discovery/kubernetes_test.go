// Tests of kind kubernetes against a server of ours that lists and watches as an API server
// does. What only a real one can show is in real_kubernetes_test.go.

package discovery

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kvasir/upstream"
)

// An apiServer has objects of three resources, by their plural names, each change of them
// under a version of its own.
type apiServer struct {
	t       *testing.T
	tls     tls.Certificate
	address string
	server  *http.Server
	ended   chan struct{}

	mu      sync.Mutex // guards all below
	token   string
	version int
	oldest  int // versions before are forgotten
	objects map[string]map[string]string
	history []change
	changed chan struct{}     // closed at the next change
	refuses map[string]string // verb and resource: the reason
	lists   int
	broken  chan struct{} // closed to end all watches
}

type change struct {
	version      int
	resource     string
	kind, object string
}

var listKinds = map[string]string{"pods": "v1 PodList", "endpointslices": "discovery.k8s.io/v1 EndpointSliceList", "inferencepools": "inference.networking.k8s.io/v1 InferencePoolList"}

func startAPI(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{
		t: t, token: "first", version: 100, refuses: map[string]string{}, changed: make(chan struct{}), broken: make(chan struct{}),
		objects: map[string]map[string]string{"pods": {}, "endpointslices": {}, "inferencepools": {}},
	}
	some := httptest.NewTLSServer(s) // for its certificate
	s.tls = some.TLS.Certificates[0]
	some.Close()
	s.up()
	t.Cleanup(s.down)
	return s
}

// up serves, at the same address as before.
func (s *apiServer) up() {
	in, err := net.Listen("tcp", orAny(s.address))
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = in.Addr().String()
	s.server, s.ended = &http.Server{Handler: s, TLSConfig: &tls.Config{Certificates: []tls.Certificate{s.tls}}, ErrorLog: log.New(io.Discard, "", 0)}, make(chan struct{})
	go func() {
		defer close(s.ended)
		_ = s.server.ServeTLS(in, "", "")
	}()
}

func orAny(address string) string {
	if address == "" {
		return "127.0.0.1:0"
	}
	return address
}

// down ends it with all connections.
func (s *apiServer) down() {
	_ = s.server.Close()
	<-s.ended
}

// put adds or changes an object; remove takes it away.
func (s *apiServer) put(resource, object string) { s.change(resource, object, false) }
func (s *apiServer) remove(resource, name string) {
	s.mu.Lock()
	object := s.objects[resource][name]
	s.mu.Unlock()
	s.change(resource, object, true)
}

func (s *apiServer) change(resource, object string, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	var o map[string]any
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		s.t.Fatalf("%v: %s", err, object)
	}
	metadata := o["metadata"].(map[string]any)
	metadata["resourceVersion"] = fmt.Sprint(s.version)
	name := metadata["name"].(string)
	text, _ := json.Marshal(o)
	_, had := s.objects[resource][name]
	kind := "ADDED"
	if had {
		kind = "MODIFIED"
	}
	s.objects[resource][name] = string(text)
	if gone {
		kind = "DELETED"
		delete(s.objects[resource], name)
	}
	s.history = append(s.history, change{s.version, resource, kind, string(text)})
	close(s.changed)
	s.changed = make(chan struct{})
}

// refuse makes a verb of a resource fail with a reason; "": it goes well again.
func (s *apiServer) refuse(verb, resource, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses[verb+" "+resource] = reason
	close(s.broken)
	s.broken = make(chan struct{})
}

// forget ends all watches and has no version before now.
func (s *apiServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version += 10
	s.oldest, s.history = s.version, nil
	close(s.broken)
	s.broken = make(chan struct{})
}

func failure(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprint(w, failureText(code, reason, message))
}

func failureText(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

var failures = map[string]int{"Forbidden": 403, "NotFound": 404, "InternalError": 500, "ServiceUnavailable": 503}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	verb := "list"
	if q.Get("watch") != "" {
		verb = "watch"
	}
	s.mu.Lock()
	token, refuses, broken := s.token, s.refuses[verb+" "+resource], s.broken
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		failure(w, 401, "Unauthorized", "Unauthorized")
		return
	case !strings.Contains(r.URL.Path, "/namespaces/team/") || s.objects[resource] == nil:
		failure(w, 404, "NotFound", "the server could not find the requested resource")
		return
	case refuses != "":
		failure(w, failures[refuses], refuses, fmt.Sprintf(`%s is refused: User "system:serviceaccount:team:kvasir" cannot %s resource %q in the namespace "team"`, resource, verb, resource))
		return
	}
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		failure(w, 400, "BadRequest", err.Error())
		return
	}
	meant := func(object string) bool {
		var o metav1.PartialObjectMetadata
		_ = json.Unmarshal([]byte(object), &o)
		field := q.Get("fieldSelector")
		return selector.Matches(labels.Set(o.Labels)) && (field == "" || field == "metadata.name="+o.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	if verb == "list" {
		s.list(w, resource, meant)
		return
	}
	var from int
	_, _ = fmt.Sscan(q.Get("resourceVersion"), &from)
	s.watch(w, r, resource, from, broken, meant)
}

func (s *apiServer) list(w http.ResponseWriter, resource string, meant func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	var items []string
	for _, o := range s.objects[resource] {
		if meant(o) {
			items = append(items, o)
		}
	}
	version, kind, _ := strings.Cut(listKinds[resource], " ")
	_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`, kind, version, s.version, strings.Join(items, ","))
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string, from int, broken chan struct{}, meant func(string) bool) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		s.mu.Lock()
		changed, tooOld := s.changed, from < s.oldest
		var events []string
		for _, c := range s.history {
			if c.version > from && c.resource == resource && meant(c.object) {
				events = append(events, fmt.Sprintf(`{"type":%q,"object":%s}`, c.kind, c.object))
			}
		}
		from = s.version
		s.mu.Unlock()
		if tooOld {
			_, _ = fmt.Fprintln(w, `{"type":"ERROR","object":`+failureText(410, "Expired", "too old resource version")+`}`)
			return
		}
		for _, e := range events {
			_, _ = fmt.Fprintln(w, e)
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-broken:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// kubeconfig is a file for the server and its token, which stands in a file of its own.
func (s *apiServer) kubeconfig() (file, token string) {
	dir := s.t.TempDir()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.tls.Certificate[0]}))
	file, token = filepath.Join(dir, "config"), filepath.Join(dir, "token")
	for name, text := range map[string]string{
		file: fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: team}}],
			clusters: [{name: c, cluster: {server: "https://%s", certificate-authority-data: %s}}], users: [{name: u, user: {tokenFile: %s}}]}`, s.address, ca, token),
		token: s.token,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return file, token
}

// watchKubernetes starts a source of the server's pods app=vllm, at their port http.
func watchKubernetes(t *testing.T, s *apiServer, change func(e *Entry)) *watched {
	t.Helper()
	file, _ := s.kubeconfig()
	e := Entry{Kind: "kubernetes", Selector: "app=vllm", PortName: "http", Scheme: "http", Grace: time.Hour, Kubeconfig: file, Worker: upstream.Settings{Role: "both"}}
	if change != nil {
		change(&e)
	}
	set := Start(Options{Log: zerolog.Nop(), Changed: func() {}})
	t.Cleanup(set.Close)
	set.Follow([]Entry{e})
	return &watched{t, set}
}

// TestKubernetes goes through the life of some pods.
func TestKubernetes(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the server has ended
	s := startAPI(t)
	s.put("pods", aPod("vllm-0", "10.0.0.1"))
	s.put("pods", strings.Replace(aPod("other-0", "10.0.0.9"), `"app":"vllm"`, `"app":"web"`, 1))
	w := watchKubernetes(t, s, nil)
	w.until("started", "10.0.0.1:8000", "")
	s.put("pods", strings.Replace(aPod("vllm-1", "10.0.0.2"), `"Ready","status":"True"`, `"Ready","status":"False"`, 1))
	s.put("endpointslices", aSlice("s", "x", "IPv4", "web", endpointOf("vllm-0", isReady)+","+endpointOf("vllm-1", isUnready)))
	s.put("pods", aPod("vllm-1", "10.0.0.2"))
	s.put("pods", aPod("vllm-2", "10.0.0.3"))
	w.until("one that its Service does not have ready, and one that no Service knows", "10.0.0.1:8000 10.0.0.3:8000", "")
	s.put("endpointslices", aSlice("s", "x", "IPv4", "web", endpointOf("vllm-0", isReady)+","+endpointOf("vllm-1", isReady)))
	w.until("its Service has it ready", "10.0.0.1:8000 10.0.0.2:8000 10.0.0.3:8000", "")
	s.put("pods", aPod("vllm-0", "10.0.0.1", isDeleted))
	w.until("told to end", "10.0.0.2:8000 10.0.0.3:8000", "")
	s.remove("pods", "vllm-0")
	s.put("pods", aPod("vllm-3", "10.0.0.1"))
	w.until("another pod at its address", "10.0.0.2:8000 10.0.0.3:8000 10.0.0.1:8000", "")
	if got := w.set.Found()[0].Workers[2].Name; got != "vllm-3" {
		t.Errorf("the worker is called %s", got)
	}
	s.put("pods", aPod("vllm-2", "10.0.0.3", annotated("kvasir.dev/role", "prefil")))
	w.until("a bad annotation", "10.0.0.2:8000 10.0.0.3:8000 10.0.0.1:8000", `pod vllm-2: annotation kvasir.dev/role: must be both, prefill or decode, not "prefil"`)
	s.put("pods", aPod("vllm-2", "10.0.0.3", annotated("kvasir.dev/role", "prefill")))
	w.until("mended", "10.0.0.2:8000 10.0.0.3:8000 10.0.0.1:8000", "")

	// The grace is for lists that may be a mistake: pods that were told to end are none.
	for i, ip := range []string{"", "10.0.0.2", "10.0.0.3", "10.0.0.1"} {
		if ip != "" {
			s.put("pods", aPod(fmt.Sprintf("vllm-%d", i), ip, isDeleted))
		}
	}
	w.until("all told to end", "", "")
	s.put("pods", aPod("vllm-9", "10.0.0.7"))
	w.until("a new one", "10.0.0.7:8000", "")
	s.remove("pods", "vllm-9")
	s.put("pods", aPod("vllm-8", "10.0.0.8", annotated("kvasir.dev/role", "x"))) // so that it is seen that the removal was
	w.until("none any more, within the grace", "10.0.0.7:8000", "pod vllm-8")
}

// TestKubernetesGap: what changed while nobody watched, and is not to be had any more, is
// listed again.
func TestKubernetesGap(t *testing.T) {
	t.Parallel()
	s := startAPI(t)
	s.put("pods", aPod("a", "10.0.0.1"))
	s.put("pods", aPod("b", "10.0.0.2"))
	w := watchKubernetes(t, s, nil)
	w.until("started", "10.0.0.1:8000 10.0.0.2:8000", "")
	s.mu.Lock()
	before := s.lists
	delete(s.objects["pods"], "a") // nobody is told
	s.mu.Unlock()
	s.forget()
	w.until("after the gap", "10.0.0.2:8000", "")
	s.put("pods", aPod("c", "10.0.0.3"))
	w.until("it watches again", "10.0.0.2:8000 10.0.0.3:8000", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.lists - before; n > 4 { // of two resources
		t.Errorf("it listed %d times", n)
	}
}

// TestKubernetesAway: an API server that is away takes nothing from what is known.
func TestKubernetesAway(t *testing.T) {
	t.Parallel()
	s := startAPI(t)
	s.put("pods", aPod("a", "10.0.0.1"))
	w := watchKubernetes(t, s, nil)
	w.until("started", "10.0.0.1:8000", "")
	s.down()
	w.until("away", "10.0.0.1:8000", "cannot reach the API server at https://"+s.address+": dial: connect: connection refused")
	s.put("pods", aPod("b", "10.0.0.2"))
	s.up()
	w.until("back", "10.0.0.1:8000 10.0.0.2:8000", "")
	if n := w.set.Status()[0].Errors; n == 0 {
		t.Error("no error was counted")
	}
}

// TestKubernetesRefused: what the identity may not do is told with what its Role needs.
func TestKubernetesRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ verb, resource, reason, problem string }{
		{"list", "pods", "Forbidden", `cannot list pods in namespace team: the API server forbids it; a Role there needs {apiGroups: [""], resources: [pods], verbs: [list, watch]}, and a RoleBinding to us. It says: pods is refused: User "system:serviceaccount:team:kvasir"`},
		{"watch", "pods", "Forbidden", `cannot watch pods in namespace team: the API server forbids it`},
		{"list", "endpointslices", "Forbidden", `cannot list endpointslices in namespace team: the API server forbids it; a Role there needs {apiGroups: ["discovery.k8s.io"], resources: [endpointslices], verbs: [list, watch]}`},
		{"list", "pods", "InternalError", `cannot list pods in namespace team: pods is refused`},
	} {
		t.Run(c.verb+" "+c.resource+" "+c.reason, func(t *testing.T) {
			t.Parallel()
			s := startAPI(t)
			s.put("pods", aPod("a", "10.0.0.1"))
			s.refuse(c.verb, c.resource, c.reason)
			known := ""
			if c.verb == "watch" {
				known = "10.0.0.1:8000" // listed, and told as stale
			}
			w := watchKubernetes(t, s, nil)
			w.until("refused", known, c.problem)
			s.refuse(c.verb, c.resource, "")
			w.until("granted", "10.0.0.1:8000", "")
			s.refuse("list", c.resource, c.reason)
			s.refuse("watch", c.resource, c.reason)
			w.until("refused later", "10.0.0.1:8000", "cannot ")
		})
	}
}

// TestKubernetesToken: a token that is not good any more is read again from its file.
func TestKubernetesToken(t *testing.T) {
	t.Parallel()
	s := startAPI(t)
	s.put("pods", aPod("a", "10.0.0.1"))
	file, token := s.kubeconfig()
	w := watchKubernetes(t, s, func(e *Entry) { e.Kubeconfig = file })
	w.until("started", "10.0.0.1:8000", "")
	s.mu.Lock()
	s.token = "second"
	s.mu.Unlock()
	s.forget()
	w.until("the token has expired", "10.0.0.1:8000", "does not know us")
	s.put("pods", aPod("b", "10.0.0.2"))
	if err := os.WriteFile(token, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.until("another token", "10.0.0.1:8000 10.0.0.2:8000", "")
}

// TestKubernetesPool: an InferencePool says which pods are meant, and their ports, also when
// it comes later, and when it changes.
func TestKubernetesPool(t *testing.T) {
	t.Parallel()
	pool := func(name, app, ports string) string {
		return fmt.Sprintf(`{"kind":"InferencePool","apiVersion":"inference.networking.k8s.io/v1","metadata":{"name":%q,"namespace":"team"},
			"spec":{"selector":{"matchLabels":{%s}},"targetPorts":[%s],"endpointPickerRef":{"name":"epp","port":{"number":9002}}}}`, name, app, ports)
	}
	s := startAPI(t)
	s.put("pods", aPod("a", "10.0.0.1"))
	s.put("pods", strings.Replace(aPod("b", "10.0.0.2"), `"app":"vllm"`, `"app":"sglang"`, 1))
	s.refuse("list", "inferencepools", "NotFound")
	w := watchKubernetes(t, s, func(e *Entry) { e.Selector, e.PortName, e.InferencePool = "", "", "main" })
	w.until("no CRD", "", "cannot list inferencepools in namespace team: the cluster has no InferencePool of inference.networking.k8s.io/v1; its CRD is not installed")
	s.refuse("list", "inferencepools", "")
	w.until("no such pool", "", "there is no InferencePool main in namespace team")
	s.put("inferencepools", pool("other", `"app":"sglang"`, `{"number":8000}`))
	s.put("inferencepools", pool("main", `"app":"vllm"`, `{"number":8000}`))
	w.until("a pool", "10.0.0.1:8000", "")
	s.put("inferencepools", pool("main", `"app":"vllm"`, `{"number":8000},{"number":8001}`))
	w.until("another port", "10.0.0.1:8000 10.0.0.1:8001", "")
	s.put("inferencepools", pool("main", `"app":"sglang"`, `{"number":7000}`))
	w.until("other labels", "10.0.0.2:7000", "")
	s.put("inferencepools", pool("main", ``, ``))
	w.until("it says nothing", "10.0.0.2:7000", "InferencePool main names no labels, or no ports")
	s.put("inferencepools", pool("main", `"app":"a b"`, `{"number":7000}`))
	w.until("it says nonsense", "10.0.0.2:7000", "InferencePool main has labels that no pod can have")
	s.remove("inferencepools", "main")
	w.until("it is gone", "10.0.0.2:7000", "there is no InferencePool main in namespace team")
}

// TestKubernetesNowhere: without an API server that could be asked, that is told, and
// nobody waits for it.
func TestKubernetesNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	empty := filepath.Join(dir, "empty")
	for file, text := range map[string]string{broken: "a: b: c", empty: "{}"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, problem := range map[string]string{
		filepath.Join(dir, "none"): "none: no such file or directory",
		broken:                     "cannot use " + broken + ": error loading config file",
		empty:                      "cannot use " + empty + ": it names no cluster, or no current-context",
	} {
		s := startAPI(t)
		watchKubernetes(t, s, func(e *Entry) { e.Kubeconfig = file }).until(file, "", problem)
	}
}

// TestKubernetesMany: more workers than a source may have, eight of each pod, change nothing.
func TestKubernetesMany(t *testing.T) {
	t.Parallel()
	s := startAPI(t)
	s.put("pods", aPod("a", "10.0.0.1"))
	s.put("inferencepools", `{"kind":"InferencePool","apiVersion":"inference.networking.k8s.io/v1","metadata":{"name":"main","namespace":"team"},"spec":{"selector":{"matchLabels":{"app":"vllm"}},
		"targetPorts":[{"number":1},{"number":2},{"number":3},{"number":4},{"number":5},{"number":6},{"number":7},{"number":8}]}}`)
	w := watchKubernetes(t, s, func(e *Entry) { e.Selector, e.PortName, e.InferencePool = "", "", "main" })
	const known = "10.0.0.1:1 10.0.0.1:2 10.0.0.1:3 10.0.0.1:4 10.0.0.1:5 10.0.0.1:6 10.0.0.1:7 10.0.0.1:8"
	w.until("started", known, "")
	s.mu.Lock()
	for i := range maxWorkers / 8 {
		name := fmt.Sprintf("more-%d", i)
		s.objects["pods"][name] = aPod(name, fmt.Sprintf("10.1.%d.%d", i/256, i%256))
	}
	s.mu.Unlock()
	s.forget()
	w.until("many", known, fmt.Sprintf("it has %d workers, more than %d", maxWorkers+8, maxWorkers))
}

// TestKubernetesChangedEntry: a source that is told another role goes on with what it knows.
func TestKubernetesChangedEntry(t *testing.T) {
	t.Parallel()
	s := startAPI(t)
	s.put("pods", aPod("a", "10.0.0.1"))
	w := watchKubernetes(t, s, nil)
	w.until("started", "10.0.0.1:8000", "")
	w.set.mu.Lock()
	e := w.set.sources[0].entry
	w.set.mu.Unlock()
	s.mu.Lock()
	before := s.lists
	s.mu.Unlock()
	e.Worker.Role = "decode"
	w.set.Follow([]Entry{e})
	w.set.Settle(20 * time.Second)
	if got := w.set.Found()[0].Workers[0].Role; got != "decode" {
		t.Errorf("the role is %s", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists != before {
		t.Error("it was listed again")
	}
}
