// Kind kubernetes: the pods that carry some labels, watched at the API server.

package discovery

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"kvasir/discovery/kubeapi"
	"kvasir/wording"
)

var kubernetesKind = kind{
	name:  "kubernetes",
	keys:  []string{"namespace", "selector", "port", "inference_pool", "kubeconfig", "scheme"},
	label: labelKubernetes,
	check: checkKubernetes,
	run:   runKubernetes,
}

func labelKubernetes(e *Entry) string {
	label := e.Selector
	if e.InferencePool != "" {
		label = "inferencepool/" + e.InferencePool
	}
	if e.Namespace != "" {
		label = e.Namespace + "/" + label
	}
	if e.Port != 0 || e.PortName != "" {
		label += ":" + portOf(e)
	}
	return label
}

// portOf is the port of an entry as it was written.
func portOf(e *Entry) string {
	if e.PortName != "" {
		return e.PortName
	}
	return fmt.Sprint(e.Port)
}

func checkKubernetes(e *Entry) (key, wrong string) {
	switch {
	case e.Selector == "" && e.InferencePool == "":
		return "selector", "is missing; give the labels of the workers' pods, such as app=vllm, or name an inference_pool"
	case e.Selector != "" && e.InferencePool != "":
		return "selector", "is set together with inference_pool, which has a selector of its own"
	case e.InferencePool != "" && (e.Port != 0 || e.PortName != ""):
		return "port", "is set together with inference_pool, which has ports of its own"
	case e.InferencePool != "" && !isKubeName(e.InferencePool, 253):
		return "inference_pool", "is no name of an InferencePool, such as vllm-pool"
	case e.Namespace != "" && !isKubeName(e.Namespace, 63):
		return "namespace", "is no name of a namespace, such as default"
	}
	if e.InferencePool != "" {
		return "", ""
	}
	if s, err := labels.Parse(e.Selector); err != nil {
		return "selector", fmt.Sprintf("is no label selector, such as app=vllm or app in (vllm, sglang): %v", err)
	} else if s.Empty() {
		return "selector", "means every pod; give the labels of the workers' pods, such as app=vllm"
	}
	switch {
	case e.Port == 0 && e.PortName == "":
		return "port", "is missing; give the port of the workers, by number or by name, such as http"
	case e.PortName != "" && !isPortName(e.PortName):
		return "port", fmt.Sprintf("must be a number from 1 to 65535, or the name of a port, such as http, not %s", wording.Quote(e.PortName))
	case e.PortName == "":
		return wrongPort(e)
	}
	return "", ""
}

// wrongPort says what is wrong with a port by number.
func wrongPort(e *Entry) (key, wrong string) {
	if isNoPort(e.Port) {
		return "port", fmt.Sprintf("must be from 1 to 65535, is %d", e.Port)
	}
	return "", ""
}

const kubeLetters = "abcdefghijklmnopqrstuvwxyz"

// isKubeName says whether a name has the form of those in Kubernetes (RFC 1123).
func isKubeName(name string, most int) bool {
	return len(name) <= most && strings.Trim(name, kubeLetters+"0123456789-.") == "" &&
		strings.Trim(name, "-.") == name
}

// isPortName says whether a name has the form of a port's (RFC 6335).
func isPortName(name string) bool {
	return len(name) <= 15 && strings.Trim(name, kubeLetters+"0123456789-") == "" &&
		strings.ContainsAny(name, kubeLetters) && strings.Trim(name, "-") == name
}

func runKubernetes(src *source) {
	e := src.now()
	k := startKube(src.called(), &e)
	defer k.close()
	lookOn(src, k.news, time.Hour, func(bool) time.Duration { // its watches have news before
		e = src.now()
		if r, known := k.look(&e); known {
			return src.tell(r)
		}
		return 0
	})
}

// A kube is what a source of this kind keeps: the watches that run, and what they have.
// One goroutine uses it.
type kube struct {
	api    *kubeapi.API
	news   chan struct{} // holds one: a watch has news
	reader podReader

	pool   *kubeWatch[pool] // nil: the entry has a selector
	pods   *kubeWatch[pod]  // nil: the pool was not seen yet
	slices *kubeWatch[endpointSlice]
	aim    aim // of pods

	trouble error // with watching, as it was told last
}

