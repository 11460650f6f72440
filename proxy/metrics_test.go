// What /metrics has, as series.

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// seriesOf are the series that /metrics has, each as name{a="b"} with the number that it stands for: of a
// histogram how often something was observed.
func seriesOf(t *testing.T, p *testProxy) map[string]float64 {
	t.Helper()
	families, err := p.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			if _, twice := all[name]; twice {
				t.Errorf("%s stands there twice", name)
			}
			all[name] = valueOf(m)
		}
	}
	return all
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return m.Counter.GetValue()
}

// has waits until the series have these values: a request is counted after its answer.
func (p *testProxy) has(t *testing.T, want map[string]float64) {
	t.Helper()
	var wrong []string
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(wrong, "\n"))
		}
	}()
	waitUntil(t, "the metrics say so", func() bool {
		got := seriesOf(t, p)
		wrong = wrong[:0]
		for name, v := range want {
			if is, ok := got[name]; !ok || is != v {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", name, is, v))
			}
		}
		return len(wrong) == 0
	})
}

// TestNativeHistograms: a scraper that asks for protobuf gets native histograms beside the classic buckets, any other
// one the classic ones alone.
func TestNativeHistograms(t *testing.T) {
	p := startProxy(t, settingsFor(startWorker(t, send(httpReply(200, "application/json", chatReply))).url))
	p.ask(t, "/v1/chat/completions", plainChat)
	p.has(t, map[string]float64{`kvasir_request_duration_seconds{route="/v1/chat/completions"}`: 1})
	req, err := http.NewRequest("GET", "http://"+p.admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	native := map[string]bool{}
	for decoder := expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header)); ; {
		var f dto.MetricFamily
		if err := decoder.Decode(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.Metric {
			if h := m.Histogram; h != nil && h.Schema != nil {
				native[f.GetName()] = true
				if len(h.Bucket) < 5 || h.GetSampleCount() > 0 && len(h.PositiveSpan) == 0 {
					t.Errorf("%s has %d classic buckets and %d spans", f.GetName(), len(h.Bucket), len(h.PositiveSpan))
				}
			}
		}
	}
	for _, name := range []string{"kvasir_request_duration_seconds", "kvasir_time_to_first_byte_seconds", "kvasir_overhead_seconds", "kvasir_queue_wait_seconds"} {
		if !native[name] {
			t.Errorf("%s is no native histogram", name)
		}
	}
	if page := p.metricsPage(t); !strings.Contains(page, `kvasir_overhead_seconds_bucket{le="+Inf"} 1`) {
		t.Errorf("the text is\n%s", page)
	}
}

func TestBounded(t *testing.T) {
	var b bounded
	for i := range 3 * maxNames {
		name := fmt.Sprint(i)
		if want := name; b.name(name) != want && i < maxNames || i >= maxNames && b.name(name) != otherName {
			t.Fatalf("name %d is %q", i, b.name(name))
		}
	}
	if b.name("7") != "7" {
		t.Error("a name is forgotten")
	}
}
