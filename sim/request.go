// The common part of the two completion routes: reading a request, checking it, and writing its
// answers.

package sim

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// completion is one request of /v1/chat/completions or /v1/completions, read and checked.
type completion struct {
	chat   bool
	id     string
	model  string // model name in the reply
	stream bool
	usage  bool // include_usage: a chunk with the usage before [DONE]
	every  bool // continuous_usage_stats: usage on every chunk

	prompts  [][]uint32 // tokens; one for chat
	choices  int        // answers to each prompt
	limits   limits
	seed     uint64
	salt     string
	transfer *transfer // its side of a hand-over, or nil
	rooms    []room    // SGLang's rooms, one per answer
	tool     *toolCall // the call that the request forces, or nil
	fixed    []byte    // the text of every answer, by a schema or a choice; nil: made up
	answers  []answer  // one per prompt and choice, prompt by prompt

	form     func(c *completion, created int64) format // the bytes of the reply; nil: the engine's for chats and completions
	failure  func(*failure) []byte                     // the body of an error reply
	finished func(*completion)                         // called once the answers are whole, before the client is told; may be nil
}

// readCompletion reads the fields common to both routes. header is the request's X-Request-Id.
func readCompletion(d *dialect, o Options, f *fields, chat bool, header string) *completion {
	c := &completion{chat: chat, choices: 1, model: o.Model}
	c.stream = f.boolean("stream")
	c.readStreamOptions(f)
	if n, ok := f.integer("n"); ok {
		c.choices = n
	}
	c.limits.ignoreEnd = f.boolean("ignore_eos")
	c.limits.includeStop = f.boolean("include_stop_str_in_output")
	c.limits.min, _ = f.integer("min_tokens")
	c.limits.stop = f.texts("stop")
	if seed, ok := f.integer("seed"); ok {
		c.seed = uint64(seed) + 1
	}
	if salt, ok := f.text("cache_salt"); ok {
		c.salt = salt
		if salt == "" {
			f.fail(refuse("Parameter 'cache_salt' must be a non-empty string if provided. (parameter=cache_salt)", "cache_salt"))
		}
	}
	d.read(o, f, c, header)
	return c
}

// readVLLM reads the fields that only vLLM has.
func readVLLM(_ Options, f *fields, c *completion, header string) {
	c.transfer = readTransfer(f)
	c.id, _ = f.text("request_id")
	c.id = c.prefix() + orDefault(header, orDefault(c.id, fmt.Sprintf("%016x", rand.Uint64())))
}

// prefix returns the beginning of OpenAI's ids.
func (c *completion) prefix() string {
	if c.chat {
		return "chatcmpl-"
	}
	return "cmpl-"
}

func (c *completion) readStreamOptions(f *fields) {
	var options struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	}
	if !f.object("stream_options", &options) {
		return
	}
	if !c.stream {
		f.fail(refuse("Stream options can only be defined when `stream=True`. (parameter=stream_options)", "stream_options"))
	}
	c.usage = options.IncludeUsage
	c.every = options.IncludeUsage && options.ContinuousUsageStats
}

// checkModel refuses any other model than ours; an absent model means ours.
func checkModel(f *fields, ours string) {
	if model, ok := f.text("model"); ok && model != ours {
		f.fail(&failure{http.StatusNotFound, "NotFoundError",
			"The model `" + model + "` does not exist. Valid aliases: " + ours + ".", "model"})
	}
}

// checkSampling refuses the sampling parameters that vLLM refuses. Most accepted ones have no
// effect here.
func (c *completion) checkSampling(d *dialect, f *fields) {
	if c.choices < 1 {
		f.fail(refuse(fmt.Sprintf("n must be at least 1, got %d.", c.choices), ""))
	}
	if c.choices > maxChoices {
		f.fail(refuse(fmt.Sprintf("n must be at most %d, got %d.", maxChoices, c.choices), ""))
	}
	if v, ok := f.number("temperature"); ok && v < 0 {
		f.fail(d.badTemperature(v))
	}
	if v, ok := f.number("top_p"); ok && (v <= 0 || v > 1) {
		f.fail(refuseValue("top_p must be in (0, 1], got "+pythonFloat(v)+".", "top_p", pythonFloat(v)))
	}
	for _, name := range []string{"presence_penalty", "frequency_penalty"} {
		if v, ok := f.number(name); ok && (v < -2 || v > 2) {
			f.fail(refuse(name+" must be in [-2, 2], got "+pythonFloat(v)+".", ""))
		}
	}
	if c.limits.min < 0 {
		f.fail(refuse(fmt.Sprintf("min_tokens must be greater than or equal to 0, got %d.", c.limits.min), ""))
	}
	for _, stop := range c.limits.stop {
		if stop == "" {
			f.fail(refuse("stop cannot contain an empty string.", ""))
		}
	}
}

