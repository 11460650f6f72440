//go:build real

// The Helm chart against a real Kubernetes API server: what it renders, what the server takes of it, a release from its
// installation to its end, and what its service account may read (make test-real REAL=kube).

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const chartDir = "../deploy/helm/kvasir"

// examples are the values files of the chart, by their names.
func examples(t testing.TB) (names []string) {
	t.Helper()
	files, err := filepath.Glob(chartDir + "/examples/values-*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("the examples are %v, %v", files, err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "values-"), ".yaml"))
	}
	return names
}

func valuesOf(example string) string { return chartDir + "/examples/values-" + example + ".yaml" }

// helm runs it; kubeconfig may be empty where it asks no server.
func helm(t testing.TB, kubeconfig string, args ...string) (stdout string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(kubeDir(t), "helm"), args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err != nil {
		t.Logf("helm %v: %v", args, err)
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// mustHelm is helm where it must do.
func mustHelm(t testing.TB, kubeconfig string, args ...string) string {
	t.Helper()
	out, err := helm(t, kubeconfig, args...)
	if err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, tail(out, 3000))
	}
	return out
}

// render is what helm template makes of the chart, without a server.
func render(t testing.TB, args ...string) string {
	t.Helper()
	return mustHelm(t, "", append([]string{"template", "kvasir", chartDir, "--namespace", "llm", "--kube-version", "1.33.4"}, args...)...)
}

// kvasirYAML is the configuration in what was rendered.
func kvasirYAML(t testing.TB, rendered string) string {
	t.Helper()
	for _, m := range manifests(t, rendered) {
		if m.Kind == "ConfigMap" {
			var c struct{ Data map[string]string }
			if err := yaml.Unmarshal([]byte(m.text), &c); err != nil {
				t.Fatal(err)
			}
			return c.Data["kvasir.yaml"]
		}
	}
	t.Fatal("there is no ConfigMap")
	return ""
}

