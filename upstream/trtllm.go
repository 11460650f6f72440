// TensorRT-LLM: hand-over from a context server to a generation server.

package upstream

import (
	"math/rand/v2"
	"strconv"
	"time"

	"kvasir/openai"
)

var trtllm = dialect{
	name:       "trtllm",
	also:       []string{"tensorrt_llm", "tensorrt", "trt_llm"},
	owner:      "tensorrt",
	connectors: []*Connector{&contextFirst},
}

// contextFirst is TensorRT-LLM's way: the context server computes the prompt and the
// first token. Its parameters go to the generation server with another request_type,
// the prompt's tokens, and what it counted. Where that first token was the last one
// too, the context server's reply is the answer. All this is as TensorRT-LLM's own
// disaggregated server does it (openai_disagg_service.py).
var contextFirst = Connector{
	Name:  "disaggregated_params",
	Ask:   Before,
	Good:  20 * time.Second, // how long it keeps the blocks is not known; this is what vLLM allows
	begin: beginContext, tell: tellContext,
}

func beginContext(l *Legs) {
	l.id = strconv.AppendInt(nil, 1<<42+rand.Int64N(1<<63-1-1<<42), 10) // smaller ones are a server's own
	l.Prefill.Unstream()
	l.Prefill.Add(append(append([]byte(`"disaggregated_params":{"request_type":"context_only","disagg_request_id":`), l.id...), '}'))
}

func tellContext(l *Legs, c *Call) Told {
	reply := c.Payload()
	_, choices := memberOf(reply, "choices")
	choice := firstOf(choices)
	_, finish := memberOf(choice, "finish_reason")
	member, params := memberOf(choice, "disaggregated_params")
	switch string(finish) {
	case `"length"`, `"not_finished"`, "null", "":
	default:
		c.Cut(member)
		tokens, _ := memberOf(c.Payload(), "prompt_token_ids") // nor did the client ask for these
		c.Cut(tokens)
		return Told{Answered: true}
	}
	o, ok := openai.ReadOriginal(params)
	if !ok {
		return Told{Missing: "disaggregated_params"}
	}
	d := openai.Draft{Original: o}
	d.Set("request_type", []byte(`"generation_only"`))
	d.Set("disagg_request_id", l.id)
	if _, usage := memberOf(reply, "usage"); isObject(usage) {
		d.Set("ctx_usage", usage)
	}
	l.Decode.Add(d.AppendTo([]byte(`"disaggregated_params":`)))
	if _, tokens := memberOf(reply, "prompt_token_ids"); len(tokens) > 0 && tokens[0] == '[' {
		l.Decode.Set(promptTokens(l.Kind), tokens)
	}
	return Told{}
}

// promptTokens is where a route of TensorRT-LLM takes a prompt's tokens.
func promptTokens(k openai.Kind) string {
	if k == openai.KindText {
		return "prompt"
	}
	return "prompt_token_ids"
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }
