// A real API server of Kubernetes, and what a kubelet and the controllers would write there.

// Package kubetest starts a real API server for tests, by scripts/kube/up.sh. There is no
// kubelet and no controller, so a test says itself what becomes of its pods.
//
//	s := kubetest.Start(t)
//	s.Namespace(t, "team")
//	token := s.Account(t, "team", "kvasir", kubetest.Rule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}})
//	file := s.Kubeconfig(t, "team", token)
//	s.Create(t, kubetest.Pod{Namespace: "team", Name: "vllm-0", IP: "10.0.0.1", Port: 8000})
package kubetest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start on a busy machine, its builds aside,
// which scripts/test-real.sh makes.
const patience = 4 * time.Minute

// A Server is an API server that runs.
type Server struct {
	URL    string
	CA     []byte // PEM
	token  string // of an administrator
	client *http.Client
	up     *exec.Cmd
	ready  chan string // lines READY
	ended  chan struct{}
}

// Start starts one, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..")
	s := &Server{up: exec.Command(filepath.Join(root, "scripts/kube/up.sh")), ready: make(chan string, 8), ended: make(chan struct{})}
	s.up.Dir, s.up.Env, s.up.Stderr = root, os.Environ(), os.Stderr
	if os.Getenv("KUBE_PORT") == "" {
		port, etcd := freePort(t), freePort(t)
		s.up.Env = append(s.up.Env, fmt.Sprint("KUBE_PORT=", port), fmt.Sprint("ETCD_PORT=", etcd))
	}
	out, err := s.up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.up.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(out)
	t.Cleanup(func() {
		_ = s.up.Process.Signal(syscall.SIGTERM) // it may have died
		<-s.ended
	})
	var caFile string
	if _, err := fmt.Sscanf(s.await(t), "READY %s %s %s", &s.URL, &s.token, &caFile); err != nil {
		t.Fatal(err)
	}
	if s.CA, err = os.ReadFile(caFile); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA)
	s.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	return s
}

// freePort is one of two neighbours with nobody on them: etcd takes the next one, too.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		a, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := a.Addr().(*net.TCPAddr).Port
		b, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		_ = a.Close()
		if err == nil {
			_ = b.Close()
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

func (s *Server) read(out io.Reader) {
	defer close(s.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.ready <- lines.Text()
	}
	_ = s.up.Wait() // it may have been killed
}

func (s *Server) await(t testing.TB) string {
	t.Helper()
	select {
	case line := <-s.ready:
		return line
	case <-s.ended:
		t.Fatal("the API server has ended")
	case <-time.After(patience):
		t.Fatal("the API server is not ready")
	}
	return ""
}

// Kill ends the API server as a crash would, with what it stores kept.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.up.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "https://"))
		if err != nil {
			return
		}
		_ = c.Close()
		if time.Now().After(deadline) {
			t.Fatal("the API server goes on")
		}
	}
}

// Restore starts it again after Kill, and waits until it is ready.
func (s *Server) Restore(t testing.TB) {
	t.Helper()
	if err := s.up.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	s.await(t)
}

// Admin is the token of an administrator, and a client that knows the server's certificate.
func (s *Server) Admin() (token string, client *http.Client) { return s.token, s.client }

