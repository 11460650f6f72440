// TensorRT-LLM's HTTP API, after its protocol module: its fields, its hand-over and its routes.

package sim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

var trtllm = dialect{
	routes: map[string]route{
		"/v1/chat/completions": {http.MethodPost, (*Server).serveChat},
		"/v1/completions":      {http.MethodPost, (*Server).serveCompletion},
		"/v1/models":           {http.MethodGet, serveTRTModels},
		"/health":              {http.MethodGet, serveNothing},
		"/version":             {http.MethodGet, serveTRTVersion},
		"/server_info":         {http.MethodGet, serveTRTInfo},
		"/_internal/tokenize":  {http.MethodPost, serveTRTTokenize},
		"/prometheus/metrics":  {http.MethodGet, serveTRTMetrics},
	},
	format: func(c *completion, created int64) format { return newTRTWire(c, created) },
	read:   readTRT, model: servesAny, finish: finishTRT,
	failure:    (*failure).flat,
	noMessages: refuse("Cannot apply chat template to an empty conversation.", ""),
	badTemperature: func(v float64) *failure {
		return refuse("require temperature >= 0, got temperature="+pythonFloat(v), "")
	},
	tooLong: func(prompt, context int) *failure {
		return refuse(fmt.Sprintf("The sum of prompt length (%d) and query length (0) should not exceed max_num_tokens (%d)", prompt, context), "")
	},
	tooMany: func(tokens, context int) *failure {
		return refuse(fmt.Sprintf("`max_tokens` (%d) should not exceed max_seq_len (%d)", tokens, context), "")
	},
	pull: pullHeld, handOver: trtParams,
}

// trtFields are the fields of a request; any other is refused, as the server's models forbid
// extra ones.
var trtFields = strings.Fields(`model frequency_penalty logit_bias logprobs max_tokens n presence_penalty seed stop stream
	stream_options temperature top_p user prompt_ignore_length best_of use_beam_search top_k top_p_min min_p
	repetition_penalty length_penalty early_stopping stop_token_ids include_stop_str_in_output ignore_eos min_tokens
	skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens lora_request thinking_token_budget
	response_format add_special_tokens disaggregated_params conversation_params`)

var trtChatFields = strings.Fields(`messages prompt_token_ids prompt_token_ids_b64 top_logprobs max_completion_tokens tools
	tool_choice reasoning_effort echo add_generation_prompt documents chat_template chat_template_kwargs media_io_kwargs
	cache_salt agent_hierarchy mm_processor_kwargs`)

var trtTextFields = strings.Fields(`prompt echo suffix return_context_logits detokenize`)

// handover is disaggregated_params, of a request and of a choice.
type handover struct {
	Type      string          `json:"request_type"`
	First     []uint32        `json:"first_gen_tokens"`
	LogProbs  json.RawMessage `json:"first_gen_log_probs"`
	Logits    json.RawMessage `json:"first_gen_logits"`
	Context   *int64          `json:"ctx_request_id"`
	State     *string         `json:"encoded_opaque_state"`
	Draft     []uint32        `json:"draft_tokens"`
	ID        *int64          `json:"disagg_request_id"`
	Rank      *int            `json:"ctx_dp_rank"`
	Endpoint  json.RawMessage `json:"ctx_info_endpoint"`
	Style     json.RawMessage `json:"schedule_style"`
	Conv      *string         `json:"conversation_id"`
	Usage     json.RawMessage `json:"ctx_usage"`
	TokensB64 bool            `json:"return_prompt_token_ids_b64"`
	Thinking  json.RawMessage `json:"resolved_thinking"`
}

// opaque is the content of encoded_opaque_state, which routers pass on unread: where
// the blocks are.
type opaque struct {
	Engine  string `json:"engine"`
	Request string `json:"request"`
	Host    string `json:"host"`
	Port    int    `json:"port"`
	Context int64  `json:"context"`
	Blocks  []int  `json:"blocks"`
	Cached  int    `json:"cached"`
}

// readTRT reads the fields that only TensorRT-LLM has.
func readTRT(_ Options, f *fields, c *completion, _ string) {
	c.id = c.prefix() + fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	own := trtTextFields
	if c.chat {
		own = trtChatFields
	}
	names := make([]string, 0, len(f.raw))
	for name := range f.raw {
		if !slices.Contains(trtFields, name) && !slices.Contains(own, name) {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		f.fail(forbidden(names[0], f.raw[names[0]]))
	}
	if f.require("model"); f.failure == nil {
		c.transfer = readHandover(f)
	}
}

// forbidden returns pydantic's error for a field that a model does not have.
func forbidden(name string, raw json.RawMessage) *failure {
	return refuse("[{'type': 'extra_forbidden', 'loc': ('body', "+pythonQuote(name)+
		"), 'msg': 'Extra inputs are not permitted', 'input': "+pythonQuote(describe(raw))+"}]", "")
}

// readHandover reads disaggregated_params; nil: the request is an ordinary one.
func readHandover(f *fields) *transfer {
	raw := f.get("disaggregated_params")
	if raw == nil {
		return nil
	}
	var h handover
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		name := "disaggregated_params"
		if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
			name += "." + strings.Trim(field, `"`)
		}
		f.fail(forbidden(name, raw))
		return nil
	}
	switch h.Type {
	case "context_only":
		return &transfer{hold: true, disagg: h.ID}
	case "context_and_generation":
		return nil
	case "generation_only":
	default:
		f.fail(refuse("Unknown request type: "+h.Type+". Must be context_only, generation_only or context_and_generation", ""))
		return nil
	}
	var state opaque
	if h.State == nil || h.Context == nil || len(h.First) == 0 {
		f.fail(refuse("generation_only needs first_gen_tokens, ctx_request_id and encoded_opaque_state of a context request", ""))
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(*h.State)
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.Context != *h.Context || state.Port < 1 || state.Port > 1<<16-1 {
		f.fail(refuse("encoded_opaque_state is not the state of context request "+strconv.FormatInt(*h.Context, 10), ""))
		return nil
	}
	return &transfer{load: true, complete: true, blocks: state.Blocks, cached: state.Cached, first: h.First[0],
		source: source{state.Engine, state.Request, state.Host, state.Port}}
}

