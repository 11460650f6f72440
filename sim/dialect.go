// Dialects: the differences between the HTTP APIs of the engines, one row each.

package sim

import (
	"context"
	"fmt"
	"strconv"
)

// dialect is the HTTP API of one engine. Text, timing and cache are the same for all engines.
type dialect struct {
	routes map[string]route
	format func(c *completion, created int64) format

	read   func(o Options, f *fields, c *completion, header string) // reads the engine's own fields, before the prompt is known
	model  func(o Options, f *fields, c *completion)                // checks the model
	finish func(o Options, f *fields, c *completion)                // reads more of its own fields, after the prompt is known

	failure func(*failure) []byte // the body of an error reply

	noMessages     *failure
	badTemperature func(v float64) *failure
	tooLong        func(prompt, context int) *failure
	tooMany        func(tokens, context int) *failure // error for a request of too many tokens

	pull     func(ctx context.Context, s *Server, c *completion, j *job) error
	handOver func(c *completion, j *job, at source) []byte // the hand-over parameters in a prefill worker's reply, or nil
}

// dialects are the engines that can be simulated, by Options.Engine.
var dialects = map[string]*dialect{"vllm": &vllm, "sglang": &sglang, "trtllm": &trtllm}

var vllm = dialect{
	routes: vllmRoutes, format: func(c *completion, created int64) format { return newWire(c, c.model, created) },
	read: readVLLM, model: servesOne, finish: func(Options, *fields, *completion) {},
	failure:    (*failure).body,
	noMessages: refuse("Cannot apply chat template to an empty conversation. Provide at least one message.", ""),
	badTemperature: func(v float64) *failure {
		return refuseValue("temperature must be non-negative, got "+pythonFloat(v)+".", "temperature", pythonFloat(v))
	},
	tooLong: tooLong,
	tooMany: func(tokens, context int) *failure {
		return refuseValue(fmt.Sprintf("max_tokens=%d cannot be greater than max_model_len=%d. "+
			"Please request fewer output tokens.", tokens, context), "max_tokens", strconv.Itoa(tokens))
	},
	pull: pullHeld, handOver: vllmParams,
}

// servesOne refuses every model except the one served.
func servesOne(o Options, f *fields, _ *completion) { checkModel(f, o.Model) }

// eventStart returns the beginning of every event of a completion, up to the choices, for engines
// without fields of their own before those.
func eventStart(c *completion, created int64) []byte {
	object := `,"object":"text_completion","created":`
	if c.chat {
		object = `,"object":"chat.completion.chunk","created":`
	}
	b := append(appendString([]byte(`data: {"id":`), c.id), object...)
	b = append(strconv.AppendInt(b, created, 10), `,"model":`...)
	return append(appendString(b, c.model), `,"choices":[`...)
}
