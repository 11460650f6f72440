// Tests of deploy/helm: that what the chart renders fits the program and the other files of deploy. What needs Helm
// or an API server stands in e2e/real_kube_chart_test.go, which keeps deploy/helm/testdata equal to what is rendered.

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"

	"kvasir/config"
)

// A kubeObject is what the tests look at of one rendered manifest.
type kubeObject struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data map[string]string
	Spec struct {
		Template struct {
			Metadata struct{ Annotations, Labels map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Image string
					Env   []struct{ Name, Value string }
					Args  []string
					Ports []struct {
						Name string
						Port int `yaml:"containerPort"`
					}
					Lifecycle struct {
						PreStop struct {
							Sleep struct{ Seconds int }
						} `yaml:"preStop"`
					}
				}
			}
		}
	}
}

// rendered are the manifests of each file that stands in deploy/helm/testdata.
func rendered(t *testing.T) map[string][]kubeObject {
	t.Helper()
	files, err := filepath.Glob("deploy/helm/testdata/*.yaml")
	do(t, err)
	if len(files) < 5 {
		t.Fatalf("rendered are %v", files)
	}
	all := map[string][]kubeObject{}
	for _, file := range files {
		for _, part := range strings.Split("\n"+read(t, file), "\n---\n") {
			var o kubeObject
			do(t, yaml.Unmarshal([]byte(part), &o))
			all[file] = append(all[file], o)
		}
	}
	return all
}

func one(t *testing.T, all []kubeObject, kind, component string) kubeObject {
	t.Helper()
	for _, o := range all {
		if o.Kind == kind && (component == "" || o.Metadata.Labels["app.kubernetes.io/component"] == component) {
			return o
		}
	}
	t.Fatalf("there is no %s of %s", kind, component)
	return kubeObject{}
}

// Kvasir takes each rendered configuration, with the environment of its pod, and the pod fits it: its ports, and the
// time until it is killed.
func TestChartConfiguration(t *testing.T) {
	t.Parallel()
	for file, all := range rendered(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			pod := one(t, all, "Deployment", "gateway").Spec.Template.Spec
			var environ []string
			for _, v := range imageVariables(t) {
				if !strings.HasPrefix(v, "KVASIR_CONFIG=") {
					environ = append(environ, v)
				}
			}
			for _, v := range pod.Containers[0].Env {
				if strings.HasPrefix(v.Name, "KVASIR_") {
					environ = append(environ, v.Name+"="+v.Value)
				}
			}
			secrets := t.TempDir()
			do(t, os.MkdirAll(filepath.Join(secrets, "milvus-token"), 0o700))
			do(t, os.WriteFile(filepath.Join(secrets, "milvus-token", "token"), []byte("root:secret"), 0o600))
			text := strings.ReplaceAll(one(t, all, "ConfigMap", "").Data["kvasir.yaml"], "/secrets/", secrets+"/")
			kvasirYAML := filepath.Join(t.TempDir(), "kvasir.yaml")
			do(t, os.WriteFile(kvasirYAML, []byte(text), 0o600))
			g, _, err := (&config.Layers{File: kvasirYAML, Environ: environ}).Load()
			do(t, err)
			c := g.Config

			ports := map[string]int{}
			for _, p := range pod.Containers[0].Ports {
				ports[p.Name] = p.Port
			}
			if c.Server.Listen != ":8080" || c.Server.Admin != ":9090" || ports["http"] != 8080 || ports["admin"] != 9090 {
				t.Errorf("it listens on %s and %s, and the pod has %v", c.Server.Listen, c.Server.Admin, ports)
			}
			if c.Cache.Path != "" {
				t.Errorf("the cache lies in %q, which no other pod has", c.Cache.Path)
			}
			sleep := time.Duration(pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if least := sleep + c.Server.Drain.Delay + c.Server.Drain.Timeout; time.Duration(pod.Grace)*time.Second <= least || sleep == 0 {
				t.Errorf("it is killed after %d s, and takes up to %v to stop, %v of it before SIGTERM", pod.Grace, least, sleep)
			}
			if len(c.Discovery) != 1 || c.Discovery[0].Kind != "kubernetes" {
				t.Errorf("workers come from %+v", c.Discovery)
			}
		})
	}
}

// TestChartSelector: the source of workers has the pods of engines, and neither Kvasir's own, which would ask itself, nor
// those of other charts in the same release.
func TestChartSelector(t *testing.T) {
	t.Parallel()
	for file, all := range rendered(t) {
		var c struct{ Discovery []struct{ Selector string } }
		do(t, yaml.Unmarshal([]byte(one(t, all, "ConfigMap", "").Data["kvasir.yaml"]), &c))
		selector, err := labels.Parse(c.Discovery[0].Selector)
		do(t, err)
		if pod := one(t, all, "Deployment", "worker").Spec.Template.Metadata.Labels; !selector.Matches(labels.Set(pod)) {
			t.Errorf("%s: %s does not have the worker %v", file, selector, pod)
		}
		for _, other := range []map[string]string{
			one(t, all, "Deployment", "gateway").Spec.Template.Metadata.Labels,
			one(t, all, "Pod", "test").Metadata.Labels,
			{"app.kubernetes.io/name": "queue", "app.kubernetes.io/instance": "kvasir", "app.kubernetes.io/component": "worker"},
		} {
			if len(other) < 3 || selector.Matches(labels.Set(other)) {
				t.Errorf("%s: %s has %v", file, selector, other)
			}
		}
	}
}

