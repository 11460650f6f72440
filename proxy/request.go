// Request: what Kvasir knows of a request body, as sub-slices and byte ranges of it.
package proxy

import (
	"bytes"
	"math"
	"unicode"
	"unicode/utf8"
)

// maxModelName is the length of the longest model name, in bytes.
const maxModelName = 256

// A request is one parsed body. The zero value is ready; parse resets it, so
// that one request serves many bodies without allocating. Everything in it is
// valid until the body is reused, and nothing of it may outlive the body.
//
// Spans are of the body as the client sent it, byte order mark included.
type request struct {
	textReader
	kind kind
	open int // where the top-level object begins, behind a byte order mark and white space

	whole span // the top-level object, braces included; zero for a form

	model   []byte // decoded; empty only where the route can do without
	modelAt span   // the JSON string, or the form field's value; null where it was null

	stream   bool
	streamAt span
	usage    usageOptions

	messagesAt span
	given      needs // what the body has of what a route can need
	fields     requestFields
	strip      []span // members that only Kvasir itself may send, in the body's order
}

// usageOptions is what the client wants to know of its stream's tokens.
type usageOptions struct {
	at         span // the value of stream_options
	includeAt  span // the value of include_usage in it
	include    bool // the client asked for usage at the end
	continuous bool // and with every event
}

// requestFields are where the values of single parameters stand. One that is
// null counts as absent.
type requestFields struct {
	tools          span
	user           span
	n              span // integer
	maxTokens      span // integer: max_tokens
	maxCompletion  span // integer: max_completion_tokens or max_output_tokens; engines take it before max_tokens
	temperature    span // number
	seed           span
	responseFormat span
	cacheSalt      span
}

// needs is what a route's body must have.
type needs uint8

const (
	needsModel    needs = 1 << iota
	needsMessages       // an array of messages
	needsPrompt
	needsInput
	readsItems // input is that of /v1/responses
	readsChat  // messages, if there, are an array of messages
)

// needsOf is what the bodies of a path must have.
func needsOf(path string) needs {
	switch path {
	case "/v1/chat/completions", "/v1/messages":
		return needsModel | needsMessages | readsChat
	case "/v1/completions":
		return needsModel | needsPrompt
	case "/v1/responses":
		return needsModel | needsInput | readsItems
	case "/v1/embeddings":
		return needsModel | needsInput | readsChat
	case "/v1/messages/count_tokens", "/tokenize":
		return readsChat // without a model: the default one
	case "/detokenize":
		return 0
	}
	return needsModel
}

// parse reads the body of a request to rt. It returns nil or a 400 that says
// what is wrong, where, and what to do. body is kept, not copied; contentType
// is read only where the route takes a form.
func (r *request) parse(rt route, body, contentType []byte) *apiError {
	r.reset()
	r.kind = rt.kind
	if len(body) > math.MaxInt32 {
		return invalid("", "The body has %d bytes. Send less than 2 GiB.", len(body))
	}
	r.body = body
	if rt.kind == kindForm && !isJSON(contentType) {
		return r.parseForm(contentType)
	}
	r.document(needsOf(rt.path))
	if r.failed() {
		return r.fault.refusal(body)
	}
	return nil
}

// reset forgets the body and keeps the memory, unless it has grown far beyond
// what requests use.
func (r *request) reset() {
	keep := textReader{message: -1}
	if cap(r.texts) <= 4096 {
		keep.texts = r.texts[:0]
	}
	if cap(r.keys.list) <= 4096 {
		keep.keys.list = r.keys.list[:0]
	}
	if cap(r.keys.table) <= 16384 {
		keep.keys.table = r.keys.table
	}
	if cap(r.unescaped) <= 16384 {
		keep.unescaped = r.unescaped[:0]
	}
	*r = request{textReader: keep, strip: r.strip[:0]}
}

// document reads the whole body: one JSON object and white space around it.
func (r *request) document(need needs) {
	if bytes.HasPrefix(r.body, []byte(byteOrderMark)) {
		r.pos = len(byteOrderMark)
	}
	r.pos = r.space(r.pos)
	r.open = r.pos
	if r.peek() != '{' || seemsUTF16(r.body) {
		r.noObject()
		return
	}
	r.members(need)
	if r.failed() {
		return
	}
	r.whole = span{int32(r.open), int32(r.pos)}
	if end := r.space(r.pos); end < len(r.body) {
		r.broken(end, "data after the end of the JSON object")
		return
	}
	r.checkNeeds(need)
}

const byteOrderMark = "\ufeff"

