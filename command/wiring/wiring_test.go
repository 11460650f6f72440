// Tests that every key of a configuration is carried into what the parts are told.

package wiring

import (
	"crypto/sha256"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"kvasir/classify"
	"kvasir/config"
	"kvasir/discovery"
	"kvasir/discovery/etcd"
	"kvasir/gpu"
	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/proxy"
	"kvasir/tracing"
	"kvasir/tracing/traceparent"
)

// TestFullFile has every key that is built with another value than its
// default, so what is not carried into the settings shows.
func TestFullFile(t *testing.T) {
	t.Parallel()
	l := &config.Layers{File: "../../testdata/config/good/full.yaml"}
	g, _, err := l.Load()
	if err != nil {
		t.Fatal(err)
	}
	got := Settings(g)
	workerTLS := got.Workers[0].TLS
	if workerTLS == nil || workerTLS.ServerName != "worker.internal" || !workerTLS.InsecureSkipVerify {
		t.Errorf("worker TLS is %+v", workerTLS)
	}
	if len(got.Workers[0].TLSName) != 32 {
		t.Errorf("TLS name is %q", got.Workers[0].TLSName)
	}
	got.Workers[0].TLS, got.Workers[0].TLSName = nil, ""
	adminKey := sha256.Sum256([]byte("sk-bob"))
	want := &proxy.Settings{
		MaxBody: 3 << 19, BodyMemory: 5 << 20,
		Timeouts: proxy.Timeouts{
			Header: time.Second, Body: 2 * time.Second, Connect: 3 * time.Second,
			FirstByte: 4 * time.Minute, Idle: 90 * time.Second, Write: 250 * time.Millisecond,
		},
		BIOTypes: true,
		CORS:     []string{"https://example.com", "http://localhost:3000"},
		Hosts:    []string{"*", "api.example.com"}, AdminHosts: []string{"kvasir", "kvasir.monitoring.svc"}, AdminKey: &adminKey,
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
		Models: []proxy.Model{{Name: "qwen", Default: true, Fallback: []string{"tiny"}, Tokenizer: "none", Reasoning: "gpt-oss", Price: proxy.Price{Prompt: 0.5, Completion: 1.5, Cached: 0.1}}, {Name: "tiny", Tokenizer: "auto", Reasoning: "none", Price: proxy.Price{Cached: -1}}},

		Compatible: []string{"dynamo", "genai"}, TraceContent: true, Currency: "EUR",

		Guards: proxy.Guards{JailbreakStatus: 403, PIIStatus: 451, Restore: true, ClientTemplates: true},

		CacheOptions: proxy.CacheOptions{MaxTemperature: 0.2, ToolCalls: true, Shared: true, ScopeHeaders: []string{"x-forwarded-host", "baggage"}},
		Classify: classify.Options{
			Timeout: 100 * time.Millisecond, Threads: 3, Priority: true, SecondStage: true,
			Category:  classify.CategoryOptions{Threshold: 0.5},
			Jailbreak: classify.GuardOptions{Action: classify.Off, Threshold: 0.9, AllowOnError: true},
			PII: classify.PIIOptions{
				GuardOptions: classify.GuardOptions{Action: classify.Redact, Threshold: 0.8, AllowOnError: true}, Allow: []string{"PERSON"},
			},
			Signals:   fullSignals,
			Decisions: fullDecisions,
		},
		Routing: proxy.Routing{
			PoolOptions: kvroute.PoolOptions{
				Policy: kvroute.KV, MaxQueued: 1, KV: cost.KV{PrefillLoadScale: 40, DeviceCredit: 7, HostCredit: 0.5},
				Temperature: 0.5, Disaggregate: kvroute.Never,
			},
			QueueTimeout: time.Millisecond,
		},
		GPU: proxy.GPU{Interval: time.Second, Effects: gpu.Effects{
			Throttle: gpu.EffectAside, Neighbour: gpu.EffectOff, Memory: gpu.EffectAside, Errors: gpu.EffectCost, Headroom: 1 << 30,
		}},
	}
	if got.Tracing == nil || *got.Tracing != *traceparent.NewSampler(traceparent.Ratio, 0.25) {
		t.Errorf("the sampler is %+v", got.Tracing)
	}
	got.Tracing = nil
	traces := Tracing(g, "v")
	if traces.TLS == nil || len(traces.TLSName) != 32 {
		t.Errorf("TLS of the collector is %+v", traces.TLS)
	}
	traces.TLS, traces.TLSName = nil, ""
	if want := (tracing.Options{Endpoint: "https://otel.example:4317", GRPC: true, Headers: map[string]string{"X-Key": "1"}, Version: "v"}); !reflect.DeepEqual(*traces, want) {
		t.Errorf("traces go to %+v, want %+v", *traces, want)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("settings are\n%+v, want\n%+v", got, want)
	}
	sources := Sources(g)
	if len(sources) != 6 {
		t.Fatalf("sources are %+v", sources)
	}
	if tls := sources[0].Worker.TLS; tls == nil || tls.ServerName != "worker.internal" || len(sources[0].Worker.TLSName) != 32 || sources[0].Read == nil {
		t.Errorf("the first source is %+v", sources[0])
	}
	if tls := sources[4].Etcd.TLS; tls == nil || tls.ServerName != "etcd.internal" || len(sources[4].Etcd.TLSName) != 32 {
		t.Errorf("the fifth source is %+v", sources[4])
	}
	found, err := sources[4].ReadWorker([]byte(`{"url": "https://10.0.0.9:8000", "role": "decode"}`))
	if want := (proxy.Worker{Name: "10.0.0.9:8000", URL: "https://10.0.0.9:8000", Role: "decode", Headers: map[string]string{"Authorization": "Bearer sk-bob"}}); err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("a worker in etcd is %+v, %v, want %+v", found, err, want)
	}
	for i := range sources {
		sources[i].Read, sources[i].ReadWorker, sources[i].Worker.TLS, sources[i].Worker.TLSName = nil, nil, nil, ""
		sources[i].Etcd.TLS, sources[i].Etcd.TLSName = nil, ""
	}
	const prefix = "kvasir/workers/"
	wantSources := []discovery.Entry{
		{Kind: "file", Path: "../../testdata/config/good/workers.d", Scheme: "http", Refresh: 5 * time.Second, Grace: time.Second, Prefix: prefix,
			Worker: proxy.Worker{Engine: "sglang", Role: "prefill", Models: []string{"qwen"}, MaxRequests: 9, Headers: map[string]string{"Authorization": "Bearer sk-bob"}}},
		{Kind: "dns", Name: "vllm.example", Port: 8000, Scheme: "https", Refresh: 2 * time.Second, Server: "10.0.0.53:53", Grace: 10 * time.Second, Prefix: prefix, Worker: proxy.Worker{Role: "both"}},
		{Kind: "kubernetes", Namespace: "team", Selector: "app in (vllm, sglang)", PortName: "http", Kubeconfig: "../../testdata/config/good/kube.yaml",
			Scheme: "https", Refresh: 5 * time.Second, Grace: 10 * time.Second, Prefix: prefix, Worker: proxy.Worker{Role: "both"}},
		{Kind: "kubernetes", InferencePool: "main", Scheme: "http", Refresh: 5 * time.Second, Grace: 10 * time.Second, Prefix: prefix, Worker: proxy.Worker{Role: "both"}},
		{Kind: "etcd", Scheme: "http", Refresh: 5 * time.Second, Grace: 10 * time.Second, Prefix: "pool/",
			Etcd:   etcd.Options{Endpoints: []string{"https://10.0.0.1:2379", "https://10.0.0.2:2379"}, User: "kvasir", Password: "sk-bob"},
			Worker: proxy.Worker{Role: "both", Headers: map[string]string{"Authorization": "Bearer sk-bob"}}},
		{Kind: "dynamo", Scheme: "http", Refresh: 5 * time.Second, Grace: 10 * time.Second, Prefix: prefix, Namespace: "dynamo-vllm", Frontend: "http://10.0.0.7:8000",
			Etcd: etcd.Options{Endpoints: []string{"http://10.0.0.1:2379"}}, Worker: proxy.Worker{Role: "both"}},
	}
	if !reflect.DeepEqual(sources, wantSources) {
		t.Errorf("sources are\n%+v, want\n%+v", sources, wantSources)
	}
	if m := milvusOptions(g, "v"); m.Address != "https://m.example:19530/db" || m.Collection != "c" || m.Token != "a:b" || m.Timeout != time.Second ||
		m.Version == "" || m.TLS == nil || m.TLS.ServerName != "m" {
		t.Errorf("Milvus is %+v", m)
	}
}

