// Pods and EndpointSlices as workers: which of them are, and what their annotations and labels say.

package discovery

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kvasir/upstream"
	"kvasir/wording"
)

// ownAnnotation is before the name of each annotation that is read.
const ownAnnotation = "kvasir.dev/"

// A podObject is a Pod of core/v1 as far as it is read: the whole type costs ten times
// the memory, and some MB of the program.
type podObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Containers     []podContainer `json:"containers"`
		InitContainers []podContainer `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		PodIP      string `json:"podIP"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

type podContainer struct {
	RestartPolicy string `json:"restartPolicy"` // of an init container: Always makes it a sidecar
	Ports         []struct {
		Name          string `json:"name"`
		ContainerPort int    `json:"containerPort"`
		Protocol      string `json:"protocol"`
	} `json:"ports"`
}

// A sliceObject is an EndpointSlice of discovery.k8s.io/v1 as far as it is read.
type sliceObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	AddressType string `json:"addressType"`
	Ports       []struct {
		Name     *string `json:"name"`
		Port     *int    `json:"port"`
		Protocol *string `json:"protocol"`
	} `json:"ports"`
	Endpoints []struct {
		Addresses  []string `json:"addresses"`
		Hostname   *string  `json:"hostname"`
		Conditions struct {
			Ready       *bool `json:"ready"`
			Terminating *bool `json:"terminating"`
		} `json:"conditions"`
		TargetRef *struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"targetRef"`
	} `json:"endpoints"`
}

// A poolObject is an InferencePool of inference.networking.k8s.io/v1 as far as it is read.
type poolObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		TargetPorts []struct {
			Number int `json:"number"`
		} `json:"targetPorts"`
	} `json:"spec"`
}

// What a list of each says.
type podObjects struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []podObject `json:"items"`
}

type sliceObjects struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []sliceObject `json:"items"`
}

type poolObjects struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []poolObject `json:"items"`
}

// DeepCopyObject is asked for by the library's interface. What was decoded is never
// changed, so that what lies below may be shared.
func (o *podObject) DeepCopyObject() runtime.Object    { c := *o; return &c }
func (o *podObjects) DeepCopyObject() runtime.Object   { c := *o; return &c }
func (o *sliceObject) DeepCopyObject() runtime.Object  { c := *o; return &c }
func (o *sliceObjects) DeepCopyObject() runtime.Object { c := *o; return &c }
func (o *poolObject) DeepCopyObject() runtime.Object   { c := *o; return &c }
func (o *poolObjects) DeepCopyObject() runtime.Object  { c := *o; return &c }

// A pod is what is kept of one.
type pod struct {
	name, uid, ip string
	ready         bool
	leaving       bool              // it was told to end
	ports         map[string]int    // by name, of TCP
	says          map[string]string // its annotations under kvasir.dev/
	labels        map[string]string // those of usualLabels
}

func podOf(o *podObject) pod {
	p := pod{name: o.Name, uid: string(o.UID), ip: o.Status.PodIP, leaving: o.DeletionTimestamp != nil}
	for _, c := range o.Status.Conditions {
		p.ready = p.ready || c.Type == "Ready" && c.Status == "True"
	}
	add := func(c *podContainer) {
		for _, port := range c.Ports {
			if _, taken := p.ports[port.Name]; port.Name == "" || taken || port.Protocol != "" && port.Protocol != "TCP" {
				continue
			}
			if p.ports == nil {
				p.ports = map[string]int{}
			}
			p.ports[port.Name] = port.ContainerPort
		}
	}
	for i := range o.Spec.Containers {
		add(&o.Spec.Containers[i])
	}
	for i := range o.Spec.InitContainers {
		if c := &o.Spec.InitContainers[i]; c.RestartPolicy == "Always" {
			add(c)
		}
	}
	for name, value := range o.Annotations {
		if key, own := strings.CutPrefix(name, ownAnnotation); own {
			if p.says == nil {
				p.says = map[string]string{}
			}
			p.says[key] = value
		}
	}
	for i := range usualLabels {
		if value, has := o.Labels[usualLabels[i].label]; has {
			if p.labels == nil {
				p.labels = map[string]string{}
			}
			p.labels[usualLabels[i].label] = value
		}
	}
	return p
}

// An endpointSlice is what is kept of one.
type endpointSlice struct {
	name      string
	labels    labels.Set
	ports     map[string]int // by name, of TCP; "": it has none
	endpoints []endpoint
}

type endpoint struct {
	address  string
	ready    bool // and not terminating
	hostname string
	pod, uid string // behind it; "": none
}

func sliceOf(o *sliceObject) endpointSlice {
	s := endpointSlice{name: o.Name, labels: o.Labels, ports: map[string]int{}, endpoints: make([]endpoint, 0, len(o.Endpoints))}
	for _, p := range o.Ports {
		if p.Port != nil && (p.Protocol == nil || *p.Protocol == "TCP") {
			s.ports[deref(p.Name)] = *p.Port
		}
	}
	for _, e := range o.Endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		next := endpoint{
			address: e.Addresses[0], hostname: deref(e.Hostname),
			ready: (e.Conditions.Ready == nil || *e.Conditions.Ready) && !deref(e.Conditions.Terminating),
		}
		if e.TargetRef != nil {
			if e.TargetRef.Kind != "Pod" {
				continue
			}
			next.pod, next.uid = e.TargetRef.Name, e.TargetRef.UID
		}
		s.endpoints = append(s.endpoints, next)
	}
	return s
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// A pool is what an InferencePool says: which pods, and their ports.
type pool struct {
	labels map[string]string
	ports  []int
}

func poolOf(o *poolObject) pool {
	p := pool{labels: o.Spec.Selector.MatchLabels}
	for _, t := range o.Spec.TargetPorts {
		p.ports = append(p.ports, t.Number)
	}
	return p
}

// usualLabels are what others' pods say of themselves, for their own routers: those of
// Dynamo's operator, llm-d and AIBrix. A value that is not there says nothing.
var usualLabels = [...]struct {
	label string
	role  map[string]string
	is    map[string]string // engine
}{
	{label: "nvidia.com/dynamo-sub-component-type", role: ownRoles},
	{label: "nvidia.com/dynamo-component-type", role: ownRoles, is: map[string]string{"frontend": "dynamo"}},
	{label: "llm-d.ai/role", role: map[string]string{"prefill": "prefill", "decode": "decode", "prefill-decode": "both", "both": "both"}},
	{label: "llm-d.ai/engine-type", is: engineTypes},
	{label: "inference.networking.k8s.io/engine-type", is: engineTypes},
	{label: "role-name", role: ownRoles}, // AIBrix
}

var (
	ownRoles    = map[string]string{"prefill": "prefill", "decode": "decode"}
	engineTypes = map[string]string{"vllm": "vllm", "sglang": "sglang", "trtllm-serve": "trtllm"}
)

// An annotation is one that a pod may have, kvasir.dev/ before its name, as the key of
// workers[] that it is named after.
type annotation struct {
	name string
	set  func(s *upstream.Settings, p *pod, value string) error
}

var annotations = []annotation{
	{"role", func(s *upstream.Settings, _ *pod, value string) error {
		s.Role = value
		return oneOf(value, []string{"both", "prefill", "decode"})
	}},
	{"engine", func(s *upstream.Settings, _ *pod, value string) error {
		s.Engine = value
		return oneOf(value, upstream.EngineNames())
	}},
	{"models", func(s *upstream.Settings, _ *pod, value string) error {
		s.Models = listed(value)
		for _, name := range s.Models {
			if err := upstream.CheckModel(name); err != nil {
				return err
			}
		}
		return nil
	}},
	{"max-requests", func(s *upstream.Settings, _ *pod, value string) (err error) {
		if s.MaxRequests, err = strconv.Atoi(value); err != nil || s.MaxRequests < 0 || s.MaxRequests > 1000000 {
			return fmt.Errorf("must be a number from 0, no limit, to 1000000, not %s", wording.Quote(value))
		}
		return nil
	}},
	{"gpus", func(s *upstream.Settings, _ *pod, value string) error {
		s.GPUs = listed(value)
		for _, name := range s.GPUs {
			if err := upstream.CheckGPU(name); err != nil {
				return err
			}
		}
		return nil
	}},
	{"kv-events-port", func(s *upstream.Settings, p *pod, value string) (err error) {
		s.KVEvents, err = p.zmq(value)
		return err
	}},
	{"kv-replay-port", func(s *upstream.Settings, p *pod, value string) (err error) {
		s.KVReplay, err = p.zmq(value)
		return err
	}},
}

func annotationNames() (names []string) {
	for _, a := range annotations {
		names = append(names, ownAnnotation+a.name)
	}
	return names
}

func oneOf(value string, names []string) error {
	if slices.Contains(names, value) {
		return nil
	}
	return fmt.Errorf("must be %s, not %s%s", wording.List(names, "or"), wording.Quote(value), wording.DidYouMean(value, names))
}

func listed(value string) (all []string) {
	for one := range strings.SplitSeq(value, ",") {
		all = append(all, strings.TrimSpace(one))
	}
	return all
}

// zmq is the address of a port of the pod, by its number or name.
func (p *pod) zmq(value string) (string, error) {
	n, err := strconv.Atoi(value)
	if err != nil {
		n = p.ports[value]
	}
	if isNoPort(n) {
		return "", fmt.Errorf("must be a port from 1 to 65535, or the name of one of its containers' ports, not %s", wording.Quote(value))
	}
	return "tcp://" + hostPort(urlOf("http", p.ip, n)), nil
}

func isNoPort(n int) bool { return n < 1 || n > 65535 }

// isHost says whether an address of an EndpointSlice is one: it may be a name, too.
func isHost(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.Zone() == "" || err != nil && address != "" && isKubeName(address, 253)
}

// An aim is which pods a source means, and at which ports they serve.
type aim struct {
	selector labels.Selector
	numbers  []int  // of ports
	name     string // of a port, where there are no numbers
	outside  bool   // endpoints without a pod are meant, too
}

// seen is what is known of a namespace at one time.
type seen struct {
	pods   map[string]pod // by name
	slices map[string]endpointSlice
}

// podReader reads what is seen as workers. It remembers how each pod was last good.
type podReader struct {
	source string // its name
	good   map[string]goodPod
}

type goodPod struct {
	uid     string
	workers []Worker
}

// read says who the workers are. Errors of it name the pods that are missing, or that are
// told as they were when they were last good.
func (r *podReader) read(e *Entry, a *aim, s *seen) (found report) {
	byServices := s.services()
	good := map[string]goodPod{}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[name]
		from := r.source + " pod " + name
		switch said := byServices[name]; {
		case p.leaving:
			if found.leaving == nil {
				found.leaving = map[string]bool{}
			}
			found.leaving[from] = true
			continue
		case !p.ready, p.ip == "", said.listed && !said.ready:
			continue
		}
		workers, err := p.workers(e, a, s, from)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("pod %s: %w", name, err))
			if before, was := r.good[name]; was && before.uid == p.uid {
				workers = before.workers
			} else {
				continue
			}
		}
		good[name] = goodPod{p.uid, workers}
		found.workers = append(found.workers, workers...)
	}
	if a.outside {
		outside, err := s.outside(e, a, r.source)
		found.workers = append(found.workers, outside...)
		wrong = append(wrong, err...)
	}
	r.good = good
	found.bad = errors.Join(wrong...)
	return found
}

// listing is what Services say of a pod.
type listing struct{ listed, ready bool }

// services are what the Services of the namespace say of its pods: several may list one
// pod, and one that has it ready is enough. A pod that had the name before is another.
func (s *seen) services() map[string]listing {
	all := map[string]listing{}
	for _, slice := range s.slices {
		for _, e := range slice.endpoints {
			if p, known := s.pods[e.pod]; known && e.isOf(&p) {
				all[e.pod] = listing{listed: true, ready: all[e.pod].ready || e.ready}
			}
		}
	}
	return all
}

// isOf says whether it is an endpoint of this pod.
func (e *endpoint) isOf(p *pod) bool { return e.pod == p.name && (e.uid == "" || e.uid == p.uid) }

// workers are those of one pod: one for each port.
func (p *pod) workers(e *Entry, a *aim, s *seen, from string) ([]Worker, error) {
	numbers := a.numbers
	if len(numbers) == 0 {
		n, has := p.ports[a.name]
		if !has {
			n, has = s.servicePort(p, a.name)
		}
		if !has {
			return nil, fmt.Errorf("neither its containers nor a Service of it have a TCP port %s", wording.Quote(a.name))
		}
		numbers = []int{n}
	}
	if _, err := netip.ParseAddr(p.ip); err != nil || slices.ContainsFunc(numbers, isNoPort) {
		return nil, fmt.Errorf("cannot be reached at %s, port %v", wording.Quote(p.ip), numbers)
	}
	told := e.Worker
	p.byLabels(&told)
	if err := p.byAnnotations(&told); err != nil {
		return nil, err
	}
	workers := make([]Worker, 0, len(numbers))
	for _, n := range numbers {
		w := told
		w.URL, w.Name = urlOf(e.Scheme, p.ip, n), p.name
		if len(numbers) > 1 {
			w.Name = fmt.Sprintf("%s:%d", p.name, n)
		}
		workers = append(workers, Worker{Settings: w, From: from})
	}
	return workers, nil
}

// servicePort is the port of a pod that a Service has under a name.
func (s *seen) servicePort(p *pod, name string) (port int, has bool) {
	for _, key := range slices.Sorted(maps.Keys(s.slices)) {
		slice := s.slices[key]
		port, has = slice.ports[name]
		if has && slices.ContainsFunc(slice.endpoints, func(e endpoint) bool { return e.isOf(p) }) {
			return port, true
		}
	}
	return 0, false
}

func (p *pod) byLabels(s *upstream.Settings) {
	role, engine := "", ""
	for i := range usualLabels {
		l := &usualLabels[i]
		value := p.labels[l.label]
		if role == "" {
			role = l.role[value]
		}
		if engine == "" {
			engine = l.is[value]
		}
	}
	if role != "" {
		s.Role = role
	}
	if engine != "" {
		s.Engine = engine
	}
}

func (p *pod) byAnnotations(s *upstream.Settings) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(p.says)) {
		i := slices.IndexFunc(annotations, func(a annotation) bool { return a.name == name })
		if i < 0 {
			wrong = append(wrong, fmt.Errorf("annotation %s is unknown%s", wording.Quote(ownAnnotation+name), wording.DidYouMean(ownAnnotation+name, annotationNames())))
			continue
		}
		if err := annotations[i].set(s, p, p.says[name]); err != nil {
			wrong = append(wrong, fmt.Errorf("annotation %s%s: %w", ownAnnotation, name, err))
		}
	}
	switch {
	case len(wrong) > 0:
	case s.KVReplay != "" && s.KVEvents == "":
		wrong = append(wrong, fmt.Errorf("annotation %skv-replay-port repeats what kv-events-port missed; set that, too", ownAnnotation))
	case s.KVReplay != "" && s.KVReplay == s.KVEvents:
		wrong = append(wrong, fmt.Errorf("annotation %skv-replay-port is kv-events-port, too; engines use one more port for it", ownAnnotation))
	}
	return errors.Join(wrong...)
}

// outside are the endpoints without a pod, of slices that carry the labels themselves:
// workers that somebody wrote down, which run outside of the cluster. Of one that is
// listed with addresses of both families the first is taken.
func (s *seen) outside(e *Entry, a *aim, from string) (workers []Worker, wrong []error) {
	known := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(s.slices)) {
		slice := s.slices[key]
		if !a.selector.Matches(slice.labels) {
			continue
		}
		numbers := a.numbers
		if n, has := slice.ports[a.name]; len(numbers) == 0 && has {
			numbers = []int{n}
		}
		for _, at := range slice.endpoints {
			id := at.address
			if at.hostname != "" {
				id = slice.labels["kubernetes.io/service-name"] + "/" + at.hostname
			}
			if at.pod != "" || !at.ready || known[id] {
				continue
			}
			if len(numbers) == 0 {
				wrong = append(wrong, fmt.Errorf("EndpointSlice %s: it has no TCP port %s", slice.name, wording.Quote(a.name)))
				break
			}
			if !isHost(at.address) || slices.ContainsFunc(numbers, isNoPort) {
				wrong = append(wrong, fmt.Errorf("EndpointSlice %s: %s, port %v cannot be reached", slice.name, wording.Quote(at.address), numbers))
				continue
			}
			known[id] = true
			for _, n := range numbers {
				w := e.Worker
				w.URL = urlOf(e.Scheme, at.address, n)
				w.Name = hostPort(w.URL)
				workers = append(workers, Worker{Settings: w, From: from + " EndpointSlice " + slice.name})
			}
		}
	}
	return workers, wrong
}
