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
	bypassRedacted    = "redacted"    // personal data in it are replaced on the way to the worker
	bypassUnjudged    = "unjudged"    // a guard could not judge it and let it pass
	bypassTemperature = "temperature" // above cache.max_temperature
	bypassChoices     = "choices"     // more than one answer: n, best_of, several prompts
	bypassLogprobs    = "logprobs"    // of answers or prompts
	bypassForm        = "form"        // it asks for what no kept answer has: sound, token ids, the prompt again, usage with each event
	bypassTools       = "tools"       // a call is wanted, or tools that the worker runs itself
	bypassState       = "state"       // it builds on what the worker remembers, or is to be remembered there
	bypassQuestion    = "question"    // it has no text that asks, or one that is too long to be kept
	bypassUnclear     = "unclear"     // it has more parameters than are read, or one whose name is written with escapes
)

// maxQuestion is how long a question may be, in bytes as it is written. Prompts
// with a document in them are kept; whole books are not.
const maxQuestion = 256 << 10

// A cacheRule is what may be done with one request and its answer.
type cacheRule struct {
	why    string        // the request is not looked up; "": it is
	stores bool          // its answer may be kept
	maxAge time.Duration // of an entry that answers; negative: any
	exact  bool          // only an entry with the very same text answers
	asks   openai.Span   // the question
}

// A guardOutcome is what the guards did with a request that passed them.
type guardOutcome struct {
	unjudged bool // one could not judge it and let it pass
	redacts  bool // personal data give way to placeholders on the way to the worker
}

// cacheRuleFor judges a request by its body, the decision that holds (nil: none),
// what the guards did with it, and its header lines. It is the one place that
// says which requests are never looked up, and whose answers are never kept;
// recorder.storable says which answers are never kept.
func cacheRuleFor(r *openai.Request, k openai.Kind, d *classify.Decision, g guardOutcome, headers []byte, o *CacheOptions) (c cacheRule) {
	c.maxAge = -1
	if c.why = bypassOf(r, k, d, g, o); c.why != "" {
		return c
	}
	var last bool
	if c.asks, last = r.Question(); !c.asks.Given() || c.asks.End-c.asks.Start > maxQuestion {
		c.why = bypassQuestion
		return c
	}
	// Other words may stand for the question only where it comes last: what was said after it
	// weighs more than its wording.
	c.exact = k == openai.KindText || !last || continuesLastTurn(r)
	c.stores = true
	c.obey(headers)
	return c
}

// continuesLastTurn says whether the model is to go on where the last turn ends,
// as vLLM and SGLang can be asked to. Then the text is no question but a beginning.
func continuesLastTurn(r *openai.Request) bool {
	for _, p := range r.Parameters {
		switch value := p.Value.Of(r.Body); string(p.Key.Of(r.Body)) {
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

// obey reads what the client says of caches, in every header line that says it.
func (c *cacheRule) obey(lines []byte) {
	for len(lines) > 0 {
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

// control reads one line of Cache-Control (RFC 9111, 5.2.1). The strictest
// directive counts, and the lowest max-age. Where the age is no number that we
// can read, no entry is fresh enough.
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

// bypassOf says why no answer to the request may come from the cache or go into
// it, whatever the client wishes; "": it may.
func bypassOf(r *openai.Request, k openai.Kind, d *classify.Decision, g guardOutcome, o *CacheOptions) string {
	switch {
	case d != nil && d.CacheOff:
		return bypassDecision
	case g.unjudged:
		return bypassUnjudged
	case g.redacts:
		return bypassRedacted
	case r.Usage.Continuous:
		return bypassForm
	case isWarm(r, d, o.MaxTemperature):
		return bypassTemperature
	case r.Crowded:
		return bypassUnclear
	}
	for _, p := range r.Parameters {
		if why := parameterBypass(p.Key.Of(r.Body), p.Value.Of(r.Body), k, o.ToolCalls); why != "" {
			return why
		}
	}
	return ""
}

// redacts says whether personal data give way to placeholders on the way to the
// worker. Then the answer is to another question than was asked, the question is
// one that should be kept nowhere, and what is put back into the answer belongs
// to this client.
func redacts(v *classify.Verdict, o *classify.Options) bool {
	return v != nil && o.PII.Action == classify.Redact && len(v.PII.Denied) > 0
}

// isWarm says whether the temperature is above the highest that is cached, after
// the decision's cap. A request that has none gets the engine's own, and is cached.
func isWarm(r *openai.Request, d *classify.Decision, most float64) bool {
	at := r.Fields.Temperature
	if !at.Given() || r.Body[at.Start] == 'n' {
		return false
	}
	t, err := strconv.ParseFloat(string(at.Of(r.Body)), 64)
	if d != nil && d.CapTemperature {
		t = min(t, d.MaxTemperature)
	}
	return err != nil || !(t <= most)
}

// parameterBypass says why a member of the body keeps the request away from the
// cache; "": it does not. toolCalls says that answers that call tools are kept.
func parameterBypass(key, value []byte, k openai.Kind, toolCalls bool) string {
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
		if !toolCalls && forcesCall(value) {
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
	case "prompt": // of /v1/responses: a template that the provider keeps
		if !none && k == openai.KindResponses {
			return bypassState
		}
	case "input":
		if k == openai.KindResponses && refersBack(value) {
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

// isNothing says that a parameter means the same as one that is left out.
func isNothing(value []byte) bool { return string(value) == "null" || string(value) == "false" }

func isEmptyArray(value []byte) bool {
	w := openai.Walk(value)
	return w.Enter('[') && !w.Element() && !w.Bad
}

// isTextOnly says whether the modalities asked for are those that a client gets
// without asking.
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
// sandbox, somebody's server. Its results change from day to day.
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
// remembers. One whose type is written with escapes may do so.
func refersBack(value []byte) bool {
	w := openai.Walk(value)
	for ok := w.Enter('['); ok && w.Element(); {
		if kind := typeOf(&w); string(kind) == "item_reference" || openai.HasEscape(kind) {
			return true
		}
	}
	return w.Bad
}

// typeOf steps over an object and returns its type, empty if it has none, with
// escapes as it is written.
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
