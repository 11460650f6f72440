// Tests of how pods and EndpointSlices are read, which ask no API server.

package discovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"kvasir/upstream"
)

// aPod is a Pod as the API server sends it, ready, with a port named http. More is merged
// into metadata.
func aPod(name, ip string, metadata ...string) string {
	more := ""
	for _, m := range metadata {
		more += "," + m
	}
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"uid":"uid-%s","namespace":"team","labels":{"app":"vllm"}%s},
		"spec":{"containers":[{"name":"sidecar"},{"name":"engine","ports":[
			{"name":"http","containerPort":8000,"protocol":"UDP"},{"name":"http","containerPort":8000,"protocol":"TCP"},{"name":"events","containerPort":5557}]}],
			"initContainers":[{"name":"load","ports":[{"name":"load","containerPort":1}]},{"name":"proxy","restartPolicy":"Always","ports":[{"name":"proxy","containerPort":8200}]}]},
		"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q},{"ip":"fd00::9"}],"conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"}]}}`,
		name, name, more, ip, ip)
}

func annotated(pairs ...string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	text, _ := json.Marshal(m)
	return `"annotations":` + string(text)
}

// aSlice is an EndpointSlice of a Service, its endpoints as they stand in it.
func aSlice(name, service, family, port, endpoints string) string {
	return fmt.Sprintf(`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","addressType":%q,
		"metadata":{"name":%q,"namespace":"team","labels":{"app":%q,"kubernetes.io/service-name":%q}},"ports":[{"name":%q,"protocol":"TCP","port":9000}],"endpoints":[%s]}`,
		family, name, service, service, port, endpoints)
}

func endpointOf(pod, conditions string) string {
	return fmt.Sprintf(`{"addresses":["10.9.9.9"],"conditions":{%s},"targetRef":{"kind":"Pod","name":%q,"uid":"uid-%s"}}`, conditions, pod, pod)
}

func decoded[O, T any](t testing.TB, short func(*O) T, texts ...string) (all []T) {
	t.Helper()
	for _, text := range texts {
		var o O
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, short(&o))
	}
	return all
}

func seenOf(t testing.TB, pods, inSlices []string) *seen {
	s := &seen{map[string]pod{}, map[string]endpointSlice{}}
	for _, p := range decoded(t, podOf, pods...) {
		s.pods[p.name] = p
	}
	for _, e := range decoded(t, sliceOf, inSlices...) {
		s.slices[e.name] = e
	}
	return s
}

func aimAt(port string, numbers ...int) *aim {
	selector, _ := labels.Parse("app=vllm")
	return &aim{selector: selector, name: port, numbers: numbers, outside: true}
}

func named(workers []Worker) string {
	var all []string
	for _, w := range workers {
		all = append(all, w.Name+"="+strings.TrimPrefix(w.URL, "http://"))
	}
	return strings.Join(all, " ")
}

const (
	isReady    = `"ready":true,"serving":true,"terminating":false`
	isUnready  = `"ready":false,"serving":false,"terminating":false`
	isDraining = `"ready":false,"serving":true,"terminating":true`
	isDeleted  = `"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30`
)

