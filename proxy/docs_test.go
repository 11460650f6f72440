// Tests that the documents say what the code has: docs/metrics.md, and the table of routes in docs/api.md.

package proxy

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"kvasir/cache"
	"kvasir/discovery"
	"kvasir/gpu"
	"kvasir/kvroute/replay"
	"kvasir/openai"
	"kvasir/planner"
	"kvasir/proxy/hardware/hardwaretest"
	"kvasir/tracing"
)

var describedMetric = regexp.MustCompile(`fqName: "([a-z_]+)".* variableLabels: \{(.*?)\}`)

// TestMetricsPage wants a row in docs/metrics.md for each metric of the
// registry, with its type and labels, and no other row.
func TestMetricsPage(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Cache = cache.New(cache.Options{Store: brokenStore{}}) // has a series of everything
	fleet := &hardwaretest.Fleet{}
	fleet.Set(1, func(g []gpu.GPU) { hardwaretest.Everything(&g[0]); hardwaretest.Throttle(g) })
	s.Workers[0].GPUs, s.GPU = []string{"0"}, GPU{Fleet: fleet.Now, Interval: time.Millisecond, Effects: gpu.DefaultEffects()}
	s.Sources = func() []discovery.Status { return []discovery.Status{{Source: "file workers.d"}} }
	s.Peers = startPeers(t, "alone", "nats://127.0.0.1:1")
	p := startProxy(t, s)
	waitUntil(t, "GPUs were looked at", func() bool { return p.slow(t, "w0") > 1 })
	some := replay.Fleet{Workers: 2}
	p.Planned(&planner.Report{Kubernetes: &planner.Kubernetes{}, Wanted: &some, Forecast: &planner.Forecast{}, Predicted: &replay.Kept{}})
	m := p.metrics
	m.spending.requests.WithLabelValues("a", "b", "c")
	for _, counters := range []*prometheus.CounterVec{m.spending.tokens, m.spending.cost, m.spending.saved} {
		counters.WithLabelValues("a", "b", "c")
	}
	p.Count(tracing.New(zerolog.Nop(), p.SetReason))
	// A metric with labels has a type only once it has a series.
	for _, counters := range []*prometheus.CounterVec{m.requests, m.tokens, m.workerErrors} {
		counters.WithLabelValues("a", "b")
	}
	for _, counters := range []*prometheus.CounterVec{m.ended, m.retries, m.unread, m.reload.taken, m.handovers.ended, m.handovers.aggregated} {
		counters.WithLabelValues("a")
	}
	for _, counters := range []*prometheus.CounterVec{m.signals.matched, m.signals.blocked, m.signals.annotated, m.signals.unjudged, m.placed.approximate} {
		counters.WithLabelValues("a", "b")
	}
	for _, counters := range []*prometheus.CounterVec{m.signals.computed, m.signals.failed, m.signals.redacted, m.signals.decisions,
		m.cache.lookups, m.cache.bypassed, m.cache.refused, m.cache.unkept, m.coalesced.followed, m.placed.predicted} {
		counters.WithLabelValues("a")
	}
	for _, histograms := range []*prometheus.HistogramVec{m.duration, m.firstByte, m.signals.score, m.signals.took} {
		histograms.WithLabelValues("a")
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, f := range families {
		types[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	want := map[string]string{}
	described := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(described)
	close(described)
	for d := range described {
		found := describedMetric.FindStringSubmatch(d.String())
		if found == nil || !strings.HasPrefix(found[1], "kvasir_") {
			continue
		}
		labels := strings.Split(found[2], ",")
		slices.Sort(labels)
		want[found[1]] = types[found[1]] + " by " + strings.Join(labels, " ")
	}
	for name, kind := range types { // OpenMetrics would rename it
		if kind == "counter" && !strings.HasSuffix(name, "_total") {
			t.Errorf("the name of counter %s does not end with _total", name)
		}
	}
	if len(want) < 20 {
		t.Fatalf("only %d metrics are in the registry", len(want))
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (kvasir_\w+) \| (\w+) \|(.*?)\| (.+) \|$`).FindAllStringSubmatch(page(t, "../docs/metrics.md"), -1) {
		labels := strings.Fields(strings.ReplaceAll(row[3], ",", " "))
		slices.Sort(labels)
		got[row[1]] = row[2] + " by " + strings.Join(labels, " ")
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/metrics.md has\n%s\nthe registry\n%s", listed(got), listed(want))
	}
}

// TestPageRoutes wants every route in the table of docs/api.md, and no other.
func TestPageRoutes(t *testing.T) {
	_, table, _ := strings.Cut(page(t, "../docs/api.md"), "\n## Routes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	got := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(table, -1) {
		method := ""
		for _, word := range strings.Fields(strings.NewReplacer(",", " ", ";", " ").Replace(row[1])) {
			if strings.HasPrefix(word, "/") {
				got[word] = method
			} else {
				method = word
			}
		}
	}
	want := map[string]string{
		"/v1/models": "GET", "/v1/models/{id}": "GET", "/health": "GET", "/livez": "GET", "/readyz": "GET", "/openapi.json": "GET",
		"/metrics": "GET", "/debug/pprof/": "GET", "/debug/gpu": "GET", "/plan": "GET", "/reload": "POST", "/explain": "POST",
		"/cache": "DELETE", "/cache/{id}": "DELETE", // and GET
		"/": "GET", "/api/overview": "GET", "/api/workers": "GET", "/api/requests": "GET", "/api/requests/{id}": "GET", "/api/decisions": "GET", "/api/cache": "GET",
		"/api/config": "GET", "/api/live": "GET", "/api/try/{route}": "POST", "/api/explain": "POST", "/workers/{name}/drain": "POST", "/workers/{name}/undrain": "POST",
		"/api/v1/classify/intent": "POST", "/api/v1/classify/pii": "POST", "/api/v1/classify/security": "POST", "/api/v1/similarity": "POST",
	}
	for _, r := range openai.Routes {
		want[r.Path] = "POST"
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/api.md has\n%s\nthe routes are\n%s", listed(got), listed(want))
	}
}

func page(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func listed(m map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "  %s %s\n", name, m[name])
	}
	return b.String()
}
