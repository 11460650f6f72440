// SGLang's HTTP form, version 0.5.23: its fields, its refusals and its routes.

package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// SGLangVersion is what GET /server_info says.
const SGLangVersion = "0.5.23+kvasir.sim"

var sglang = dialect{
	routes: map[string]route{
		"/v1/chat/completions": {http.MethodPost, (*Server).serveChat},
		"/v1/completions":      {http.MethodPost, (*Server).serveCompletion},
		"/v1/models":           {http.MethodGet, serveSGLangModels},
		"/tokenize":            {http.MethodPost, serveSGLangTokenize},
		"/v1/tokenize":         {http.MethodPost, serveSGLangTokenize},
		"/health":              {http.MethodGet, serveSlowHealth},
		"/ping":                {http.MethodGet, serveNothing},
		"/model_info":          {http.MethodGet, serveModelInfo},
		"/get_model_info":      {http.MethodGet, serveModelInfo},
		"/server_info":         {http.MethodGet, serveServerInfo},
		"/get_server_info":     {http.MethodGet, serveServerInfo},
		"/metrics":             {http.MethodGet, serveSGLangMetrics},
	},
	format: func(c *completion, created int64) format { return newSGLangWire(c, created) },
	read:   readSGLang, model: servesAny, finish: finishSGLang,
	failure:    (*failure).flat,
	noMessages: refuse("Messages cannot be empty.", ""),
	badTemperature: func(v float64) *failure {
		return refuse("temperature must be a non-negative finite number, got "+pythonFloat(v)+".", "")
	},
	tooLong: func(prompt, context int) *failure {
		return refuse(fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", prompt, context), "")
	},
	tooMany: func(tokens, context int) *failure {
		return refuse(fmt.Sprintf("max_completion_tokens is too large: %d."+
			"This model supports at most %d completion tokens.", tokens, context), "")
	},
	pull: meetInRoom, handOver: func(*completion, *job, source) []byte { return nil },
}

// servesAny accepts any model and repeats its name in the reply, as SGLang 0.5.23 does.
func servesAny(_ Options, f *fields, c *completion) {
	if model, ok := f.text("model"); ok {
		c.model = model
	}
}

// readSGLang reads the request's id, which SGLang takes from the body only.
func readSGLang(_ Options, f *fields, c *completion, _ string) {
	c.id, _ = f.text("rid")
	c.id = orDefault(c.id, fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()))
}

// finishSGLang reads where to meet the other leg. A worker that is not part of a pair ignores
// these fields.
func finishSGLang(o Options, f *fields, c *completion) {
	if o.Role == "both" || f.failure != nil {
		return
	}
	c.rooms = readRooms(o, f, len(c.prompts), max(c.choices, 1))
	if c.rooms == nil {
		f.fail(refuse("Invalid request: Disaggregated request received without bootstrap room id. req.rid='"+c.id+"'", ""))
		return
	}
	c.transfer = &transfer{hold: o.Role == "prefill", load: o.Role == "decode", complete: true}
}

// disaggregation returns the role in SGLang's terms.
func (o Options) disaggregation() string {
	if o.Role == "both" {
		return "null"
	}
	return o.Role
}

func serveSGLangModels(s *Server, w http.ResponseWriter, _ *http.Request) {
	b := appendString([]byte(`{"object":"list","data":[{"id":`), s.options.Model)
	b = strconv.AppendInt(append(b, `,"object":"model","created":`...), time.Now().Unix(), 10)
	b = appendString(append(b, `,"owned_by":"sglang","root":`...), s.options.Model)
	b = strconv.AppendInt(append(b, `,"parent":null,"max_model_len":`...), int64(s.options.MaxModelLen), 10)
	writeJSON(w, http.StatusOK, append(b, "}]}"...))
}

// serveSGLangTokenize is /tokenize in SGLang's order of fields.
func serveSGLangTokenize(s *Server, w http.ResponseWriter, r *http.Request) {
	f := readBody(w, r)
	tokens := s.tokenize(f)
	if f.failure != nil {
		s.refuse(w, f.failure)
		return
	}
	b := append(appendIDs([]byte(`{"tokens":[`), tokens), `],"count":`...)
	b = strconv.AppendInt(append(strconv.AppendInt(b, int64(len(tokens)), 10), `,"max_model_len":`...), int64(s.options.MaxModelLen), 10)
	writeJSON(w, http.StatusOK, append(b, '}'))
}

