// Cacheable: which requests may be answered from the cache, and which answers kept.
package proxy

import (
	"strconv"
	"time"

	"kvasir/classify"
	"kvasir/header"
	"kvasir/openai"
)

// Why a request is not looked up: the values of cache_why in the log and of the
// label `why` of kvasir_cache_bypassed_total.
const (
	bypassDecision    = "decision"    // the decision has no cache
	bypassClient      = "client"      // x-kvasir-cache: bypass
	bypassNoStore     = "no-store"    // Cache-Control: nothing of it may be kept
	bypassNoCache     = "no-cache"    // Cache-Control: a fresh answer is wanted, and kept
	bypassRedacted    = "redacted"    // the worker is sent less than was asked
	bypassUnjudged    = "unjudged"    // a guard could not judge it and let it pass
	bypassTemperature = "temperature" // above cache.max_temperature
	bypassChoices     = "choices"     // more than one answer: n, best_of, several prompts
	bypassLogprobs    = "logprobs"    // of answers or prompts
	bypassForm        = "form"        // what no kept answer has: sound, token ids, the prompt again, usage with each event
	bypassTools       = "tools"       // a call is wanted, or tools that the worker runs itself
	bypassState       = "state"       // it leans on what the worker remembers, or is to be remembered there
	bypassQuestion    = "question"    // no text asks, or it is too long to be kept
	bypassUnclear     = "unclear"     // more parameters than are read, or one whose name is written with escapes
)

// maxQuestion is how long a question may be, in bytes as it is written: prompts
// with a document in them are found again, whole books are not kept.
const maxQuestion = 256 << 10

// A cacheRule is what may be done with one request and its answer.
type cacheRule struct {
	why    string        // it is not looked up; "": it is
	stores bool          // its answer may be kept
	maxAge time.Duration // of an entry that answers; negative: any
	exact  bool          // only by the very same text
	asks   openai.Span   // the question
}

// cacheRule judges the request. It is the one place that says what is never
// looked up or kept; what is never kept of an answer, the answer itself says.
func (x inquiry) cacheRule() (c cacheRule) {
	c.maxAge = -1
	if c.why = x.bypass(); c.why != "" {
		return c
	}
	var last bool
	if c.asks, last = x.req.Question(); !c.asks.Given() || c.asks.End-c.asks.Start > maxQuestion {
		c.why = bypassQuestion
		return c
	}
	// What was said after the question weighs more than how it is worded.
	c.exact = x.route.Kind == openai.KindText || !last || x.continues()
	c.stores = true
	x.obey(&c)
	return c
}

// continues says whether the model goes on where the last turn ends, as vLLM and
// SGLang can be asked to: the text is no question then but a beginning.
func (x inquiry) continues() bool {
	for _, p := range x.req.Parameters {
		switch value := p.Value.Of(x.body); string(p.Key.Of(x.body)) {
		case "continue_final_message":
			if !isNothing(value) {
				return true
			}
		case "add_generation_prompt":
			if string(value) != "true" && string(value) != "null" {
				return true
			}
		}
	}
	return false
}

// obey reads what the client says of caches, in every line that says it.
func (x inquiry) obey(c *cacheRule) {
	for lines := x.ctx.Request.Header.RawHeaders(); len(lines) > 0; {
		var line []byte
		line, lines = header.CutLine(lines)
		switch name, value := header.SplitField(line); {
		case header.Is(name, "x-kvasir-cache"):
			if header.Is(value, "bypass") {
				c.why, c.stores = bypassClient, false
				return
			}
		case header.Is(name, "cache-control"):
			c.control(value)
		}
	}
}

// control reads one line of Cache-Control (RFC 9111, 5.2.1). The strictest word
// counts, the lowest of ages; one that nobody understands is none that is old enough.
func (c *cacheRule) control(list []byte) {
	for len(list) > 0 {
		var word []byte
		word, list = header.CutToken(list)
		switch {
		case header.Is(word, "no-store"):
			c.why, c.stores = bypassNoStore, false
		case c.why == bypassNoStore:
		case header.Is(word, "no-cache"):
			c.why = bypassNoCache
		case header.HasPrefix(word, "max-age="):
			seconds, err := strconv.ParseUint(string(word[len("max-age="):]), 10, 31)
			if err != nil || seconds == 0 {
				c.why, seconds = bypassNoCache, 0
			}
			if age := time.Duration(seconds) * time.Second; c.maxAge < 0 || age < c.maxAge {
				c.maxAge = age
			}
		}
	}
}

// bypass says why nothing about the request may come from a cache or go into
// it, whatever the client wishes; "": it may.
func (x inquiry) bypass() string {
	d := x.decision()
	switch {
	case d != nil && d.CacheOff:
		return bypassDecision
	case x.facts.judgement.unjudged != "":
		return bypassUnjudged
	case x.redacts():
		return bypassRedacted
	case x.req.Usage.Continuous:
		return bypassForm
	case x.warm(d):
		return bypassTemperature
	case x.req.Crowded:
		return bypassUnclear
	}
	for _, p := range x.req.Parameters {
		if why := x.bypassFor(p.Key.Of(x.body), p.Value.Of(x.body)); why != "" {
			return why
		}
	}
	return ""
}

