// What deploy/ has for those who watch: every expression of the dashboards and rules, evaluated by Prometheus' own
// engine over what Kvasir serves, and each alert with what makes it fire and what does not.

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

const (
	rulesFile     = "../deploy/prometheus/rules.yaml"
	dashboardsDir = "../deploy/grafana/dashboards"
)

// rules reads the rules as Prometheus does, which also tries the templates of their annotations.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	must(t, err)
	groups, bad := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range bad {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) != 1 {
		t.Fatalf("%s has not one group", rulesFile)
	}
	return groups.Groups[0].Rules
}

// expressions are those of all panels, by "dashboard: panel", with Grafana's variables filled in.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(dashboardsDir + "/*.json")
	must(t, err)
	if len(files) < 3 {
		t.Fatalf("%s has %d dashboards", dashboardsDir, len(files))
	}
	fill := strings.NewReplacer("$__rate_interval", "1m", "$__range", "5m", "$job", ".*", "$instance", ".*")
	found := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var d struct {
			UID    string
			Title  string
			Panels []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
				Targets []struct{ Expr string }
			}
		}
		must(t, json.Unmarshal(text, &d))
		ids := map[int]bool{}
		for i, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have the id %d", file, p.ID)
			}
			ids[p.ID] = true
			for _, o := range d.Panels[:i] {
				a, b := p.GridPos, o.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: the panels %q and %q overlap", file, p.Title, o.Title)
				}
			}
			for k, target := range p.Targets {
				found[fmt.Sprintf("%s: %s %d", d.Title, p.Title, k)] = fill.Replace(target.Expr)
			}
		}
	}
	return found
}

// scraped puts a page of metrics into the storage as one scrape of a job "kvasir".
func scraped(t *testing.T, s storage.Appendable, page []byte, at time.Time) {
	t.Helper()
	p := textparse.NewPromParser(page, labels.NewSymbolTable(), false)
	app := s.Appender(t.Context())
	for {
		entry, err := p.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, v := p.Series()
		var l labels.Labels
		p.Labels(&l)
		b := labels.NewBuilder(l)
		b.Set("job", "kvasir").Set("instance", "host:9090")
		_, err = app.Append(0, b.Labels(), at.UnixMilli(), v)
		must(t, err)
	}
	must(t, app.Commit())
}

