// Tests of scaling at a light API server.

package scale

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/replay"
	"kvasir/planner/scale/scaletest"
)

const (
	vllm   = "/apis/apps/v1/namespaces/team/deployments/vllm"
	set    = "/apis/apps/v1/namespaces/team/statefulsets/vllm"
	agg    = "/apis/nvidia.com/v1alpha1/namespaces/team/dynamographdeployments/agg"
	leases = "/apis/coordination.k8s.io/v1/namespaces/team/leases/kvasir-planner"
)

func target(t testing.TB, text string) Target {
	t.Helper()
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func start(t testing.TB, s *scaletest.Server, change func(*Options)) *Scaler {
	o := &Options{Kubeconfig: s.Kubeconfig, Targets: Targets{kvroute.Both: target(t, "deployment/vllm")}, Lease: "kvasir-planner", Term: time.Minute}
	if change != nil {
		change(o)
	}
	return New(o)
}

func (s *Scaler) must(t testing.TB, want replay.Fleet) []Change {
	t.Helper()
	seen, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changed, err := s.Apply(t.Context(), seen, want)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// services are those of a graph, with their replicas.
func services(replicas map[string]any) scaletest.Object {
	spec, status := scaletest.Object{}, scaletest.Object{}
	for name, n := range replicas {
		spec[name] = scaletest.Object{"replicas": n, "componentType": "worker"}
		status[name] = scaletest.Object{"componentKind": "Deployment", "replicas": n, "updatedReplicas": n, "readyReplicas": n}
	}
	return scaletest.Object{"spec": scaletest.Object{"services": spec}, "status": scaletest.Object{"observedGeneration": 1, "state": "successful", "services": status}}
}

func TestApply(t *testing.T) {
	api := scaletest.Start(t)
	api.Put(vllm, scaletest.Deployment(2, 2))
	s := start(t, api, nil)
	if got := s.must(t, replay.Fleet{Workers: 5}); len(got) != 1 || got[0] != (Change{kvroute.Both, "Deployment vllm", 2, 5}) || api.Replicas(vllm) != 5 {
		t.Errorf("%+v, %d", got, api.Replicas(vllm))
	}
	if asked := strings.Join(api.Asked(), "\n"); !strings.HasSuffix(asked, "PATCH "+vllm+"/scale") || strings.Contains(asked, "dryRun") {
		t.Error(asked)
	}
	n := len(api.Asked())
	if got := s.must(t, replay.Fleet{Workers: 5}); len(got) != 0 || len(api.Asked()) != n+1 {
		t.Errorf("what is wanted is there: %+v, %v", got, api.Asked()[n:])
	}
	dry := start(t, api, func(o *Options) { o.DryRun = true })
	if got := dry.must(t, replay.Fleet{Workers: 6}); len(got) != 1 || api.Replicas(vllm) != 5 {
		t.Errorf("a dry run: %+v, %d", got, api.Replicas(vllm))
	}
}

// Both roles of one DynamoGraphDeployment, each by a patch of its own; the other services stay as they are.
func TestApplyGraph(t *testing.T) {
	api := scaletest.Start(t)
	api.Put(agg, services(map[string]any{"Frontend": 1, "Prefill": 1, "Decode": 2}))
	s := start(t, api, func(o *Options) {
		o.Targets = Targets{kvroute.Prefill: target(t, "dynamographdeployment/agg/Prefill"), kvroute.Decode: target(t, "dynamographdeployment/agg/Decode")}
	})
	seen, err := s.Look(t.Context())
	if err != nil || seen.Fleet(replay.Fleet{}) != (replay.Fleet{Prefill: 1, Decode: 2}) || seen.Changing() != "" {
		t.Fatalf("%+v, %v", seen, err)
	}
	// After the first patch a change is under way; the second one is of the same plan.
	if got, err := s.Apply(t.Context(), seen, replay.Fleet{Prefill: 3, Decode: 1}); err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	has := api.Get(agg)["spec"].(scaletest.Object)["services"].(scaletest.Object)
	for name, want := range map[string]float64{"Frontend": 1, "Prefill": 3, "Decode": 1} {
		if service := has[name].(scaletest.Object); service["replicas"] != want || service["componentType"] != "worker" {
			t.Errorf("%s: %v", name, service)
		}
	}
}

func TestChanging(t *testing.T) {
	with := func(change func(o scaletest.Object)) scaletest.Object {
		o := scaletest.Deployment(3, 3)
		change(o)
		return o
	}
	status := func(key string, value any) scaletest.Object {
		return with(func(o scaletest.Object) { o["status"].(scaletest.Object)[key] = value })
	}
	graph := func(change func(o scaletest.Object)) scaletest.Object {
		o := services(map[string]any{"Decode": 3})
		change(o)
		return o
	}
	gaveUp := status("readyReplicas", 2)
	gaveUp["status"].(scaletest.Object)["conditions"] = []any{scaletest.Object{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}
	for name, c := range map[string]struct {
		path, target, want string
		object             scaletest.Object
	}{
		"at rest":          {vllm, "deployment/vllm", "", scaletest.Deployment(3, 3)},
		"by default one":   {vllm, "deployment/vllm", "3 of 1 replicas are there", with(func(o scaletest.Object) { o["spec"] = scaletest.Object{} })},
		"not seen yet":     {vllm, "deployment/vllm", "its controller has not seen the last change", status("observedGeneration", 0)},
		"pods are missing": {vllm, "deployment/vllm", "1 of 3 replicas are there", status("replicas", 1)},
		"pods are leaving": {vllm, "deployment/vllm", "5 of 3 replicas are there", status("replicas", 5)},
		"rolls over":       {vllm, "deployment/vllm", "1 of 3 replicas are updated", status("updatedReplicas", 1)},
		"not ready":        {vllm, "deployment/vllm", "2 of 3 replicas are ready", status("readyReplicas", 2)},
		"given up":         {vllm, "deployment/vllm", "", gaveUp},
		"a set": {set, "statefulset/vllm", "2 of 3 replicas are ready", with(func(o scaletest.Object) {
			o["spec"].(scaletest.Object)["updateStrategy"] = scaletest.Object{"type": "OnDelete"}
			o["status"].(scaletest.Object)["readyReplicas"] = 2
		})},
		"a set with old pods": {set, "statefulset/vllm", "", with(func(o scaletest.Object) {
			o["spec"].(scaletest.Object)["updateStrategy"] = scaletest.Object{"type": "OnDelete"}
			o["status"].(scaletest.Object)["updatedReplicas"] = 0
		})},
		"a graph":            {agg, "dynamographdeployment/agg/Decode", "", graph(func(scaletest.Object) {})},
		"a graph's operator": {agg, "dynamographdeployment/agg/Decode", "its controller has not seen the last change", graph(func(o scaletest.Object) { delete(o, "status") })},
		"an old operator":    {agg, "dynamographdeployment/agg/Decode", "", graph(func(o scaletest.Object) { delete(o["status"].(scaletest.Object), "observedGeneration") })},
		"a graph rolls over": {agg, "dynamographdeployment/agg/Decode", "a rolling update is under way", graph(func(o scaletest.Object) {
			o["status"].(scaletest.Object)["rollingUpdate"] = scaletest.Object{"phase": "InProgress"}
		})},
		"a graph of several nodes": {agg, "dynamographdeployment/agg/Decode", "", graph(func(o scaletest.Object) {
			service := o["status"].(scaletest.Object)["services"].(scaletest.Object)["Decode"].(scaletest.Object)
			service["availableReplicas"] = service["readyReplicas"]
			delete(service, "readyReplicas")
		})},
		"a graph is not ready": {agg, "dynamographdeployment/agg/Decode", "1 of 3 replicas are ready", graph(func(o scaletest.Object) {
			o["status"].(scaletest.Object)["services"].(scaletest.Object)["Decode"].(scaletest.Object)["readyReplicas"] = 1
		})},
	} {
		t.Run(name, func(t *testing.T) {
			api := scaletest.Start(t)
			api.Put(c.path, c.object)
			s := start(t, api, func(o *Options) { o.Targets = Targets{kvroute.Decode: target(t, c.target)} })
			seen, err := s.Look(t.Context())
			if want := c.want; err != nil || strings.TrimPrefix(seen.Changing(), "decode: ") != want {
				t.Errorf("%q, %v, want %q", seen.Changing(), err, want)
			}
		})
	}
}

// A controller writes the status all the time; that makes versions, and is no other number of replicas.
func TestApplyConflict(t *testing.T) {
	api := scaletest.Start(t)
	api.Put(vllm, scaletest.Deployment(2, 2))
	s := start(t, api, nil)
	seen, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meanwhile := func(times int, o scaletest.Object) {
		api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			if times > 0 && r.Method == http.MethodPatch {
				times--
				api.Put(vllm, o)
			}
			return false
		})
	}
	meanwhile(2, scaletest.Deployment(2, 2))
	if changed, err := s.Apply(t.Context(), seen, replay.Fleet{Workers: 3}); err != nil || len(changed) != 1 || api.Replicas(vllm) != 3 {
		t.Errorf("twice: %v, %v", changed, err)
	}
	api.Put(vllm, scaletest.Deployment(2, 2))
	meanwhile(1000, scaletest.Deployment(2, 2))
	if _, err := s.Apply(t.Context(), seen, replay.Fleet{Workers: 3}); err == nil || err.Error() != "cannot scale Deployment vllm: somebody changes it all the time, after 4 tries" {
		t.Errorf("always: %v", err)
	}
	meanwhile(1, scaletest.Deployment(7, 7))
	if _, err := s.Apply(t.Context(), seen, replay.Fleet{Workers: 3}); err == nil || !strings.Contains(err.Error(), "somebody else has set 7 replicas meanwhile") || api.Replicas(vllm) != 7 {
		t.Errorf("another number: %v", err)
	}
	api.Put(vllm, scaletest.Deployment(2, 2))
	meanwhile(1, scaletest.Deployment(2, 1))
	if changed, err := s.Apply(t.Context(), seen, replay.Fleet{Workers: 3}); err != nil || len(changed) != 0 || api.Replicas(vllm) != 2 {
		t.Errorf("a change has begun meanwhile: %v, %v", changed, err)
	}
}

func TestTrouble(t *testing.T) {
	api := scaletest.Start(t)
	api.Put(vllm, scaletest.Deployment(2, 2))
	s := start(t, api, nil)
	seen, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before func(w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		"forbidden to get": {func(w http.ResponseWriter, _ *http.Request) bool {
			scaletest.Refuse(w, 403, "Forbidden", "no, you may not")
			return true
		}, `cannot get Deployment vllm in namespace team: the API server forbids it; a Role there needs {apiGroups: ["apps"], resources: [deployments], verbs: [get]}, and a RoleBinding to us. It says: no, you may not`},
		"forbidden to patch": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			scaletest.Refuse(w, 403, "Forbidden", "no")
			return true
		}, `cannot patch Deployment vllm in namespace team: the API server forbids it; a Role there needs {apiGroups: ["apps"], resources: [deployments/scale], verbs: [patch]}`},
		"unauthorized": {func(w http.ResponseWriter, _ *http.Request) bool {
			scaletest.Refuse(w, 401, "Unauthorized", "Unauthorized")
			return true
		}, "does not know us"},
		"gone": {func(w http.ResponseWriter, _ *http.Request) bool {
			scaletest.Refuse(w, 404, "NotFound", `deployments.apps "vllm" not found`)
			return true
		}, `cannot get Deployment vllm in namespace team: there is none: deployments.apps "vllm" not found`},
		"refused by a webhook": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			scaletest.Refuse(w, 422, "Invalid", "admission webhook denied the request: quota")
			return true
		}, "admission webhook denied the request: quota"},
		"a page of a webhook": {func(w http.ResponseWriter, _ *http.Request) bool {
			scaletest.Refuse(w, 422, "Invalid", strings.Repeat("long ", 1000))
			return true
		}, "long ..."},
		"without end": {func(w http.ResponseWriter, r *http.Request) bool {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					break
				}
			}
			return true
		}, "the reply has more than 4194304 bytes"},
		"truncated": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"metadata":`))
			return true
		}, "cannot get Deployment vllm in namespace team"},
		"half an object": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"metadata":`))
			return true
		}, "cannot read Deployment vllm: unexpected end of JSON input"},
		"no object": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{}`))
			return true
		}, "cannot read Deployment vllm: the answer is no object"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(502)
			_, _ = w.Write([]byte(`<html>`))
			return true
		}, "cannot get Deployment vllm in namespace team"},
		"hangs up": {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "cannot reach the API server at https://127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			api.Before(c.before)
			_, err := s.Apply(t.Context(), seen, replay.Fleet{Workers: 3})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			_, again := s.Apply(t.Context(), seen, replay.Fleet{Workers: 3})
			if again == nil || err == nil || again.Error() != err.Error() {
				t.Errorf("the same is told otherwise, and would be logged anew: %v", again)
			}
		})
	}
	if api.Replicas(vllm) != 2 {
		t.Errorf("%d replicas", api.Replicas(vllm))
	}
	// A slow one is waited for no longer than the caller waits.
	release := make(chan struct{})
	defer close(release)
	arrived := make(chan struct{}, 1)
	api.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := s.Look(ctx); err == nil {
		t.Error("a slow one was no error")
	}
}

func TestLookGraph(t *testing.T) {
	api := scaletest.Start(t)
	s := start(t, api, func(o *Options) { o.Targets = Targets{kvroute.Decode: target(t, "dynamographdeployment/agg/Decode")} })
	api.Put(agg, services(map[string]any{"Frontend": 1, "Worker": 2}))
	if _, err := s.Look(t.Context()); err == nil || err.Error() != "cannot read DynamoGraphDeployment agg, service Decode: it has no service Decode, but Frontend, Worker" {
		t.Error(err)
	}
	o := services(map[string]any{"Decode": 2})
	o["spec"].(scaletest.Object)["services"].(scaletest.Object)["Decode"].(scaletest.Object)["scalingAdapter"] = scaletest.Object{"enabled": true}
	api.Put(agg, o)
	if _, err := s.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "DynamoGraphDeploymentScalingAdapter has the replicas of service Decode") {
		t.Error(err)
	}
}
