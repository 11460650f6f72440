// Tests of what is wanted reaching Kubernetes, at a light API server, with times that are made up.

package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvasir/config"
	"kvasir/kvroute/replay"
	"kvasir/planner"
	"kvasir/planner/scale/scaletest"
	"kvasir/proxy"
)

const (
	vllmPath    = "/apis/apps/v1/namespaces/team/deployments/vllm"
	prefillPath = "/apis/apps/v1/namespaces/team/deployments/p"
	decodePath  = "/apis/apps/v1/namespaces/team/deployments/d"
	leasePath   = "/apis/coordination.k8s.io/v1/namespaces/team/leases/kvasir-planner"
)

// rehearseScaling is planning of a Deployment that has so many workers, all of them ready.
func rehearseScaling(t *testing.T, api *scaletest.Server, mode string, k config.PlannerKubernetes, replicas int) *rehearsal {
	t.Helper()
	k.Kubeconfig = config.Path(api.Kubeconfig)
	if k == (config.PlannerKubernetes{Kubeconfig: k.Kubeconfig}) {
		k.Both = "deployment/vllm"
	}
	r := rehearse(mode, config.Planner{Kubernetes: k})
	r.scaling = newScaling(r.planning.log, &r.config, mode)
	if replicas > 0 {
		api.Put(vllmPath, scaletest.Deployment(replicas, replicas))
		r.there.Fleet = replay.Fleet{Workers: replicas}
	}
	return r
}

func TestScaling(t *testing.T) {
	api := scaletest.Start(t)
	r := rehearseScaling(t, api, "apply", config.PlannerKubernetes{}, 2)
	p := r.minute(40)
	up := api.Replicas(vllmPath)
	if up < 3 || p.Wanted == nil || p.Wanted.Workers != up || p.Applied == nil || *p.Applied != *p.Wanted || !p.Kubernetes.Leads || p.Kubernetes.DryRun || p.Problem != "" {
		t.Fatalf("%d replicas; %+v %+v\n%s", up, p, p.Kubernetes, r.log.String())
	}
	if said := r.log.String(); !strings.Contains(said, fmt.Sprintf(`"target":"Deployment vllm","from":2,"to":%d,"dry_run":false`, up)) {
		t.Error(said)
	}
	// The pods start: nothing is written until they are ready, whatever comes.
	starting := scaletest.Deployment(up, 2)
	api.Put(vllmPath, starting)
	patches := func() (n int) {
		for _, a := range api.Asked() {
			if strings.HasPrefix(a, "PATCH "+vllmPath) {
				n++
			}
		}
		return n
	}
	before := patches()
	for range 3 {
		if p = r.minute(120); !strings.Contains(p.State, "a change is under way") || p.Kubernetes.Targets[0].Changing != fmt.Sprintf("2 of %d replicas are ready", up) {
			t.Errorf("%s; %+v", p.State, p.Kubernetes)
		}
	}
	if patches() != before {
		t.Error("it was scaled while a change was under way")
	}
	api.Put(vllmPath, scaletest.Deployment(up, up))
	r.there.Fleet.Workers = up
	r.minute(120)
	high := api.Replicas(vllmPath)
	if high <= up || high > 20 {
		t.Errorf("from %d to %d", up, high)
	}
	// Down slowly, and never below the least.
	api.Put(vllmPath, scaletest.Deployment(high, high))
	if r.minute(1); api.Replicas(vllmPath) < high {
		t.Errorf("down at once to %d", api.Replicas(vllmPath))
	}
	for range 6 {
		n := api.Replicas(vllmPath)
		api.Put(vllmPath, scaletest.Deployment(n, n))
		r.minute(1)
	}
	if n := api.Replicas(vllmPath); n != 1 {
		t.Errorf("%d replicas are left", n)
	}
	// Somebody else scales it: that is gone on from.
	api.Put(vllmPath, scaletest.Deployment(0, 0))
	r.there.Fleet.Workers = 0
	if r.minute(1); api.Replicas(vllmPath) != 1 {
		t.Errorf("from nothing: %d replicas", api.Replicas(vllmPath))
	}
	// Without a plan of now nothing is written.
	api.Put(vllmPath, scaletest.Deployment(4, 4))
	r.sizes = func(string) proxy.Sizes { panic("BUG: made up") }
	if p := r.minute(1); api.Replicas(vllmPath) != 4 || p.Failures[planner.PlanFailed] != 1 {
		t.Errorf("without a plan: %d replicas; %+v", api.Replicas(vllmPath), p)
	}
}