// TestPods goes through what pods and their Services may say: who is a worker then.
func TestPods(t *testing.T) {
	t.Parallel()
	a, b := aPod("a", "10.0.0.1"), aPod("b", "10.0.0.2")
	unready := strings.Replace(aPod("u", "10.0.0.3"), `"Ready","status":"True"`, `"Ready","status":"False"`, 1)
	for _, c := range []struct {
		name         string
		pods, slices []string
		aim          *aim
		want         string
		leaving      string
		wrong        string
	}{
		{name: "no Service", pods: []string{b, a, unready, aPod("pending", "")}, want: "a=10.0.0.1:8000 b=10.0.0.2:8000"},
		{name: "by number, which no container has to name", pods: []string{a}, aim: aimAt("", 7000), want: "a=10.0.0.1:7000"},
		{name: "several ports", pods: []string{a}, aim: aimAt("", 8000, 8001), want: "a:8000=10.0.0.1:8000 a:8001=10.0.0.1:8001"},
		{name: "a sidecar's port", pods: []string{a}, aim: aimAt("proxy"), want: "a=10.0.0.1:8200"},
		{name: "a port of an init container that has ended", pods: []string{a}, aim: aimAt("load"), wrong: `pod a: neither its containers nor a Service of it have a TCP port "load"`},
		{name: "IPv6", pods: []string{aPod("v6", "fd00::1")}, want: "v6=[fd00::1]:8000"},
		{name: "hostNetwork: one address, two pods", pods: []string{a, strings.ReplaceAll(aPod("c", "10.0.0.1"), "8000", "8001")}, want: "a=10.0.0.1:8000 c=10.0.0.1:8001"},
		{name: "told to end", pods: []string{a, aPod("b", "10.0.0.2", isDeleted)}, want: "a=10.0.0.1:8000", leaving: "kubernetes team/app=vllm pod b"},
		{
			name: "not ready by its Service", pods: []string{a, b}, want: "a=10.0.0.1:8000",
			slices: []string{aSlice("s", "x", "IPv4", "web", endpointOf("a", isReady)+","+endpointOf("b", isUnready))},
		},
		{
			name: "one of two Services has it ready", pods: []string{a}, want: "a=10.0.0.1:8000",
			slices: []string{aSlice("s", "x", "IPv4", "web", endpointOf("a", isUnready)), aSlice("t", "y", "IPv4", "web", endpointOf("a", isReady))},
		},
		{
			name: "draining by its Service", pods: []string{a},
			slices: []string{aSlice("s", "x", "IPv4", "web", endpointOf("a", isDraining))},
		},
		{
			name: "no condition means ready", pods: []string{a}, want: "a=10.0.0.1:8000",
			slices: []string{aSlice("s", "x", "IPv4", "web", endpointOf("a", ""))},
		},
		{
			name: "not ready, however its Service publishes it", pods: []string{unready},
			slices: []string{aSlice("s", "x", "IPv4", "web", endpointOf("u", isReady))},
		},
		{
			name: "both families list one pod", pods: []string{a}, want: "a=10.0.0.1:8000",
			slices: []string{aSlice("s4", "x", "IPv4", "web", endpointOf("a", isReady)), aSlice("s6", "x", "IPv6", "web", strings.Replace(endpointOf("a", isReady), "10.9.9.9", "fd00::9", 1))},
		},
		{
			name: "the Service still has the pod that had this name before", pods: []string{a}, want: "a=10.0.0.1:8000",
			slices: []string{aSlice("s", "x", "IPv4", "web", strings.Replace(endpointOf("a", isUnready), "uid-a", "older", 1))},
		},
		{
			name: "a port that only the Service has a name for", pods: []string{a, b}, aim: aimAt("web"), want: "a=10.0.0.1:9000", wrong: `pod b: neither`,
			slices: []string{aSlice("s", "x", "IPv4", "web", endpointOf("a", isReady))},
		},
		{
			name: "a pod that does not carry the labels", want: "",
			slices: []string{aSlice("s", "vllm", "IPv4", "http", endpointOf("other", isReady))},
		},
		{
			name: "outside of the cluster", want: "10.5.0.1:9000=10.5.0.1:9000 10.5.0.2:9000=10.5.0.2:9000",
			slices: []string{
				aSlice("s4", "vllm", "IPv4", "http", `{"addresses":["10.5.0.1"]},{"addresses":["10.5.0.2"],"hostname":"two","conditions":{"ready":true}},{"addresses":["10.5.0.3"],"conditions":{"ready":false}},{"addresses":[]}`),
				aSlice("s6", "vllm", "IPv6", "http", `{"addresses":["fd00::2"],"hostname":"two"}`),
				aSlice("other", "x", "IPv4", "http", `{"addresses":["10.5.0.4"]}`),
			},
		},
		{
			name: "outside, without the port", wrong: `EndpointSlice s: it has no TCP port "http"`,
			slices: []string{aSlice("s", "vllm", "IPv4", "web", `{"addresses":["10.5.0.1"]},{"addresses":["10.5.0.2"]}`)},
		},
		{
			name: "outside, at no address", wrong: `EndpointSlice s: "a b", port [9000] cannot be reached`,
			slices: []string{aSlice("s", "vllm", "FQDN", "http", `{"addresses":["a b"]}`)},
		},
	} {
		r := podReader{source: "kubernetes team/app=vllm"}
		if c.aim == nil {
			c.aim = aimAt("http")
		}
		got := r.read(&Entry{Scheme: "http"}, c.aim, seenOf(t, c.pods, c.slices))
		wrong := ""
		if got.bad != nil {
			wrong = got.bad.Error()
		}
		leaving := strings.Join(slices.Sorted(maps.Keys(got.leaving)), " ")
		if named(got.workers) != c.want || leaving != c.leaving || !strings.HasPrefix(wrong, c.wrong) || c.wrong == "" && wrong != "" {
			t.Errorf("%s: %q, leaving %q, wrong %q; want %q, %q, %q", c.name, named(got.workers), leaving, wrong, c.want, c.leaving, c.wrong)
		}
	}
}

