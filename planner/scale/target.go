// Targets: what has the replicas of one role, how it is named, and what of it says that a change is under way.

package scale

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Target is an object that has replicas, each of them a worker.
type Target struct {
	kind    *kind
	name    string
	service string // of a DynamoGraphDeployment
}

// A kind is one kind of object that can be a target.
type kind struct {
	name     string // in the configuration
	spoken   string // in messages
	group    schema.GroupVersion
	plural   string
	resource string // that is patched, as a Role names it
	part     string // of the object that is patched; "": all of it
	services bool   // it has several numbers of replicas, by name
	read     func(t *Target, body []byte) (State, error)
	patch    func(t *Target, version string, replicas int) any
}

var (
	apps   = schema.GroupVersion{Group: "apps", Version: "v1"}
	dynamo = schema.GroupVersion{Group: "nvidia.com", Version: "v1alpha1"}
	kinds  = [...]kind{
		{name: "deployment", spoken: "Deployment", group: apps, plural: "deployments", resource: "deployments/scale", part: "scale", read: readWorkload, patch: patchScale},
		{name: "statefulset", spoken: "StatefulSet", group: apps, plural: "statefulsets", resource: "statefulsets/scale", part: "scale", read: readWorkload, patch: patchScale},
		{name: "dynamographdeployment", spoken: "DynamoGraphDeployment", group: dynamo, plural: "dynamographdeployments", resource: "dynamographdeployments", services: true, read: readGraph, patch: patchGraph},
	}
)

