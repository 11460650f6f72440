// Tests of the configuration: files good and bad, and the built-in one.

package config

import (
	"crypto/sha256"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/classify"
)

var update = flag.Bool("update", false, "rewrite the expected errors and the schema")

// builtIn is the built-in configuration, the documented file.
func builtIn(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// testVariables is the environment of every file under testdata/config.
var testVariables = []string{"HOST=127.0.0.1", "PORT=8088", "EMPTY=", "TOKEN=a: {b"}

func TestGoodFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/config/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			l := &Layers{File: file, Environ: testVariables}
			if _, _, err := l.Load(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBadFiles compares all errors of a file with the .txt beside it, which
// -update rewrites: read the difference.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../testdata/config/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			l := &Layers{File: file, Environ: testVariables}
			_, _, err := l.Load()
			var bad Problems
			if !errors.As(err, &bad) {
				t.Fatalf("the error is %v, not problems", err)
			}
			got := strings.ReplaceAll(err.Error(), "../testdata/config/bad/", "") + "\n"
			expected := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(expected, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("errors are:\n%swant:\n%s", got, want)
			}
			if strings.Contains(got, "S3CRET") {
				t.Errorf("a secret is quoted:\n%s", got)
			}
			for line := range strings.Lines(got) {
				if !regexp.MustCompile(`^[a-z0-9-]+\.yaml:\d+:\d+: .|^and \d+ more$`).MatchString(line) {
					t.Errorf("no file:line:column in %q", line)
				}
			}
		})
	}
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	c := mustMerge(t, &Layers{File: "../testdata/config/good/anchors.yaml"})
	var got []string
	for _, w := range c.Workers {
		got = append(got, w.Name+" "+w.URL+" "+strings.Join(w.Models, ","))
	}
	want := "a http://10.0.0.5:8000 qwen; b http://10.0.0.6:8000 qwen; c http://10.0.0.7:8000 qwen"
	if strings.Join(got, "; ") != want {
		t.Errorf("workers are %s, want %s", strings.Join(got, "; "), want)
	}
	if c.Server.Timeouts.Header != 5*time.Second || c.Server.Drain != (Drain{}) || c.Keys[0].Models[0] != "qwen" {
		t.Errorf("config is %+v", c)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	c := mustMerge(t, &Layers{File: "../testdata/config/good/variables.yaml", Environ: testVariables})
	if c.Server.Listen != "127.0.0.1:8088" || c.Server.Admin != "" || c.Server.MaxBody != 1<<20 || c.Server.Retry.Attempts != 1 {
		t.Errorf("server is %+v", c.Server)
	}
	w := c.Workers[0]
	if w.URL != "http://127.0.0.1:8000" || w.Headers["Authorization"] != "Bearer a: {b" || w.Headers["X-Plain"] != "${HOST}x" {
		t.Errorf("worker is %+v", w)
	}
}

// mustMerge is the Config of a file that needs no other one.
func mustMerge(t *testing.T, l *Layers) *Config {
	t.Helper()
	data, _, err := l.bytes()
	if err != nil {
		t.Fatal(err)
	}
	c, _, bad := l.merge(data)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return c
}

// What users make signals of has a key each, with the measures of the classifier under it.
func TestSignalsHaveAllKeys(t *testing.T) {
	t.Parallel()
	for _, m := range classify.Makings() {
		k := knownKeys.child("signals").Elem.child(m.Key)
		if k == nil {
			t.Errorf("signals have no key %s", m.Key)
			continue
		}
		var names []string
		for _, c := range k.Children {
			names = append(names, c.Name)
		}
		if m.Measures != nil && !isAlone(&m) && !slices.Equal(names, m.Measures) {
			t.Errorf("the keys of %s are %v, the measures %v", m.Key, names, m.Measures)
		}
	}
}

// TestBuiltIn parses the very file that is the documented example: apart from
// the simulated engines, what may pass and what is decided, it has nothing but
// defaults.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	c := mustMerge(t, &Layers{BuiltIn: builtIn(t)})
	if len(c.Simulate) != 2 || c.Simulate[0].Name != "prefill-0" || c.Simulate[0].Role != "prefill" ||
		c.Simulate[1].Name != "decode-0" || c.Simulate[1].Role != "decode" {
		t.Errorf("simulate is %+v", c.Simulate)
	}
	least := &Layers{File: "least.yaml"}
	bare, _, bad := least.merge([]byte("simulate: [{}]"))
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	if len(c.Decisions) < 3 || len(c.Signals) < 2 || len(c.Models) != 1 {
		t.Errorf("%d decisions, %d signals, %d models", len(c.Decisions), len(c.Signals), len(c.Models))
	}
	bare.Simulate, bare.Models, bare.Signals, bare.Decisions, bare.Classify.PII.Allow = c.Simulate, c.Models, c.Signals, c.Decisions, c.Classify.PII.Allow
	// An empty list or mapping and none are the same.
	k := &c.Classify
	for _, list := range []any{&k.Category.Labels, &k.Jailbreak.Labels, &k.PII.Labels, &c.Keys, &c.Workers, &c.Discovery, &c.Models, &c.Server.CORS, &c.Server.Hosts, &c.Server.AdminHosts, &c.Cache.ScopeHeaders, &c.Peers.Servers, &c.Peers.Embed.Routes, &c.Planner.Command, &c.Metrics.Compatible} {
		if v := reflect.ValueOf(list).Elem(); v.Len() == 0 {
			v.SetZero()
		}
	}
	if !reflect.DeepEqual(c, bare) {
		t.Errorf("config.yaml says\n%+v, the defaults are\n%+v", c, bare)
	}
}

