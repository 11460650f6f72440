// The API server of Kubernetes: how it is reached, and as whom.

// Package kubeapi is how the API server of Kubernetes is reached, by as little of client-go as that takes: no typed
// clients, no informers.
//
//	api := kubeapi.New("", "", scheme)
//	c, err := api.Client()
//	r, err := c.For(schema.GroupVersion{Group: "apps", Version: "v1"})
//	body, err := r.Get().Namespace(c.Namespace).Resource("deployments").Name("vllm").Do(ctx).Raw()
package kubeapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// namespaceFile has the namespace of a pod's service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// An API is an API server, with the identity that it is asked by.
type API struct {
	kubeconfig, namespace string // as New was told
	scheme                func() *runtime.Scheme
	most                  int64 // bytes of a reply; 0: not bounded, as a watch has no end

	mu  sync.Mutex // guards all below
	now *Client
}

// A Client is what is known of the API server until that turns out to be no good.
type Client struct {
	Namespace string // that is asked for, or of the identity
	config    *rest.Config
	http      *http.Client
}

// New returns an API server by a kubeconfig; "": that of the pod that we run in, or the user's. namespace may be "".
// scheme has the types of what is read.
func New(kubeconfig, namespace string, scheme func() *runtime.Scheme) *API {
	return &API{kubeconfig: kubeconfig, namespace: namespace, scheme: scheme}
}

// Bound has a reply of more bytes be an error. It is called before anything is asked.
func (a *API) Bound(most int64) *API {
	a.most = most
	return a
}

// NewScheme returns a scheme without types, and keeps the library from writing to stderr: all that is worth saying is
// told by who asks.
func NewScheme() *runtime.Scheme {
	klog.SetLogger(logr.Discard())
	return runtime.NewScheme()
}

// Client is how the API server is reached now.
func (a *API) Client() (*Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != nil {
		return a.now, nil
	}
	scheme := a.scheme()
	config, namespace, err := a.load()
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.QPS = "kvasir", -1 // nobody here asks often, and a limiter has errors of its own
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	if a.most > 0 {
		config.Wrap(func(t http.RoundTripper) http.RoundTripper { return &bounded{t, a.most} })
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the credentials for the API server: %w", err)
	}
	a.now = &Client{namespace, config, client}
	return a.now, nil
}

// load finds out where the API server is: by the file that is named, by the
// service account of the pod that Kvasir runs in, or as kubectl does.
func (a *API) load() (config *rest.Config, namespace string, err error) {
	namespace = a.namespace
	if a.kubeconfig == "" {
		config, err = rest.InClusterConfig()
		if err == nil {
			if data, readErr := os.ReadFile(namespaceFile); namespace == "" && readErr == nil {
				namespace = strings.TrimSpace(string(data))
			}
			return config, orDefault(namespace), nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, "", fmt.Errorf("cannot read the pod's service account: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	rules.WarnIfAllMissing = false
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err = loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err) && a.kubeconfig == "":
		return nil, "", errors.New("there is neither the service account of a pod nor a kubeconfig ($KUBECONFIG, ~/.kube/config); name one by kubeconfig")
	case clientcmd.IsEmptyConfig(err):
		return nil, "", fmt.Errorf("cannot use %s: it names no cluster, or no current-context", a.kubeconfig)
	case err != nil && a.kubeconfig != "":
		return nil, "", fmt.Errorf("cannot use %s: %w", a.kubeconfig, bare(err))
	case err != nil:
		return nil, "", fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if namespace == "" {
		namespace, _, _ = loader.Namespace()
	}
	return config, orDefault(namespace), nil
}

func orDefault(namespace string) string {
	if namespace == "" {
		return "default"
	}
	return namespace
}

// Where is the namespace that is looked at, as far as it is known.
func (a *API) Where() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != nil {
		return a.now.Namespace
	}
	return a.namespace
}

// Doubt has the next call read anew how the API server is reached: credentials are
// rotated, clusters move.
func (a *API) Doubt(c *Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == c {
		a.now = nil
	}
}

// Close lets go of connections.
func (a *API) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != nil {
		utilnet.CloseIdleConnectionsFor(a.now.http.Transport)
	}
}

// For is a client for the resources of one group and version.
func (c *Client) For(gv schema.GroupVersion) (*rest.RESTClient, error) {
	config := rest.CopyConfig(c.config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	return rest.RESTClientForConfigAndClient(config, c.http)
}

// Host is where the API server is.
func (c *Client) Host() string { return c.config.Host }

// Lasting is an error of a connection without what differs from try to try.
func Lasting(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}

// bare is an error of package os without the operation and the path, which the message says.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
