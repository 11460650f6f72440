//go:build real

// A real Kubernetes API server as tests of the chart ask it: for manifests of every kind, and by the token of anybody.

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kvasir/discovery/kubetest"
)

// A cluster is an API server with etcd, and no more: nothing makes a pod run, and no controller acts.
type cluster struct {
	server     *kubetest.Server
	token      string // who asks
	kubeconfig string // a file
	client     *http.Client
	kinds      map[string]string // "apiVersion/Kind": its path, with %s for /namespaces/NAME where it has one
}

// kubeDir is where scripts/kube builds.
func kubeDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("KUBE_DIR")
	if dir == "" {
		dir = "../.cache/kube"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{server: kubetest.Start(t), kinds: map[string]string{}}
	c.token, c.client = c.server.Admin()
	c.kubeconfig = c.server.Kubeconfig(t, "default", c.token)
	return c
}

// as is the same cluster for whoever holds the token.
func (c *cluster) as(t testing.TB, token, namespace string) *cluster {
	t.Helper()
	other := *c
	other.token, other.kinds = token, maps.Clone(c.kinds)
	other.kubeconfig = c.server.Kubeconfig(t, namespace, token)
	return &other
}

// ask sends one request; body is JSON or YAML.
func (c *cluster) ask(t testing.TB, method, path, body string) (status int, reply []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/yaml")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	request.Header.Set("Accept", "application/json")
	got, err := c.client.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer got.Body.Close()
	if reply, err = io.ReadAll(got.Body); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return got.StatusCode, reply
}

// want is ask with the status that it has to have.
func (c *cluster) want(t testing.TB, status int, method, path, body string) []byte {
	t.Helper()
	got, reply := c.ask(t, method, path, body)
	if got != status {
		t.Fatalf("%s %s: %d, want %d: %s\n%s", method, path, got, status, tail(string(reply), 2000), tail(body, 3000))
	}
	return reply
}

// namespace makes one, with labels as YAML, and the service account that every namespace has where controllers run.
func (c *cluster) namespace(t testing.TB, name, labels string) {
	t.Helper()
	c.want(t, http.StatusCreated, http.MethodPost, "/api/v1/namespaces", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}", name, labels))
	c.want(t, http.StatusCreated, http.MethodPost, "/api/v1/namespaces/"+name+"/serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}")
}

// A manifest is one object as YAML, and what says which one it is.
type manifest struct {
	text       string
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name, Namespace string
	} `yaml:"metadata"`
}

// manifests splits what helm template writes.
func manifests(t testing.TB, text string) (all []manifest) {
	t.Helper()
	for _, part := range strings.Split("\n"+text, "\n---\n") {
		m := manifest{text: part}
		if err := yaml.Unmarshal([]byte(part), &m); err != nil {
			t.Fatalf("%v\n%s", err, part)
		}
		if m.Kind != "" {
			all = append(all, m)
		}
	}
	return all
}

// path is where the objects of the manifest's kind are.
func (c *cluster) path(t testing.TB, m manifest, namespace string) string {
	t.Helper()
	name := m.APIVersion + "/" + m.Kind
	if c.kinds[name] == "" {
		at := "/apis/" + m.APIVersion
		if m.APIVersion == "v1" {
			at = "/api/v1"
		}
		var list struct {
			Resources []struct {
				Name, Kind string
				Namespaced bool
			}
		}
		if err := json.Unmarshal(c.want(t, http.StatusOK, http.MethodGet, at, ""), &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Resources {
			if strings.Contains(r.Name, "/") {
				continue // a part of another resource, such as pods/status
			}
			path := at + "/" + r.Name
			if r.Namespaced {
				path = at + "/namespaces/%s/" + r.Name
			}
			c.kinds[m.APIVersion+"/"+r.Kind] = path
		}
	}
	path := c.kinds[name]
	if path == "" {
		t.Fatalf("the API server knows no %s", name)
	}
	if m.Metadata.Namespace != "" {
		namespace = m.Metadata.Namespace
	}
	if strings.Contains(path, "%s") {
		return fmt.Sprintf(path, namespace)
	}
	return path
}

// dryRun has the server look at the manifest by its own schema, all defaults and admission included; a field that it
// does not know is an error.
func (c *cluster) dryRun(t testing.TB, m manifest, namespace string) {
	t.Helper()
	c.want(t, http.StatusCreated, http.MethodPost, c.path(t, m, namespace)+"?dryRun=All&fieldValidation=Strict", m.text)
}

// customResources applies the CRDs of scripts/kube/crds.sh.
func (c *cluster) customResources(t testing.TB) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kubeDir(t), "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs (scripts/kube/crds.sh): %v", err)
	}
	const at = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.want(t, http.StatusCreated, http.MethodPost, at, string(text))
		m := manifests(t, string(text))[0]
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Plural string }
				Versions []struct{ Name string }
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, m.Metadata.Name+" is served", func() bool {
			status, _ := c.ask(t, http.MethodGet, "/apis/"+crd.Spec.Group+"/"+crd.Spec.Versions[0].Name+"/"+crd.Spec.Names.Plural, "")
			return status == http.StatusOK
		})
	}
}

// tokenOf is a token of a service account, as kubelet gives one to a pod.
func (c *cluster) tokenOf(t testing.TB, namespace, account string) string {
	t.Helper()
	reply := c.want(t, http.StatusCreated, http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		"{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {expirationSeconds: 3600}}")
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal(reply, &request); err != nil || request.Status.Token == "" {
		t.Fatalf("no token: %v: %s", err, reply)
	}
	return request.Status.Token
}

// names lists the objects of a kind in a namespace that have this label.
func (c *cluster) names(t testing.TB, apiVersion, kind, namespace, label string) (names []string) {
	t.Helper()
	at := c.path(t, manifest{APIVersion: apiVersion, Kind: kind}, namespace)
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.NewDecoder(bytes.NewReader(c.want(t, http.StatusOK, http.MethodGet, at+"?labelSelector="+label, ""))).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	return names
}