// maxChoices bounds n times the number of prompts in one request. It is OpenAI's bound for n;
// vLLM's is 16,384.
const maxChoices = 128

// checkLength refuses prompts and answers longer than the context, and limits the answer to the
// rest of the context. names are the fields that may limit the answer; the first one present
// counts. standard is the limit if none is present; 0: no limit.
func (c *completion) checkLength(d *dialect, o Options, f *fields, standard int, names ...string) {
	context := o.MaxModelLen
	longest := 0
	for _, prompt := range c.prompts {
		longest = max(longest, len(prompt))
	}
	if longest >= context {
		f.fail(d.tooLong(longest, context))
	}
	c.limits.max = orDefault(standard, context)
	for _, name := range names {
		v, ok := f.integer(name)
		if !ok {
			continue
		}
		if v < 1 {
			f.fail(refuseValue(fmt.Sprintf("max_tokens must be at least 1, got %d.", v), "max_tokens", strconv.Itoa(v)))
		}
		if v > context {
			f.fail(d.tooMany(v, context))
		}
		c.limits.max = v
		break
	}
	if c.limits.min > c.limits.max {
		f.fail(refuse(fmt.Sprintf("min_tokens must be less than or equal to max_tokens=%d, got %d.",
			c.limits.max, c.limits.min), ""))
	}
	c.limits.max = min(c.limits.max, context-longest)
	if c.transfer.holds() && o.Engine != "vllm" { // the prefill workers of other engines stop by themselves
		c.limits.max, c.limits.min = 1, 0
	}
}

// tooLong returns vLLM's error, which stops counting one token above the limit.
func tooLong(prompt, context int) *failure {
	message := fmt.Sprintf("This model's maximum context length is %d tokens. However, ", context)
	if prompt > context {
		message += fmt.Sprintf("your prompt contains at least %d input tokens, which exceeds this limit even without "+
			"any output tokens. Please reduce the length of the input prompt.", context+1)
	} else {
		message += fmt.Sprintf("you requested 1 output tokens and your prompt contains at least %d input tokens, for a "+
			"total of at least %d tokens. Please reduce the length of the input prompt or the number of requested "+
			"output tokens.", prompt, prompt+1)
	}
	return refuseValue(message, "input_tokens", strconv.Itoa(min(prompt, context+1)))
}

// write makes the answers. They depend only on prompt, seeds, choice and worker.
func (c *completion) write(o Options) {
	for _, prompt := range c.prompts {
		key := mix(mix(hashTokens(o.Seed, prompt), c.seed), 0)
		for i := range c.choices {
			if c.tool != nil {
				c.answers = append(c.answers, c.tool.answer(c.limits.max))
				continue
			}
			if c.fixed != nil {
				c.answers = append(c.answers, fixedAnswer(c.fixed, "stop", c.fixedLimits()))
				continue
			}
			c.answers = append(c.answers, writeAnswer(o.Name, mix(key, uint64(i)), c.limits))
		}
	}
}

// fixedLimits are those of an answer that ends where its text does.
func (c *completion) fixedLimits() limits {
	l := c.limits
	l.min = 0
	return l
}

// request returns the engine request of the i-th answer.
func (c *completion) request(o Options, i int) Request {
	one := *c
	one.prompts, one.choices, one.answers = c.prompts[i/c.choices:][:1], 1, c.answers[i:][:1]
	return one.requests(o)[0]
}

// requests returns the engine requests, one per prompt and choice. They already name the blocks
// of the answers, so that the next turn of a conversation finds them in the cache.
func (c *completion) requests(o Options) []Request {
	parent := hashString(hashString(0, o.Model), c.salt)
	out := make([]Request, 0, len(c.answers))
	var scratch []uint32
	for i, prompt := range c.prompts {
		shared := appendHashes(nil, parent, prompt, o.BlockSize)
		full := len(shared) * o.BlockSize
		last := parent
		if len(shared) > 0 {
			last = shared[len(shared)-1]
		}
		var contents []uint64
		if c.transfer.holds() {
			contents = appendContents(nil, o, prompt)
		}
		for _, a := range c.answers[i*c.choices : (i+1)*c.choices] {
			scratch = append(append(scratch[:0], prompt[full:]...), a.tokens...)
			out = append(out, Request{
				Hashes:       appendHashes(shared[:len(shared):len(shared)], last, scratch, o.BlockSize),
				PromptTokens: len(prompt), MaxTokens: len(a.tokens),
				Hold: c.transfer.holds(), Contents: contents, Load: c.transfer.loads(),
			})
		}
	}
	return out
}

// jsonType reports whether a request's Content-Type is JSON's.
func jsonType(contentType string) bool {
	mime, _, _ := strings.Cut(contentType, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	return mime == "application/json" || strings.HasPrefix(mime, "application/") && strings.HasSuffix(mime, "+json")
}