// Mode advise asks what it would do, once for each answer, and changes nothing.
func TestScalingIsTried(t *testing.T) {
	api := scaletest.Start(t)
	r := rehearseScaling(t, api, "advise", config.PlannerKubernetes{}, 2)
	for range 4 {
		if p := r.minute(40); p.Wanted.Workers < 3 || p.Applied != nil || !p.Kubernetes.DryRun {
			t.Fatalf("%+v", p)
		}
	}
	asked := strings.Join(api.Asked(), "\n")
	if strings.Count(asked, "PATCH "+vllmPath+"/scale?dryRun=All") != 1 || strings.Count(asked, vllmPath+"/scale") != 1 || api.Replicas(vllmPath) != 2 {
		t.Errorf("%d replicas after\n%s", api.Replicas(vllmPath), asked)
	}
	if n := strings.Count(r.log.String(), "another number of workers is wanted"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// What is refused is told once with what to do, and tried again.
func TestScalingIsForbidden(t *testing.T) {
	api := scaletest.Start(t)
	r := rehearseScaling(t, api, "apply", config.PlannerKubernetes{}, 2)
	api.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, "/scale") {
			return false
		}
		scaletest.Refuse(w, 403, "Forbidden", "you may not")
		return true
	})
	for i := range 3 {
		if p := r.minute(40); !strings.Contains(p.Problem, "resources: [deployments/scale], verbs: [patch]") || p.Failures[planner.KubernetesFailed] != uint64(i+1) {
			t.Errorf("%+v", p)
		}
	}
	if said := r.log.String(); strings.Count(said, "cannot scale in Kubernetes") != 1 {
		t.Error(said)
	}
	api.Before(nil)
	if p := r.minute(40); p.Problem != "" || api.Replicas(vllmPath) < 3 {
		t.Errorf("%+v", p)
	}
	// The whole API server is away, and comes back.
	api.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		scaletest.Refuse(w, 503, "ServiceUnavailable", "away")
		return true
	})
	n := api.Replicas(vllmPath)
	for range 3 {
		if p := r.minute(40); p.Problem == "" || p.Wanted == nil || p.Wanted.Workers < n {
			t.Errorf("%+v", p)
		}
	}
	api.Before(nil)
	r.minute(40)
	if said := r.log.String(); strings.Count(said, "cannot scale in Kubernetes") != 3 || strings.Count(said, "reaches what it scales again") != 1 {
		t.Error(said)
	}
}

// A change that never ends is not waited for without end.
func TestScalingIsStuck(t *testing.T) {
	api := scaletest.Start(t)
	r := rehearseScaling(t, api, "apply", config.PlannerKubernetes{}, 0)
	api.Put(vllmPath, scaletest.Deployment(6, 1)) // no GPU for the others
	r.there.Fleet = replay.Fleet{Workers: 1}
	for range 11 {
		if r.minute(1); api.Replicas(vllmPath) != 6 {
			t.Fatalf("%d replicas", api.Replicas(vllmPath))
		}
	}
	for range 2 {
		r.minute(1)
	}
	if n := api.Replicas(vllmPath); n != 1 || !r.shown.Kubernetes.Stuck || strings.Count(r.log.String(), "see why its pods do not become ready") != 1 {
		t.Errorf("%d replicas; %+v\n%s", n, r.shown.Kubernetes, r.log.String())
	}
}

// A change that gets on is waited for, however long it takes; replicas that come and go are no progress.
func TestScalingIsSlow(t *testing.T) {
	api := scaletest.Start(t)
	r := rehearseScaling(t, api, "apply", config.PlannerKubernetes{}, 0)
	r.there.Fleet = replay.Fleet{Workers: 6}
	for updated := range 6 { // a rolling update, of models that take 8 minutes to load
		o := scaletest.Deployment(6, 6-updated%2)
		o["status"].(scaletest.Object)["updatedReplicas"] = updated
		api.Put(vllmPath, o)
		for range 8 {
			if r.minute(1); api.Replicas(vllmPath) != 6 {
				t.Fatalf("%d replicas while %d of 6 are updated", api.Replicas(vllmPath), updated)
			}
		}
	}
	for i := range 12 { // one crashes again and again
		api.Put(vllmPath, scaletest.Deployment(6, 5-i%2))
		r.minute(1)
		if api.Replicas(vllmPath) == 1 {
			return
		}
	}
	t.Errorf("%d replicas: one that crashes is waited for without end", api.Replicas(vllmPath))
}

