// A light API server, for tests that need its answers and not its rules.

// Package scaletest is an API server of Kubernetes as far as package scale asks one: objects by path, merge patches with
// the version that they are for, the scale subresource, dry runs, and errors as Status objects. What it takes from a
// real one is checked there (make test-real REAL=kube).
//
//	s := scaletest.Start(t)
//	s.Put("/apis/apps/v1/namespaces/team/deployments/vllm", scaletest.Deployment(2, 2))
//	scaler := scale.New(&scale.Options{Kubeconfig: s.Kubeconfig, ...})
package scaletest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// An Object is one as JSON.
type Object = map[string]any

// A Server has objects.
type Server struct {
	Kubeconfig string // of namespace team

	mu      sync.Mutex // guards below
	objects map[string]Object
	version int
	asked   []string
	before  func(w http.ResponseWriter, r *http.Request) (answered bool)
}

// Start starts one that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string]Object{}}
	server := httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: %s}}], users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u, namespace: team}}]}", server.URL,
		base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if err := os.WriteFile(s.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Deployment is one whose controller has seen all, with so many replicas of which so many are ready.
func Deployment(replicas, ready int) Object {
	return Object{
		"spec":   Object{"replicas": replicas},
		"status": Object{"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": ready},
	}
}

// Put makes an object, or another one of it, as its controller would.
func (s *Server) Put(path string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(path, o)
}

func (s *Server) put(path string, o Object) {
	s.version++
	copied := clone(o)
	metadata, _ := copied["metadata"].(Object)
	if metadata == nil {
		metadata = Object{}
	}
	if metadata["generation"] == nil {
		metadata["generation"] = 1
	}
	metadata["resourceVersion"], metadata["name"] = strconv.Itoa(s.version), path[strings.LastIndexByte(path, '/')+1:]
	copied["metadata"] = metadata
	s.objects[path] = copied
}

// Get is an object as it is now; nil: there is none.
func (s *Server) Get(path string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		return clone(o)
	}
	return nil
}

// Replicas are those that the object is to have.
func (s *Server) Replicas(path string) int {
	spec, _ := s.Get(path)["spec"].(Object)
	n, _ := spec["replicas"].(float64)
	return int(n)
}

// Delete takes an object away.
func (s *Server) Delete(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, path)
}

// Before has f answer requests, or do something before they are answered; nil: as they come.
func (s *Server) Before(f func(w http.ResponseWriter, r *http.Request) (answered bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Asked are the requests so far, METHOD PATH?QUERY each.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func clone(o Object) (copied Object) {
	text, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	if err != nil {
		panic("BUG: a test's object: " + err.Error())
	}
	return copied
}

// Refuse writes what an API server says where it refuses.
func Refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(Object{"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": "Failure", "reason": reason, "message": message, "code": code})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	before := s.before
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path, isScale := strings.CutSuffix(r.URL.Path, "/scale")
	o := s.objects[path]
	switch {
	case r.Header.Get("Authorization") != "Bearer t":
		Refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
	case r.Method == http.MethodPost:
		s.create(w, r)
	case o == nil:
		Refuse(w, http.StatusNotFound, "NotFound", path[strings.LastIndexByte(path, '/')+1:]+" not found")
	case r.Method == http.MethodPatch:
		s.patch(w, r, path, isScale)
	default:
		answer(w, http.StatusOK, o)
	}
}

func answer(w http.ResponseWriter, code int, o Object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var o Object
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		Refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	metadata, _ := o["metadata"].(Object)
	name, _ := metadata["name"].(string)
	path := r.URL.Path + "/" + name
	if s.objects[path] != nil {
		Refuse(w, http.StatusConflict, "AlreadyExists", name+" already exists")
		return
	}
	if r.URL.Query().Get("dryRun") == "All" {
		answer(w, http.StatusCreated, o)
		return
	}
	s.put(path, o)
	answer(w, http.StatusCreated, s.objects[path])
}

func (s *Server) patch(w http.ResponseWriter, r *http.Request, path string, isScale bool) {
	body, err := io.ReadAll(r.Body)
	var patch Object
	if err == nil {
		err = json.Unmarshal(body, &patch)
	}
	if err != nil || r.Header.Get("Content-Type") != "application/merge-patch+json" {
		Refuse(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", fmt.Sprint(r.Header.Get("Content-Type"), err))
		return
	}
	now := s.objects[path]
	if metadata, _ := patch["metadata"].(Object); metadata != nil && metadata["resourceVersion"] != nil && metadata["resourceVersion"] != now["metadata"].(Object)["resourceVersion"] {
		Refuse(w, http.StatusConflict, "Conflict", "the object has been modified; please apply your changes to the latest version and try again")
		return
	}
	next := merge(clone(now), patch)
	if _, specified := patch["spec"]; specified && !strings.Contains(path, "/leases/") {
		metadata := next["metadata"].(Object)
		metadata["generation"] = metadata["generation"].(float64) + 1
	}
	if isScale && len(patch["spec"].(Object)) != 1 {
		Refuse(w, http.StatusUnprocessableEntity, "Invalid", "a Scale has replicas alone")
		return
	}
	if r.URL.Query().Get("dryRun") == "All" {
		answer(w, http.StatusOK, next)
		return
	}
	s.put(path, next)
	answer(w, http.StatusOK, s.objects[path])
}

// merge is RFC 7396.
func merge(into, patch Object) Object {
	for key, value := range patch {
		inner, isObject := value.(Object)
		switch before, _ := into[key].(Object); {
		case value == nil:
			delete(into, key)
		case isObject && before != nil:
			into[key] = merge(before, inner)
		case isObject:
			into[key] = merge(Object{}, inner)
		default:
			into[key] = value
		}
	}
	return into
}