// Where an engine publishes its KV events is where Kvasir is told to listen.
func TestChartKVEvents(t *testing.T) {
	t.Parallel()
	engines := 0
	for file, all := range rendered(t) {
		for _, o := range all {
			if o.Kind != "Deployment" || o.Metadata.Labels["app.kubernetes.io/component"] != "worker" {
				continue
			}
			engines++
			says, args := o.Spec.Template.Metadata.Annotations, strings.Join(o.Spec.Template.Spec.Containers[0].Args, "\n")
			for _, want := range []string{
				`"endpoint":"tcp://*:` + says["kvasir.dev/kv-events-port"] + `"`, `"replay_endpoint":"tcp://*:` + says["kvasir.dev/kv-replay-port"] + `"`,
				"--served-model-name=" + says["kvasir.dev/models"],
			} {
				if !strings.Contains(args, want) {
					t.Errorf("%s: %s is annotated as %v, and has no %s in\n%s", file, o.Metadata.Name, says, want, args)
				}
			}
		}
	}
	if engines < 8 {
		t.Errorf("%d engines were looked at", engines)
	}
}

// Images are called as elsewhere in deploy, and by versions.
func TestChartImages(t *testing.T) {
	t.Parallel()
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	do(t, yaml.Unmarshal([]byte(read(t, "deploy/helm/kvasir/Chart.yaml")), &chart))
	var values struct {
		Image        struct{ Repository string }
		EngineImages map[string]string `yaml:"engineImages"`
	}
	do(t, yaml.Unmarshal([]byte(read(t, "deploy/helm/kvasir/values.yaml")), &values))
	compose := readCompose(t)
	if values.Image.Repository != compose.Services["kvasir"].Image || values.EngineImages["vllm"] != compose.Services["vllm"].Image {
		t.Errorf("the chart has %s and %v, the compose file others", values.Image.Repository, values.EngineImages)
	}
	if !strings.Contains(read(t, "Makefile"), "--tag "+values.Image.Repository+" ") {
		t.Errorf("make image makes no %s", values.Image.Repository)
	}
	for file, all := range rendered(t) {
		if got := one(t, all, "Deployment", "gateway").Spec.Template.Spec.Containers[0].Image; got != values.Image.Repository+":"+chart.AppVersion {
			t.Errorf("%s: the image is %s", file, got)
		}
	}
}

// The chart's alerts are those of deploy/prometheus, which are tested in e2e: Helm reads no file outside of the chart. What
// replicas are scaled by is a metric, too.
func TestChartMetrics(t *testing.T) {
	t.Parallel()
	if read(t, "deploy/helm/kvasir/files/rules.yaml") != read(t, "deploy/prometheus/rules.yaml") {
		t.Error("the alerts differ; run: cp deploy/prometheus/rules.yaml deploy/helm/kvasir/files/")
	}
	names := regexp.MustCompile(`\bkvasir_[a-z_]+\b`).FindAllString(read(t, "deploy/helm/kvasir/templates/scaling.yaml"), -1)
	if len(names) < 2 {
		t.Errorf("replicas are scaled by %v", names)
	}
	for _, name := range names {
		if !strings.Contains(read(t, "docs/metrics.md"), "| "+name+" |") {
			t.Errorf("scaling.yaml goes by %s, which is no metric", name)
		}
	}
}

// TestChartRestarts: every key that waits for a restart is among those whose change makes new pods.
func TestChartRestarts(t *testing.T) {
	t.Parallel()
	type key struct {
		Description string
		Properties  map[string]json.RawMessage
	}
	// As deployment.yaml picks them.
	picked := []string{"server.listen", "server.admin", "server.tls", "server.timeouts.header", "cache.store", "cache.path", "cache.max_entries", "cache.max_bytes",
		"cache.milvus", "log.format", "simulate", "peers", "planner"}
	template := read(t, "deploy/helm/kvasir/templates/deployment.yaml")
	for _, p := range picked {
		parts := strings.Split(p, ".")
		if !strings.Contains(template, `"`+parts[len(parts)-1]+`"`) {
			t.Errorf("deployment.yaml does not pick %s", p)
		}
	}
	restarts := 0
	var walk func(path string, raw json.RawMessage)
	walk = func(path string, raw json.RawMessage) {
		var k key
		do(t, json.Unmarshal(raw, &k))
		if strings.HasPrefix(k.Description, "[restart]") {
			restarts++
			if !slices.ContainsFunc(picked, func(p string) bool { return path == p || strings.HasPrefix(path, p+".") }) {
				t.Errorf("a change of %s waits for a restart, and makes no new pods", path)
			}
		}
		for name, child := range k.Properties {
			walk(strings.TrimPrefix(path+"."+name, "."), child)
		}
	}
	walk("", json.RawMessage(read(t, "config.schema.json")))
	if restarts < 5 {
		t.Errorf("%d keys wait for a restart", restarts)
	}
}
