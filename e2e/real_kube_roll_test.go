//go:build real

// Kvasir behind the chart's own configuration and rights, while the workers of the chart are rolled over under load.

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A podOfChart is a pod as the chart's Deployment makes one, and the engine that kubelet would run in it.
type podOfChart struct {
	name, uid, ip string
	engine        *process
}

// A rollout is what controllers and kubelet would do with a Deployment of workers.
type rollout struct {
	c         *cluster
	namespace string
	template  map[string]any // of pods
	service   string
	next      int
}

// start makes the next pod, runs its engine, and tells when it is ready, as kubelet and the controller of EndpointSlices
// do.
func (r *rollout) start(t *testing.T) *podOfChart {
	t.Helper()
	r.next++
	p := &podOfChart{name: fmt.Sprintf("%s-%d", r.service, r.next), ip: fmt.Sprintf("127.0.77.%d", r.next)}
	metadata := map[string]any{"name": p.name}
	for key, value := range r.template["metadata"].(map[string]any) {
		metadata[key] = value
	}
	spec := map[string]any{"nodeName": "gpu-node"} // only a pod of a node is told to end before it is gone
	for key, value := range r.template["spec"].(map[string]any) {
		spec[key] = value
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	pods := "/api/v1/namespaces/" + r.namespace + "/pods"
	var made struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(r.c.want(t, http.StatusCreated, http.MethodPost, pods, string(text)), &made); err != nil {
		t.Fatal(err)
	}
	p.uid = made.Metadata.UID

	annotations := r.template["metadata"].(map[string]any)["annotations"].(map[string]any)
	p.engine = spawn(t, nil, binary(t), "simulate", "--listen", p.ip+":8000", "--model", annotations["kvasir.dev/models"].(string), "--speedup", "20",
		"--events", "tcp://"+p.ip+":"+annotations["kvasir.dev/kv-events-port"].(string), "--replay", "tcp://"+p.ip+":"+annotations["kvasir.dev/kv-replay-port"].(string))
	eventually(t, patience, p.name+" is ready", func() bool { return answers("http://" + p.ip + ":8000/health") })
	r.c.want(t, http.StatusOK, http.MethodPatch, pods+"/"+p.name+"/status",
		fmt.Sprintf(`{"status": {"phase": "Running", "podIP": %q, "podIPs": [{"ip": %q}], "conditions": [{"type": "Ready", "status": "True"}]}}`, p.ip, p.ip))
	r.c.want(t, http.StatusCreated, http.MethodPost, r.slices(), fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice,
metadata: {name: %s, labels: {kubernetes.io/service-name: %s, endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}, addressType: IPv4,
ports: [{name: http, port: 8000}], endpoints: [%s]}`, p.name, r.service, p.endpoint("ready: true, serving: true, terminating: false")))
	return p
}

func (r *rollout) slices() string {
	return "/apis/discovery.k8s.io/v1/namespaces/" + r.namespace + "/endpointslices"
}

// endpoint is that of the pod. A loopback address is none for the API server, so there stands another one.
func (p *podOfChart) endpoint(conditions string) string {
	return fmt.Sprintf(`{"addresses": [%q], "conditions": {%s}, "targetRef": {"kind": "Pod", "name": %q, "uid": %q}}`,
		strings.Replace(p.ip, "127.0", "10.0", 1), conditions, p.name, p.uid)
}

// end takes the pod down in the order of things: it is told to end, its endpoint terminates, preStop lets requests go on
// until Kvasir has heard of it, the engine ends when its last stream has, and then the pod is gone.
func (r *rollout) end(t *testing.T, k *kvasir, p *podOfChart) {
	t.Helper()
	pod := "/api/v1/namespaces/" + r.namespace + "/pods/" + p.name
	isUp := func() bool {
		return strings.Contains(string(get(t, k.admin+"/metrics").body), `kvasir_worker_up{role="both",state="up",worker="`+p.name+`"} 1`)
	}
	if !isUp() {
		t.Errorf("%s is not up", p.name)
	}
	r.c.want(t, http.StatusOK, http.MethodDelete, pod, "")
	r.c.want(t, http.StatusOK, http.MethodPatch, r.slices()+"/"+p.name, fmt.Sprintf(`{"endpoints": [%s]}`, p.endpoint(`"ready": false, "serving": true, "terminating": true`)))
	eventually(t, patience, "Kvasir sends nothing new to "+p.name, func() bool { return !isUp() })
	eventually(t, patience, "the last stream of "+p.name+" ends", func() bool {
		return metric(t, "http://"+p.ip+":8000/metrics", "vllm:num_requests_running") == 0
	})
	p.engine.stop(t)
	r.c.want(t, http.StatusOK, http.MethodDelete, r.slices()+"/"+p.name, "")
	r.c.want(t, http.StatusOK, http.MethodDelete, pod+"?gracePeriodSeconds=0", "")
}

// TestRealKubeChartRollout: the chart is installed, Kvasir runs with the configuration and the token that its pod would
// have, and all workers are replaced one after another while clients ask. No request fails.
func TestRealKubeChartRollout(t *testing.T) {
	const ns, clients = "roll", 6
	c := startCluster(t)
	c.namespace(t, ns, "")
	mustHelm(t, c.kubeconfig, "install", "kvasir", chartDir, "--namespace", ns, "--set=config.cache.store=off")
	r := &rollout{c: c, namespace: ns, service: "kvasir-bothworker0"}
	var deployment struct {
		Spec struct{ Template map[string]any }
	}
	if err := json.Unmarshal(c.want(t, http.StatusOK, http.MethodGet, "/apis/apps/v1/namespaces/"+ns+"/deployments/"+r.service, ""), &deployment); err != nil {
		t.Fatal(err)
	}
	r.template = deployment.Spec.Template

	// In a pod the API server is found by the pod's own files, here by a kubeconfig with the same token.
	var installed struct{ Data map[string]string }
	if err := json.Unmarshal(c.want(t, http.StatusOK, http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps/kvasir", ""), &installed); err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(installed.Data["kvasir.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	config["discovery"].([]any)[0].(map[string]any)["kubeconfig"] = c.as(t, c.tokenOf(t, ns, "kvasir"), ns).kubeconfig
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	const model = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
	pods := []*podOfChart{r.start(t), r.start(t), r.start(t)}
	k := serve(t, string(text))
	up := func(want float64) func() bool {
		return func() bool { return metric(t, k.admin+"/metrics", "kvasir_worker_up") == want }
	}
	eventually(t, patience, "all workers are found", up(3))
	if got := string(get(t, k.admin+"/metrics").body); !strings.Contains(got, `kvasir_worker_source{source="kubernetes `+ns+`/`) {
		t.Error("no worker comes from Kubernetes")
	}
	eventually(t, patience, "KV events are heard at the annotated ports", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_kv_events_connected") == 3
	})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sent, failed atomic.Int64
	var asking sync.WaitGroup
	for i := range clients {
		asking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				stream := n%2 == 0
				body := fmt.Sprintf(`{"model": %q, "stream": %t, "max_tokens": 100, "ignore_eos": true, "messages": [{"role": "user", "content": "Question %d of client %d"}]}`, model, stream, n, i)
				got := post(t, k.url+chatRoute, body)
				sent.Add(1)
				if got.status != http.StatusOK || got.end != nil || stream && !strings.HasSuffix(string(got.body), "data: [DONE]\n\n") {
					failed.Add(1)
					t.Errorf("%d, %v: %s", got.status, got.end, tail(string(got.body), 300))
				}
			}
		})
	}
	for _, p := range pods {
		before := sent.Load()
		r.end(t, k, p)
		r.start(t)
		eventually(t, patience, "the new worker is found", up(3))
		eventually(t, patience, "clients go on", func() bool { return sent.Load() > before+50 })
	}
	cancel()
	asking.Wait()
	t.Logf("%d requests over a rollout of %d workers, %d failed", sent.Load(), len(pods), failed.Load())
	if sent.Load() < 150 {
		t.Errorf("only %d requests were sent", sent.Load())
	}
}
