// Tests of files of workers: good ones in both forms, and what is said of bad ones.

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// readWorkers reads a file of workers that lies beside a file one.key.
func readWorkers(t *testing.T, entry *Discovery, text string) (WorkerFile, error) {
	t.Helper()
	dir := t.TempDir()
	do(t, os.WriteFile(filepath.Join(dir, "one.key"), []byte("sk-one\n"), 0o600))
	l := &Layers{BuiltIn: []byte("discovery: [{kind: file, path: workers.d}]"), Environ: []string{"PORT=8088"}}
	g, _, err := l.Load()
	do(t, err)
	if entry == nil {
		entry = &g.Config.Discovery[0]
	}
	return g.ReadWorkers(entry, filepath.Join(dir, "w.yaml"), []byte(text))
}

func TestWorkerFiles(t *testing.T) {
	t.Parallel()
	file := &Discovery{Kind: "file", Engine: "vllm", Role: "decode", Models: []string{"qwen"}, MaxRequests: 7}
	for name, c := range map[string]struct {
		entry *Discovery
		text  string
		want  []Worker
	}{
		"list": {nil, "- url: http://10.0.0.5:${PORT}/\n  role: prefill\n- {name: b, url: 'https://h/base', models: [m]}\n", []Worker{
			{Name: "10.0.0.5:8088", URL: "http://10.0.0.5:8088", Role: "prefill"},
			{Name: "b", URL: "https://h/base", Role: "both", Models: []string{"m"}},
		}},
		"JSON":  {nil, "[\n\t{\"url\": \"http://a:1\",\n\t\"max_requests\": 3}\n]\n", []Worker{{Name: "a:1", URL: "http://a:1", Role: "both", MaxRequests: 3}}},
		"empty": {nil, "[]\n", nil},
		"defaults of the entry": {file, "- {url: http://a:1}\n- {url: http://b:1, role: both, engine: sglang, models: [], max_requests: 0}\n", []Worker{
			{Name: "a:1", URL: "http://a:1", Engine: "vllm", Role: "decode", Models: []string{"qwen"}, MaxRequests: 7},
			{Name: "b:1", URL: "http://b:1", Engine: "sglang", Role: "both"},
		}},
		"file_sd": {nil, `[{"targets": ["10.0.0.5:8000", "10.0.0.6:8000"], "labels": {"job": "vllm", "__metrics_path__": "/m", "kvasir_role": "prefill", "kvasir_models": "a,b", "kvasir_engine": "vllm", "kvasir_max_requests": "4"}},
			{"targets": []}, {"targets": ["h:1"], "labels": {"__scheme__": "https"}}]`, []Worker{
			{Name: "10.0.0.5:8000", URL: "http://10.0.0.5:8000", Engine: "vllm", Role: "prefill", Models: []string{"a", "b"}, MaxRequests: 4},
			{Name: "10.0.0.6:8000", URL: "http://10.0.0.6:8000", Engine: "vllm", Role: "prefill", Models: []string{"a", "b"}, MaxRequests: 4},
			{Name: "h:1", URL: "https://h:1", Role: "both"},
		}},
		"one target in two groups, and labels that are Prometheus' alone": {nil, "- {targets: ['a:1', 'b:1'], labels: {job: x, canary: true, cmd: '${nope}', list: [1]}}\n- {targets: ['a:1'], labels: {job: y}}\n- {url: 'http://b:1'}\n- {url: 'http://c:1'}\n", []Worker{
			{Name: "a:1", URL: "http://a:1", Role: "both"}, {Name: "b:1", URL: "http://b:1", Role: "both"}, {Name: "c:1", URL: "http://c:1", Role: "both"},
		}},
		"instances behind one frontend": {nil, "- {url: 'http://f:1', engine: dynamo, instance: 7, name: a}\n- {url: 'http://f:1', engine: dynamo, instance: 8, name: b}\n", []Worker{
			{Name: "a", URL: "http://f:1", Engine: "dynamo", Role: "both", Instance: "7"}, {Name: "b", URL: "http://f:1", Engine: "dynamo", Role: "both", Instance: "8"},
		}},
		"both forms": {nil, "- targets: [a:1]\n- url: http://b:1\n", []Worker{{Name: "a:1", URL: "http://a:1", Role: "both"}, {Name: "b:1", URL: "http://b:1", Role: "both"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := readWorkers(t, c.entry, c.text)
			do(t, err)
			for i := range f.Workers { // an empty list and none are the same
				for _, list := range []any{&f.Workers[i].Models, &f.Workers[i].GPUs, &f.Workers[i].Headers} {
					if v := reflect.ValueOf(list).Elem(); v.Len() == 0 {
						v.SetZero()
					}
				}
			}
			if !slices.EqualFunc(f.Workers, c.want, func(a, b Worker) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("workers are\n%+v, want\n%+v", f.Workers, c.want)
			}
		})
	}
}

// TestWorkerFileKeys: files that a worker names are read from beside its own, and told, so
// that a change of them is seen. The entry's key is for workers that send none themselves.
func TestWorkerFileKeys(t *testing.T) {
	t.Parallel()
	f, err := readWorkers(t, nil, "- {url: http://a:1, key_file: one.key}\n- {url: http://b:1}\n")
	do(t, err)
	if len(f.Credentials) != 2 || f.Credentials[0].Secret != "sk-one" || f.Credentials[1].Secret != "" || len(f.Read) != 1 {
		t.Errorf("credentials are %+v, read was %v", f.Credentials, f.Read)
	}
	key := filepath.Join(t.TempDir(), "two.key")
	do(t, os.WriteFile(key, []byte("sk-two"), 0o600))
	f, err = readWorkers(t, &Discovery{Kind: "file", KeyFile: Path(key)}, "- {url: http://a:1, key_file: one.key}\n- {url: http://b:1}\n- {url: http://c:1, headers: {authorization: x}}\n")
	do(t, err)
	if c := f.Credentials; c[0].Secret != "sk-one" || c[1].Secret != "sk-two" || c[2].Secret != "" {
		t.Errorf("credentials are %+v", c)
	}
	f, err = readWorkers(t, nil, "- {url: http://a:1, key_file: missing.key}\n")
	if err == nil || len(f.Read) != 1 || f.Workers != nil {
		t.Errorf("a missing key: %+v, %v", f, err)
	}
}

func TestBadWorkerFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"- url: http://a:1\n  rol: decode\n":        `w.yaml:2:3: workers[0].rol: unknown key, did you mean "role"?`,
		"- url: http://a:1\n- url: 10.0.0.5:8000\n": `w.yaml:2:8: workers[1].url: "10.0.0.5:8000" has no scheme, did you mean "http://10.0.0.5:8000"?`,
		"- {url: http://a:1, max_requests: many}\n": `w.yaml:1:35: workers[0].max_requests: must be a whole number, not "many"`,
		"workers: []\n":           `w.yaml:1:1: must be a list of workers, is a mapping; begin each worker with -`,
		"- url: [\n":              `w.yaml:1:1: this is not YAML: did not find expected node content`,
		"# nothing\n":             `w.yaml:1:1: the file has no list; a file that has no workers says []`,
		"- url: http://a:1\n- \n": `w.yaml:2:2: workers[1]: is empty`,
		"- {name: x, url: http://a:1}\n- {name: x, url: http://b:1}\n":                                    `w.yaml:2:10: workers[1].name: "x" is the name of another worker, first at w.yaml:1:10`,
		"- {url: http://a:1}\n- {url: http://a:1, role: decode}\n":                                        `w.yaml:2:9: workers[1].url: this file has the worker at this URL before, and says other things of it there`,
		"[{\"targets\": [\"a:1\"]}, {\"targets\": [\"a:1\"], \"labels\": {\"kvasir_role\": \"decode\"}}]": `w.yaml:1:37: workers[1].url: this file has the worker at this URL before, and says other things of it there`,
		"\xff": `w.yaml:1:1: the file is not UTF-8 here`,
		"[{\"targets\": [\"a:1\"],\n\"labels\": {\"kvasir_rol\": \"both\"}}]": `w.yaml:2:26: workers[0].labels.kvasir_rol: unknown label, did you mean "kvasir_role"?`,
		"[{\"targets\": [\"a:1\"], \"labels\": {\"kvasir_role\": \"bth\"}}]":  `w.yaml:1:49: workers[0].labels.kvasir_role: must be both, prefill or decode, not "bth", did you mean "both"?`,
		"[{\"targets\": [\"http://u:S3CRET@a:1\"]}]":                          `w.yaml:1:15: workers[0].url: is a URL; a target is host:port, and the label __scheme__ says http or https`,
		"[{\"targets\": [\"a:1\", \"a b\"]}]":                                 `w.yaml:1:22: workers[1].url: "http://a b" has blanks or control characters`,
		strings.Repeat("#", 1<<20+1):                                          `w.yaml:1:1: the file is larger than 1 MiB`,
	} {
		f, err := readWorkers(t, nil, text)
		var bad Problems
		if !errors.As(err, &bad) || f.Workers != nil {
			t.Errorf("%.40q: the error is %v, workers are %v", text, err, f.Workers)
			continue
		}
		got := regexp.MustCompile(`\S*/w\.yaml`).ReplaceAllString(err.Error(), "w.yaml")
		if got != want {
			t.Errorf("%.40q:\n%s, want\n%s", text, got, want)
		}
	}
}

func FuzzWorkerFile(f *testing.F) {
	f.Add([]byte("- {url: http://a:1, role: decode}\n"))
	f.Add([]byte(`[{"targets": ["a:1"], "labels": {"kvasir_role": "both", "__scheme__": "https"}}]`))
	f.Add([]byte("- &a {targets: [x], url: y}\n- *a\n- {<<: *a}\n"))
	g := &Generation{Config: &Config{}}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := g.ReadWorkers(&Discovery{Kind: "file", Role: "both"}, "/nowhere/w.yaml", data)
		if err != nil && err.Error() == "" {
			t.Error("an error says nothing")
		}
		for _, w := range file.Workers {
			if CheckURL(w.URL) != nil || w.Name == "" || w.Role == "" {
				t.Errorf("%q gives %+v", data, w)
			}
		}
	})
}

// TestWorkerFilePipe: a pipe as the key of a worker is an error; reading it would never end.
func TestWorkerFilePipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "key")
	do(t, syscall.Mkfifo(pipe, 0o600))
	if _, err := readWorkers(t, nil, "- {url: http://a:1, key_file: '"+pipe+"'}\n"); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("the error is %v", err)
	}
}
