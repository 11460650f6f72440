// Texts: every part of a request that a model reads as text, and who says it.
package proxy

// A textRole is who says a text.
type textRole uint8

const (
	roleUser      textRole = iota // also prompts, inputs and queries
	roleSystem                    // system, developer, instructions
	roleAssistant                 // earlier answers, reasoning, arguments of calls
	roleTool                      // results of tools and functions
	roleTools                     // the descriptions of the tools on offer
	roleDocument                  // documents to answer from or to rank
	roleOther                     // a message with a role that we do not know
)

// A text is one string of a request.
type text struct {
	at      span     // the JSON string as it stands in the body, quotes included
	message int32    // index of its message or input item; -1: in none
	role    textRole // who says it
	escaped bool     // its bytes are not yet the text: there is an escape in it
}

// maxTexts is how many texts one request may have: a bound on what is kept of
// a body, 4 MiB.
const maxTexts = 1 << 18

// appendTo appends the text as it is meant, escapes resolved, to dst. body is
// the body that was parsed.
func (t text) appendTo(dst, body []byte) []byte {
	raw := body[t.at.start+1 : t.at.end-1]
	if t.escaped {
		return appendUnescaped(dst, raw)
	}
	return append(dst, raw...)
}

// A textReader is a jsonScanner that collects texts.
type textReader struct {
	jsonScanner
	texts   []text
	unread  int   // parts with something else than text: images, audio, files, unknown types
	message int32 // the message or item at hand, -1 between them
}

// text reads the string at pos as a text. Empty ones are not kept.
func (r *textReader) text(role textRole) {
	end, escaped := r.str(r.pos)
	if end < 0 {
		return
	}
	at := span{int32(r.pos), int32(end)}
	if r.pos = end; at.end-at.start == 2 {
		return
	}
	if len(r.texts) == maxTexts {
		r.stop(faultOther, int(at.start), "The request has more than 262144 texts")
		return
	}
	r.texts = append(r.texts, text{at, r.message, role, escaped})
}

// anyText takes the value at pos for text in whatever shape it comes: every
// string in it is one, object keys are not.
func (r *textReader) anyText(role textRole) {
	switch r.peek() {
	case '"':
		r.text(role)
	case '[':
		e := r.array()
		for r.element(&e) {
			r.anyText(role)
		}
		r.fault.inElement(e.index)
	case '{':
		m := r.object()
		for r.member(&m) {
			r.anyText(role)
		}
		r.fault.in(m.key)
	default:
		r.skip()
	}
}

// messages reads the array of messages at pos, each an object with a role.
func (r *textReader) messages() {
	if r.peek() != '[' {
		r.unlike("an array of messages")
		return
	}
	start := r.pos
	e := r.array()
	for r.element(&e) {
		r.message = int32(e.index)
		r.oneMessage()
	}
	r.message = -1
	r.fault.inElement(e.index)
	if e.index < 0 && !r.failed() {
		r.stop(faultOther, start, "Invalid 'messages': empty array. Expected an array with at least one message")
	}
}

func (r *textReader) oneMessage() {
	if r.peek() != '{' {
		r.unlike("an object with a role and content")
		return
	}
	start, mark := r.pos, len(r.texts)
	var role []byte
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "role":
			role, _ = r.name()
		case "content":
			r.content()
		case "refusal", "reasoning_content", "reasoning", "thinking", "function_call":
			r.callOrText()
		case "tool_calls":
			r.toolCalls()
		default:
			r.skip()
		}
	}
	if r.failed() {
		r.fault.in(m.key)
		return
	}
	if role == nil {
		r.missing(start, "role")
		return
	}
	r.setRole(mark, roleOf(role))
}

// setRole gives the texts from mark on, whose role stood nowhere near them,
// the role of their message.
func (r *textReader) setRole(mark int, role textRole) {
	for i := mark; i < len(r.texts); i++ {
		if r.texts[i].role == roleUser {
			r.texts[i].role = role
		}
	}
}

func roleOf(name []byte) textRole {
	switch string(name) {
	case "user":
		return roleUser
	case "system", "developer":
		return roleSystem
	case "assistant":
		return roleAssistant
	case "tool", "function":
		return roleTool
	}
	return roleOther
}

// missing stops at an object that lacks a member.
func (r *textReader) missing(object int, name string) {
	r.stop(faultMissing, object, "")
	r.fault.param = name
}

// content reads what a message says: a string, null, or an array of parts.
func (r *textReader) content() {
	switch r.peek() {
	case '"':
		r.text(roleUser)
	case 'n':
		r.skip()
	case '[':
		e := r.array()
		for r.element(&e) {
			r.part()
		}
		r.fault.inElement(e.index)
	default:
		r.unlike("a string or an array of content parts")
	}
}

// part reads one content part of chat, responses or Anthropic's messages.
func (r *textReader) part() {
	if r.peek() != '{' {
		r.unlike("a content part: an object with a type")
		return
	}
	start, mark := r.pos, len(r.texts)
	var kind []byte
	hasText := false
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			kind, _ = r.name()
		case "text":
			if hasText = r.peek() == '"'; hasText {
				r.text(roleUser)
			} else if !r.null() {
				r.unlike("a string")
			}
		case "refusal", "thinking", "reasoning", "input", "title", "context":
			r.anyText(roleUser)
		case "content":
			r.content()
		case "source":
			r.source()
		default:
			r.skip()
		}
	}
	if r.failed() {
		r.fault.in(m.key)
		return
	}
	r.checkPart(start, mark, kind, hasText)
}

