// Parameters: the members of a request's top-level object.

package openai

// parameters reads the top-level object at pos.
func (p *parser) parameters() {
	m := p.json.object()
	for p.json.member(&m) {
		start := p.json.pos
		switch {
		case p.parameter(m.key) || p.textParameter(m.key):
		case isRouterField(m.key):
			p.routerField(&m)
		case !memberNames.refuse(p.json, &m):
			p.furtherParameter(&m)
		}
		p.note(&m, start)
	}
}

// note notes where the member just read stands, whose value began at start.
func (p *parser) note(m *members, start int) {
	r := p.into
	if len(r.Parameters) == maxParameters {
		r.Crowded = true
		return
	}
	key := Span{m.at.Start + 1, m.at.End - 1}
	r.Parameters = append(r.Parameters, ParameterAt{key, p.json.since(start)})
}

// maxParameters is how many members are noted: more than any API has.
const maxParameters = 128

// parameter reads a parameter that is no text, and tells whether it is one.
func (p *parser) parameter(key []byte) bool {
	f := &p.into.Fields
	switch string(key) {
	case "model":
		p.readModel()
	case "stream":
		p.into.Stream, f.stream = p.json.boolean()
	case "stream_options":
		p.streamOptions()
	case "tools":
		f.Tools = p.json.located(p.turns.tools)
	case "functions":
		p.turns.tools()
	case "user":
		f.user = p.json.optional()
	case "n":
		f.n = p.json.orNull(p.json.integer)
	case "best_of":
		f.bestOf = p.texts.loose()
	case "max_tokens":
		f.maxTokens = p.json.orNull(p.json.integer)
	case "max_completion_tokens":
		f.maxCompletion = p.json.orNull(p.json.integer)
	case "max_output_tokens":
		f.maxOutput = p.json.orNull(p.json.integer)
	case "temperature":
		f.Temperature = p.json.orNull(p.json.real)
	case "reasoning_effort":
		f.effort = p.texts.loose()
	case "reasoning":
		f.reasoning = p.json.locatedOrNull(p.effort)
	case "seed":
		f.seed = p.json.optional()
	case "response_format":
		f.responseFormat = p.json.located(func() { p.texts.looseText(RoleTools) })
	case "cache_salt":
		f.CacheSalt = p.json.optional()
	case "vllm_xargs":
		p.extraArgs()
	default:
		return false
	}
	return true
}

// textParameter reads a parameter that is text on some route, and tells
// whether it is one. It is collected on every route, whatever the worker there
// makes of it; its shape is judged on the routes that are known to read it.
func (p *parser) textParameter(key []byte) bool {
	r := p.into
	switch string(key) {
	case "messages":
		if p.need&readsChat == 0 {
			p.texts.textOrTokens(RoleUser)
		} else if r.MessagesAt = p.json.located(p.turns.messages); r.MessagesAt.Given() {
			p.given |= needsMessages
		}
	case "prompt":
		if p.need&needsPrompt == 0 {
			p.texts.textOrTokens(RoleUser)
		} else if r.AskedAt = p.json.located(p.texts.prompt); r.AskedAt.Given() {
			p.given |= needsPrompt
		}
	case "prompt_embeds", // vLLM: in place of a prompt
		"input_embeds", "inputs_embeds": // SGLang
		if p.json.optional().Given() {
			p.given |= needsPrompt
			r.Content.Unread++
		}
	case "input":
		p.readInput()
	case "system":
		p.system()
	case "instructions":
		r.Fields.Instructions = p.json.locatedOrNull(func() { p.texts.anyText(RoleSystem) })
	case "chat_template":
		r.Content.template = p.json.located(func() { p.texts.anyText(RoleSystem) })
	case "chat_template_kwargs": // what templates make of it is theirs: any string may come to stand in the prompt
		r.Fields.templateArgs = p.json.locatedOrNull(p.templateArgs)
	case "suffix", "query", "queries", "text_1", "data_1":
		p.texts.textOrTokens(RoleUser)
	case "documents", "text_2", "data_2", "items":
		p.texts.textOrTokens(RoleDocument)
	case "previous_input_messages": // vLLM: before the input
		p.texts.textOrTokens(RoleUser)
	case "prediction":
		p.predicted()
	default:
		return isTokenIDs(key) && p.tokenParameter()
	}
	return true
}

