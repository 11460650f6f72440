//go:build real

// Tests of kind kubernetes against a real API server (make test-real REAL=kube).

package discovery

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/discovery/kubetest"
	"kvasir/upstream"
)

var (
	mayPods   = kubetest.Rule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}
	maySlices = kubetest.Rule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}}
	mayPools  = kubetest.Rule{APIGroups: []string{"inference.networking.k8s.io"}, Resources: []string{"inferencepools"}, Verbs: []string{"list", "watch"}}
)

func watchReal(t *testing.T, kubeconfig string, change func(*Entry)) *watched {
	t.Helper()
	e := Entry{Kind: "kubernetes", Selector: "app=vllm", PortName: "http", Scheme: "http", Grace: time.Hour, Kubeconfig: kubeconfig, Worker: upstream.Settings{Role: "both"}}
	if change != nil {
		change(&e)
	}
	set := Start(Options{Log: zerolog.Nop(), Changed: func() {}})
	t.Cleanup(set.Close)
	set.Follow([]Entry{e})
	return &watched{t, set}
}

// TestRealKube goes through the life of pods and their Services, with the server killed in
// between.
func TestRealKube(t *testing.T) {
	s := kubetest.Start(t)
	t.Run("pods", func(t *testing.T) { realPods(t, s) })
	t.Run("rights", func(t *testing.T) { realRights(t, s) })
	t.Run("pool", func(t *testing.T) { realPool(t, s) })
	t.Run("many", func(t *testing.T) { realMany(t, s) })
	t.Run("restart", func(t *testing.T) { realRestart(t, s) })
}

func realPods(t *testing.T, s *kubetest.Server) {
	s.Namespace(t, "pods")
	a := kubetest.Pod{Namespace: "pods", Name: "a", IP: "10.0.0.1", Port: 8000, Annotations: map[string]string{"kvasir.dev/role": "prefill", "kvasir.dev/kv-events-port": "5557"}}
	b := kubetest.Pod{Namespace: "pods", Name: "b", IP: "fd00::2", Port: 8001, HostNetwork: true}
	other := kubetest.Pod{Namespace: "pods", Name: "other", IP: "10.0.0.3", Port: 8000, Labels: map[string]string{"app": "web"}}
	for _, p := range []kubetest.Pod{a, b, other} {
		s.Create(t, p)
	}
	w := watchReal(t, s.Kubeconfig(t, "pods", s.Account(t, "pods", "kvasir", mayPods, maySlices)), nil)
	w.until("started", "10.0.0.1:8000 [fd00::2]:8001", "")
	if got := w.set.Found()[0].Workers[0]; got.Name != "a" || got.Role != "prefill" || got.KVEvents != "tcp://10.0.0.1:5557" {
		t.Errorf("the worker is %+v", got)
	}
	s.Ready(t, a, false)
	w.until("not ready", "[fd00::2]:8001", "")
	s.Ready(t, a, true)
	w.until("ready again", "10.0.0.1:8000 [fd00::2]:8001", "")
	s.Endpoints(t, "pods", "web", nil, 8000, kubetest.Endpoint{Address: "10.0.0.1", Pod: "a"})
	w.until("its Service does not have it ready", "[fd00::2]:8001", "")
	s.Endpoints(t, "pods", "web", nil, 8000, kubetest.Endpoint{Address: "10.0.0.1", Pod: "a", Ready: true, Serving: true})
	w.until("its Service has it ready", "10.0.0.1:8000 [fd00::2]:8001", "")
	s.Endpoints(t, "pods", "outside", map[string]string{"app": "vllm"}, 9000, kubetest.Endpoint{Address: "10.7.0.1", Ready: true})
	w.until("no port of that name outside", "10.0.0.1:8000 [fd00::2]:8001", `EndpointSlice outside-abcde: it has no TCP port "http"`)
	s.Do(t, "DELETE", "/apis/discovery.k8s.io/v1/namespaces/pods/endpointslices/outside-abcde", nil)
	w.until("it is gone", "10.0.0.1:8000 [fd00::2]:8001", "")
	s.Annotate(t, a, "kvasir.dev/max-requests", "many")
	w.until("a bad annotation", "10.0.0.1:8000 [fd00::2]:8001", `pod a: annotation kvasir.dev/max-requests: must be a number`)
	s.Annotate(t, a, "kvasir.dev/max-requests", "9")
	w.until("a good one", "10.0.0.1:8000 [fd00::2]:8001", "")
	s.Terminate(t, a)
	w.until("told to end", "[fd00::2]:8001", "")
	s.Terminate(t, b)
	w.until("the last one told to end", "", "")
	s.Gone(t, a)
	a.IP = "10.0.0.4"
	s.Create(t, a)
	w.until("a pod of its name", "10.0.0.4:8000", "")
}