// Do asks as an administrator. A body is written as JSON. A status that is no success
// fails the test.
func (s *Server) Do(t testing.TB, method, path string, body any) []byte {
	t.Helper()
	status, answer := s.ask(t, method, path, body)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

func (s *Server) ask(t testing.TB, method, path string, body any) (status int, answer []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(method, s.URL+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	got, err := s.client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer got.Body.Close()
	answer, err = io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return got.StatusCode, answer
}

type object = map[string]any

// Namespace makes a namespace, with the service account that its pods get.
func (s *Server) Namespace(t testing.TB, name string) {
	t.Helper()
	s.Do(t, "POST", "/api/v1/namespaces", object{"metadata": object{"name": name}})
	s.Do(t, "POST", "/api/v1/namespaces/"+name+"/serviceaccounts", object{"metadata": object{"name": "default"}})
}

// A Rule is one of a Role.
type Rule struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
}

// Account makes a service account that may do this in its namespace and nothing else, and
// gives a token of it.
func (s *Server) Account(t testing.TB, namespace, name string, rules ...Rule) (token string) {
	t.Helper()
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	s.Do(t, "POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts", object{"metadata": object{"name": name}})
	s.Do(t, "POST", rbac+"/roles", object{"metadata": object{"name": name}, "rules": append([]Rule{}, rules...)})
	s.Do(t, "POST", rbac+"/rolebindings", object{
		"metadata": object{"name": name},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
		"subjects": []object{{"kind": "ServiceAccount", "name": name, "namespace": namespace}},
	})
	var request struct {
		Status struct{ Token string }
	}
	answer := s.Do(t, "POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+name+"/token", object{"spec": object{"expirationSeconds": 3600}})
	if err := json.Unmarshal(answer, &request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// Allow makes these the rules of an account.
func (s *Server) Allow(t testing.TB, namespace, name string, rules ...Rule) {
	t.Helper()
	s.Do(t, "PATCH", "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles/"+name, object{"rules": append([]Rule{}, rules...)})
}

// Kubeconfig writes a file for who has this token, which stands in a file beside it.
func (s *Server) Kubeconfig(t testing.TB, namespace, token string) (file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "kubeconfig")
	for name, text := range map[string]string{
		file + ".token": token,
		file: fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: %s}}],
			clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: {tokenFile: %s}}]}`,
			namespace, s.URL, base64.StdEncoding.EncodeToString(s.CA), file+".token"),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// A Pod is what a test says of one. Its container has a port named http.
type Pod struct {
	Namespace, Name, IP string
	Port                int
	Labels, Annotations map[string]string // app: vllm is added
	HostNetwork         bool
}

func (p *Pod) path() string { return "/api/v1/namespaces/" + p.Namespace + "/pods/" + p.Name }

// Create makes a pod that has its address and is ready, as its kubelet would say.
func (s *Server) Create(t testing.TB, p Pod) {
	t.Helper()
	labels := object{"app": "vllm"}
	for k, v := range p.Labels {
		labels[k] = v
	}
	port := object{"name": "http", "containerPort": p.Port}
	if p.HostNetwork {
		port["hostPort"] = p.Port
	}
	s.Do(t, "POST", "/api/v1/namespaces/"+p.Namespace+"/pods", object{
		"metadata": object{"name": p.Name, "labels": labels, "annotations": p.Annotations},
		"spec": object{
			"nodeName": "node", "hostNetwork": p.HostNetwork,
			"containers": []object{{"name": "engine", "image": "vllm", "ports": []object{port}}},
		},
	})
	s.Ready(t, p, true)
}

// Ready says whether a pod is ready, as its kubelet would.
func (s *Server) Ready(t testing.TB, p Pod, ready bool) {
	t.Helper()
	is := "False"
	if ready {
		is = "True"
	}
	s.Do(t, "PATCH", p.path()+"/status", object{"status": object{
		"phase": "Running", "podIP": p.IP, "podIPs": []object{{"ip": p.IP}}, "hostIP": "192.0.2.1", "hostIPs": []object{{"ip": "192.0.2.1"}},
		"conditions": []object{{"type": "Ready", "status": is}},
	}})
}

// Annotate changes an annotation of a pod.
func (s *Server) Annotate(t testing.TB, p Pod, name, value string) {
	t.Helper()
	s.Do(t, "PATCH", p.path(), object{"metadata": object{"annotations": object{name: value}}})
}

// Terminate tells a pod to end, as kubectl delete does: it stays until it is Gone.
func (s *Server) Terminate(t testing.TB, p Pod) {
	t.Helper()
	s.Do(t, "DELETE", p.path(), object{"gracePeriodSeconds": 600})
}

// Gone says that a pod has ended, as its kubelet would.
func (s *Server) Gone(t testing.TB, p Pod) {
	t.Helper()
	s.Do(t, "DELETE", p.path(), object{"gracePeriodSeconds": 0})
}

// An Endpoint is one of a Service, and its conditions.
type Endpoint struct {
	Address                     string
	Pod                         string // "": none
	Ready, Serving, Terminating bool
}

// Endpoints makes these the endpoints of a Service, as its controller would: in one
// EndpointSlice of IPv4.
func (s *Server) Endpoints(t testing.TB, namespace, service string, labels map[string]string, port int, endpoints ...Endpoint) {
	t.Helper()
	all := object{"kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
	for k, v := range labels {
		all[k] = v
	}
	list := []object{}
	for _, e := range endpoints {
		o := object{"addresses": []string{e.Address}, "conditions": object{"ready": e.Ready, "serving": e.Serving, "terminating": e.Terminating}}
		if e.Pod != "" {
			var pod struct{ Metadata struct{ UID string } }
			if status, answer := s.ask(t, "GET", "/api/v1/namespaces/"+namespace+"/pods/"+e.Pod, nil); status != http.StatusOK {
				continue // it is gone
			} else if err := json.Unmarshal(answer, &pod); err != nil {
				t.Fatal(err)
			}
			o["targetRef"] = object{"kind": "Pod", "name": e.Pod, "namespace": namespace, "uid": pod.Metadata.UID}
		}
		list = append(list, o)
	}
	slice := object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata": object{"name": service + "-abcde", "labels": all}, "ports": []object{{"name": "web", "port": port, "protocol": "TCP"}}, "endpoints": list,
	}
	path := "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices"
	status, answer := s.ask(t, "PUT", path+"/"+service+"-abcde", slice)
	if status == http.StatusNotFound {
		status, answer = s.ask(t, "POST", path, slice)
	}
	if status/100 != 2 {
		t.Fatalf("EndpointSlice of %s: %d %s", service, status, answer)
	}
}