// pageOf is what the process serves at /metrics.
func pageOf(t *testing.T, k *kvasir) []byte {
	t.Helper()
	resp, err := http.Get(k.admin + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	must(t, err)
	return page
}

// documented are the names of docs/metrics.md, as they are without what a histogram appends.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	must(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\| ((?:kvasir_|DCGM_)[A-Za-z_]+) \|`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// TestDashboards: every expression of the dashboards and rules is one that Prometheus takes, over metrics that there
// are, and over traffic of every kind most of them show something.
func TestDashboards(t *testing.T) {
	t.Parallel()
	k := asMakeRun(t)
	s := promqltest.LoadedStorage(t, "")
	begin := time.Unix(1_800_000_000, 0)
	for i := range 5 {
		for _, body := range []string{
			`{"model":"auto","messages":[{"role":"user","content":"What is the integral of x squared from zero to three?"}]}`,
			`{"model":"auto","stream":true,"messages":[{"role":"user","content":"Tell me something long about the moon and the tides, number ` + fmt.Sprint(i) + `"}]}`,
			`{"model":"auto","messages":[{"role":"user","content":"Charge my card 4111 1111 1111 1111 please"}]}`,
			`{"model":"nobody-serves-this","messages":[{"role":"user","content":"hi"}]}`,
			`{"model":`,
		} {
			resp, err := http.Post(k.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
			must(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			must(t, err)
		}
		scraped(t, s, pageOf(t, k), begin.Add(time.Duration(i)*15*time.Second))
	}
	all := expressions(t)
	for _, r := range rules(t) {
		if r.Record != "" {
			all["rules: "+r.Record] = r.Expr
		}
	}
	names := documented(t)
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	shown := 0
	for where, expr := range all {
		for _, m := range metricsOf(t, where, expr) {
			bare := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(m, "")
			if !slices.Contains(names, m) && !slices.Contains(names, bare) && !strings.HasPrefix(m, "process_") {
				t.Errorf("%s: there is no metric %s", where, m)
			}
		}
		q, err := engine.NewInstantQuery(t.Context(), s, nil, expr, begin.Add(time.Minute))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		result := q.Exec(t.Context())
		if result.Err != nil {
			t.Errorf("%s: %v", where, result.Err)
		} else if v, err := result.Vector(); err == nil && len(v) > 0 {
			shown++
		}
		q.Close()
	}
	if shown*2 < len(all) {
		t.Errorf("of %d expressions only %d show something", len(all), shown)
	}
}

// metricsOf are the names of the metrics in an expression.
func metricsOf(t *testing.T, where, expr string) (names []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// TestAlerts: what makes each alert fire, and what does not.
func TestAlerts(t *testing.T) {
	t.Parallel()
	const one = `{job="kvasir", instance="a"`
	cases := map[string][]struct {
		series string
		fires  bool
	}{
		"KvasirNoWorker": {
			{`kvasir_worker_up` + one + `,worker="w",role="both",state="down"} 0x60`, true},
			{`kvasir_worker_up` + one + `,worker="w",role="both",state="down"} 0x60
			  kvasir_worker_up` + one + `,worker="v",role="both",state="up"} 1x60`, false},
			{`kvasir_build_info` + one + `,version="1"} 1x60`, true}, // none was found
			{`kvasir_build_info` + one + `,version="1"} 1x60
			  kvasir_worker_up` + one + `,worker="w",role="both",state="up"} 1x60`, false},
			{`kvasir_build_info` + one + `,version="1"} 1x60
			  kvasir_build_info{job="kvasir", instance="b",version="1"} 1x60
			  kvasir_worker_up{job="kvasir", instance="b",worker="w",role="both",state="up"} 1x60`, true}, // a has none
			{`kvasir_build_info` + one + `,version="1"} 1x60
			  kvasir_worker_up` + one + `,worker="w",role="both",state="up"} 1x59 stale`, false}, // for no minute yet
			{`kvasir_build_info` + one + `,version="1"} 1x60
			  kvasir_worker_up` + one + `,worker="w",role="both",state="down"} 0x59 stale`, true}, // it was down before it went
		},
		"KvasirErrors": {
			{`kvasir_requests_total` + one + `,code="200"} 0+90x60
			  kvasir_requests_total` + one + `,code="503"} 0+10x60`, true},
			{`kvasir_requests_total` + one + `,code="200"} 0+9900x60
			  kvasir_requests_total` + one + `,code="503"} 0+10x60`, false},
			{`kvasir_requests_total` + one + `,code="200"} 0x60
			  kvasir_requests_total` + one + `,code="503"} 0+1x60`, false}, // one a minute of a machine that nobody uses
		},
		"KvasirWrongAnswers": {
			{`kvasir_kv_transfers_late_total` + one + `,worker="w"} 0x55 1x4`, true},
			{`kvasir_kv_transfers_late_total` + one + `,worker="w"} 7x60`, false},
		},
		"KvasirWaiting": {
			{`kvasir_queue_wait_seconds_bucket` + one + `,le="10"} 0+1x60
			  kvasir_queue_wait_seconds_bucket` + one + `,le="30"} 0+9x60
			  kvasir_queue_wait_seconds_bucket` + one + `,le="+Inf"} 0+10x60`, true},
			{`kvasir_queue_wait_seconds_bucket` + one + `,le="1"} 0+10x60
			  kvasir_queue_wait_seconds_bucket` + one + `,le="+Inf"} 0+10x60`, false},
		},
		"KvasirWorkerDown": {
			{`kvasir_worker_up` + one + `,worker="w",role="both",state="down"} 0x60`, true},
			{`kvasir_worker_up` + one + `,worker="w",role="both",state="down"} 0x50
			  kvasir_worker_up` + one + `,worker="w",role="both",state="up"} _x50 1x10`, false}, // its state is a label
			{`kvasir_worker_up` + one + `,worker="w",role="both",state="draining"} 0x60`, false}, // an operator has taken it out
			{`kvasir_worker_up` + one + `,worker="w",role="both",state="up"} 1x50
			  kvasir_worker_up` + one + `,worker="w",role="both",state="down"} _x50 0x10`, false}, // for ten minutes
		},
		"KvasirGPUFault": {
			{`kvasir_gpu_recovery_action` + one + `,gpu="0",UUID="g",action="reset"} 1x60`, true},
			{`kvasir_gpu_recovery_action` + one + `,gpu="0",UUID="g",action="none"} 1x60`, false},
		},
		"KvasirEventsNotHeard": {
			{`kvasir_kv_events_connected` + one + `,worker="w"} 0x60
			  kvasir_kv_events_sources` + one + `,worker="w"} 1x60`, true},
			{`kvasir_kv_events_connected` + one + `,worker="w"} 0x60
			  kvasir_kv_events_sources` + one + `,worker="w"} 0x60`, false},
		},
		"KvasirReloadFailed": {
			{`kvasir_config_last_reload_successful` + one + `} 0x60`, true},
			{`kvasir_config_last_reload_successful` + one + `} 1x60`, false},
		},
		"KvasirReplicasApart": {
			{`kvasir_peers_connected` + one + `} 0x60`, true},
			{`kvasir_peers_connected` + one + `} 1x50 0x10`, false},
		},
		"KvasirSourceStale": {
			{`kvasir_discovery_stale` + one + `,source="dns a"} 1x60`, true},
			{`kvasir_discovery_stale` + one + `,source="dns a"} 0x50 1x10`, false},
		},
		"KvasirUnjudged": {
			{`kvasir_unjudged_total` + one + `,guard="pii",result="refused"} 0+5x60
			  kvasir_requests_total` + one + `,code="200"} 0+100x60`, true},
			{`kvasir_unjudged_total` + one + `,guard="pii",result="refused"} 0+5x60
			  kvasir_requests_total` + one + `,code="200"} 0+10000x60`, false},
		},
		"KvasirCacheStore": {
			{`kvasir_cache_breaker` + one + `,state="open"} 1x60`, true},
			{`kvasir_cache_breaker` + one + `,state="open"} 0x60`, false},
		},
		"KvasirShortOfDescriptors": {
			{`kvasir_descriptor_shortages_total` + one + `,at="accept"} 0+1x60`, true},
			{`kvasir_descriptor_shortages_total` + one + `,at="accept"} 0x58 3x2`, false}, // a burst
		},
		"KvasirShortOfMemory": {
			{`kvasir_bodies_refused_total` + one + `} 0+1x60`, true},
			{`kvasir_bodies_refused_total` + one + `} 9x60`, false},
		},
		"KvasirBug": {
			{`kvasir_panics_total` + one + `} 0x59 1`, true},
			{`kvasir_panics_total` + one + `} 1x60`, false},
		},
	}
	all := rules(t)
	recorded := strings.NewReplacer(recordings(all)...)
	for _, r := range all {
		if r.Alert == "" {
			continue
		}
		rows := cases[r.Alert]
		if len(rows) < 2 {
			t.Errorf("%s has no cases", r.Alert)
		}
		for _, row := range rows {
			s := promqltest.LoadedStorage(t, "load 1m\n  "+regexp.MustCompile(`\n\s+`).ReplaceAllString(row.series, "\n  "))
			if got := firesAt(t, s, recorded.Replace(r.Expr), time.Unix(3600, 0), time.Duration(r.For)); got != row.fires {
				t.Errorf("%s: fires %v over\n%s", r.Alert, got, row.series)
			}
		}
		if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: severity %q, or no summary and description", r.Alert, severity)
		}
	}
}

// recordings are pairs of a recorded series and its expression.
func recordings(all []rulefmt.Rule) (pairs []string) {
	for _, r := range all {
		if r.Record != "" {
			pairs = append(pairs, r.Record, "("+r.Expr+")")
		}
	}
	return pairs
}

// firesAt says whether an alert with this expression, which must hold for a while, fires.
func firesAt(t *testing.T, s storage.Queryable, expr string, at time.Time, lasting time.Duration) bool {
	t.Helper()
	const step = 30 * time.Second
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	q, err := engine.NewRangeQuery(t.Context(), s, nil, expr, at.Add(-lasting), at, step)
	must(t, err)
	defer q.Close()
	result := q.Exec(t.Context())
	must(t, result.Err)
	series, err := result.Matrix()
	must(t, err)
	return slices.ContainsFunc(series, func(one promql.Series) bool { return len(one.Floats) == int(lasting/step)+1 })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