// What takes longer than the lease is good for is not begun, and what was begun ends with it.
func TestScalingWithoutTime(t *testing.T) {
	api := scaletest.Start(t)
	r := rehearseScaling(t, api, "apply", config.PlannerKubernetes{Prefill: "deployment/p", Decode: "deployment/d"}, 0)
	api.Put(prefillPath, scaletest.Deployment(1, 1))
	api.Put(decodePath, scaletest.Deployment(1, 1))
	r.minute(1)
	api.Before(func(_ http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodPatch || !strings.HasPrefix(q.URL.Path, prefillPath) {
			return false
		}
		_, _ = io.Copy(io.Discard, q.Body) // after which the server sees that the client has gone
		<-q.Context().Done()
		return true
	})
	almost := r.now.Add(r.scaling.scaler.Left(r.now) - time.Millisecond)
	r.scaling.apply(t.Context(), almost, replay.Fleet{Prefill: 2, Decode: 2}, r.shown)
	if api.Replicas(decodePath) != 1 || !strings.Contains(r.shown.Problem, "no answer in time") {
		t.Errorf("%d: %s", api.Replicas(decodePath), r.shown.Problem)
	}
	api.Before(nil)

	c := config.Planner{Kubernetes: config.PlannerKubernetes{Lease: "kvasir-planner", Kubeconfig: config.Path(api.Kubeconfig)}, Command: []string{"false"}, CommandTimeout: 2 * time.Minute}
	command := rehearse("apply", c)
	command.scaling = newScaling(command.planning.log, &command.config, "apply")
	command.there.Fleet = replay.Fleet{Workers: 2}
	api.Delete(leasePath)
	command.minute(60)
	ran := command.shown.Failures[planner.CommandFailed]
	if ran == 0 {
		t.Fatalf("the command was not run: %+v", command.shown)
	}
	api.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		scaletest.Refuse(w, 503, "ServiceUnavailable", "away")
		return true
	})
	for command.scaling.scaler.Left(command.now) > 2*time.Minute {
		command.minute(60)
		ran = command.shown.Failures[planner.CommandFailed]
	}
	if !command.scaling.scaler.Leads(command.now) {
		t.Fatal("there is no time left at all")
	}
	command.minute(60)
	if command.shown.Failures[planner.CommandFailed] != ran {
		t.Error("a command was begun that may go on when another one runs it")
	}
}

// Of two Kvasirs one scales, for what comes to both, and the other one takes over where it left off.
func TestScalingOfSeveral(t *testing.T) {
	api := scaletest.Start(t)
	a := rehearseScaling(t, api, "apply", config.PlannerKubernetes{}, 2)
	b := rehearseScaling(t, api, "apply", config.PlannerKubernetes{}, 0)
	b.there = a.there
	minute := func() {
		a.minute(20)
		b.minute(20)
		n := api.Replicas(vllmPath)
		api.Put(vllmPath, scaletest.Deployment(n, n))
		a.there.Fleet.Workers, b.there.Fleet.Workers = n, n
	}
	for range 6 {
		minute()
	}
	together := api.Replicas(vllmPath)
	if a, b := a.shown, b.shown; !a.Kubernetes.Leads || b.Kubernetes.Leads || b.Kubernetes.Leader != a.Kubernetes.Leader || a.Kubernetes.Others < 15 || a.Kubernetes.Replicas != 2 {
		t.Fatalf("%+v, %+v", a.Kubernetes, b.Kubernetes)
	}
	alone := rehearseScaling(t, scaletest.Start(t), "advise", config.PlannerKubernetes{}, 0)
	alone.there.Fleet.Workers = 2
	var want int
	for range 6 {
		want = alone.minute(40).Wanted.Workers
	}
	if together < want-1 || together > want+1 {
		t.Errorf("%d workers for two that see half each, %d for one that sees all", together, want)
	}
	if strings.Contains(b.log.String(), "are scaled") {
		t.Error("both scale")
	}
	a.scaling.close(a.now)
	b.now = b.now.Add(time.Minute)
	b.step(t.Context(), b.now)
	if !b.shown.Kubernetes.Leads || b.shown.Kubernetes.Others != 0 {
		t.Errorf("%+v", b.shown.Kubernetes)
	}
	b.scaling.close(b.now)
	if spec := api.Get(leasePath)["spec"].(scaletest.Object); spec["holderIdentity"] != nil {
		t.Errorf("the lease is left as %v", spec)
	}
}

// Roles apart: each has its target, where there are no workers yet as well.
func TestScalingApart(t *testing.T) {
	api := scaletest.Start(t)
	r := rehearseScaling(t, api, "apply", config.PlannerKubernetes{Prefill: "deployment/p", Decode: "deployment/d"}, 0)
	api.Put(prefillPath, scaletest.Deployment(0, 0))
	api.Put(decodePath, scaletest.Deployment(1, 1))
	if p := r.minute(1); !p.Apart || api.Replicas(prefillPath) != 1 || api.Replicas(decodePath) != 1 {
		t.Fatalf("%d+%d: %+v", api.Replicas(prefillPath), api.Replicas(decodePath), p)
	}
	api.Put(prefillPath, scaletest.Deployment(1, 1))
	r.there.Fleet = replay.Fleet{Prefill: 1, Decode: 1}
	r.minute(60)
	if p, d := api.Replicas(prefillPath), api.Replicas(decodePath); p < 2 || d < 1 || r.shown.Wanted.Prefill != p || r.shown.Wanted.Decode != d {
		t.Errorf("%d+%d: %+v", p, d, r.shown)
	}
}