// noObject stops at a body that is no JSON object.
func (r *request) noObject() {
	b := r.body
	switch {
	case r.pos >= len(b):
		r.broken(r.pos, "the body is empty")
	case seemsUTF16(b):
		r.broken(0, "the body seems to be UTF-16 or UTF-32, send UTF-8")
	case b[r.pos] == '-' && bytes.HasPrefix(b[r.pos:], []byte("--")):
		r.broken(r.pos, "the body seems to be a multipart form, which this route does not take")
	case b[r.pos] == '[' || b[r.pos] == '"':
		r.broken(r.pos, "expected a JSON object, but got "+typeAt(b, r.pos))
	default:
		if r.value(r.pos, 0) >= 0 {
			r.broken(r.pos, "expected a JSON object, but got "+typeAt(b, r.pos))
		}
	}
}

// seemsUTF16 tells whether the body begins with UTF-16's or UTF-32's mark, or
// with a zero byte beside its first character.
func seemsUTF16(b []byte) bool {
	return len(b) > 1 && (b[0] == 0xFE && b[1] == 0xFF || b[0] == 0xFF && b[1] == 0xFE || b[0] == 0 || b[1] == 0)
}

// members reads the members of the top-level object at pos.
func (r *request) members(need needs) {
	m := r.object()
	for r.member(&m) {
		if !r.parameter(m.key, need) && !r.textParameter(m.key, need) {
			r.skip()
			r.noteHandover(&m)
		}
	}
	r.fault.in(m.key)
}

// parameter reads a parameter that is no text, and tells whether it is one.
func (r *request) parameter(key []byte, need needs) bool {
	switch string(key) {
	case "model":
		r.readModel()
	case "stream":
		r.stream, r.streamAt = r.boolean()
	case "stream_options":
		r.streamOptions()
	case "tools":
		r.fields.tools = r.located((*textReader).tools)
	case "functions":
		r.tools()
	case "user":
		r.fields.user = r.optional()
	case "n":
		r.fields.n = r.integer()
	case "max_tokens":
		r.fields.maxTokens = r.integer()
	case "max_completion_tokens", "max_output_tokens":
		r.fields.maxCompletion = r.integer()
	case "temperature":
		r.fields.temperature = r.real()
	case "seed":
		r.fields.seed = r.optional()
	case "response_format":
		r.fields.responseFormat = r.flat()
	case "cache_salt":
		r.fields.cacheSalt = r.optional()
	case "vllm_xargs":
		r.extraArgs()
	default:
		return false
	}
	return true
}

// textParameter reads a parameter that is text on some route, and tells
// whether it is one. It is collected on every route, whatever the worker there
// makes of it; its shape is judged on the routes that are known to read it.
func (r *request) textParameter(key []byte, need needs) bool {
	switch string(key) {
	case "messages":
		if need&readsChat == 0 {
			r.anyText(roleUser)
		} else if r.messagesAt = r.located((*textReader).messages); r.messagesAt.given() {
			r.given |= needsMessages
		}
	case "prompt":
		if need&needsPrompt == 0 {
			r.anyText(roleUser)
		} else if r.located((*textReader).prompt).given() {
			r.given |= needsPrompt
		}
	case "prompt_embeds": // vLLM: in place of a prompt
		if r.optional().given() {
			r.given |= needsPrompt
		}
	case "input":
		r.readInput(need)
	case "system":
		r.system(need)
	case "instructions", "chat_template":
		r.anyText(roleSystem)
	case "suffix", "query", "queries", "text_1", "data_1":
		r.anyText(roleUser)
	case "documents", "text_2", "data_2", "items":
		r.anyText(roleDocument)
	case "prediction":
		r.predicted()
	default:
		return false
	}
	return true
}

func (r *request) readInput(need needs) {
	var at span
	switch {
	case need&needsInput == 0:
		r.anyText(roleUser)
		return
	case need&readsItems != 0:
		at = r.located((*textReader).input)
	default:
		at = r.located((*textReader).prompt)
	}
	if at.given() {
		r.given |= needsInput
	}
}

// system reads Anthropic's system prompt: a string or an array of parts.
func (r *request) system(need needs) {
	if need&readsChat == 0 {
		r.anyText(roleSystem)
		return
	}
	mark := len(r.texts)
	r.content()
	r.setRole(mark, roleSystem)
}

// predicted reads the answer that the client expects: OpenAI's predicted outputs.
func (r *request) predicted() {
	mark := len(r.texts)
	r.callOrText()
	r.setRole(mark, roleAssistant)
}

// located returns where the value stands that read reads; null counts as absent.
func (r *request) located(read func(*textReader)) span {
	start := r.pos
	if r.null() {
		return span{}
	}
	read(&r.textReader)
	if r.failed() {
		return span{}
	}
	return span{int32(start), int32(r.pos)}
}

