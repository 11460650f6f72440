// Parameters: the members of a request's top-level object.
package openai

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// maxModelName is the length of the longest model name, in bytes.
const maxModelName = 256

// members reads the members of the top-level object at pos.
func (r *Request) members(need needs) {
	m := r.object()
	for r.member(&m) {
		at := r.pos
		switch {
		case r.parameter(m.key) || r.textParameter(m.key, need):
		case handoverMember(m.key):
			r.handover(&m)
		case !r.otherCase(&m, memberNames):
			r.furtherParameter(&m)
		}
		r.note(&m, at)
	}
	r.fault.in(m.key)
}

// note notes where the member just read stands, whose value began at at.
func (r *Request) note(m *members, at int) {
	if r.Crowded = len(r.Parameters) == maxParameters; !r.Crowded {
		r.Parameters = append(r.Parameters, ParameterAt{int32(m.start), Span{int32(at), int32(r.pos)}})
	}
}

// parameter reads a parameter that is no text, and tells whether it is one.
func (r *Request) parameter(key []byte) bool {
	switch string(key) {
	case "model":
		r.readModel()
	case "stream":
		r.Stream, r.streamAt = r.boolean()
	case "stream_options":
		r.streamOptions()
	case "tools":
		r.Fields.Tools = r.located((*textReader).tools)
	case "functions":
		r.tools()
	case "user":
		r.Fields.user = r.optional()
	case "n":
		r.Fields.N = r.orNull((*Request).integer)
	case "best_of":
		r.Fields.bestOf = r.loose()
	case "max_tokens":
		r.Fields.MaxTokens = r.orNull((*Request).integer)
	case "max_completion_tokens":
		r.Fields.MaxCompletion = r.orNull((*Request).integer)
	case "max_output_tokens":
		r.Fields.MaxOutput = r.orNull((*Request).integer)
	case "temperature":
		r.Fields.Temperature = r.orNull((*Request).real)
	case "reasoning_effort":
		r.Fields.Effort = r.loose()
	case "reasoning":
		r.Fields.Reasoning = r.orNull(func(r *Request) Span { return r.located((*textReader).effort) })
	case "seed":
		r.Fields.seed = r.optional()
	case "response_format":
		r.Fields.responseFormat = r.located(func(t *textReader) { t.looseText(RoleTools) })
	case "cache_salt":
		r.Fields.CacheSalt = r.optional()
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
func (r *Request) textParameter(key []byte, need needs) bool {
	switch string(key) {
	case "messages":
		if need&readsChat == 0 {
			r.textOrTokens(RoleUser)
		} else if r.MessagesAt = r.located((*textReader).messages); r.MessagesAt.Given() {
			r.Given |= NeedsMessages
		}
	case "prompt":
		if need&needsPrompt == 0 {
			r.textOrTokens(RoleUser)
		} else if r.AskedAt = r.located((*textReader).prompt); r.AskedAt.Given() {
			r.Given |= needsPrompt
		}
	case "prompt_embeds", // vLLM: in place of a prompt
		"input_embeds", "inputs_embeds": // SGLang
		if r.optional().Given() {
			r.Given |= needsPrompt
			r.Unread++
		}
	case "input":
		r.readInput(need)
	case "system":
		r.system(need)
	case "instructions":
		r.Fields.Instructions = r.orNull(func(r *Request) Span { return r.located(func(t *textReader) { t.anyText(RoleSystem) }) })
	case "chat_template":
		r.template = r.located(func(t *textReader) { t.anyText(RoleSystem) })
	case "chat_template_kwargs": // what templates make of it is theirs: any string may come to stand in the prompt
		r.Fields.TemplateArgs = r.orNull(func(r *Request) Span { return r.located((*textReader).templateArgs) })
	case "suffix", "query", "queries", "text_1", "data_1":
		r.textOrTokens(RoleUser)
	case "documents", "text_2", "data_2", "items":
		r.textOrTokens(RoleDocument)
	case "previous_input_messages": // vLLM: before the input
		r.textOrTokens(RoleUser)
	case "prediction":
		r.predicted()
	default:
		return isTokenIDs(key) && r.tokenParameter()
	}
	return true
}

// isTokenIDs recognises the names that engines give a prompt made of token ids.
func isTokenIDs(key []byte) bool {
	switch string(key) {
	case "input_ids", "prompt_token_ids", // SGLang, TensorRT-LLM: in place of messages and prompt
		"token_ids", "prompt_ids", "input_token_ids", "prompt_tokens":
		return true
	}
	return false
}

func (r *Request) tokenParameter() bool {
	if at := r.optional(); at.Given() {
		r.Given |= needsPrompt
		r.tokensMember(int(at.Start))
	}
	return true
}

// furtherParameter reads a parameter that we do nothing with. Engines have
// hundreds and invent more, such as the schemas and choices that guide an
// answer: whatever is not known to stay away from the model may be text.
func (r *Request) furtherParameter(m *members) {
	switch string(m.key) {
	case "metadata", "stop", "stop_sequences", "stop_regex", "logit_bias", "safety_identifier", "prompt_cache_key",
		"mcp_servers", "custom_logit_processor":
		r.skip()
	case "image", "images", "mask", "ref_audio", "input_reference":
		if !r.null() {
			r.skip()
			r.Media++
		}
	case "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "structural_tag",
		"regex", "ebnf", "json_schema", "text":
		r.looseText(RoleTools) // what an answer must look like, as much the developer's as tools are
	case "stop_token_ids", "allowed_token_ids", "logprob_token_ids", "bad_words_ids", "token_ids_logprob", "suppress_tokens",
		"begin_suppress_tokens", "sigmas", "timesteps": // numbers that no prompt is made of
		r.looseText(RoleOther)
	default:
		r.unknown(m, RoleOther)
	}
}

func (r *Request) readInput(need needs) {
	switch {
	case need&needsInput == 0:
		r.textOrTokens(RoleUser)
		return
	case need&readsItems != 0:
		r.AskedAt = r.located((*textReader).input)
	default:
		r.AskedAt = r.located((*textReader).prompt)
	}
	if r.AskedAt.Given() {
		r.Given |= needsInput
	}
}

// system reads Anthropic's system prompt: a string or an array of parts.
func (r *Request) system(need needs) {
	if need&readsChat == 0 {
		r.anyText(RoleSystem)
		return
	}
	mark := len(r.Texts)
	r.Fields.System = r.orNull(func(r *Request) Span { return r.located((*textReader).content) })
	r.setRole(mark, RoleSystem)
}

// predicted reads the answer that the client expects: OpenAI's predicted outputs.
func (r *Request) predicted() {
	mark := len(r.Texts)
	r.callOrText()
	r.setRole(mark, RoleAssistant)
}

// TemplateArgs reads the arguments of the chat template. Nobody knows where a
// template puts them.
func (r *textReader) templateArgs() {
	if r.peek() != '{' {
		r.anyText(RoleSystem)
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "enable_thinking":
			r.Args[0] = r.loose()
		case "thinking":
			r.Args[1] = r.loose()
		case "chat_template":
			start := r.pos
			r.anyText(RoleSystem)
			r.steers(&m, start)
		default:
			if r.otherCase(&m, templateNames) {
				break
			}
			r.keyText(&m, RoleOther)
			r.unknown(&m, RoleOther)
		}
	}
	r.fault.in(m.key)
}

// effort reads the reasoning parameter of /v1/responses.
func (r *textReader) effort() {
	if r.peek() != '{' {
		r.loose()
		return
	}
	m := r.object()
	for r.member(&m) {
		if string(m.key) == "effort" {
			r.EffortAt = r.loose()
		} else {
			r.unknownMember(&m, RoleOther)
		}
	}
	r.fault.in(m.key)
}

// loose reads a value that has its own words, which templates write into the
// prompt as they come ("Reasoning: low"), and returns where it stands.
func (r *textReader) loose() Span {
	start := r.pos
	r.looseText(RoleOther)
	if r.failed() {
		return Span{}
	}
	return Span{int32(start), int32(r.pos)}
}

// orNull returns where the value stands that read reads, also where it is null.
func (r *Request) orNull(read func(*Request) Span) Span {
	if r.peek() == 'n' {
		return r.skip()
	}
	return read(r)
}

// located returns where the value stands that read reads; null counts as absent.
func (r *Request) located(read func(*textReader)) Span {
	start := r.pos
	if r.null() {
		return Span{}
	}
	read(&r.textReader)
	if r.failed() {
		return Span{}
	}
	return Span{int32(start), int32(r.pos)}
}

// readModel reads the model's name.
func (r *Request) readModel() {
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
	r.Model, r.modelAt = name, at
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
func (r *Request) streamOptions() {
	start := r.pos
	if r.peek() == 'n' {
		r.Usage.at = r.skip()
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
			r.Usage.Include, r.Usage.includeAt = r.boolean()
		case "continuous_usage_stats":
			r.Usage.Continuous, _ = r.boolean()
		default:
			r.skipUnknown(&m)
		}
	}
	r.fault.in(m.key)
	r.Usage.at = Span{int32(start), int32(r.pos)}
}

// skipUnknown steps over a member that is not known by its name.
func (r *Request) skipUnknown(m *members) {
	if !r.otherCase(m, memberNames) {
		r.skip()
	}
}

// noteHandover notes the member just read if only Kvasir may send it: fields
// by which a router tells two engines of each other. From a client they name
// hosts to connect to and crash engines (SGLang #40125: a bootstrap_room that
// comes twice takes both schedulers down).
func (r *Request) noteHandover(m *members) {
	if !handoverMember(m.key) || r.failed() {
		return
	}
	if len(r.strip) == maxHandover {
		r.stop(faultOther, m.start, "More than 64 parameters that only a router may send. Send none of them")
		return
	}
	r.strip = append(r.strip, Span{int32(m.start), int32(r.pos)})
}

// maxHandover is how many members are stripped from one body: five times what
// engines know, and a bound on the pieces that a body falls into.
const maxHandover = 64

func handoverMember(key []byte) bool {
	switch string(key) {
	case "kv_transfer_params", "ec_transfer_params", "disaggregated_params", "nvext",
		"router_config_override", "routed_dp_rank", "disagg_prefill_dp_rank", "data_parallel_rank",
		"request_id", "rid": // vLLM's, SGLang's: connectors read addresses from ids, and two requests of one id are one
		return true
	}
	return bytes.HasPrefix(key, []byte("bootstrap_"))
}

// extraArgs reads vLLM's vllm_xargs. Its members land in the same map as
// kv_transfer_params, so the same names are stripped from it; the others are
// for extensions, of which nobody knows what they make of them.
func (r *Request) extraArgs() {
	if r.peek() != '{' {
		r.skip()
		return
	}
	m := r.object()
	for r.member(&m) {
		switch {
		case handoverMember(m.key):
			r.skip()
			r.noteHandover(&m)
		case !r.otherCase(&m, extraNames):
			r.unknown(&m, RoleOther)
		}
	}
	r.fault.in(m.key)
}