// realRights: what the service account may not do is told as the documentation says.
func realRights(t *testing.T, s *kubetest.Server) {
	s.Namespace(t, "rights")
	a := kubetest.Pod{Namespace: "rights", Name: "a", IP: "10.0.0.1", Port: 8000}
	s.Create(t, a)
	file := s.Kubeconfig(t, "rights", s.Account(t, "rights", "kvasir"))
	w := watchReal(t, file, nil)
	w.until("nothing granted", "", `cannot list pods in namespace rights: the API server forbids it; a Role there needs {apiGroups: [""], resources: [pods], verbs: [list, watch]}, and a RoleBinding to us. It says: pods is forbidden: User "system:serviceaccount:rights:kvasir" cannot list resource "pods" in API group "" in the namespace "rights"`)
	s.Allow(t, "rights", "kvasir", mayPods)
	w.until("pods alone", "", `cannot list endpointslices in namespace rights: the API server forbids it; a Role there needs {apiGroups: ["discovery.k8s.io"], resources: [endpointslices], verbs: [list, watch]}`)
	s.Allow(t, "rights", "kvasir", kubetest.Rule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}, maySlices)
	w.until("pods may not be watched", "10.0.0.1:8000", `cannot watch pods in namespace rights: the API server forbids it`)
	s.Allow(t, "rights", "kvasir", mayPods, maySlices)
	w.until("all that is needed", "10.0.0.1:8000", "")
	elsewhere := watchReal(t, file, func(e *Entry) { e.Namespace = "default" })
	elsewhere.until("another namespace", "", `cannot list pods in namespace default: the API server forbids it`)
	stranger := watchReal(t, s.Kubeconfig(t, "rights", "nonsense"), nil)
	stranger.until("a token of nobody", "", "does not know us: the token or certificate is not, or no longer, valid there")
	if err := os.WriteFile(stranger.set.sources[0].now().Kubeconfig+".token", []byte(s.Account(t, "rights", "second", mayPods, maySlices)), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger.until("a token that is good", "10.0.0.1:8000", "")
}

