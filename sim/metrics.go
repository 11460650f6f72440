// GET /metrics: the part of vLLM's metrics that routers read, in its names, labels and number
// format.

package sim

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// metrics are the counters that the engine does not keep itself. driver.mu guards them.
type metrics struct {
	promptTokens, generatedTokens int
	finished                      map[string]int // by finish reason; as in vLLM, aborts are not counted
	firstToken, endToEnd          histogram
	cached, pulled, computed      int // prompt tokens by the source of their KV
	failedTransfers               int
}

func newMetrics() metrics {
	return metrics{
		finished:   map[string]int{},
		firstToken: newHistogram(firstTokenBounds),
		endToEnd:   newHistogram(endToEndBounds),
	}
}

// vLLM's default bounds, in seconds.
var (
	firstTokenBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
		20, 40, 80, 160, 640, 2560}
	endToEndBounds = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920,
		7680}
)

// token counts one token that became visible.
func (m *metrics) token(s *Sequence, reason string) {
	m.generatedTokens++
	if s.Generated == 1 {
		m.promptTokens += s.PromptTokens
		m.cached += s.Cached
		if s.Load {
			m.pulled += s.PromptTokens - s.Cached
		} else {
			m.computed += s.PromptTokens - s.Cached
		}
		m.firstToken.observe(s.FirstToken - s.Arrived)
	}
	if s.Done {
		if reason != "length" {
			reason = "stop" // tool_calls exists only in the API, not in the engine
		}
		m.finished[reason]++
		m.endToEnd.observe(s.LastToken - s.Arrived)
	}
}

// histogram counts durations by upper bound in seconds.
type histogram struct {
	bounds []float64
	counts []int // one for each bound, and one above all
	sum    float64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]int, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	v := d.Seconds()
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += v
}

// serveMetrics writes the metrics page.
func serveMetrics(s *Server, w http.ResponseWriter, _ *http.Request) {
	s.driver.mu.Lock()
	engine := s.driver.engine.Stats()
	p := page{prefix: "vllm:", labels: `engine="0",model_name=` + string(appendString(nil, s.options.Model))}
	m := &s.driver.metrics
	p.one("num_requests_running", "gauge", "Number of requests in model execution batches.", engine.Running)
	p.one("num_requests_waiting", "gauge", "Number of requests waiting to be processed.", engine.Waiting)
	p.float("kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.",
		float64(engine.ActiveBlocks)/float64(engine.Blocks))
	p.one("prefix_cache_queries_total", "counter",
		"Prefix cache queries, in terms of number of queried tokens.", engine.QueriedTokens)
	p.one("prefix_cache_hits_total", "counter",
		"Prefix cache hits, in terms of number of cached tokens.", engine.HitTokens)
	p.one("num_preemptions_total", "counter", "Cumulative number of preemption from the engine.", engine.Preemptions)
	p.one("prompt_tokens_total", "counter", "Number of prefill tokens processed.", m.promptTokens)
	p.head("prompt_tokens_by_source_total", "counter", "Number of prompt tokens by source.")
	for _, source := range []struct {
		name  string
		value int
	}{{"local_compute", m.computed}, {"local_cache_hit", m.cached}, {"external_kv_transfer", m.pulled}} {
		p.value("prompt_tokens_by_source_total", p.labels+`,source="`+source.name+`"`, float64(source.value))
	}
	p.one("nixl_num_failed_transfers_total", "counter", "Number of failed NIXL KV Cache transfers.", m.failedTransfers)
	p.one("nixl_num_kv_expired_reqs_total", "counter",
		"Number of requests that had their KV expire.", s.driver.leases.expired)
	p.one("nixl_num_notifications_after_expiry_total", "counter",
		"Number of notifications for requests whose KV had expired.", s.driver.leases.late)
	p.one("generation_tokens_total", "counter", "Number of generation tokens processed.", m.generatedTokens)
	p.head("request_success_total", "counter", "Count of successfully processed requests.")
	for _, reason := range []string{"stop", "length", "abort", "error", "repetition"} {
		p.value("request_success_total", `engine="0",finished_reason="`+reason+`",`+p.labels[len(`engine="0",`):],
			float64(m.finished[reason]))
	}
	p.histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", &m.firstToken)
	p.histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &m.endToEnd)
	s.driver.mu.Unlock()
	p.head("cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
	p.value("cache_config_info", `block_size="`+strconv.Itoa(s.options.BlockSize)+
		`",enable_prefix_caching="True",engine="0",kv_cache_size_tokens="`+
		strconv.Itoa(s.options.BlockSize*s.options.Blocks)+`",num_gpu_blocks="`+strconv.Itoa(s.options.Blocks)+
		`",role="`+s.options.Role+`"`, 1)
	p.text = append(p.text, "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"+
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds "+
		pythonFloat(float64(s.driver.started.UnixNano()/1e7)/100)+"\n"...)
	w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
	_, _ = w.Write(p.text)
}

// page is a metrics page being written.
type page struct {
	prefix string // prefix of metric names
	text   []byte
	labels string
}

func (p *page) head(name, kind, help string) {
	p.text = append(p.text, "# HELP "+p.prefix+name+" "+help+"\n# TYPE "+p.prefix+name+" "+kind+"\n"...)
}

func (p *page) value(name, labels string, v float64) {
	p.text = append(p.text, p.prefix+name+"{"+labels+"} "+pythonFloat(v)+"\n"...)
}

func (p *page) float(name, kind, help string, v float64) {
	p.head(name, kind, help)
	p.value(name, p.labels, v)
}

func (p *page) one(name, kind, help string, v int) { p.float(name, kind, help, float64(v)) }

func (p *page) histogram(name, help string, h *histogram) {
	p.head(name, "histogram", help)
	total := 0
	first, rest, _ := strings.Cut(p.labels, ",")
	for i, count := range h.counts {
		total += count
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = pythonFloat(h.bounds[i])
		}
		p.value(name+"_bucket", first+`,le="`+bound+`",`+rest, float64(total))
	}
	p.value(name+"_count", p.labels, float64(total))
	p.value(name+"_sum", p.labels, h.sum)
}
