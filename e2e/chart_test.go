// The chart's schema: it is one, its values and examples keep to it, and what it does not know is refused. Helm asks it
// before anything else; what Helm makes of the values stands in real_kube_chart_test.go.

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// valuesSchema is values.schema.json, compiled: a wrong schema is an error here.
func valuesSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../deploy/helm/kvasir/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// decodeValues reads values as Helm does: YAML to JSON, and that as any.
func decodeValues(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v, err = jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// chartPageValues are the YAML blocks of docs/kubernetes.md: values, all of them.
func chartPageValues(t *testing.T) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) < 4 {
		t.Fatalf("docs/kubernetes.md has %d blocks of values", len(blocks))
	}
	return blocks
}

func TestChartValues(t *testing.T) {
	t.Parallel()
	schema := valuesSchema(t)
	files, err := filepath.Glob("../deploy/helm/kvasir/examples/values-*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("the examples are %v, %v", files, err)
	}
	for _, file := range append(files, "../deploy/helm/kvasir/values.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(decodeValues(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for i, block := range chartPageValues(t) {
		if err := schema.Validate(decodeValues(t, []byte(block))); err != nil {
			t.Errorf("the YAML block %d of docs/kubernetes.md: %v\n%s", i+1, err, block)
		}
	}
	// Every value that the schema has at its top stands in values.yaml with its default.
	var known struct{ Properties map[string]any }
	var defaults map[string]any
	text, err := os.ReadFile("../deploy/helm/kvasir/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile("../deploy/helm/kvasir/values.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	for name := range known.Properties {
		if _, ok := defaults[name]; !ok && name != "global" {
			t.Errorf("values.yaml does not show %s", name)
		}
	}
	// And of a worker, which has no entry with all of them, as comments.
	worker := known.Properties["workers"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)
	for name := range worker {
		if !strings.Contains(string(text), "    # "+name+":") && name != "workerType" {
			t.Errorf("values.yaml does not show workers[].%s", name)
		}
	}
}

func TestChartRefuses(t *testing.T) {
	t.Parallel()
	schema := valuesSchema(t)
	for _, values := range []string{
		"replicaCount: 2", "frontend: {replicas: 2}", "workers: [{gpu: 0}]", "workers: [{model: {name: 5}}]", "workers: [{name: UPPER}]", "workers: [{connector: none}]",
		"workers: [{workerType: Both}]", "workers: [{replicas: -1}]", "workers: [{model: {gpuMemoryUtilization: 0}}]", "workers: [{model: {gpuMemoryUtilization: \"1.5\"}}]",
		"workers: [{extraArgs: --dtype=half}]", "workers: [{gpuDevice: -1}]", "workers: [{gpuDevice: first}]", "workers: {}", "engine: trtllm", "config: []", "secrets: [{name: a}]",
		"autoscaling: {kind: vpa}", "autoscaling: {cpu: 101}", "nameOverride: a b", "nameOverride: A", "config: {server: yes}", "config: {gpu: off}", "config: {discovery: [null]}",
		"config: {cache: {milvus: m:19530}}", "admin: {existingSecret: A_b}", "admin: {key: secret}", "podLabels: {app.kubernetes.io/component: worker}", "podLabels: {app.kubernetes.io/name: x}", "huggingface: {token: hf_abc}", "service: {type: ExternalName}", "frontend: {httpPort: 0}",
	} {
		if err := schema.Validate(decodeValues(t, []byte(values))); err == nil {
			t.Errorf("%s is taken", values)
		}
	}
	for _, values := range []string{
		"workers: [{connector: null}]", "workers: [{connector: \"null\"}]", "workers: [{gpuDevice: 0}]", "workers: [{gpuDevice: \"0,1\"}]", "workers: [{gpuDevice: null}]",
		"workers: [{gpuDevice: GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20}]", "workers: [{model: {gpuMemoryUtilization: \"0.85\"}}]", "workers: null", "global: {x: y}",
		"podDisruptionBudget: {maxUnavailable: 25%}", "admin: {existingSecret: kvasir-admin}", "nameOverride: a-b", "nameOverride: ''", "podLabels: {team: llm}", "secrets: null",
		"config: {gpu: null, server: {drain: null}, discovery: null, keys: []}", "frontend: {routerMode: round-robin}",
	} {
		if err := schema.Validate(decodeValues(t, []byte(values))); err != nil {
			t.Errorf("%s is refused: %v", values, err)
		}
	}
}