// serveSlowHealth takes one second, as SGLang's does, because that generates a token.
func serveSlowHealth(s *Server, w http.ResponseWriter, r *http.Request) {
	sleep(r.Context(), time.Duration(float64(time.Second)/max(s.options.Speedup, 1)))
	serveNothing(s, w, r)
}

func serveModelInfo(s *Server, w http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(map[string]any{ // plain values
		"model_path": s.options.Model, "served_model_name": s.options.Model, "is_generation": true,
		"weight_version": Fingerprint, "disaggregation_mode": s.options.disaggregation(),
	})
	writeJSON(w, http.StatusOK, body)
}

// serveServerInfo returns what routers read: the role, where legs meet, and the sizes.
func serveServerInfo(s *Server, w http.ResponseWriter, _ *http.Request) {
	port := defaultBootstrapPort
	if s.options.Role == "prefill" {
		var err error
		if _, port, err = s.openSide(); err != nil {
			s.refuse(w, &failure{http.StatusInternalServerError, "InternalServerError", err.Error(), ""})
			return
		}
	}
	o := s.options
	body, _ := json.Marshal(map[string]any{ // plain values
		"model_path": o.Model, "served_model_name": o.Model, "version": SGLangVersion, "page_size": o.BlockSize,
		"context_length": o.MaxModelLen, "max_total_num_tokens": o.Blocks * o.BlockSize, "max_running_requests": o.MaxSeqs,
		"max_prefill_tokens": o.MaxBatchedTokens, "chunked_prefill_size": o.MaxBatchedTokens, "dp_size": 1, "tp_size": 1,
		"disaggregation_mode": o.disaggregation(), "disaggregation_bootstrap_port": port,
	})
	writeJSON(w, http.StatusOK, body)
}

// serveSGLangMetrics writes the part of SGLang's metrics that routers read.
func serveSGLangMetrics(s *Server, w http.ResponseWriter, _ *http.Request) {
	s.driver.mu.Lock()
	engine, m := s.driver.engine.Stats(), s.driver.metrics
	kind := s.options.Role
	if kind == "both" {
		kind = "unified"
	}
	p := page{prefix: "sglang:", labels: `engine_type="` + kind + `",model_name=` +
		string(appendString(nil, s.options.Model)) + `,pp_rank="0",tp_rank="0"`}
	hits := 0.0
	if engine.QueriedTokens > 0 {
		hits = float64(engine.HitTokens) / float64(engine.QueriedTokens)
	}
	p.one("num_running_reqs", "gauge", "The number of running requests.", engine.Running)
	p.one("num_queue_reqs", "gauge", "The number of requests in the waiting queue.", engine.Waiting-engine.Loading)
	p.float("token_usage", "gauge", "The token usage.", float64(engine.ActiveBlocks)/float64(engine.Blocks))
	p.one("num_used_tokens", "gauge", "The number of used tokens.", engine.ActiveBlocks*s.options.BlockSize)
	p.one("max_total_num_tokens", "gauge", "Maximum total number of tokens in the KV cache pool.", engine.Blocks*s.options.BlockSize)
	p.float("cache_hit_rate", "gauge", "The prefix cache hit rate.", hits)
	p.one("num_prefill_inflight_queue_reqs", "gauge", "The number of requests in the prefill inflight queue.", engine.Held)
	p.one("num_decode_transfer_queue_reqs", "gauge", "The number of requests in the decode transfer queue.", engine.Loading)
	p.one("prompt_tokens_total", "counter", "Number of prefill tokens processed.", m.promptTokens)
	p.one("generation_tokens_total", "counter", "Number of generation tokens processed.", m.generatedTokens)
	p.histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", &s.driver.metrics.firstToken)
	p.histogram("e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", &s.driver.metrics.endToEnd)
	s.driver.mu.Unlock()
	p.head("cache_config_info", "gauge", "Information of the cache configuration")
	p.value("cache_config_info", `num_pages="`+strconv.Itoa(s.options.Blocks)+`",page_size="`+strconv.Itoa(s.options.BlockSize)+`"`, 1)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.text)
}
