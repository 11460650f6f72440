//go:build real

// The planner at a real API server, with the rights of the chart and no others (make test-real REAL=kube): Deployments
// and a DynamoGraphDeployment get the replicas that it wants, and replicas of Kvasir agree on who does it.

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// A scaled object is one with replicas, as a test looks at it and as its controller would write its status.
type scaled struct {
	Metadata struct{ Generation int }
	Spec     struct {
		Replicas int
		Services map[string]struct {
			Replicas      int
			ComponentType string
		}
	}
}

func (c *cluster) scaledAt(t testing.TB, path string) (o scaled) {
	t.Helper()
	if err := json.Unmarshal(c.want(t, http.StatusOK, http.MethodGet, path, ""), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// controller says of a Deployment that all of its replicas are there, and so many are ready.
func (c *cluster) controller(t testing.TB, path string, notReady int) {
	t.Helper()
	o := c.scaledAt(t, path)
	n := o.Spec.Replicas
	c.want(t, http.StatusOK, http.MethodPatch, path+"/status", fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`,
		o.Metadata.Generation, n, n, n-notReady, n-notReady))
}

// graphCRD has the fields of DynamoGraphDeployment (nvidia.com/v1alpha1) that are asked for, and keeps all others: its own
// file is in no Go module.
const graphCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dynamographdeployments.nvidia.com}
spec:
  group: nvidia.com
  names: {kind: DynamoGraphDeployment, listKind: DynamoGraphDeploymentList, plural: dynamographdeployments, singular: dynamographdeployment, shortNames: [dgd]}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                services:
                  type: object
                  maxProperties: 25
                  additionalProperties:
                    type: object
                    x-kubernetes-preserve-unknown-fields: true
                    properties: {replicas: {type: integer, format: int32, minimum: 0}}
            status:
              type: object
              x-kubernetes-preserve-unknown-fields: true
`

// planned serves with the planner's part of the configuration that the chart made, by the token of its service account,
// and simulated workers of these roles.
func planned(t *testing.T, c *cluster, namespace, rendered, workers string) *kvasir {
	t.Helper()
	var config struct{ Planner map[string]any }
	if err := yaml.Unmarshal([]byte(kvasirYAML(t, rendered)), &config); err != nil {
		t.Fatal(err)
	}
	p := config.Planner
	p["interval"], p["window"], p["start_time"], p["down_after"] = "1s", "15s", "1s", "2s"
	p["kubernetes"].(map[string]any)["kubeconfig"] = c.as(t, c.tokenOf(t, namespace, "kvasir"), namespace).kubeconfig
	text, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, "simulate: "+workers+"\nmodels: [{name: sim, default: true}]\ncache: {store: 'off'}\nplanner:\n  "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ")+"\n", "sim")
}

// TestRealKubePlanner: load scales the Deployment of the chart's worker up, its end down, with the rights of the chart.
func TestRealKubePlanner(t *testing.T) {
	c := startCluster(t)
	c.namespace(t, "llm", "")
	values := []string{"--namespace", "llm", "--set=planner.mode=apply", "--set=config.planner.pace=10", "--set=config.planner.target_ttft_ms=1000", "--set=config.planner.target_itl_ms=500", "--set=config.planner.max_workers=9"}
	mustHelm(t, c.kubeconfig, append([]string{"install", "kvasir", chartDir}, values...)...)
	const workers, gateway, lease = "/apis/apps/v1/namespaces/llm/deployments/kvasir-bothworker0", "/apis/apps/v1/namespaces/llm/deployments/kvasir", "/apis/coordination.k8s.io/v1/namespaces/llm/leases/kvasir-planner"
	c.controller(t, workers, 0)
	c.plannerRights(t, "llm", workers, gateway, lease)

	rendered := render(t, values...)
	k := planned(t, c, "llm", rendered, "[{name: s, model: sim, speedup: 100}]")
	other := planned(t, c, "llm", rendered, "[{name: s, model: sim, speedup: 100}]")
	load, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Add(1)
	go func() {
		defer asking.Done()
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		for n := 0; ; n++ {
			select {
			case <-load.Done():
				return
			case <-every.C:
				post(t, k.url+"/v1/chat/completions", fmt.Sprintf(`{"model":"sim","max_tokens":8,"messages":[{"role":"user","content":"%d %s"}]}`, n, strings.Repeat("What grows here? ", 600)))
			}
		}
	}()
	replicas := func() int { return c.scaledAt(t, workers).Spec.Replicas }
	eventually(t, patience, "more workers", func() bool { return replicas() > 1 })
	// Nobody makes its pods run. While they do not, it is not scaled, whatever comes.
	stuck := replicas()
	decided := func(what string) float64 {
		return metric(t, k.admin+"/metrics", `kvasir_planner_decisions_total{decision="`+what+`"}`) + metric(t, other.admin+"/metrics", `kvasir_planner_decisions_total{decision="`+what+`"}`)
	}
	before := decided("changing")
	eventually(t, patience, "plans while a change is under way", func() bool { return decided("changing") >= before+6 })
	if n := replicas(); n != stuck {
		t.Errorf("scaled from %d to %d while a change was under way", stuck, n)
	}
	most := 0
	eventually(t, patience, "enough workers", func() bool {
		c.controller(t, workers, 0)
		most = max(most, replicas())
		return strings.Contains(string(get(t, k.admin+"/plan").body), `"state":"as many as are needed"`) && most > 2
	})
	mustHelm(t, c.kubeconfig, "upgrade", "kvasir", chartDir, "--namespace", "llm", "--reuse-values", "--set=config.log.level=debug")
	if n := replicas(); n < 2 {
		t.Errorf("an upgrade leaves %d replicas", n)
	}
	var leaders int
	for _, one := range []*kvasir{k, other} {
		if strings.Contains(string(get(t, one.admin+"/plan").body), `"leads":true`) {
			leaders++
		}
	}
	if leaders != 1 {
		t.Errorf("%d lead", leaders)
	}
	stop()
	asking.Wait()
	eventually(t, 2*patience, "one worker again", func() bool {
		c.controller(t, workers, 0)
		return replicas() == 1
	})
	t.Logf("from 1 to %d replicas and back", most)

	// The leader ends, and the other one takes over at once: what is wanted from now on is its doing.
	first, second := k, other
	if strings.Contains(string(get(t, other.admin+"/plan").body), `"leads":true`) {
		first, second = other, k
	}
	first.stop(t)
	eventually(t, patience, "the other one leads", func() bool {
		return strings.Contains(string(get(t, second.admin+"/plan").body), `"leads":true`)
	})
	c.want(t, http.StatusOK, http.MethodPatch, workers, `{"spec":{"replicas":0}}`)
	eventually(t, patience, "one worker again, by the other", func() bool {
		c.controller(t, workers, 0)
		return replicas() == 1
	})
	// A right that is taken away is told once, with what to do; once it is back all goes on.
	const binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/llm/rolebindings/kvasir-llm-planner"
	saved := c.want(t, http.StatusOK, http.MethodGet, binding, "")
	c.want(t, http.StatusOK, http.MethodDelete, binding, "")
	failed := func() float64 {
		return metric(t, second.admin+"/metrics", `kvasir_planner_failures_total{what="kubernetes"}`)
	}
	eventually(t, patience, "it is refused again and again", func() bool { return failed() >= 8 })
	if said := second.output.String(); strings.Count(said, "resources: [deployments], verbs: [get]") != 1 || strings.Count(said, "resources: [leases], verbs: [") < 1 {
		t.Errorf("it says\n%s", tail(said, 3000))
	}
	var again map[string]any
	if err := json.Unmarshal(saved, &again); err != nil {
		t.Fatal(err)
	}
	delete(again["metadata"].(map[string]any), "resourceVersion")
	text, err := json.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}
	c.want(t, http.StatusCreated, http.MethodPost, filepath.Dir(binding), string(text))
	eventually(t, patience, "it goes on", func() bool { return strings.Contains(second.output.String(), "reaches what it scales again") })
	second.stop(t)
	var l struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct{ HolderIdentity string }
	}
	if err := json.Unmarshal(c.want(t, http.StatusOK, http.MethodGet, lease, ""), &l); err != nil {
		t.Fatal(err)
	}
	for key := range l.Metadata.Annotations {
		if strings.HasPrefix(key, "planner.kvasir.dev/") {
			t.Errorf("%s is left", key)
		}
	}
	if l.Spec.HolderIdentity != "" {
		t.Errorf("%s still holds the lease", l.Spec.HolderIdentity)
	}
}

// plannerRights: the chart's account may get and patch what is scaled and its Lease, and nothing else.
func (c *cluster) plannerRights(t *testing.T, namespace, workers, gateway, lease string) {
	t.Helper()
	kvasir := c.as(t, c.tokenOf(t, namespace, "kvasir"), namespace)
	kvasir.want(t, http.StatusOK, http.MethodGet, workers, "")
	kvasir.want(t, http.StatusOK, http.MethodGet, lease, "")
	kvasir.want(t, http.StatusOK, http.MethodPatch, workers+"/scale?dryRun=All", `{"spec":{"replicas":2}}`)
	kvasir.want(t, http.StatusOK, http.MethodPatch, lease+"?dryRun=All", `{"metadata":{"annotations":{"a":"b"}}}`)
	kvasir.want(t, http.StatusConflict, http.MethodPatch, workers+"/scale", `{"metadata":{"resourceVersion":"1"},"spec":{"replicas":2}}`)
	for _, mayNot := range []struct{ method, path string }{
		{http.MethodPatch, workers}, {http.MethodPatch, workers + "/status"}, {http.MethodDelete, workers}, {http.MethodGet, workers + "/scale"},
		{http.MethodGet, gateway}, {http.MethodPatch, gateway + "/scale"}, {http.MethodGet, filepath.Dir(workers)}, {http.MethodPost, filepath.Dir(workers)},
		{http.MethodDelete, lease}, {http.MethodGet, filepath.Dir(lease)}, {http.MethodPost, filepath.Dir(lease)}, {http.MethodPatch, filepath.Dir(lease) + "/another"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/" + namespace + "/statefulsets/x/scale"}, {http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/kvasir-bothworker0"},
	} {
		kvasir.want(t, http.StatusForbidden, mayNot.method, mayNot.path, "{}")
	}
}

// TestRealKubePlannerGraph: both roles of a DynamoGraphDeployment get what is wanted, its other services stay as they are,
// and advise changes nothing.
func TestRealKubePlannerGraph(t *testing.T) {
	c := startCluster(t)
	c.want(t, http.StatusCreated, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", graphCRD)
	c.namespace(t, "llm", "")
	c.namespace(t, "dynamo", "")
	const graphs = "/apis/nvidia.com/v1alpha1/namespaces/dynamo/dynamographdeployments"
	eventually(t, patience, "DynamoGraphDeployments are served", func() bool {
		status, _ := c.ask(t, http.MethodGet, graphs, "")
		return status == http.StatusOK
	})
	c.want(t, http.StatusCreated, http.MethodPost, graphs, `apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: disagg}
spec:
  services:
    Frontend: {componentType: frontend, replicas: 1}
    VllmPrefillWorker: {componentType: worker, subComponentType: prefill, replicas: 1}
    VllmDecodeWorker: {componentType: worker, subComponentType: decode, replicas: 1}
`)
	const graph = graphs + "/disagg"
	operator := func() {
		o := c.scaledAt(t, graph)
		services := map[string]any{}
		for name, s := range o.Spec.Services {
			services[name] = map[string]any{"componentKind": "Deployment", "componentName": name, "replicas": s.Replicas, "updatedReplicas": s.Replicas, "readyReplicas": s.Replicas}
		}
		text, err := json.Marshal(map[string]any{"status": map[string]any{"state": "successful", "observedGeneration": o.Metadata.Generation, "services": services}})
		if err != nil {
			t.Fatal(err)
		}
		c.want(t, http.StatusOK, http.MethodPatch, graph+"/status", string(text))
	}
	operator()
	values := []string{"--namespace", "llm", "--set-json=workers=[]", "--set=config.planner.kubernetes.namespace=dynamo", "--set=config.planner.min_workers=2", "--set=config.planner.max_workers=3",
		"--set=config.planner.kubernetes.prefill=dynamographdeployment/disagg/VllmPrefillWorker", "--set=config.planner.kubernetes.decode=dynamographdeployment/disagg/VllmDecodeWorker"}
	mustHelm(t, c.kubeconfig, append([]string{"install", "kvasir", chartDir, "--set=planner.mode=apply"}, values...)...)
	const roles = "[{name: p, model: sim, role: prefill}, {name: d, model: sim, role: decode}]"

	tried := planned(t, c, "llm", render(t, append(values, "--set=planner.mode=advise")...), roles)
	eventually(t, patience, "it is tried", func() bool { return strings.Count(tried.output.String(), `"dry_run":true`) == 2 })
	tried.stop(t)
	if o := c.scaledAt(t, graph); o.Metadata.Generation != 1 {
		t.Errorf("advise has changed %+v", o)
	}
	k := planned(t, c, "llm", render(t, append(values, "--set=planner.mode=apply")...), roles)
	eventually(t, patience, "two of each", func() bool {
		o := c.scaledAt(t, graph)
		return o.Spec.Services["VllmPrefillWorker"].Replicas == 2 && o.Spec.Services["VllmDecodeWorker"].Replicas == 2
	})
	if f := c.scaledAt(t, graph).Spec.Services["Frontend"]; f.Replicas != 1 || f.ComponentType != "frontend" {
		t.Errorf("its frontend is %+v", f)
	}
	operator()
	eventually(t, patience, "it is at rest", func() bool {
		return metric(t, k.admin+"/metrics", `kvasir_planner_workers{kind="target",role="decode"}`) == 2 && !strings.Contains(string(get(t, k.admin+"/plan").body), `"changing"`)
	})
}