var fullSignals = []classify.SignalOptions{
	{Name: "urgent", Kind: "keyword", Keywords: []string{"asap"}, Method: "fuzzy", Operator: "all", CaseSensitive: true, Threshold: 0.7},
	{Name: "refunds", Kind: "embedding", Phrases: []string{"I want my money back"}, Aggregate: "mean", Threshold: 0.6},
	{Name: "long", Kind: "context", Features: []classify.Feature{{Name: "tokens", Min: 8000, Max: new(100000.0)}}},
	{Name: "agent", Kind: "conversation", Features: []classify.Feature{
		{Name: "turns", Min: 2}, {Name: "messages", Max: new(9.0)}, {Name: "tools", Min: 1}, {Name: "images", Min: 1}, {Name: "results", Min: 1},
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

// What passes where nobody says which is what config.yaml lets pass, and an
// empty list is not none.
func TestHarmless(t *testing.T) {
	t.Parallel()
	builtIn, err := os.ReadFile("../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	allowedBy := func(l *config.Layers) []string {
		l.BuiltIn = builtIn
		g, _, err := l.Load()
		if err != nil {
			t.Fatal(err)
		}
		return allowed(&g.Config.Classify.PII)
	}
	if got := allowedBy(&config.Layers{}); !slices.Equal(got, harmless) || slices.Contains(harmless, "CREDIT_CARD") {
		t.Errorf("config.yaml lets %v pass, a file without the key %v", got, harmless)
	}
	if got := allowedBy(&config.Layers{Environ: []string{"KVASIR_CLASSIFY_PII_ALLOW=[]"}}); len(got) != 0 {
		t.Errorf("an empty list lets %v pass", got)
	}
}