// Parse reads a target: deployment/NAME, statefulset/NAME or dynamographdeployment/NAME/SERVICE.
func Parse(text string) (Target, error) {
	parts := strings.Split(text, "/")
	for i := range kinds {
		k := &kinds[i]
		if parts[0] != k.name {
			continue
		}
		t := Target{kind: k}
		switch {
		case !k.services && len(parts) == 2:
			t.name = parts[1]
		case k.services && len(parts) == 3:
			t.name, t.service = parts[1], parts[2]
		case k.services:
			return Target{}, fmt.Errorf("is no target: a %s has several numbers of replicas; write %s/NAME/SERVICE", k.spoken, k.name)
		default:
			return Target{}, fmt.Errorf("is no target: write %s/NAME", k.name)
		}
		if !IsName(t.name) {
			return Target{}, fmt.Errorf("is no target: %q is no name of a %s", t.name, k.spoken)
		}
		if k.services && (t.service == "" || len(t.service) > 63 || strings.Trim(strings.ToLower(t.service), letters+"-_.") != "") {
			return Target{}, fmt.Errorf("is no target: %q is no name of a service of a %s", t.service, k.spoken)
		}
		return t, nil
	}
	return Target{}, fmt.Errorf("is no target: write deployment/NAME, statefulset/NAME or dynamographdeployment/NAME/SERVICE")
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// IsName says whether a name has the form of those in Kubernetes (RFC 1123); such a one cannot leave its place in a path.
func IsName(name string) bool {
	return len(name) <= 253 && name != "" && strings.Trim(name, letters+"-.") == "" && strings.Trim(name, "-.") == name
}

// String is the target as people say it.
func (t Target) String() string {
	s := t.kind.spoken + " " + t.name
	if t.service != "" {
		s += ", service " + t.service
	}
	return s
}

// isPartOf says whether both are of one object.
func (t Target) isPartOf(other Target) bool { return t.kind == other.kind && t.name == other.name }

// A State is what a target has.
type State struct {
	Replicas int    `json:"replicas"` // that it is to have
	Ready    int    `json:"ready"`
	Changing string `json:"changing,omitempty"` // what is under way; "": nothing
	updated  int
	version  string
}

// object is what all kinds have in common.
type object struct {
	Metadata struct {
		ResourceVersion string
		Generation      int64
	}
}

// counts are how many replicas there are of something, as its controller says.
type counts struct {
	Replicas, UpdatedReplicas        int
	ReadyReplicas, AvailableReplicas *int
}

// ready are those that are. Of a service with several nodes by Grove (a PodCliqueScalingGroup) Dynamo's operator says only
// how many are available; of others readyReplicas, which is left out where it is 0.
func (c *counts) ready() int {
	for _, n := range []*int{c.ReadyReplicas, c.AvailableReplicas} {
		if n != nil {
			return *n
		}
	}
	return 0
}

// workload is a Deployment or a StatefulSet, as far as it is read.
type workload struct {
	object
	Spec struct {
		Replicas       *int
		UpdateStrategy struct{ Type string } // of a StatefulSet
	}
	Status struct {
		counts
		ObservedGeneration int64
		Conditions         []struct{ Type, Status, Reason string }
	}
}

func readWorkload(_ *Target, body []byte) (State, error) {
	var w workload
	if err := json.Unmarshal(body, &w); err != nil {
		return State{}, err
	}
	s := w.object.state(w.Spec.Replicas, &w.Status.counts, w.Status.ObservedGeneration, w.Spec.UpdateStrategy.Type == "")
	for _, c := range w.Status.Conditions {
		if c.Type == "Progressing" && c.Status == "False" && s.Changing != "" && w.Status.ObservedGeneration >= w.Metadata.Generation {
			s.Changing = "" // its controller has given up, so nothing is under way that could be waited for
		}
	}
	return s, nil
}

// state says what is under way of an object with so many replicas. updates: those that have another template than it
// now are under way as well; with a StatefulSet that may be for good.
func (o *object) state(replicas *int, has *counts, observed int64, updates bool) State {
	s := State{Replicas: 1, Ready: has.ready(), updated: has.UpdatedReplicas, version: o.Metadata.ResourceVersion}
	if replicas != nil {
		s.Replicas = *replicas
	}
	switch {
	case observed < o.Metadata.Generation:
		s.Changing = "its controller has not seen the last change"
	case has.Replicas != s.Replicas:
		s.Changing = fmt.Sprintf("%d of %d replicas are there", has.Replicas, s.Replicas)
	case updates && has.UpdatedReplicas < s.Replicas:
		s.Changing = fmt.Sprintf("%d of %d replicas are updated", has.UpdatedReplicas, s.Replicas)
	case s.Ready < s.Replicas:
		s.Changing = fmt.Sprintf("%d of %d replicas are ready", s.Ready, s.Replicas)
	}
	return s
}

func patchScale(_ *Target, version string, replicas int) any {
	return map[string]any{"metadata": map[string]string{"resourceVersion": version}, "spec": map[string]int{"replicas": replicas}}
}

// graph is a DynamoGraphDeployment, as far as it is read.
type graph struct {
	object
	Spec struct {
		Services map[string]*struct {
			Replicas       *int
			ScalingAdapter *struct{ Enabled *bool }
		}
	}
	Status struct {
		ObservedGeneration int64
		State              string
		Services           map[string]counts
		RollingUpdate      struct{ Phase string }
	}
}

func readGraph(t *Target, body []byte) (State, error) {
	var g graph
	if err := json.Unmarshal(body, &g); err != nil {
		return State{}, err
	}
	service := g.Spec.Services[t.service]
	if service == nil {
		return State{}, fmt.Errorf("it has no service %s, but %s", t.service, strings.Join(slices.Sorted(maps.Keys(g.Spec.Services)), ", "))
	}
	if a := service.ScalingAdapter; a != nil && a.Enabled != nil && *a.Enabled {
		return State{}, fmt.Errorf("a DynamoGraphDeploymentScalingAdapter has the replicas of service %s; take scalingAdapter.enabled away", t.service)
	}
	has, said := g.Status.Services[t.service]
	observed := g.Status.ObservedGeneration
	if observed == 0 && said {
		observed = g.Metadata.Generation // operators before 1.0 do not say it
	}
	s := g.object.state(service.Replicas, &has, observed, true)
	if s.Changing == "" && (g.Status.RollingUpdate.Phase == "Pending" || g.Status.RollingUpdate.Phase == "InProgress") {
		s.Changing = "a rolling update is under way"
	}
	return s, nil
}

func patchGraph(t *Target, version string, replicas int) any {
	return map[string]any{
		"metadata": map[string]string{"resourceVersion": version},
		"spec":     map[string]any{"services": map[string]any{t.service: map[string]int{"replicas": replicas}}},
	}
}