// readModel reads the model's name.
func (r *request) readModel() {
	start := r.pos
	if r.peek() == 'n' {
		r.modelAt = r.skip()
		return
	}
	name, at := r.name()
	if r.failed() {
		return
	}
	if why := badModel(name); why != "" {
		r.stop(faultOther, start, why)
		return
	}
	r.model, r.modelAt = name, at
}

// badModel says why name cannot be a model's; "" when it can.
func badModel(name []byte) string {
	switch {
	case len(name) == 0:
		return "Invalid 'model': empty string. Expected the name of a model"
	case len(name) > maxModelName:
		return "Invalid 'model': string too long. Expected at most 256 bytes"
	case plainName(name):
		return ""
	case !utf8.Valid(name):
		return "Invalid 'model': the name is not UTF-8"
	case bytes.ContainsFunc(name, unicode.IsControl):
		return "Invalid 'model': the name has a control character in it"
	}
	return ""
}

// plainName tells whether name is all printable ASCII, as nearly every one is.
func plainName(name []byte) bool {
	for _, c := range name {
		if c-' ' > '~'-' ' {
			return false
		}
	}
	return true
}

// streamOptions reads the object that asks for usage on a stream.
func (r *request) streamOptions() {
	start := r.pos
	if r.peek() == 'n' {
		r.usage.at = r.skip()
		return
	}
	if r.peek() != '{' {
		r.unlike("an object")
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "include_usage":
			r.usage.include, r.usage.includeAt = r.boolean()
		case "continuous_usage_stats":
			r.usage.continuous, _ = r.boolean()
		default:
			r.skip()
		}
	}
	r.fault.in(m.key)
	r.usage.at = span{int32(start), int32(r.pos)}
}

// optional takes any value; null counts as absent.
func (r *request) optional() span {
	if r.null() {
		return span{}
	}
	return r.skip()
}

// flat takes any value, and of an object sees to it that no key comes twice.
func (r *request) flat() span {
	if r.peek() != '{' {
		return r.optional()
	}
	start := r.pos
	m := r.object()
	for r.member(&m) {
		r.skip()
	}
	r.fault.in(m.key)
	return span{int32(start), int32(r.pos)}
}

// real takes a number, or null for absent.
func (r *request) real() span {
	if c := r.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		r.unlike("a number")
		return span{}
	}
	return r.optional()
}

// integer takes a number without fraction and exponent, or null for absent.
// A fraction of zeros, as in 16.0, is none.
func (r *request) integer() span {
	if c := r.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		r.unlike("an integer")
		return span{}
	}
	at := r.optional()
	fraction := false
	for _, c := range at.of(r.body) {
		if c == '.' {
			fraction = true
		} else if c|0x20 == 'e' || fraction && c != '0' {
			r.stop(faultType, int(at.start), "an integer")
			break
		}
	}
	return at
}

// noteHandover notes the member just read if only Kvasir may send it: fields
// by which a router tells two engines of each other. From a client they name
// hosts to connect to and crash engines (SGLang #40125: a bootstrap_room that
// comes twice takes both schedulers down).
func (r *request) noteHandover(m *members) {
	if handover(m.key) && !r.failed() {
		r.strip = append(r.strip, span{int32(m.start), int32(r.pos)})
	}
}

func handover(key []byte) bool {
	switch string(key) {
	case "kv_transfer_params", "ec_transfer_params", "disaggregated_params", "nvext",
		"routed_dp_rank", "disagg_prefill_dp_rank", "data_parallel_rank":
		return true
	}
	return bytes.HasPrefix(key, []byte("bootstrap_"))
}

// extraArgs reads vLLM's vllm_xargs. Its members land in the same map as
// kv_transfer_params, so the same names are stripped from it.
func (r *request) extraArgs() {
	if r.peek() != '{' {
		r.skip()
		return
	}
	m := r.object()
	for r.member(&m) {
		r.skip()
		r.noteHandover(&m)
	}
	r.fault.in(m.key)
}

// checkNeeds judges what is not there.
func (r *request) checkNeeds(need needs) {
	if need&readsChat != 0 && r.given&needsMessages != 0 {
		r.given |= needsInput // embeddings of a conversation
	}
	missing := need &^ r.given
	switch {
	case missing&needsModel != 0 && len(r.model) == 0:
		r.missing(r.open, "model")
	case missing&needsMessages != 0:
		r.missing(r.open, "messages")
	case missing&needsPrompt != 0:
		r.missing(r.open, "prompt")
	case missing&needsInput != 0:
		r.missing(r.open, "input")
	}
}
