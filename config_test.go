// Tests of the configuration: files good and bad, and the built-in one.
package main

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
	"kvasir/gpu"
	"kvasir/proxy"
)

var update = flag.Bool("update", false, "rewrite the expected errors and the schema")

// testVariables is the environment of every file under testdata/config.
var testVariables = []string{"HOST=127.0.0.1", "PORT=8088", "EMPTY=", "TOKEN=a: {b"}

func TestGoodFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/config/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			l := &layers{file: file, environ: testVariables}
			if _, _, err := l.load(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBadFiles compares all errors of a file with the .txt beside it, which
// -update rewrites: read the difference.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/config/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			l := &layers{file: file, environ: testVariables}
			_, _, err := l.load()
			var bad problems
			if !errors.As(err, &bad) {
				t.Fatalf("the error is %v, not problems", err)
			}
			got := strings.ReplaceAll(err.Error(), "testdata/config/bad/", "") + "\n"
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

// TestFullFile has every key that is built with another value than its
// default, so what is not carried into the settings shows.
func TestFullFile(t *testing.T) {
	t.Parallel()
	l := &layers{file: "testdata/config/good/full.yaml"}
	g, read, err := l.load()
	if err != nil {
		t.Fatal(err)
	}
	workerTLS := g.settings.Workers[0].TLS
	if workerTLS == nil || workerTLS.ServerName != "worker.internal" || !workerTLS.InsecureSkipVerify {
		t.Errorf("worker TLS is %+v", workerTLS)
	}
	if len(g.settings.Workers[0].TLSName) != 32 {
		t.Errorf("TLS name is %q", g.settings.Workers[0].TLSName)
	}
	g.settings.Workers[0].TLS, g.settings.Workers[0].TLSName = nil, ""
	want := &proxy.Settings{
		MaxBody: 3 << 19, BodyMemory: 5 << 20,
		Timeouts: proxy.Timeouts{
			Header: time.Second, Body: 2 * time.Second, Connect: 3 * time.Second,
			FirstByte: 4 * time.Minute, Idle: 90 * time.Second, Write: 250 * time.Millisecond,
		},
		CORS:  []string{"https://example.com", "http://localhost:3000"},
		Hosts: []string{"*", "api.example.com"}, AdminHosts: []string{"kvasir", "kvasir.monitoring.svc"},
		Retry: proxy.Retry{Attempts: 0, Budget: 1},
		Keys: []proxy.Key{
			{Name: "alice", SHA256: sha256.Sum256([]byte("alice")), Tenant: "red", Isolate: true, Models: []string{"qwen", "auto"}, RequestsPerMinute: 60, TokensPerMinute: 100000},
			{Name: "bob", SHA256: sha256.Sum256([]byte("sk-bob"))},
		},
		Workers: []proxy.Worker{
			{Name: "a", URL: "https://[2001:db8::1]:8443/base", Engine: "vllm", Role: "decode", Models: []string{"qwen"},
				MaxRequests: 64, Headers: map[string]string{"Authorization": "Bearer x", "X-Org": "1"}},
			{Name: "10.0.0.6:8000", URL: "http://10.0.0.6:8000", Role: "both", Headers: map[string]string{"Authorization": "Bearer sk-bob"},
				KVEvents: "tcp://10.0.0.6:5557", KVReplay: "tcp://10.0.0.6:5558", Instance: "7587",
				GPUs: []string{"0", "GPU-8c4a2a54-91b7-4b0e-9f3d-3c2b6f6d1a20"}},
		},
		Models: []proxy.Model{{Name: "qwen", Default: true, Fallback: []string{"tiny"}, Tokenizer: "none", Reasoning: "gpt-oss"}, {Name: "tiny", Tokenizer: "auto", Reasoning: "none"}},
		Guards: proxy.Guards{JailbreakStatus: 403, PIIStatus: 451, Restore: true, ClientTemplates: true},

		CacheOptions: proxy.CacheOptions{MaxTemperature: 0.2, ToolCalls: true, ScopeHeaders: []string{"x-forwarded-host", "baggage"}},
		Classify: classify.Options{
			Timeout: 100 * time.Millisecond, Threads: 3, Priority: true,
			Category:  classify.CategoryOptions{Threshold: 0.5},
			Jailbreak: classify.GuardOptions{Action: classify.Off, Threshold: 0.9, AllowOnError: true},
			PII: classify.PIIOptions{
				GuardOptions: classify.GuardOptions{Action: classify.Redact, Threshold: 0.8, AllowOnError: true}, Allow: []string{"PERSON"},
			},
			Signals:   fullSignals,
			Decisions: fullDecisions,
		},
		Routing: proxy.Routing{
			Policy: "kv", Queue: false, MaxQueued: 1, QueueTimeout: time.Millisecond, PrefillLoadScale: 40,
			OverlapCredit: proxy.OverlapCredit{Device: 7, Host: 0.5}, Temperature: 0.5, Disaggregate: "never",
		},
		GPU: proxy.GPU{Interval: time.Second, Effects: gpu.Effects{
			Throttle: gpu.EffectAside, Neighbour: gpu.EffectOff, Memory: gpu.EffectAside, Errors: gpu.EffectCost, Headroom: 1 << 30,
		}},
	}
	if !reflect.DeepEqual(g.settings, want) {
		t.Errorf("settings are\n%+v, want\n%+v", g.settings, want)
	}
	if m := g.milvus; m.Address != "https://m.example:19530/db" || m.Collection != "c" || m.Token != "a:b" || m.Timeout != time.Second ||
		m.Version == "" || m.TLS == nil || m.TLS.ServerName != "m" {
		t.Errorf("Milvus is %+v", m)
	}
	c := g.config
	if k := c.Cache; k.Threshold != 0.8 || k.TTL != 10*time.Minute || k.MaxEntries != 10 || k.MaxBytes != 2<<20 {
		t.Errorf("the cache is %+v", k)
	}
	if c.Server.Listen != "0.0.0.0:8081" || c.Server.Admin != "unix:/run/kvasir-admin.sock" ||
		c.Server.Drain != (drainConfig{0, 5 * time.Second}) || c.Log != (logConfig{"debug", "json"}) {
		t.Errorf("server is %+v, log %+v", c.Server, c.Log)
	}
	wantSims := []simulateConfig{
		{"s0", "sglang", "prefill", "tiny", 64, 128, 512, 4, 4096, 0.5, 7, true, false, []string{"1"}},
		{"sim-1", "vllm", "both", "sim", 16, 16384, 8192, 256, 32768, 1, 0, false, true, nil},
	}
	if !reflect.DeepEqual(c.Simulate, wantSims) {
		t.Errorf("simulate is %+v, want %+v", c.Simulate, wantSims)
	}
	for _, file := range []string{"testdata/config/good/full.yaml", "testdata/config/good/bob.key"} {
		if _, ok := read[file]; !ok {
			t.Errorf("%s is not among what was read: %v", file, read)
		}
	}
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	c := mustMerge(t, &layers{file: "testdata/config/good/anchors.yaml"})
	var got []string
	for _, w := range c.Workers {
		got = append(got, w.Name+" "+w.URL+" "+strings.Join(w.Models, ","))
	}
	want := "a http://10.0.0.5:8000 qwen; b http://10.0.0.6:8000 qwen; c http://10.0.0.7:8000 qwen"
	if strings.Join(got, "; ") != want {
		t.Errorf("workers are %s, want %s", strings.Join(got, "; "), want)
	}
	if c.Server.Timeouts.Header != 5*time.Second || c.Server.Drain != (drainConfig{}) || c.Keys[0].Models[0] != "qwen" {
		t.Errorf("config is %+v", c)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	c := mustMerge(t, &layers{file: "testdata/config/good/variables.yaml", environ: testVariables})
	if c.Server.Listen != "127.0.0.1:8088" || c.Server.Admin != "" || c.Server.MaxBody != 1<<20 || c.Server.Retry.Attempts != 1 {
		t.Errorf("server is %+v", c.Server)
	}
	w := c.Workers[0]
	if w.URL != "http://127.0.0.1:8000" || w.Headers["Authorization"] != "Bearer a: {b" || w.Headers["X-Plain"] != "${HOST}x" {
		t.Errorf("worker is %+v", w)
	}
}

// mustMerge is the Config of a file that needs no other one.
func mustMerge(t *testing.T, l *layers) *Config {
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

func ptr[T any](v T) *T { return &v }

var fullSignals = []classify.SignalOptions{
	{Name: "urgent", Kind: "keyword", Keywords: []string{"asap"}, Method: "fuzzy", Operator: "all", CaseSensitive: true, Threshold: 0.7},
	{Name: "refunds", Kind: "embedding", Phrases: []string{"I want my money back"}, Aggregate: "mean", Threshold: 0.6},
	{Name: "long", Kind: "context", Features: []classify.Feature{{Name: "tokens", Min: 8000, Max: ptr(100000.0)}}},
	{Name: "agent", Kind: "conversation", Features: []classify.Feature{
		{Name: "turns", Min: 2}, {Name: "messages", Max: ptr(9.0)}, {Name: "tools", Min: 1}, {Name: "images", Min: 1}, {Name: "results", Min: 1},
	}},
	{Name: "page", Kind: "structure", Features: []classify.Feature{
		{Name: "bytes", Min: 1}, {Name: "words", Min: 1}, {Name: "lines", Min: 1}, {Name: "code_blocks", Min: 1}, {Name: "urls", Min: 1},
		{Name: "questions", Min: 1}, {Name: "numbers", Min: 1}, {Name: "lists", Min: 1}, {Name: "math", Min: 1},
	}},
	{Name: "again", Kind: "reask", Features: []classify.Feature{{Name: "reask", Min: 0.8}}},
}

var fullDecisions = []classify.Decision{
	{
		Name: "maths", Priority: 7, Explicit: true,
		When: classify.Condition{
			Is: []classify.Is{{Kind: "category", Values: []string{"math", "physics"}}},
			Any: []classify.Condition{
				{Is: []classify.Is{{Kind: "keyword", Values: []string{"urgent"}}}},
				{Not: &classify.Condition{All: []classify.Condition{
					{Is: []classify.Is{{Kind: "language", Values: []string{"zh"}}}},
					{Is: []classify.Is{{Kind: "complexity", Values: []string{"easy"}}}},
				}}},
			},
		},
		Model: "qwen", SystemPrompt: "Show each step.", InsertPrompt: true, Reasoning: "on", AllowPII: []string{"EMAIL_ADDRESS"},
		CacheThreshold: 0.95, CacheOff: true, Refuse: "No.", MaxTokens: 100, MaxTemperature: 0.5, CapTemperature: true, MaxChoices: 2,
	},
	{Name: "rest"},
}

// What users make signals of has a key each, with the measures of the classifier under it.
func TestSignalsHaveAllKeys(t *testing.T) {
	t.Parallel()
	for _, m := range classify.Makings() {
		k := knownKeys.child("signals").elem.child(m.Key)
		if k == nil {
			t.Errorf("signals have no key %s", m.Key)
			continue
		}
		if names := childNames(k); m.Measures != nil && !isAlone(&m) && !slices.Equal(names, m.Measures) {
			t.Errorf("the keys of %s are %v, the measures %v", m.Key, names, m.Measures)
		}
	}
}

// TestBuiltIn parses the very file that is the documented example: apart from
// the simulated engines, what may pass and what is decided, it has nothing but
// defaults.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	c := mustMerge(t, &layers{})
	if len(c.Simulate) != 2 || c.Simulate[0].Name != "prefill-0" || c.Simulate[0].Role != "prefill" ||
		c.Simulate[1].Name != "decode-0" || c.Simulate[1].Role != "decode" {
		t.Errorf("simulate is %+v", c.Simulate)
	}
	least := &layers{file: "least.yaml"}
	bare, _, bad := least.merge([]byte("simulate: [{}]"))
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	if !slices.Equal(c.Classify.PII.Allow, harmless) || slices.Contains(harmless, "CREDIT_CARD") {
		t.Errorf("config.yaml lets %v pass, a file without the key %v", c.Classify.PII.Allow, harmless)
	}
	if none := mustMerge(t, &layers{environ: []string{"KVASIR_CLASSIFY_PII_ALLOW=[]"}}); len(none.Classify.PII.allowed()) != 0 {
		t.Errorf("an empty list lets %v pass", none.Classify.PII.allowed())
	}
	if len(c.Decisions) < 3 || len(c.Signals) < 2 || len(c.Models) != 1 {
		t.Errorf("%d decisions, %d signals, %d models", len(c.Decisions), len(c.Signals), len(c.Models))
	}
	bare.Simulate, bare.Models, bare.Signals, bare.Decisions, bare.Classify.PII.Allow = c.Simulate, c.Models, c.Signals, c.Decisions, c.Classify.PII.Allow
	// An empty list and none are the same.
	for _, list := range []any{&c.Keys, &c.Workers, &c.Models, &c.Server.CORS, &c.Server.Hosts, &c.Server.AdminHosts, &c.Cache.ScopeHeaders} {
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
	for line := range strings.Lines(string(builtIn)) {
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
	knownKeys.all(func(k *knownKey) {
		section, _, _ := strings.Cut(strings.ReplaceAll(k.path, "[]", ""), ".")
		text := sections[section]
		if !regexp.MustCompile(`\b` + k.name + `\b`).MatchString(text) {
			t.Errorf("config.yaml does not mention %s", k.path)
		}
		if k.kind == kindGroup || !strings.Contains(k.path, "[]") || k.value == nil {
			return
		}
		if !regexp.MustCompile(`(?m)\b` + k.name + `: ` + regexp.QuoteMeta(show(k.value)) + `(\s|$)`).MatchString(text) {
			t.Errorf("config.yaml does not say that %s is %s by default", k.path, show(k.value))
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
	knownKeys.leaves(func(k *knownKey) {
		if other, ok := seen[k.variable()]; ok {
			t.Errorf("%s stands for %s and %s", k.variable(), other, k.path)
		}
		seen[k.variable()] = k.path
	})
	if len(seen) < 40 || seen["KVASIR_SERVER_TIMEOUTS_FIRST_BYTE"] != "server.timeouts.first_byte" {
		t.Errorf("%d variables: %v", len(seen), maps.Keys(seen))
	}
}