// checkConfig has Kvasir itself look at a configuration.
func checkConfig(t testing.TB, text string) {
	t.Helper()
	// Secrets are files of the pod, and none of this machine.
	secrets := t.TempDir()
	for _, key := range regexp.MustCompile(`/secrets/(\S+)`).FindAllStringSubmatch(text, -1) {
		if err := os.MkdirAll(filepath.Join(secrets, filepath.Dir(key[1])), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(secrets, key[1]), []byte("root:secret-of-a-test"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text = strings.ReplaceAll(text, "/secrets/", secrets+"/")
	file := filepath.Join(t.TempDir(), "kvasir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	check := exec.Command(binary(t), "check", "--config", file)
	check.Env = []string{"HOME=" + t.TempDir()}
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("kvasir check: %v\n%s\n%s", err, out, text)
	}
}

// TestRealKubeChartRenders: each example passes helm lint, renders what stands in deploy/helm/testdata (-update
// rewrites it), and has a configuration that Kvasir takes.
func TestRealKubeChartRenders(t *testing.T) {
	for _, example := range append(examples(t), "") {
		name, args := example, []string{"--values", valuesOf(example)}
		if example == "" {
			name, args = "default", nil
		}
		t.Run(name, func(t *testing.T) {
			mustHelm(t, "", append([]string{"lint", "--strict", chartDir}, args...)...)
			got := render(t, args...)
			golden := "../deploy/helm/testdata/" + name + ".yaml"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is not what is rendered; look at the difference, then run this test with -update", golden)
			}
			checkConfig(t, kvasirYAML(t, got))
		})
	}
}

// TestRealKubeChartPage: what docs/kubernetes.md shows is rendered, and Kvasir takes the configuration.
func TestRealKubeChartPage(t *testing.T) {
	for _, block := range chartPageValues(t) {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		checkConfig(t, kvasirYAML(t, render(t, "--values", file)))
	}
}

// TestRealKubeChartValues: what values mean, and that wrong ones are refused with words that help.
func TestRealKubeChartValues(t *testing.T) {
	const first = "--set=workers[0]."
	for _, c := range []struct {
		name string
		args []string
		want []string // each stands in what is rendered
		not  []string
	}{
		{"names by type and place", []string{first + "workerType=prefill", "--set=workers[1].workerType=decode", "--set=workers[2].model.path=x/y"},
			[]string{"name: kvasir-prefillworker0\n", "name: kvasir-decodeworker1\n", "name: kvasir-bothworker2\n",
				`"kv_connector":"NixlConnector","kv_role":"kv_producer"`, `"kv_connector":"NixlConnector","kv_role":"kv_consumer"`}, []string{"kv_both"}},
		{"no connector", []string{first + "workerType=decode", first + "connector=null"}, nil, []string{"kv-transfer-config", "SIDE_CHANNEL"}},
		{"the text null", []string{first + "workerType=decode", "--set-string=workers[0].connector=null"}, nil, []string{"kv-transfer-config"}},
		{"the default model", nil, []string{"- \"TinyLlama/TinyLlama-1.1B-Chat-v1.0\"\n", "nvidia.com/gpu: 1\n"}, []string{"kv-transfer-config"}},
		{"lmcache beside nixl", []string{first + "workerType=prefill", first + "connector=lmcache"}, []string{`"kv_connector":"MultiConnector"`, `"kv_connector":"LMCacheConnectorV1"`}, nil},
		{"lmcache alone", []string{first + "connector=lmcache"}, []string{`'--kv-transfer-config={"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'`}, []string{"Nixl"}},
		{"mooncake's store", []string{first + "connector=mooncake"}, []string{`{"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}`}, nil},
		{"a GPU by its number", []string{first + "gpuDevice=0"}, []string{`name: NVIDIA_VISIBLE_DEVICES, value: "0"`}, []string{"nvidia.com/gpu"}},
		{"GPUs as in Dynamo's manifests", []string{first + "resources.limits.gpu=2", first + "resources.requests.gpu=2"}, []string{"nvidia.com/gpu: 2\n            requests:\n              nvidia.com/gpu: 2\n"}, []string{" gpu: 2"}},
		{"everything of a model", []string{first + "model.path=a/b", first + "model.name=b", first + "model.tensorParallelSize=4", first + "model.enforceEager=true",
			first + "model.maxModelLen=131072", first + "model.gpuMemoryUtilization=0.85", first + "replicas=0", first + "extraArgs[0]=--dtype=half", first + "maxRequests=64"},
			[]string{`"--served-model-name=b"`, "--tensor-parallel-size=4", "--enforce-eager", "--max-model-len=131072", "--gpu-memory-utilization=0.85", "replicas: 0", `"--dtype=half"`,
				"nvidia.com/gpu: 4", `kvasir.dev/max-requests: "64"`, `kvasir.dev/models: "b"`}, nil},
		{"sglang", []string{"--set=engine=sglang", first + "workerType=prefill", "--set=workers[1].workerType=decode", "--set=workers[1].connector=mooncake"},
			[]string{"command: [python3, -m, sglang.launch_server]", "--disaggregation-mode=prefill", "--disaggregation-transfer-backend=nixl", "--disaggregation-bootstrap-port=8998",
				"--disaggregation-mode=decode", "--disaggregation-transfer-backend=mooncake", "kvasir.dev/engine: sglang", `'--kv-events-config={"endpoint":"tcp://*:5557","publisher":"zmq","replay_endpoint":"tcp://*:5558"}'`},
			[]string{"vllm/vllm-openai", "SIDE_CHANNEL"}},
		{"one worker of another engine", []string{first + "engine=sglang", "--set=workers[1].model.path=a/b"}, []string{"lmsysorg/sglang:", "vllm/vllm-openai:"}, []string{"disaggregation"}},
		{"modes of Dynamo", []string{"--set=frontend.routerMode=round-robin", "--set=frontend.httpPort=8000"}, []string{"policy: round-robin", "listen: :8000", `value: ":8000"`, "port: 8000, targetPort: http"}, nil},
		{"the configuration wins", []string{"--set=config.routing.policy=kv", "--set=config.gpu.mode=auto", "--set=config.headers.vsr=false", "--set=config.server.retry.attempts=0"},
			[]string{"policy: kv", "mode: auto", "vsr: false", "attempts: 0", "name: NVIDIA_VISIBLE_DEVICES, value: all"}, []string{"predict"}},
		{"the end by server.drain", []string{"--set=config.server.drain.delay=1500ms", "--set=config.server.drain.timeout=1h1m"}, []string{"terminationGracePeriodSeconds: 3669\n", "sleep: {seconds: 2}"}, nil},
		{"no waiting", []string{"--set=config.server.drain.delay=0s"}, []string{"terminationGracePeriodSeconds: 65\n"}, []string{"preStop:\n              sleep:"}},
		{"a server that knows no sleep", []string{"--kube-version=1.28.0"}, []string{"terminationGracePeriodSeconds: 70\n"}, []string{"sleep: {seconds"}},
		{"secrets", []string{"--set=secrets={keys}", "--set=milvus.address=m:19530", "--set=milvus.existingSecret=keys"},
			[]string{"{name: secret-keys, mountPath: /secrets/keys, readOnly: true}", "key_file: /secrets/keys/token", "store: milvus"}, nil},
		{"hugging face", []string{"--set=huggingface.existingSecret=hf"}, []string{`valueFrom: {secretKeyRef: {name: "hf", key: "HF_TOKEN"}}`}, nil},
		{"no workers, no rights", []string{"--set-json=workers=[]"}, []string{"automountServiceAccountToken: false"}, []string{"kind: Role\n", "discovery:"}},
		{"rights where discovery looks", []string{`--set-json=config.discovery=[{"kind":"kubernetes","namespace":"a","selector":"x=y"},{"kind":"kubernetes","namespace":"b","inference_pool":"p"},{"kind":"dns","name":"n","port":1}]`, "--set=rbac.dynamoGraphDeployments=true"},
			[]string{"namespace: \"a\"\n", "namespace: \"b\"\n", "namespace: \"llm\"\n", "inferencepools", "dynamographdeployments"}, []string{"ClusterRole\n", "secrets"}},
		{"no rights for another cluster", []string{`--set-json=config.discovery=[{"kind":"kubernetes","namespace":"there","selector":"x=y","port":1,"kubeconfig":"/secrets/there/config"}]`},
			[]string{"namespace: \"llm\"\n", "namespace: there\n"}, []string{`namespace: "there"`}},
		{"another cluster alone", []string{"--set-json=workers=[]", `--set-json=config.discovery=[{"kind":"kubernetes","namespace":"there","selector":"x=y","port":1,"kubeconfig":"/secrets/there/config"}]`},
			[]string{"automountServiceAccountToken: false"}, []string{"kind: Role\n"}},
		{"workers of this chart alone", []string{"--set=nameOverride=gate"},
			[]string{"selector: app.kubernetes.io/name=gate,app.kubernetes.io/instance=kvasir,app.kubernetes.io/component=worker\n", "app.kubernetes.io/name: \"gate\"\n"}, nil},
		{"rights to list and watch", nil, []string{"resources: [pods], verbs: [list, watch]"}, []string{"verbs: [get"}},
		{"an account that is there", []string{"--set=serviceAccount.create=false", "--set=serviceAccount.name=mine"}, []string{`{kind: ServiceAccount, name: "mine", namespace: "llm"}`}, []string{"kind: ServiceAccount\n"}},
		{"no planner", nil, nil, []string{"kind: Lease", "planner:", "resourceNames"}},
		{"off without quotes, which YAML reads as false", []string{"--set-json=planner.mode=false"}, nil, []string{"kind: Lease", "planner:", "resourceNames"}},
		{"a planner for both", []string{"--set=planner.mode=apply", "--set=config.planner.max_workers=8"},
			[]string{"both: deployment/kvasir-bothworker0\n", "lease: kvasir-planner\n", "max_workers: 8\n", "mode: apply\n", "kind: Lease",
				`resources: [deployments/scale], resourceNames: ["kvasir-bothworker0"], verbs: [patch]`, `resources: [leases], resourceNames: ["kvasir-planner"], verbs: [get, patch]`}, []string{"create]", "ClusterRole\n"}},
		{"a planner of its own targets", []string{"--set=planner.mode=advise", "--set=config.planner.kubernetes.prefill=dynamographdeployment/g/P", "--set=config.planner.kubernetes.decode=dynamographdeployment/g/D", "--set=config.planner.kubernetes.namespace=there"},
			[]string{`resources: [dynamographdeployments], resourceNames: ["g"], verbs: [get, patch]`, "namespace: \"there\"\n"}, []string{"both: deployment", "deployments/scale"}},
		{"KEDA asks the planner", []string{"--set=planner.mode=keda", "--set=config.planner.max_workers=8", "--set=config.planner.model=m", first + "workerType=prefill", "--set=workers[1].workerType=decode"},
			[]string{"listen: :9091\n", "mode: advise\n", "kind: ScaledObject", "scalerAddress: kvasir-keda.llm.svc:9091", "role: decode\n", "role: prefill\n", `model: "m"`, "maxReplicaCount: 8\n", "name: keda, containerPort: 9091",
				"kubernetes.io/metadata.name: keda", "{port: keda}", "lease: kvasir-planner"}, []string{"deployments/scale"}},
		{"a planner with a kubeconfig", []string{"--set=config.planner.mode=apply", "--set=config.planner.kubernetes.both=deployment/x", "--set=config.planner.kubernetes.kubeconfig=/secrets/there/config"}, []string{"both: deployment/x"}, []string{"kind: Lease", "resourceNames"}},
		{"no account and no rights", []string{"--set=serviceAccount.create=false", "--set=rbac.create=false"}, nil, []string{"kind: Role"}},
		{"a capability beside the chart's", []string{first + "securityContext.capabilities.add={IPC_LOCK}", first + "securityContext.runAsUser=1000"},
			[]string{"            allowPrivilegeEscalation: false\n            capabilities:\n              add:\n              - IPC_LOCK\n              drop:\n              - ALL\n            runAsUser: 1000\n"}, nil},
		{"capabilities that are kept", []string{`--set-json=workers[0].securityContext={"allowPrivilegeEscalation":true,"capabilities":{"drop":[]}}`},
			[]string{"            allowPrivilegeEscalation: true\n            capabilities:\n              drop: []\n"}, nil},
		{"an engine with all rights", []string{first + "securityContext.privileged=true"}, []string{"            privileged: true\n"}, []string{"privileged: true\n            allow", "            allowPrivilegeEscalation: false\n            capabilities:\n              drop"}},
		{"null as if it were not there", []string{"--set-json=secrets=null", "--set-json=config={\"gpu\":null,\"server\":null,\"cache\":{\"milvus\":null},\"discovery\":null,\"log\":{\"level\":null}}"},
			[]string{"mode: \"off\"", "listen: :8080", "timeout: 60s", "kind: kubernetes"}, []string{"null"}},
		{"texts that look like others", []string{"--set-string=milvus.existingSecretKey=1", "--set-string=milvus.existingSecret=2", "--set=milvus.address=m:1", "--set-string=huggingface.existingSecret=3", "--set-string=huggingface.existingSecretKey=4",
			"--set-string=priorityClassName=true", "--set-string=test.existingSecret=5", "--set-string=test.existingSecretKey=6", first + "name=on", "--set-string=workers[0].runtimeClassName=null", "--set=fullnameOverride=y",
			"--set-string=serviceAccount.name=7", "--set-string=huggingface.cache.existingClaim=8"},
			[]string{"key_file: /secrets/2/1\n", `secret: {secretName: "2", `, `{name: "3", key: "4"}`, `priorityClassName: "true"`, `{name: "5", key: "6"}`, `kvasir.dev/worker: "on"`, `runtimeClassName: "null"`,
				"name: \"y\"\n", `serviceAccountName: "7"`, `{claimName: "8"}`}, []string{"name: y\n"}},
		{"a Secret with a dot", []string{"--set=milvus.address=m:1", "--set=milvus.existingSecret=a.b"}, []string{"{name: secret-a-b, mountPath: /secrets/a.b, readOnly: true}", "- name: secret-a-b\n"}, nil},
		{"a key for the admin port", []string{"--set=admin.existingSecret=a", "--set-string=admin.existingSecretKey=1", "--set=serviceMonitor.enabled=true"},
			[]string{"admin_key_file: /secrets/a/1\n", "{name: secret-a, mountPath: /secrets/a, readOnly: true}", `secret: {secretName: "a", `, "      authorization:\n        credentials: {name: \"a\", key: \"1\"}\n"}, nil},
		{"no key for it", []string{"--set=serviceMonitor.enabled=true"}, []string{"kind: ServiceMonitor"}, []string{"admin_key_file", "authorization:"}},
		{"a low port without root", []string{"--set=frontend.httpPort=80"}, []string{`sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "0"}]`, `value: ":80"`}, nil},
		{"an HPA", []string{"--set=autoscaling.kind=hpa"}, []string{"kind: HorizontalPodAutoscaler", "kvasir_requests_in_flight"}, []string{"  replicas: 1\n  strategy:\n    rollingUpdate: {maxSurge: 1"}},
		{"an API key for helm test", []string{"--set=test.existingSecret=k"}, []string{`"Authorization: Bearer $(API_KEY)"`}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := render(t, c.args...)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, tail(got, 2000))
				}
			}
			for _, not := range c.not {
				if strings.Contains(got, not) {
					t.Errorf("%q stands in\n%s", not, tail(got, 2000))
				}
			}
		})
	}
	for _, c := range []struct{ set, want string }{
		{"--set=replica=2", "replica"},
		{"--set=workers[0].gpuDevices=0", "gpuDevices"},
		{"--set=workers[0].model.pth=x", "pth"},
		{"--set=workers[0].workerType=encode", "workerType"},
		{"--set=workers[0].connector=nccl", "connector"},
		{"--set=workers[0].model.gpuMemoryUtilization=1.5", "gpuMemoryUtilization"},
		{"--set=frontend.routerMode=direct", "routerMode"},
		{"--set=frontend.gpuDevice=0", "gpuDevice"},
		{"--set=huggingface.token=hf_x", "token"},
		{`--set-json=workers=[{"name":"a"},{"name":"a"}]`, "another worker is called a, too"},
		{"--set=workers[0].name=" + strings.Repeat("a", 40) + ",fullnameOverride=" + strings.Repeat("b", 40), "too long"},
		{"--set=workers[0].workerType=prefill,workers[0].connector=mooncake", "not by Mooncake"},
		{"--set=config.server.listen=:80", "frontend.httpPort"},
		{"--set=config.server.drain.timeout=soon", `"soon" is no duration`},
		{"--set=autoscaling.kind=keda", "autoscaling.prometheus"},
		{"--set=autoscaling.kind=hpa,autoscaling.minReplicas=11", "autoscaling.minReplicas: 11 is more than maxReplicas, 10"},
		{"--set=autoscaling.kind=hpa,autoscaling.cpu=0,autoscaling.requestsInFlight=0", "hpa has nothing to scale by"},
		{"--set=autoscaling.kind=keda,autoscaling.cpu=0,autoscaling.requestsInFlight=0", "keda has nothing to scale by"},
		{"--set=workers[0].name=admin", "workers[0].name: admin is the name of the Service"},
		{"--set=serviceAccount.create=false", "serviceAccount.name: without create"},
		{"--set=planner.mode=on", "planner"},
		{"--set-json=planner=null", "planner: null takes its defaults away"},
		{`--set-json=workers=[{"name":"a"},{"name":"b"}],planner={"mode":"apply"}`, "several workers of type both"},
		{`--set-json=workers=[{"name":"a"},{"name":"b","workerType":"decode"}],planner={"mode":"apply"}`, "some workers do both and some do not"},
		{"--set=workers[0].name=keda", "workers[0].name: keda is the name of the Service"},
		{"--set=planner.mode=keda,config.planner.mode=apply", "are the chart's with planner.mode: keda"},
		{`--set-json=workers=[],planner={"mode":"apply"}`, "there is no worker to scale"},
		{"--set=config.planner.kubernetes.both=vllm", `"vllm" is no target such as deployment/vllm`},
		{"--set=nameOverride=a b", "nameOverride"},
		{"--set-json=milvus=null", "milvus: null takes its defaults away"},
		{"--set-json=admin=null", "admin: null takes its defaults away"},
		{"--set=admin.existingSecret=A", "existingSecret"},
		{"--set-json=autoscaling=null", "autoscaling: null takes its defaults away"},
		{"--set-json=huggingface.cache=null", "huggingface.cache: null takes its defaults away"},
		{"--set=config.gpu=off", "gpu"},
		{"--set=podLabels.app\\.kubernetes\\.io/component=worker", "app.kubernetes.io/component"},
	} {
		t.Run(c.set, func(t *testing.T) {
			out, err := helm(t, "", "template", "kvasir", chartDir, "--kube-version", "1.33.4", c.set)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v, and says %s", err, tail(out, 600))
			}
		})
	}
}