// realPool: the schema of the pool is the definition's own, as far as it is read.
func realPool(t *testing.T, s *kubetest.Server) {
	s.Namespace(t, "pool")
	s.Create(t, kubetest.Pod{Namespace: "pool", Name: "a", IP: "10.0.0.1", Port: 8000})
	s.Create(t, kubetest.Pod{Namespace: "pool", Name: "b", IP: "10.0.0.2", Port: 8000, Labels: map[string]string{"app": "sglang"}})
	w := watchReal(t, s.Kubeconfig(t, "pool", s.Account(t, "pool", "kvasir", mayPods, maySlices, mayPools)), func(e *Entry) {
		e.Selector, e.PortName, e.InferencePool = "", "", "main"
	})
	w.until("no CRD", "", "the cluster has no InferencePool of inference.networking.k8s.io/v1; its CRD is not installed")
	type object = map[string]any
	labels := object{"type": "object", "additionalProperties": object{"type": "string"}}
	s.Do(t, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{
		"metadata": object{"name": "inferencepools.inference.networking.k8s.io", "annotations": object{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api-inference-extension/pull/1173"}},
		"spec": object{
			"group": "inference.networking.k8s.io", "scope": "Namespaced",
			"names": object{"kind": "InferencePool", "listKind": "InferencePoolList", "plural": "inferencepools", "singular": "inferencepool"},
			"versions": []object{{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{
				"type": "object", "properties": object{"spec": object{"type": "object", "required": []string{"selector", "targetPorts"}, "properties": object{
					"selector": object{"type": "object", "properties": object{"matchLabels": labels}},
					"targetPorts": object{"type": "array", "maxItems": 8, "items": object{"type": "object", "properties": object{
						"number": object{"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
					}}},
				}}},
			}}}},
		},
	})
	w.until("no such pool", "", "there is no InferencePool main in namespace pool")
	pools := "/apis/inference.networking.k8s.io/v1/namespaces/pool/inferencepools"
	s.Do(t, "POST", pools, object{"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": object{"name": "main"}, "spec": object{
		"selector": object{"matchLabels": object{"app": "vllm"}}, "targetPorts": []object{{"number": 8000}, {"number": 8001}},
	}})
	w.until("a pool", "10.0.0.1:8000 10.0.0.1:8001", "")
	s.Do(t, "PATCH", pools+"/main", object{"spec": object{"selector": object{"matchLabels": object{"app": "sglang"}}, "targetPorts": []object{{"number": 7000}}}})
	w.until("other pods", "10.0.0.2:7000", "")
	s.Do(t, "DELETE", pools+"/main", nil)
	w.until("it is gone", "10.0.0.2:7000", "there is no InferencePool main in namespace pool")
}

// realMany: pods that come and go fast are all seen, in the end.
func realMany(t *testing.T, s *kubetest.Server) {
	s.Namespace(t, "many")
	w := watchReal(t, s.Kubeconfig(t, "many", s.Account(t, "many", "kvasir", mayPods, maySlices)), nil)
	var all []kubetest.Pod
	var want []string
	for _, name := range strings.Fields("a b c d e f g h i j k l m n o p q r s t") {
		p := kubetest.Pod{Namespace: "many", Name: name, IP: "10.0.1." + string('1'+(name[0]-'a')%9), Port: 8000 + int(name[0])}
		s.Create(t, p)
		all = append(all, p)
	}
	for i, p := range all {
		if i%2 == 0 {
			s.Terminate(t, p)
			s.Gone(t, p)
		} else {
			want = append(want, strings.TrimPrefix(urlOf("http", p.IP, p.Port), "http://"))
		}
	}
	w.until("every second one", strings.Join(want, " "), "")
}

// realRestart: a server that is killed takes nothing from what is known, and what changed
// before it was watched again is seen.
func realRestart(t *testing.T, s *kubetest.Server) {
	s.Namespace(t, "restart")
	a := kubetest.Pod{Namespace: "restart", Name: "a", IP: "10.0.0.1", Port: 8000}
	s.Create(t, a)
	file := s.Kubeconfig(t, "restart", s.Account(t, "restart", "kvasir", mayPods, maySlices))
	w := watchReal(t, file, nil)
	w.until("started", "10.0.0.1:8000", "")
	s.Kill(t)
	w.until("killed", "10.0.0.1:8000", "cannot reach the API server at "+s.URL+": dial: connect: connection refused")
	late := watchReal(t, file, nil)
	late.until("started without it", "", "cannot reach the API server")
	s.Restore(t)
	s.Create(t, kubetest.Pod{Namespace: "restart", Name: "b", IP: "10.0.0.2", Port: 8000})
	s.Terminate(t, a)
	w.until("back", "10.0.0.2:8000", "")
	late.until("back", "10.0.0.2:8000", "")
}