// TestPodSays: what annotations and usual labels say of a worker, and what is wrong with them.
func TestPodSays(t *testing.T) {
	t.Parallel()
	entry := Entry{Scheme: "https", Worker: upstream.Settings{Role: "decode", Engine: "trtllm", MaxRequests: 7}}
	labelled := func(pairs string) string {
		return strings.Replace(aPod("a", "10.0.0.1"), `"app":"vllm"`, pairs, 1)
	}
	says := func(pairs ...string) string { return aPod("a", "10.0.0.1", annotated(pairs...)) }
	told := upstream.Settings{Name: "a", URL: "https://10.0.0.1:8000", Role: "decode", Engine: "trtllm", MaxRequests: 7}
	with := func(change func(*upstream.Settings)) upstream.Settings {
		s := told
		change(&s)
		return s
	}
	for _, c := range []struct {
		pod   string
		want  upstream.Settings
		wrong string
	}{
		{pod: aPod("a", "10.0.0.1", annotated("other.dev/role", "x")), want: told},
		{
			pod: says("kvasir.dev/role", "prefill", "kvasir.dev/engine", "vllm", "kvasir.dev/models", "qwen, llama", "kvasir.dev/kv-events-port", "events",
				"kvasir.dev/kv-replay-port", "5558", "kvasir.dev/max-requests", "3", "kvasir.dev/gpus", "0,GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20"),
			want: upstream.Settings{
				Name: "a", URL: "https://10.0.0.1:8000", Role: "prefill", Engine: "vllm", Models: []string{"qwen", "llama"}, MaxRequests: 3,
				KVEvents: "tcp://10.0.0.1:5557", KVReplay: "tcp://10.0.0.1:5558", GPUs: []string{"0", "GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20"},
			},
		},
		{pod: labelled(`"nvidia.com/dynamo-component-type":"worker","nvidia.com/dynamo-sub-component-type":"prefill"`), want: with(func(s *upstream.Settings) { s.Role = "prefill" })},
		{pod: labelled(`"nvidia.com/dynamo-component-type":"frontend"`), want: with(func(s *upstream.Settings) { s.Engine = "dynamo" })},
		{pod: labelled(`"nvidia.com/dynamo-component-type":"planner"`), want: told},
		{pod: labelled(`"llm-d.ai/role":"prefill-decode","llm-d.ai/engine-type":"sglang"`), want: with(func(s *upstream.Settings) { s.Role, s.Engine = "both", "sglang" })},
		{pod: labelled(`"inference.networking.k8s.io/engine-type":"vllm","role-name":"prefill"`), want: with(func(s *upstream.Settings) { s.Role, s.Engine = "prefill", "vllm" })},
		{pod: strings.Replace(says("kvasir.dev/role", "both"), `"app":"vllm"`, `"llm-d.ai/role":"prefill"`, 1), want: with(func(s *upstream.Settings) { s.Role = "both" })}, // the annotation is ours
		{pod: says("kvasir.dev/role", "prefil"), wrong: `annotation kvasir.dev/role: must be both, prefill or decode, not "prefil", did you mean "prefill"?`},
		{pod: says("kvasir.dev/rol", "prefill"), wrong: `annotation "kvasir.dev/rol" is unknown, did you mean "kvasir.dev/role"?`},
		{pod: says("kvasir.dev/engine", "vlm"), wrong: `annotation kvasir.dev/engine: must be vllm, sglang, trtllm, dynamo, llamacpp or openai, not "vlm", did you mean "vllm"?`},
		{pod: says("kvasir.dev/models", "a,,b"), wrong: `annotation kvasir.dev/models: is missing`},
		{pod: says("kvasir.dev/models", "auto"), wrong: `annotation kvasir.dev/models: "auto" is what clients ask for when Kvasir shall choose; give the model another name`},
		{pod: says("kvasir.dev/max-requests", "lots"), wrong: `annotation kvasir.dev/max-requests: must be a number from 0, no limit, to 1000000, not "lots"`},
		{pod: says("kvasir.dev/max-requests", "-1"), wrong: `annotation kvasir.dev/max-requests: must be a number from 0, no limit, to 1000000, not "-1"`},
		{pod: says("kvasir.dev/gpus", "all"), wrong: `annotation kvasir.dev/gpus: "all" is neither an NVML index, such as 0, nor a UUID`},
		{pod: says("kvasir.dev/kv-events-port", "zmq"), wrong: `annotation kvasir.dev/kv-events-port: must be a port from 1 to 65535, or the name of one of its containers' ports, not "zmq"`},
		{pod: says("kvasir.dev/kv-events-port", "70000"), wrong: `annotation kvasir.dev/kv-events-port: must be a port from 1 to 65535`},
		{pod: says("kvasir.dev/kv-replay-port", "5558"), wrong: `annotation kvasir.dev/kv-replay-port repeats what kv-events-port missed; set that, too`},
		{pod: says("kvasir.dev/kv-replay-port", "5557", "kvasir.dev/kv-events-port", "5557"), wrong: `annotation kvasir.dev/kv-replay-port is kv-events-port, too`},
	} {
		r := podReader{source: "k"}
		got := r.read(&entry, aimAt("http"), seenOf(t, []string{c.pod}, nil))
		switch {
		case c.wrong != "":
			if got.bad == nil || !strings.HasPrefix(got.bad.Error(), "pod a: "+c.wrong) || len(got.workers) > 0 {
				t.Errorf("%v with %v, want %s", got.bad, got.workers, c.wrong)
			}
		case got.bad != nil || len(got.workers) != 1 || !equal(&got.workers[0].Settings, &c.want):
			t.Errorf("%s:\n%+v and %v, want\n%+v", c.pod, got.workers, got.bad, c.want)
		}
	}
}

