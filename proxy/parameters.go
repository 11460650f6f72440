// Parameters: the members of a request's top-level object.
package proxy

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// maxModelName is the length of the longest model name, in bytes.
const maxModelName = 256

// members reads the members of the top-level object at pos.
func (r *request) members(need needs) {
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
func (r *request) note(m *members, at int) {
	if r.crowded = len(r.parameters) == maxParameters; !r.crowded {
		r.parameters = append(r.parameters, parameterAt{int32(m.start), span{int32(at), int32(r.pos)}})
	}
}

// parameter reads a parameter that is no text, and tells whether it is one.
func (r *request) parameter(key []byte) bool {
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
		r.fields.n = r.orNull((*request).integer)
	case "best_of":
		r.fields.bestOf = r.loose()
	case "max_tokens":
		r.fields.maxTokens = r.orNull((*request).integer)
	case "max_completion_tokens":
		r.fields.maxCompletion = r.orNull((*request).integer)
	case "max_output_tokens":
		r.fields.maxOutput = r.orNull((*request).integer)
	case "temperature":
		r.fields.temperature = r.orNull((*request).real)
	case "reasoning_effort":
		r.fields.effort = r.loose()
	case "reasoning":
		r.fields.reasoning = r.orNull(func(r *request) span { return r.located((*textReader).effort) })
	case "seed":
		r.fields.seed = r.optional()
	case "response_format":
		r.fields.responseFormat = r.located(func(t *textReader) { t.looseText(roleTools) })
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
			r.textOrTokens(roleUser)
		} else if r.messagesAt = r.located((*textReader).messages); r.messagesAt.given() {
			r.given |= needsMessages
		}
	case "prompt":
		if need&needsPrompt == 0 {
			r.textOrTokens(roleUser)
		} else if r.askedAt = r.located((*textReader).prompt); r.askedAt.given() {
			r.given |= needsPrompt
		}
	case "prompt_embeds", // vLLM: in place of a prompt
		"input_embeds", "inputs_embeds": // SGLang
		if r.optional().given() {
			r.given |= needsPrompt
			r.unread++
		}
	case "input":
		r.readInput(need)
	case "system":
		r.system(need)
	case "instructions":
		r.fields.instructions = r.orNull(func(r *request) span { return r.located(func(t *textReader) { t.anyText(roleSystem) }) })
	case "chat_template":
		r.template = r.located(func(t *textReader) { t.anyText(roleSystem) })
	case "chat_template_kwargs": // what templates make of it is theirs: any string may come to stand in the prompt
		r.fields.templateArgs = r.orNull(func(r *request) span { return r.located((*textReader).templateArgs) })
	case "suffix", "query", "queries", "text_1", "data_1":
		r.textOrTokens(roleUser)
	case "documents", "text_2", "data_2", "items":
		r.textOrTokens(roleDocument)
	case "previous_input_messages": // vLLM: before the input
		r.textOrTokens(roleUser)
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

func (r *request) tokenParameter() bool {
	if at := r.optional(); at.given() {
		r.given |= needsPrompt
		r.tokensMember(int(at.start))
	}
	return true
}

// furtherParameter reads a parameter that we do nothing with. Engines have
// hundreds and invent more, such as the schemas and choices that guide an
// answer: whatever is not known to stay away from the model may be text.
func (r *request) furtherParameter(m *members) {
	switch string(m.key) {
	case "metadata", "stop", "stop_sequences", "stop_regex", "logit_bias", "safety_identifier", "prompt_cache_key",
		"mcp_servers", "custom_logit_processor":
		r.skip()
	case "image", "images", "mask", "ref_audio", "input_reference":
		if !r.null() {
			r.skip()
			r.media++
		}
	case "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "structural_tag",
		"regex", "ebnf", "json_schema", "text":
		r.looseText(roleTools) // what an answer must look like, as much the developer's as tools are
	case "stop_token_ids", "allowed_token_ids", "logprob_token_ids", "bad_words_ids", "token_ids_logprob", "suppress_tokens",
		"begin_suppress_tokens", "sigmas", "timesteps": // numbers that no prompt is made of
		r.looseText(roleOther)
	default:
		r.unknown(m, roleOther)
	}
}

func (r *request) readInput(need needs) {
	switch {
	case need&needsInput == 0:
		r.textOrTokens(roleUser)
		return
	case need&readsItems != 0:
		r.askedAt = r.located((*textReader).input)
	default:
		r.askedAt = r.located((*textReader).prompt)
	}
	if r.askedAt.given() {
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
	r.fields.system = r.orNull(func(r *request) span { return r.located((*textReader).content) })
	r.setRole(mark, roleSystem)
}

// predicted reads the answer that the client expects: OpenAI's predicted outputs.
func (r *request) predicted() {
	mark := len(r.texts)
	r.callOrText()
	r.setRole(mark, roleAssistant)
}

// templateArgs reads the arguments of the chat template. Nobody knows where a
// template puts them.
func (r *textReader) templateArgs() {
	if r.peek() != '{' {
		r.anyText(roleSystem)
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "enable_thinking":
			r.args[0] = r.loose()
		case "thinking":
			r.args[1] = r.loose()
		case "chat_template":
			start := r.pos
			r.anyText(roleSystem)
			r.steers(&m, start)
		default:
			if r.otherCase(&m, templateNames) {
				break
			}
			r.keyText(&m, roleOther)
			r.unknown(&m, roleOther)
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
			r.effortAt = r.loose()
		} else {
			r.unknownMember(&m, roleOther)
		}
	}
	r.fault.in(m.key)
}

// loose reads a value that has its own words, which templates write into the
// prompt as they come ("Reasoning: low"), and returns where it stands.
func (r *textReader) loose() span {
	start := r.pos
	r.looseText(roleOther)
	if r.failed() {
		return span{}
	}
	return span{int32(start), int32(r.pos)}
}

// orNull returns where the value stands that read reads, also where it is null.
func (r *request) orNull(read func(*request) span) span {
	if r.peek() == 'n' {
		return r.skip()
	}
	return read(r)
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
			r.skipUnknown(&m)
		}
	}
	r.fault.in(m.key)
	r.usage.at = span{int32(start), int32(r.pos)}
}

// skipUnknown steps over a member that is not known by its name.
func (r *request) skipUnknown(m *members) {
	if !r.otherCase(m, memberNames) {
		r.skip()
	}
}

// noteHandover notes the member just read if only Kvasir may send it: fields
// by which a router tells two engines of each other. From a client they name
// hosts to connect to and crash engines (SGLang #40125: a bootstrap_room that
// comes twice takes both schedulers down).
func (r *request) noteHandover(m *members) {
	if !handoverMember(m.key) || r.failed() {
		return
	}
	if len(r.strip) == maxHandover {
		r.stop(faultOther, m.start, "More than 64 parameters that only a router may send. Send none of them")
		return
	}
	r.strip = append(r.strip, span{int32(m.start), int32(r.pos)})
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
func (r *request) extraArgs() {
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
			r.unknown(&m, roleOther)
		}
	}
	r.fault.in(m.key)
}