// finishTRT takes the prompt tokens from a generation request, and refuses requests that cannot
// be handed over.
func finishTRT(_ Options, f *fields, c *completion) {
	if raw := f.get("prompt_token_ids"); raw != nil && c.chat {
		var tokens []uint32
		if json.Unmarshal(raw, &tokens) != nil || len(tokens) == 0 {
			f.complain("list_type", "prompt_token_ids", "Input should be a valid list")
			return
		}
		c.prompts = [][]uint32{tokens}
	}
	if c.transfer != nil && (len(c.prompts) != 1 || c.choices != 1) {
		f.fail(refuse("Disaggregated serving takes one prompt and n=1", ""))
	}
}

// trtParams returns the disaggregated_params of a context server's choice.
func trtParams(c *completion, j *job, at source) []byte {
	t := &j.tickets[0]
	if t.handle == "" {
		return nil
	}
	context := int64(rand.Uint64()>>2 | 1<<60) // larger than a float64 holds exactly, as a real server's are
	if c.transfer.disagg != nil {
		context = *c.transfer.disagg
	}
	state, _ := json.Marshal(opaque{at.engine, t.handle, at.host, at.port, context, intsOf(t.held), t.sequence.Cached}) // plain values
	b := append([]byte(`{"request_type":"context_only","first_gen_tokens":[`), strconv.FormatUint(uint64(t.answer[0]), 10)...)
	b = strconv.AppendInt(append(b, `],"first_gen_log_probs":null,"first_gen_logits":null,"ctx_request_id":`...), context, 10)
	b = appendString(append(b, `,"encoded_opaque_state":`...), base64.StdEncoding.EncodeToString(state))
	b = append(b, `,"draft_tokens":null,"disagg_request_id":`...)
	if c.transfer.disagg != nil {
		b = strconv.AppendInt(b, context, 10)
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"ctx_dp_rank":0,"ctx_info_endpoint":null,"schedule_style":null,"conversation_id":null,`+
		`"ctx_usage":null,"return_prompt_token_ids_b64":false}`...)
}

func serveTRTModels(s *Server, w http.ResponseWriter, _ *http.Request) {
	b := appendString([]byte(`{"object":"list","data":[{"id":`), s.options.Model)
	b = strconv.AppendInt(append(b, `,"object":"model","created":`...), time.Now().Unix(), 10)
	writeJSON(w, http.StatusOK, append(b, `,"owned_by":"tensorrt_llm"}]}`...))
}

// TRTVersion is the version in the reply of GET /version.
const TRTVersion = "1.4.0rc1+kvasir.sim"

func serveTRTVersion(s *Server, w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, append(appendString([]byte(`{"version":`), TRTVersion), '}'))
}

func serveTRTInfo(s *Server, w http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(map[string]any{"disaggregated_params": nil, "version": TRTVersion}) // plain values
	writeJSON(w, http.StatusOK, body)
}

// serveTRTTokenize accepts only plain prompts.
func serveTRTTokenize(s *Server, w http.ResponseWriter, r *http.Request) {
	f := readBody(w, r)
	f.require("prompt")
	prompt, _ := f.text("prompt")
	if f.failure != nil {
		s.refuse(w, f.failure)
		return
	}
	tokens := appendTokens(nil, prompt)
	b := strconv.AppendInt([]byte(`{"count":`), int64(len(tokens)), 10)
	writeJSON(w, http.StatusOK, append(appendIDs(append(b, `,"tokens":[`...), tokens), "]}"...))
}

// serveTRTMetrics writes the part of its metrics that routers read.
func serveTRTMetrics(s *Server, w http.ResponseWriter, _ *http.Request) {
	s.driver.mu.Lock()
	engine := s.driver.engine.Stats()
	p := page{prefix: "trtllm_", labels: `engine_type="simulated",model_name=` + string(appendString(nil, s.options.Model))}
	hits := 0.0
	if engine.QueriedTokens > 0 {
		hits = float64(engine.HitTokens) / float64(engine.QueriedTokens)
	}
	p.one("num_requests_running", "gauge", "Number of requests currently running.", engine.Running)
	p.one("num_requests_waiting", "gauge", "Number of requests waiting.", engine.Waiting)
	p.float("kv_cache_utilization", "gauge", "KV cache utilization.", float64(engine.ActiveBlocks)/float64(engine.Blocks))
	p.float("kv_cache_hit_rate", "gauge", "KV cache hit rate.", hits)
	p.one("kv_cache_max_blocks", "gauge", "Maximum number of KV cache blocks.", engine.Blocks)
	p.one("kv_cache_tokens_per_block", "gauge", "Tokens in one KV cache block.", s.options.BlockSize)
	p.histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", &s.driver.metrics.firstToken)
	p.histogram("e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", &s.driver.metrics.endToEnd)
	s.driver.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.text)
}