// TestPodKeepsWhatItWas: an annotation that becomes bad is told and changes nothing of its
// worker, nor of others; another pod of the name has no past.
func TestPodKeepsWhatItWas(t *testing.T) {
	t.Parallel()
	r := podReader{source: "k"}
	step := func(pods ...string) string {
		got := r.read(&Entry{Scheme: "http", Worker: upstream.Settings{Role: "both"}}, aimAt("http"), seenOf(t, pods, nil))
		text := ""
		for _, w := range got.workers {
			text += w.Name + "=" + w.Role + " "
		}
		if got.bad != nil {
			text += got.bad.Error()
		}
		return text
	}
	bad := `pod a: annotation kvasir.dev/role: must be both, prefill or decode, not "nonsense"`
	for i, c := range []struct{ got, want string }{
		{step(aPod("a", "10.0.0.1", annotated("kvasir.dev/role", "prefill")), aPod("b", "10.0.0.2")), "a=prefill b=both "},
		{step(aPod("a", "10.0.0.1", annotated("kvasir.dev/role", "nonsense")), aPod("b", "10.0.0.2", annotated("kvasir.dev/role", "decode"))), "a=prefill b=decode " + bad},
		{step(aPod("a", "10.0.0.1", annotated("kvasir.dev/role", "nonsense")), aPod("b", "10.0.0.2")), "a=prefill b=both " + bad},
		{step(strings.Replace(aPod("a", "10.0.0.1", annotated("kvasir.dev/role", "nonsense")), "uid-a", "uid-c", 1)), bad},
		{step(aPod("a", "10.0.0.1")), "a=both "},
	} {
		if c.got != c.want {
			t.Errorf("step %d: %q, want %q", i, c.got, c.want)
		}
	}
}

func TestCheckKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e           Entry
		key, begins string
	}{
		{Entry{Selector: "app=vllm", PortName: "http"}, "", ""},
		{Entry{Selector: "app in (vllm, sglang),!old", Port: 8000, Namespace: "team-a"}, "", ""},
		{Entry{InferencePool: "vllm-pool"}, "", ""},
		{Entry{PortName: "http"}, "selector", "is missing"},
		{Entry{Selector: "app=vllm", InferencePool: "p"}, "selector", "is set together with"},
		{Entry{Selector: "app=", Port: 1}, "", ""}, // the label without a value
		{Entry{Selector: "app==a b", Port: 1}, "selector", "is no label selector"},
		{Entry{Selector: " ", Port: 1}, "selector", "means every pod"},
		{Entry{Selector: "app=vllm"}, "port", "is missing"},
		{Entry{Selector: "app=vllm", Port: 65536}, "port", "must be from 1"},
		{Entry{Selector: "app=vllm", PortName: "HTTP"}, "port", "must be a number"},
		{Entry{Selector: "app=vllm", PortName: "a-very-long-name"}, "port", "must be a number"},
		{Entry{InferencePool: "p", Port: 8000}, "port", "is set together with"},
		{Entry{InferencePool: "ns/p"}, "inference_pool", "is no name"},
		{Entry{Selector: "app=vllm", Port: 1, Namespace: "*"}, "namespace", "is no name"},
	} {
		c.e.Kind = "kubernetes"
		key, wrong := Check(&c.e)
		if key != c.key || !strings.HasPrefix(wrong, c.begins) || c.begins == "" && wrong != "" {
			t.Errorf("%+v: %s %s, want %s %s", c.e, key, wrong, c.key, c.begins)
		}
	}
	for want, e := range map[string]Entry{
		"kubernetes team/app=vllm:http":         {Namespace: "team", Selector: "app=vllm", PortName: "http"},
		"kubernetes app=vllm:8000":              {Selector: "app=vllm", Port: 8000},
		"kubernetes team/inferencepool/my-pool": {Namespace: "team", InferencePool: "my-pool"},
	} {
		e.Kind = "kubernetes"
		if got := e.String(); got != want {
			t.Errorf("the source is called %q, want %q", got, want)
		}
	}
	for selector, want := range map[string]bool{"app=vllm": true, "app": true, "app in (a)": true, "app!=vllm": false, "!app": false, "app notin (a),!b": false} {
		s, err := labels.Parse(selector)
		if err != nil || isPositive(s) != want {
			t.Errorf("%s: positive %v, %v", selector, !want, err)
		}
	}
}

// FuzzPod reads whatever an API server could send for a Pod and an EndpointSlice: what
// comes out are workers that can be served.
func FuzzPod(f *testing.F) {
	f.Add(aPod("a", "10.0.0.1"), aSlice("s", "vllm", "IPv4", "http", endpointOf("a", isReady)))
	f.Add(aPod("a", "fd00::1", annotated("kvasir.dev/role", "prefill", "kvasir.dev/kv-events-port", "events")), aSlice("s", "vllm", "FQDN", "http", `{"addresses":["gpu.example"],"hostname":"x"}`))
	f.Add(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`, `{"endpoints":[{"addresses":["::"]}],"ports":[{}]}`)
	f.Fuzz(func(t *testing.T, podText, sliceText string) {
		var p podObject
		var s sliceObject
		if json.Unmarshal([]byte(podText), &p) != nil || json.Unmarshal([]byte(sliceText), &s) != nil {
			return
		}
		r := podReader{source: "k"}
		v := &seen{map[string]pod{p.Name: podOf(&p)}, map[string]endpointSlice{s.Name: sliceOf(&s)}}
		for _, a := range []*aim{aimAt("http"), aimAt("", 8000, 8001)} {
			found := r.read(&Entry{Scheme: "http", Worker: upstream.Settings{Role: "both"}}, a, v)
			for _, w := range found.workers {
				if _, err := url.Parse(w.URL); err != nil {
					t.Errorf("%v", err)
				}
				if _, err := upstream.NewWorker(w.Settings, upstream.Timeouts{}); err != nil {
					t.Errorf("%v", err)
				}
			}
		}
	})
}

// BenchmarkPods reads as many pods as a source may have.
func BenchmarkPods(b *testing.B) {
	var pods, listed []string
	for i := range maxWorkers {
		name := fmt.Sprintf("vllm-%d", i)
		pods = append(pods, aPod(name, fmt.Sprintf("10.1.%d.%d", i/256, i%256)))
		listed = append(listed, endpointOf(name, isReady))
	}
	var slicesOf []string
	for i := 0; i < len(listed); i += 100 {
		slicesOf = append(slicesOf, aSlice(fmt.Sprintf("s%d", i), "x", "IPv4", "web", strings.Join(listed[i:min(i+100, len(listed))], ",")))
	}
	s := seenOf(b, pods, slicesOf)
	r := podReader{source: "k"}
	for b.Loop() {
		if got := r.read(&Entry{Scheme: "http"}, aimAt("http"), s); len(got.workers) != maxWorkers {
			b.Fatal(len(got.workers))
		}
	}
}