// TestBuiltInMentionsAllKeys wants every known key in config.yaml, in its
// section, and the default of those that stand in a comment.
func TestBuiltInMentionsAllKeys(t *testing.T) {
	t.Parallel()
	sections := map[string]string{}
	name := ""
	comments := ""
	for line := range strings.Lines(string(builtIn(t))) {
		if m := regexp.MustCompile(`^([a-z_]+):`).FindStringSubmatch(line); m != nil {
			name = m[1]
			sections[name] = comments // a list's elements stand in the comment above it
			comments = ""
		}
		if strings.HasPrefix(line, "#") {
			comments += line
		}
		sections[name] += line
	}
	knownKeys.all(func(k *Key) {
		section, _, _ := strings.Cut(strings.ReplaceAll(k.path, "[]", ""), ".")
		text := sections[section]
		if !regexp.MustCompile(`\b` + k.Name + `\b`).MatchString(text) {
			t.Errorf("config.yaml does not mention %s", k.path)
		}
		if k.Kind == KindGroup || !strings.Contains(k.path, "[]") || k.value == nil {
			return
		}
		if !regexp.MustCompile(`(?m)\b` + k.Name + `: ` + regexp.QuoteMeta(Show(k.value)) + `(\s|$)`).MatchString(text) {
			t.Errorf("config.yaml does not say that %s is %s by default", k.path, Show(k.value))
		}
	})
	for section, text := range sections {
		if section != "" && !strings.Contains(text, "[hot") && !strings.Contains(text, "[restart]") &&
			section != "signals" && section != "decisions" && section != "gpu" {
			t.Errorf("config.yaml does not say whether %s is hot or needs a restart", section)
		}
	}
}

func TestVariableNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	knownKeys.leaves(func(k *Key) {
		if other, ok := seen[k.variable()]; ok {
			t.Errorf("%s stands for %s and %s", k.variable(), other, k.path)
		}
		seen[k.variable()] = k.path
	})
	if len(seen) < 40 || seen["KVASIR_SERVER_TIMEOUTS_FIRST_BYTE"] != "server.timeouts.first_byte" {
		t.Errorf("%d variables: %v", len(seen), maps.Keys(seen))
	}
}

// TestFullFile has every key that is built with another value than its
// default. What becomes of it for the proxy stands in package wiring.
func TestFullFile(t *testing.T) {
	t.Parallel()
	l := &Layers{File: "../testdata/config/good/full.yaml"}
	g, read, err := l.Load()
	if err != nil {
		t.Fatal(err)
	}
	if w := g.Workers; len(w) != 2 || w[0].Secret != "" || len(w[0].TLSName) != 32 || w[1] != (Credentials{Secret: "sk-bob"}) {
		t.Errorf("credentials of workers are %+v", w)
	}
	if s := g.Sources; len(s) != 6 || s[0].Secret != "sk-bob" || len(s[0].TLSName) != 32 || s[0].Password != "" || s[1] != (Credentials{}) ||
		s[4].Password != "sk-bob" || s[4].TLS == nil || s[4].TLS.ServerName != "etcd.internal" || s[5] != (Credentials{}) {
		t.Errorf("credentials of sources are %+v", s)
	}
	if workerTLS := g.Workers[0].TLS; workerTLS == nil || workerTLS.ServerName != "worker.internal" || !workerTLS.InsecureSkipVerify {
		t.Errorf("worker TLS is %+v", workerTLS)
	}
	if want := [][sha256.Size]byte{sha256.Sum256([]byte("alice")), sha256.Sum256([]byte("sk-bob"))}; !slices.Equal(g.KeySums, want) {
		t.Errorf("the sums of keys are %x, want %x", g.KeySums, want)
	}
	if tr := g.Tracing; !tr.On || !tr.GRPC || tr.Endpoint != "https://otel.example:4317" || tr.Sampler != "ratio" || tr.Ratio != 0.25 || !tr.Content ||
		!maps.Equal(tr.Headers, map[string]string{"X-Key": "1"}) || tr.TLS == nil || tr.TLS.ServerName != "otel.internal" || len(tr.TLSName) != 32 {
		t.Errorf("tracing is %+v", tr)
	}
	if m := g.Milvus; m.TLS == nil || m.TLS.ServerName != "m" {
		t.Errorf("credentials of Milvus are %+v", m)
	}
	c := g.Config
	if k := c.Cache; k.Threshold != 0.8 || k.TTL != 10*time.Minute || k.MaxEntries != 10 || k.MaxBytes != 2<<20 {
		t.Errorf("the cache is %+v", k)
	}
	if c.Server.Listen != "0.0.0.0:8081" || c.Server.Admin != "unix:/run/kvasir-admin.sock" ||
		c.Server.Drain != (Drain{0, 5 * time.Second}) || c.Log != (Log{"debug", "json"}) {
		t.Errorf("server is %+v, log %+v", c.Server, c.Log)
	}
	wantSims := []Simulate{
		{"s0", "sglang", "prefill", "tiny", 64, 128, 512, 4, 4096, 0.5, 7, true, false, []string{"1"}},
		{"sim-1", "vllm", "both", "sim", 16, 16384, 8192, 256, 32768, 1, 0, false, true, nil},
	}
	if !reflect.DeepEqual(c.Simulate, wantSims) {
		t.Errorf("simulate is %+v, want %+v", c.Simulate, wantSims)
	}
	for _, file := range []string{"../testdata/config/good/full.yaml", "../testdata/config/good/bob.key"} {
		if _, ok := read[file]; !ok {
			t.Errorf("%s is not among what was read: %v", file, read)
		}
	}
}