func (p *parser) tokenParameter() bool {
	if at := p.json.optional(); at.Given() {
		p.given |= needsPrompt
		p.texts.noteTokens(int(at.Start))
	}
	return true
}

// furtherParameter reads a parameter that we do nothing with. Engines have
// hundreds and invent more, such as the schemas and choices that guide an
// answer: whatever is not known to stay away from the model may be text.
func (p *parser) furtherParameter(m *members) {
	switch string(m.key) {
	case "metadata", "stop", "stop_sequences", "stop_regex", "logit_bias", "safety_identifier", "prompt_cache_key",
		"mcp_servers", "custom_logit_processor":
		p.json.skip()
	case "image", "images", "mask", "ref_audio", "input_reference":
		if !p.json.null() {
			p.json.skip()
			p.into.Content.Media++
		}
	case "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "structural_tag",
		"regex", "ebnf", "json_schema", "text":
		p.texts.looseText(RoleTools) // what an answer must look like, as much the developer's as tools are
	case "stop_token_ids", "allowed_token_ids", "logprob_token_ids", "bad_words_ids", "token_ids_logprob", "suppress_tokens",
		"begin_suppress_tokens", "sigmas", "timesteps": // numbers that no prompt is made of
		p.texts.looseText(RoleOther)
	default:
		p.texts.unknown(m, RoleOther)
	}
}

func (p *parser) readInput() {
	switch {
	case p.need&needsInput == 0:
		p.texts.textOrTokens(RoleUser)
		return
	case p.need&readsItems != 0:
		p.into.AskedAt = p.json.located(p.turns.input)
	default:
		p.into.AskedAt = p.json.located(p.texts.prompt)
	}
	if p.into.AskedAt.Given() {
		p.given |= needsInput
	}
}

// system reads Anthropic's system prompt: a string or an array of parts.
func (p *parser) system() {
	if p.need&readsChat == 0 {
		p.texts.anyText(RoleSystem)
		return
	}
	mark := len(p.into.Content.Texts)
	p.into.Fields.System = p.json.locatedOrNull(p.turns.content)
	p.texts.setRole(mark, RoleSystem)
}

// predicted reads the answer that the client expects: OpenAI's predicted outputs.
func (p *parser) predicted() {
	mark := len(p.into.Content.Texts)
	p.turns.callOrText()
	p.texts.setRole(mark, RoleAssistant)
}

// templateArgs reads the arguments of the chat template. Nobody knows where a
// template puts them.
func (p *parser) templateArgs() {
	if p.json.peek() != '{' {
		p.texts.anyText(RoleSystem)
		return
	}
	m := p.json.object()
	for p.json.member(&m) {
		switch string(m.key) {
		case "enable_thinking":
			p.into.Fields.enableThinking = p.texts.loose()
		case "thinking":
			p.into.Fields.thinking = p.texts.loose()
		case "chat_template":
			start := p.json.pos
			p.texts.anyText(RoleSystem)
			p.texts.noteSteering(&m, start)
		default:
			if templateNames.refuse(p.json, &m) {
				break
			}
			p.texts.keyText(&m, RoleOther)
			p.texts.unknown(&m, RoleOther)
		}
	}
}

// effort reads the reasoning parameter of /v1/responses.
func (p *parser) effort() {
	if p.json.peek() != '{' {
		p.texts.loose()
		return
	}
	m := p.json.object()
	for p.json.member(&m) {
		if string(m.key) == "effort" {
			p.into.Fields.nestedEffort = p.texts.loose()
		} else {
			p.texts.unknownMember(&m, RoleOther)
		}
	}
}

// streamOptions reads the object that asks for usage on a stream.
func (p *parser) streamOptions() {
	start := p.json.pos
	if p.json.peek() == 'n' {
		p.into.Usage.at = p.json.skip()
		return
	}
	if p.json.peek() != '{' {
		p.json.unlike("an object")
		return
	}
	m := p.json.object()
	for p.json.member(&m) {
		switch string(m.key) {
		case "include_usage":
			p.into.Usage.Include, p.into.Usage.includeAt = p.json.boolean()
		case "continuous_usage_stats":
			p.into.Usage.Continuous, _ = p.json.boolean()
		default:
			skipUnknown(p.json, &m)
		}
	}
	p.into.Usage.at = p.json.since(start)
}