func startKube(name string, e *Entry) *kube {
	k := &kube{api: kubeapi.New(e.Kubeconfig, e.Namespace, kubeScheme), news: make(chan struct{}, 1), reader: podReader{source: name}}
	if e.InferencePool != "" {
		k.pool = watchKube(k, &kubePools, metav1.ListOptions{FieldSelector: "metadata.name=" + e.InferencePool}, poolOf)
	} else {
		selector, err := labels.Parse(e.Selector)
		if err != nil {
			panic("BUG: a selector that was checked: " + err.Error())
		}
		a := aim{selector: selector, name: e.PortName, outside: isPositive(selector)}
		if e.Port != 0 {
			a.numbers = []int{e.Port}
		}
		k.follow(a)
	}
	k.slices = watchKube(k, &kubeSlices, metav1.ListOptions{}, sliceOf)
	return k
}

// isPositive says whether a selector names a label that must be there. One that only says
// what must not be there would mean the API server's own EndpointSlice, too.
func isPositive(s labels.Selector) bool {
	all, _ := s.Requirements()
	return slices.ContainsFunc(all, func(r labels.Requirement) bool {
		return slices.Contains([]selection.Operator{selection.Equals, selection.DoubleEquals, selection.In, selection.Exists}, r.Operator())
	})
}

func (k *kube) wake() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// close ends all watches and waits for them.
func (k *kube) close() {
	if k.pool != nil {
		k.pool.close()
	}
	if k.pods != nil {
		k.pods.close()
	}
	k.slices.close()
	k.api.Close()
}

// follow watches the pods of an aim, if it has another selector than the one before.
func (k *kube) follow(a aim) {
	before := k.aim.selector
	k.aim = a
	if k.pods != nil && before.String() == a.selector.String() {
		return
	}
	if k.pods != nil {
		k.pods.close()
	}
	k.pods = watchKube(k, &kubePods, metav1.ListOptions{LabelSelector: a.selector.String()}, podOf)
}

// look reads what the watches have. Nothing is known until each of them has listed once,
// or one has failed; what one that failed had before is read with what the others have. What
// was wrong with watching is so until all of them watch again.
func (k *kube) look(e *Entry) (r report, known bool) {
	var poolErr error
	if k.pool != nil {
		pools, listed, err := k.pool.holds()
		if err != nil {
			poolErr = err
		} else if listed {
			poolErr = k.byPool(e, pools)
		}
		if k.pods == nil {
			return report{err: poolErr}, poolErr != nil
		}
	}
	pods, podsListed, podsErr := k.pods.holds()
	inSlices, slicesListed, slicesErr := k.slices.holds()
	err := joined(poolErr, podsErr, slicesErr)
	if err == nil && k.trouble != nil && !(k.pods.isWatching() && k.slices.isWatching() && (k.pool == nil || k.pool.isWatching())) {
		err = k.trouble
	}
	k.trouble = err
	if !podsListed || !slicesListed {
		return report{err: err}, err != nil
	}
	r = k.reader.read(e, &k.aim, &seen{pods, inSlices})
	r.err = err
	return r, true
}

// byPool follows the pool of the entry. What is wrong with it leaves the aim as it was.
func (k *kube) byPool(e *Entry, pools map[string]pool) error {
	p, has := pools[e.InferencePool]
	switch {
	case !has:
		return fmt.Errorf("there is no InferencePool %s in namespace %s", e.InferencePool, k.api.Where())
	case len(p.labels) == 0 || len(p.ports) == 0:
		return fmt.Errorf("InferencePool %s names no labels, or no ports", e.InferencePool)
	}
	for _, n := range p.ports {
		if isNoPort(n) {
			return fmt.Errorf("InferencePool %s names port %d", e.InferencePool, n)
		}
	}
	selector, err := labels.ValidatedSelectorFromSet(maps.Clone(p.labels))
	if err != nil {
		return fmt.Errorf("InferencePool %s has labels that no pod can have: %w", e.InferencePool, err)
	}
	k.follow(aim{selector: selector, numbers: p.ports})
	return nil
}

// joined are several errors, each text once: watches of one API server fail alike.
func joined(errs ...error) error {
	var all []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(all, func(e error) bool { return e.Error() == err.Error() }) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
