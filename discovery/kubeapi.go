// Watches at the API server of Kubernetes, and what its errors say.

package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kvasir/discovery/kubeapi"
)

const kubeTimeout = 30 * time.Second // of one list

// kubeBackoff is between two tries: an API server that is away is asked every five to eight
// seconds by each watch of each replica.
var kubeBackoff = wait.Backoff{Duration: 400 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 5 * time.Second}

// A kubeResource is one kind of object that is watched.
type kubeResource struct {
	schema.GroupVersion
	plural, kind string
	object, list runtime.Object
}

var (
	kubePods   = kubeResource{schema.GroupVersion{Version: "v1"}, "pods", "Pod", &podObject{}, &podObjects{}}
	kubeSlices = kubeResource{schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1"}, "endpointslices", "EndpointSlice", &sliceObject{}, &sliceObjects{}}
	kubePools  = kubeResource{schema.GroupVersion{Group: "inference.networking.k8s.io", Version: "v1"}, "inferencepools", "InferencePool", &poolObject{}, &poolObjects{}}
)

// kubeScheme is made when the first source of this kind starts.
var kubeScheme = sync.OnceValue(func() *runtime.Scheme {
	s := kubeapi.NewScheme()
	for _, r := range []*kubeResource{&kubePods, &kubeSlices, &kubePools} {
		s.AddKnownTypeWithName(r.WithKind(r.kind), r.object)
		s.AddKnownTypeWithName(r.WithKind(r.kind+"List"), r.list)
		metav1.AddToGroupVersion(s, r.GroupVersion)
	}
	return s
})

// A kubeWatch keeps what the API server has of one resource, in short. The library lists
// and watches, lists again after a gap, and waits between tries; it calls Add and the
// like from its goroutine.
type kubeWatch[T any] struct {
	of     *kubeResource
	narrow metav1.ListOptions // its selectors
	short  func(object any) (T, error)
	api    *kubeapi.API
	wake   func()
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex // guards all below
	has     map[string]T
	listed  bool
	watches bool  // changes come in now
	err     error // of the last try; nil: it is being watched, or was until now
}

// watchKube starts a watch, which k is told the news of.
func watchKube[O, T any](k *kube, of *kubeResource, narrow metav1.ListOptions, short func(*O) T) *kubeWatch[T] {
	ctx, cancel := context.WithCancel(context.Background())
	w := &kubeWatch[T]{
		of: of, narrow: narrow, api: k.api, wake: k.wake, cancel: cancel, ended: make(chan struct{}),
		short: func(object any) (t T, err error) {
			o, ok := object.(*O)
			if !ok {
				return t, fmt.Errorf("it is a %T", object)
			}
			return short(o), nil
		},
	}
	go w.run(ctx)
	return w
}

// plainLists has the library list and then watch. A watch that begins with a list needs a
// server that has it, and tells its errors otherwise.
type plainLists struct{}

func (plainLists) IsWatchListSemanticsUnSupported() bool { return true }

func (w *kubeWatch[T]) run(ctx context.Context) {
	defer close(w.ended)
	kubeScheme() // before the library has something to say
	backoff := kubeBackoff
	lists := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}, plainLists{})
	cache.NewReflectorWithOptions(lists, w.of.object, w, cache.ReflectorOptions{Name: w.of.plural, Backoff: &backoff}).RunWithContext(ctx)
}

// close ends it and waits until it has.
func (w *kubeWatch[T]) close() {
	w.cancel()
	<-w.ended
}

// holds is what it has now, by name. listed is false until it knows. With an error these
// are as they were before.
func (w *kubeWatch[T]) holds() (has map[string]T, listed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.has), w.listed, w.err
}

// isWatching says whether changes come in now. Between two tries they do not, and there may
// be no error either: that a connection has ended is none.
func (w *kubeWatch[T]) isWatching() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watches
}

func (w *kubeWatch[T]) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeTimeout)
	defer cancel()
	var list runtime.Object
	err := w.ask(&o, "list", func(r *rest.Request) (err error) {
		list, err = r.Do(ctx).Get()
		return err
	})
	return list, err
}

func (w *kubeWatch[T]) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	var events watch.Interface
	o.Watch = true
	err := w.ask(&o, "watch", func(r *rest.Request) (err error) {
		events, err = r.Watch(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	w.note(nil)
	return &noticed{events, w.stopped}, nil
}

// A noticed watch tells when the library is through with it.
type noticed struct {
	watch.Interface
	stopped func()
}

func (n *noticed) Stop() {
	n.Interface.Stop()
	n.stopped()
}

func (w *kubeWatch[T]) stopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = false
}

// ask asks the API server, and notes what goes wrong. What went well is not noted: that
// objects can be listed does not mean that they can be watched.
func (w *kubeWatch[T]) ask(o *metav1.ListOptions, verb string, by func(*rest.Request) error) error {
	c, err := w.api.Client()
	if err != nil {
		w.note(err)
		return err
	}
	o.LabelSelector, o.FieldSelector = w.narrow.LabelSelector, w.narrow.FieldSelector
	client, err := c.For(w.of.GroupVersion)
	if err == nil {
		err = by(client.Get().Namespace(c.Namespace).Resource(w.of.plural).VersionedParams(o, metav1.ParameterCodec))
	}
	// That what was known last is too old is no fault: the library lists anew.
	if err == nil || errors.Is(err, context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return err
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) {
		w.api.Doubt(c)
	}
	w.note(w.of.trouble(verb, c, err))
	return err
}

func (w *kubeWatch[T]) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.watches = err, err == nil
	w.wake()
}

// trouble says what an error of the API server means, and what to do about it.
func (r *kubeResource) trouble(verb string, c *kubeapi.Client, err error) error {
	what := fmt.Sprintf("cannot %s %s in namespace %s", verb, r.plural, c.Namespace)
	var outer *url.Error
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf(`%s: the API server forbids it; a Role there needs {apiGroups: [%q], resources: [%s], verbs: [list, watch]}, and a RoleBinding to us. It says: %w`,
			what, r.Group, r.plural, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the API server at %s does not know us: the token or certificate is not, or no longer, valid there", what, c.Host())
	case apierrors.IsNotFound(err) && r == &kubePools:
		return fmt.Errorf("%s: the cluster has no %s of %s; its CRD is not installed", what, r.kind, r.GroupVersion)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer in %v", what, kubeTimeout)
	case errors.As(err, &outer):
		return fmt.Errorf("cannot reach the API server at %s: %w", c.Host(), kubeapi.Lasting(outer.Err))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// What follows is what the library calls for what it has learned.

func (w *kubeWatch[T]) Add(object any) error    { return w.put(object) }
func (w *kubeWatch[T]) Update(object any) error { return w.put(object) }

func (w *kubeWatch[T]) put(object any) error {
	name, t, err := w.read(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has[name] = t
	w.wake()
	return nil
}

func (w *kubeWatch[T]) Delete(object any) error {
	name, _, err := w.read(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.has, name)
	w.wake()
	return nil
}

// Replace takes a whole list, the first one or one after a gap.
func (w *kubeWatch[T]) Replace(objects []any, _ string) error {
	has := make(map[string]T, len(objects))
	for _, object := range objects {
		name, t, err := w.read(object)
		if err != nil {
			return err
		}
		has[name] = t
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.has, w.listed = has, true
	w.wake()
	return nil
}

// Resync is never asked for.
func (w *kubeWatch[T]) Resync() error { return nil }

func (w *kubeWatch[T]) read(object any) (name string, t T, err error) {
	at, err := cache.ObjectToName(object)
	if err == nil {
		t, err = w.short(object)
	}
	return at.Name, t, err
}