// redacts says whether personal data give way to placeholders on the way to
// the worker. The answer is then to another question than was asked, the
// question is one that should lie nowhere, and what is put back into the answer
// is this client's.
func (x inquiry) redacts() bool {
	v := x.verdict
	return v != nil && x.state.settings.Classify.PII.Action == classify.Redact && len(v.PII.Denied) > 0
}

// warm says whether the temperature is above what is cached, after the
// decision's cap. Without one the engine's own holds, which is cached.
func (x inquiry) warm(d *classify.Decision) bool {
	at := x.req.Fields.Temperature
	if !at.Given() || x.body[at.Start] == 'n' {
		return false
	}
	t, err := strconv.ParseFloat(string(at.Of(x.body)), 64)
	if d != nil && d.CapTemperature {
		t = min(t, d.MaxTemperature)
	}
	return err != nil || !(t <= x.state.settings.CacheOptions.MaxTemperature)
}

// bypassFor says why the parameter keeps a request away from the cache.
func (x inquiry) bypassFor(key, value []byte) string {
	none := isNothing(value)
	switch string(key) {
	case "n", "best_of":
		if !none && string(value) != "1" {
			return bypassChoices
		}
	case "logprobs", "prompt_logprobs":
		if !none {
			return bypassLogprobs
		}
	case "top_logprobs":
		if !none && string(value) != "0" {
			return bypassLogprobs
		}
	case "echo", "audio", "include": // include: more of a response, such as logprobs
		if !none && !isEmptyArray(value) {
			return bypassForm
		}
	case "modalities":
		if !none && !isTextOnly(value) {
			return bypassForm
		}
	case "tool_choice", "function_call":
		if !x.state.settings.CacheOptions.ToolCalls && forcesCall(value) {
			return bypassTools
		}
	case "tools":
		if runsItself(value) {
			return bypassTools
		}
	case "web_search_options", "mcp_servers", "container":
		if !none && !isEmptyArray(value) {
			return bypassTools
		}
	case "background", "store", "previous_response_id", "conversation", "session_params":
		if !none {
			return bypassState
		}
	case "prompt": // of /v1/responses: a template that lies at the provider
		if !none && x.route.Kind == openai.KindResponses {
			return bypassState
		}
	case "input":
		if x.route.Kind == openai.KindResponses && refersBack(value) {
			return bypassState
		}
	default:
		switch {
		case len(key) > len("return_") && string(key[:len("return_")]) == "return_" && !none:
			return bypassForm // token ids, hidden states, the prompt: what engines add to an answer
		case openai.HasEscape(key):
			return bypassUnclear // may be any of the above
		}
	}
	return ""
}

// isNothing says that a parameter is as good as not there.
func isNothing(value []byte) bool { return string(value) == "null" || string(value) == "false" }

func isEmptyArray(value []byte) bool {
	w := openai.Walk(value)
	return w.Enter('[') && !w.Element() && !w.Bad
}

// isTextOnly says whether the modalities asked for are those that everybody
// has without asking.
func isTextOnly(value []byte) bool {
	w := openai.Walk(value)
	for ok := w.Enter('['); ok && w.Element(); {
		if name, _ := w.Text(); string(name) != "text" {
			return false
		}
	}
	return !w.Bad && value[0] == '['
}

// forcesCall says whether a tool_choice leaves the model no choice but a call.
func forcesCall(value []byte) bool {
	w := openai.Walk(value)
	name, isName := []byte(nil), value[0] == '"'
	if isName {
		name, _ = w.Text()
	} else {
		name = typeOf(&w)
	}
	return !isNothing(value) && string(name) != "auto" && string(name) != "none"
}

// runsItself says whether one of the tools is run by the worker: a search, a
// sandbox, somebody's server. Its results are of the day.
func runsItself(value []byte) bool {
	w := openai.Walk(value)
	for ok := w.Enter('['); ok && w.Element(); {
		switch string(typeOf(&w)) {
		case "", "function", "custom":
		default:
			return true
		}
	}
	return w.Bad
}

// refersBack says whether an item of the input stands for one that the worker
// remembers, or may: its type is written with escapes.
func refersBack(value []byte) bool {
	w := openai.Walk(value)
	for ok := w.Enter('['); ok && w.Element(); {
		if kind := typeOf(&w); string(kind) == "item_reference" || openai.HasEscape(kind) {
			return true
		}
	}
	return w.Bad
}

// typeOf steps over an object and returns its type, empty if it has none. One
// that is written with escapes is returned so.
func typeOf(w *openai.Walker) (name []byte) {
	if !w.Enter('{') {
		w.Skip()
		return nil
	}
	for w.Key() {
		if string(w.Name) == "type" {
			name, _ = w.Text()
		} else {
			w.Bad = w.Bad || openai.HasEscape(w.Name)
			w.Skip()
		}
	}
	return name
}