// checkPart judges a part by its type, which may have stood behind its text.
func (r *textReader) checkPart(start, mark int, kind []byte, hasText bool) {
	switch string(kind) {
	case "":
		r.missing(start, "type")
	case "text", "input_text", "output_text":
		if !hasText {
			r.missing(start, "text")
		}
	case "tool_result":
		r.setRole(mark, roleTool)
	case "tool_use", "thinking", "refusal":
		r.setRole(mark, roleAssistant)
	default:
		if len(r.texts) == mark {
			r.unread++
		}
	}
}

// source reads where an Anthropic document or image comes from; of type text
// or content it is text itself.
func (r *textReader) source() {
	if r.peek() != '{' {
		r.anyText(roleUser)
		return
	}
	mark := len(r.texts)
	var kind []byte
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			kind = r.nameIfString()
		case "data":
			r.anyText(roleUser)
		case "content":
			r.content()
		default:
			r.skip()
		}
	}
	r.fault.in(m.key)
	if k := string(kind); !r.failed() && k != "text" && k != "content" {
		r.texts = r.texts[:mark]
	}
}

// nameIfString reads a string as name does and skips anything else.
func (r *textReader) nameIfString() []byte {
	if r.peek() == '"' {
		name, _ := r.name()
		return name
	}
	r.skip()
	return nil
}

// toolCalls reads the calls that an earlier answer made; the arguments are text.
func (r *textReader) toolCalls() {
	if r.null() {
		return
	}
	if r.peek() != '[' {
		r.unlike("an array of tool calls")
		return
	}
	e := r.array()
	for r.element(&e) {
		if r.peek() != '{' {
			r.unlike("an object")
			break
		}
		r.callOrText()
	}
	r.fault.inElement(e.index)
}

// callOrText reads a function call, or the object that wraps one: arguments
// and input are text, names and ids are not. Anything but an object is text.
func (r *textReader) callOrText() {
	if r.peek() != '{' {
		r.anyText(roleUser)
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "function", "custom":
			r.callOrText()
		case "arguments", "input", "text", "content":
			r.anyText(roleUser)
		default:
			r.skip()
		}
	}
	r.fault.in(m.key)
}

// tools reads the tools, or legacy functions, that the model may call.
func (r *textReader) tools() {
	if r.null() {
		return
	}
	if r.peek() != '[' {
		r.unlike("an array of tools")
		return
	}
	e := r.array()
	for r.element(&e) {
		if r.peek() != '{' {
			r.unlike("an object")
			break
		}
		r.tool()
	}
	r.fault.inElement(e.index)
}

// tool reads one tool, or the function within it.
func (r *textReader) tool() {
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "function", "custom":
			if r.peek() == '{' {
				r.tool()
			} else if !r.null() {
				r.unlike("an object")
			}
		case "description":
			r.anyText(roleTools)
		case "parameters", "input_schema":
			r.descriptions()
		default:
			r.skip()
		}
	}
	r.fault.in(m.key)
}

// descriptions finds the descriptions at any depth of a JSON schema.
func (r *textReader) descriptions() {
	switch r.peek() {
	case '[':
		e := r.array()
		for r.element(&e) {
			r.descriptions()
		}
		r.fault.inElement(e.index)
	case '{':
		m := r.object()
		for r.member(&m) {
			if string(m.key) == "description" && r.peek() == '"' {
				r.text(roleTools)
			} else {
				r.descriptions()
			}
		}
		r.fault.in(m.key)
	default:
		r.skip()
	}
}

// input reads what /v1/responses is asked: a string or an array of items.
func (r *textReader) input() {
	switch r.peek() {
	case '"':
		r.text(roleUser)
	case '[':
		e := r.array()
		for r.element(&e) {
			r.message = int32(e.index)
			r.item()
		}
		r.message = -1
		r.fault.inElement(e.index)
	default:
		r.unlike("a string or an array of input items")
	}
}

// item reads one input item: a message, a call, a result, reasoning ...
func (r *textReader) item() {
	if r.peek() != '{' {
		r.unlike("an input item: an object with a type or a role")
		return
	}
	start, mark := r.pos, len(r.texts)
	var kind, role []byte
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			kind, _ = r.name()
		case "role":
			role, _ = r.name()
		case "content", "summary":
			r.content()
		case "arguments", "input", "code", "results", "queries":
			r.anyText(roleUser)
		case "output":
			r.output()
		default:
			r.skip()
		}
	}
	switch {
	case r.failed():
		r.fault.in(m.key)
	case role != nil:
		r.setRole(mark, roleOf(role))
	case kind == nil:
		r.missing(start, "type")
	default:
		r.setRole(mark, roleOfItem(kind))
		if len(r.texts) == mark {
			r.unread++
		}
	}
}

// output reads the result of a call: content parts, or text in any shape.
func (r *textReader) output() {
	if r.peek() == '[' {
		r.content()
		return
	}
	r.anyText(roleTool)
}

// roleOfItem is who says an item that has no role: the results of calls come
// from tools, everything else was said by the model.
func roleOfItem(kind []byte) textRole {
	if k := string(kind); len(k) > 7 && k[len(k)-7:] == "_output" {
		return roleTool
	}
	return roleAssistant
}

// prompt reads what is to be completed, embedded, spoken ...: a string, an
// array of strings, or token ids, which are no text.
func (r *textReader) prompt() {
	switch r.peek() {
	case '"', '[':
		r.anyText(roleUser)
	default:
		r.unlike("a string, an array of strings or token ids")
	}
}