// chartNames: releases of all names that Helm takes, and what their parts are called after.
var chartNames = []struct{ release, override, want string }{
	{"kvasir", "", "kvasir"},
	{"gate", "", "gate-kvasir"},
	{"kvasir.prod", "", "kvasir-prod"},
	{"1a", "", "k-1a-kvasir"},
	{"1", "", "k-1-kvasir"},
	{"true", "on", "true-on"},
	{"gate", "my-gate", "gate-my-gate"},
	{"a-release-whose-name-differs-only-at-its-end-1", "", "a-release-whose-name-differs-on-8842524b"},
	{"a-release-whose-name-differs-only-at-its-end-2", "", "a-release-whose-name-differs-on-20670d99"},
}

// TestRealKubeChartNames: a release of any name has Services that a server takes, and shares them with no other release.
func TestRealKubeChartNames(t *testing.T) {
	for _, c := range chartNames {
		t.Run(c.release+" "+c.override, func(t *testing.T) {
			services := 0
			for _, m := range manifests(t, mustHelm(t, "", "template", c.release, chartDir, "--namespace", "1", "--kube-version", "1.33.4", "--set=nameOverride="+c.override)) {
				var o struct {
					Metadata struct {
						Name, Namespace any
						Labels          map[string]any
					}
				}
				if err := yaml.Unmarshal([]byte(m.text), &o); err != nil {
					t.Fatal(err)
				}
				name, ok := o.Metadata.Name.(string)
				if !ok || name != c.want && !strings.HasPrefix(name, c.want+"-") {
					t.Errorf("a %s is called %v", m.Kind, o.Metadata.Name)
				}
				if o.Metadata.Labels["app.kubernetes.io/instance"] != c.release {
					t.Errorf("the labels of a %s are %v", m.Kind, o.Metadata.Labels)
				}
				if ns := o.Metadata.Namespace; ns != nil && ns != "1" {
					t.Errorf("the namespace of a %s is %v", m.Kind, ns)
				}
				if m.Kind == "Service" {
					services++
					if !regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`).MatchString(name) {
						t.Errorf("%s is no name of a Service", name)
					}
				}
			}
			if services != 3 {
				t.Errorf("there are %d Services", services)
			}
		})
	}
}

// TestRealKubeChart installs each example on a real API server, changes it, goes back and takes it away.
func TestRealKubeChart(t *testing.T) {
	c := startCluster(t)
	c.customResources(t)
	for _, example := range examples(t) {
		t.Run(example, func(t *testing.T) { c.wholeLife(t, example) })
	}
	t.Run("what no example has", c.otherValues)
	t.Run("pods as strict as they can be", c.podSecurity)
	t.Run("rights", c.chartRights)
}

// wholeLife is one release from its installation to its end.
func (c *cluster) wholeLife(t *testing.T, example string) {
	c.namespace(t, example, "")
	values := []string{"--namespace", example, "--values", valuesOf(example)}
	for _, m := range manifests(t, mustHelm(t, c.kubeconfig, append([]string{"template", "kvasir", chartDir, "--validate"}, values...)...)) {
		c.dryRun(t, m, example)
	}
	said := mustHelm(t, c.kubeconfig, append([]string{"install", "kvasir", chartDir}, values...)...)
	if !strings.Contains(said, "curl http://127.0.0.1:8080/v1/chat/completions") {
		t.Errorf("the notes are %s", said)
	}
	const mine = "app.kubernetes.io/instance%3Dkvasir"
	deployments := c.names(t, "apps/v1", "Deployment", example, mine)
	if !slices.Contains(deployments, "kvasir") || len(deployments) < 2 {
		t.Errorf("the deployments are %v", deployments)
	}
	annotation := func() string {
		var d struct {
			Spec struct {
				Template struct {
					Metadata struct{ Annotations map[string]string }
				}
			}
		}
		if err := json.Unmarshal(c.want(t, http.StatusOK, http.MethodGet, "/apis/apps/v1/namespaces/"+example+"/deployments/kvasir", ""), &d); err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Metadata.Annotations["kvasir.dev/restart"]
	}
	config := func() string {
		var m struct{ Data map[string]string }
		if err := json.Unmarshal(c.want(t, http.StatusOK, http.MethodGet, "/api/v1/namespaces/"+example+"/configmaps/kvasir", ""), &m); err != nil {
			t.Fatal(err)
		}
		return m.Data["kvasir.yaml"]
	}
	first, installed := annotation(), config()
	workers := c.names(t, "apps/v1", "Deployment", example, mine+",app.kubernetes.io/component%3Dworker")

	// What is hot reaches the pods that are there; what needs a restart makes new ones; all else stays as it was installed.
	mustHelm(t, c.kubeconfig, "upgrade", "kvasir", chartDir, "--namespace", example, "--reuse-values", "--set=config.log.level=debug", "--set-json=config.routing.temperature=0.5")
	if got := config(); !strings.Contains(got, "level: debug") || !strings.Contains(got, "temperature: 0.5") {
		t.Errorf("the configuration is %s", got)
	}
	if got := annotation(); got != first {
		t.Error("hot keys make new pods")
	}
	mustHelm(t, c.kubeconfig, "upgrade", "kvasir", chartDir, "--namespace", example, "--reuse-values", "--set=config.server.timeouts.header=3s")
	if got := annotation(); got == first {
		t.Error("a key that needs a restart makes no new pods")
	}
	if got := c.names(t, "apps/v1", "Deployment", example, mine+",app.kubernetes.io/component%3Dworker"); !slices.Equal(got, workers) {
		t.Errorf("the workers were %v and are %v", workers, got)
	}
	checkConfig(t, config())

	mustHelm(t, c.kubeconfig, "rollback", "kvasir", "1", "--namespace", example)
	if got := config(); got != installed || annotation() != first {
		t.Errorf("after the rollback the configuration is %s\nand was %s", got, installed)
	}
	mustHelm(t, c.kubeconfig, "uninstall", "kvasir", "--namespace", example)
	for _, kind := range [][2]string{{"v1", "Service"}, {"v1", "ConfigMap"}, {"v1", "ServiceAccount"}, {"apps/v1", "Deployment"}, {"rbac.authorization.k8s.io/v1", "Role"},
		{"rbac.authorization.k8s.io/v1", "RoleBinding"}, {"policy/v1", "PodDisruptionBudget"}, {"networking.k8s.io/v1", "NetworkPolicy"},
		{"monitoring.coreos.com/v1", "ServiceMonitor"}, {"monitoring.coreos.com/v1", "PrometheusRule"}, {"keda.sh/v1alpha1", "ScaledObject"}} {
		if left := c.names(t, kind[0], kind[1], example, mine); len(left) > 0 {
			t.Errorf("%s are left: %v", kind[1], left)
		}
	}
}

// otherValues has the server look at what no example has.
func (c *cluster) otherValues(t *testing.T) {
	c.namespace(t, "others", "")
	const first = "--set=workers[0]."
	for _, n := range chartNames {
		for _, m := range manifests(t, mustHelm(t, c.kubeconfig, "template", n.release, chartDir, "--validate", "--namespace", "others", "--set=nameOverride="+n.override)) {
			c.dryRun(t, m, "others")
		}
	}
	for _, args := range [][]string{
		{"--set-string=priorityClassName=system-node-critical", "--set-string=huggingface.existingSecret=1", "--set-string=huggingface.existingSecretKey=2", "--set-string=test.existingSecret=3", "--set-string=test.existingSecretKey=4",
			first + "name=on", "--set=fullnameOverride=y", "--set=milvus.address=m:1", "--set=milvus.existingSecret=a.b", "--set-string=milvus.existingSecretKey=5"},
		{first + "securityContext.capabilities.add={SYS_ADMIN}"}, {first + "securityContext.capabilities.add={CAP_SYS_ADMIN}"},
		{"--set=autoscaling.kind=hpa", "--set=service.type=LoadBalancer", "--set=serviceMonitor.enabled=true", "--set=prometheusRule.enabled=true", "--set=prometheusRule.labels.release=p"},
		{"--set=autoscaling.kind=keda", "--set=autoscaling.prometheus=http://p:9090", "--set=autoscaling.cpu=0"},
		{"--set=engine=sglang", first + "workerType=prefill", first + "connector=mooncake", "--set=workers[1].workerType=decode"},
		{first + "connector=lmcache", first + "gpuDevice=0", first + "runtimeClassName=nvidia", first + "maxRequests=8", first + "model.gpuMemoryUtilization=0.85", first + "resources.limits.cpu=4"},
		{first + "resources.limits.gpu=2", first + "resources.requests.gpu=2", first + "securityContext.capabilities.add={IPC_LOCK}", first + "strategy.type=Recreate",
			`--set-json=workers[0].env=[{"name":"UCX_TLS","value":"all"}]`, `--set-json=workers[0].volumes=[{"name":"v","emptyDir":{}}]`, `--set-json=workers[0].volumeMounts=[{"name":"v","mountPath":"/v"}]`},
		{"--set=secrets={a,b}", "--set=huggingface.existingSecret=hf", "--set=huggingface.cache.existingClaim=c", "--set=test.existingSecret=k", "--set=imagePullSecrets[0].name=r", "--set=priorityClassName=system-cluster-critical",
			`--set-json=env=[{"name":"X","value":"y"}]`, `--set-json=envFrom=[{"secretRef":{"name":"s"}}]`, `--set-json=networkPolicy.from=[{"podSelector":{}}]`, `--set-json=networkPolicy.adminFrom=[]`,
			`--set-json=topologySpreadConstraints=[{"topologyKey":"zone","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]`, `--set-json=tolerations=[{"operator":"Exists"}]`},
		{"--set-json=workers=[]", "--set=serviceAccount.create=false", "--set=podDisruptionBudget.maxUnavailable=25%", "--set=networkPolicy.enabled=false", "--set=frontend.httpPort=80"},
		{`--set-json=config.discovery=[{"kind":"kubernetes","namespace":"others","inference_pool":"p"}]`, "--set=rbac.dynamoGraphDeployments=true"},
		{"--set=planner.mode=keda"}, {"--set=planner.mode=apply"}, {"--set=planner.mode=advise", "--set=config.planner.kubernetes.decode=dynamographdeployment/g/D", "--set=config.planner.kubernetes.prefill=statefulset/p"},
	} {
		for _, m := range manifests(t, mustHelm(t, c.kubeconfig, append([]string{"template", "kvasir", chartDir, "--validate", "--namespace", "others"}, args...)...)) {
			c.dryRun(t, m, "others")
		}
	}
}

// podSecurity: Kvasir's pod and that of helm test keep to the strictest of Kubernetes' own standards, the engines' to
// the one below.
func (c *cluster) podSecurity(t *testing.T) {
	for _, level := range []string{"restricted", "baseline"} {
		c.namespace(t, level, "pod-security.kubernetes.io/enforce: "+level)
		c.want(t, http.StatusCreated, http.MethodPost, "/api/v1/namespaces/"+level+"/serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: kvasir}}")
	}
	pods := 0
	for _, m := range manifests(t, render(t, "--values", valuesOf("multi-model"))) {
		var object struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Template struct{ Spec map[string]any }
			}
		}
		if err := yaml.Unmarshal([]byte(m.text), &object); err != nil {
			t.Fatal(err)
		}
		switch m.Kind {
		case "Pod":
			c.dryRun(t, m, "restricted")
		case "Deployment":
			level := "restricted"
			if object.Metadata.Labels["app.kubernetes.io/component"] == "worker" {
				level = "baseline"
			}
			text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]string{"name": "p"}, "spec": object.Spec.Template.Spec})
			if err != nil {
				t.Fatal(err)
			}
			c.dryRun(t, manifest{text: string(text), APIVersion: "v1", Kind: "Pod"}, level)
		default:
			continue
		}
		pods++
	}
	if pods != 4 {
		t.Errorf("%d pods were looked at", pods)
	}
}

// chartRights: the chart's service account reads what discovery looks at, where it looks, and nothing else.
func (c *cluster) chartRights(t *testing.T) {
	for _, name := range []string{"rights", "watched", "elsewhere"} {
		c.namespace(t, name, "")
	}
	mustHelm(t, c.kubeconfig, "install", "kvasir", chartDir, "--namespace", "rights",
		`--set-json=config.discovery=[{"kind":"kubernetes","namespace":"watched","selector":"app=vllm","port":8000}]`)
	kvasir := c.as(t, c.tokenOf(t, "rights", "kvasir"), "rights")
	const slices = "/apis/discovery.k8s.io/v1"
	for _, may := range []string{
		"/api/v1/namespaces/rights/pods", "/api/v1/namespaces/watched/pods", slices + "/namespaces/rights/endpointslices", slices + "/namespaces/watched/endpointslices",
		"/api/v1/namespaces/rights/pods?watch=true&timeoutSeconds=1", slices + "/namespaces/watched/endpointslices?watch=true&timeoutSeconds=1",
	} {
		kvasir.want(t, http.StatusOK, http.MethodGet, may, "")
	}
	for _, mayNot := range []struct{ method, path string }{
		{http.MethodGet, "/api/v1/namespaces/rights/secrets"}, {http.MethodGet, "/api/v1/namespaces/rights/configmaps"}, {http.MethodGet, "/api/v1/namespaces/rights/services"},
		{http.MethodGet, "/api/v1/namespaces/elsewhere/pods"}, {http.MethodGet, slices + "/namespaces/elsewhere/endpointslices"}, {http.MethodGet, "/api/v1/pods"},
		{http.MethodGet, "/api/v1/namespaces/rights/pods/x"}, {http.MethodGet, slices + "/namespaces/rights/endpointslices/x"},
		{http.MethodGet, "/api/v1/nodes"}, {http.MethodGet, "/apis/apps/v1/namespaces/rights/deployments"},
		{http.MethodDelete, "/api/v1/namespaces/rights/pods/x"}, {http.MethodPost, "/api/v1/namespaces/rights/pods"},
		{http.MethodPost, "/api/v1/namespaces/rights/serviceaccounts/kvasir/token"}, {http.MethodPatch, "/apis/apps/v1/namespaces/rights/deployments/kvasir"},
	} {
		kvasir.want(t, http.StatusForbidden, mayNot.method, mayNot.path, "{}")
	}
	mustHelm(t, c.kubeconfig, "uninstall", "kvasir", "--namespace", "rights")
	kvasir.want(t, http.StatusForbidden, http.MethodGet, "/api/v1/namespaces/watched/pods", "")
}

// TestRealKubeChartTest runs what `helm test` runs in its pod, as there is nobody here who runs pods: the same curl with
// the same arguments, against a Kvasir with a simulated worker.
func TestRealKubeChartTest(t *testing.T) {
	k := serve(t, "simulate: [{name: s, speedup: 100}]\nkeys: []\ncache: {store: 'off'}\n", "sim")
	for _, m := range manifests(t, render(t)) {
		if m.Kind != "Pod" {
			continue
		}
		var pod struct {
			Spec struct {
				Containers []struct{ Command, Args []string }
			}
		}
		if err := yaml.Unmarshal([]byte(m.text), &pod); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"--connect-to", "kvasir:8080:" + strings.TrimPrefix(k.url, "http://")}, pod.Spec.Containers[0].Args...)
		out := command(t, pod.Spec.Containers[0].Command[0], args...)
		if !strings.Contains(out, `"finish_reason"`) {
			t.Errorf("the answer is %s", out)
		}
		return
	}
	t.Fatal("there is no pod")
}
