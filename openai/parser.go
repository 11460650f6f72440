// Parser: a JSON body, read once from front to back into a Request.

package openai

import "bytes"

// A parser reads one body after another, each into a Request. It is three
// readers of one body, which share their place in it:
//
//	scanner     JSON: objects, arrays, values, and the first fault
//	textReader  values of any shape, for the texts in them, into a Content
//	turnReader  messages, items, parts and tools, into a Turns and that Content
//
// The parser itself reads the top-level object and its parameters. The Model of
// a Request may lie in its memory: it must not begin another body while the
// Request is in use.
type parser struct {
	json  *scanner // that of texts
	texts textReader
	turns turnReader
	into  *Request
	need  needs // what the body must have
	given needs // what it has of that
}

// needs is what a route's body must have.
type needs uint8

const (
	needsModel needs = 1 << iota
	needsMessages
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

// parse reads the body of r into r, which has been reset.
func (p *parser) parse(r *Request, need needs) *Error {
	t := &p.texts
	t.json.check.body = r.Body
	t.into, t.message = &r.Content, -1
	t.numbers, t.fractions, t.strays = 0, 0, 0
	p.json = &t.json
	p.turns = turnReader{json: &t.json, texts: t, into: &r.Turns}
	p.into, p.need, p.given = r, need, 0
	p.document()
	if p.json.failed() {
		return p.json.check.fault.refusal(r.Body)
	}
	return nil
}

// ByteOrderMark is U+FEFF in UTF-8. It may stand before a body.
const ByteOrderMark = "\ufeff"

// document reads the whole body: one JSON object and white space around it.
func (p *parser) document() {
	s := p.json
	if bytes.HasPrefix(s.body(), []byte(ByteOrderMark)) {
		s.pos = len(ByteOrderMark)
	}
	s.pos = s.check.space(s.pos)
	open := s.pos
	if s.peek() != '{' || seemsUTF16(s.body()) {
		p.noObject()
		return
	}
	p.parameters()
	if s.failed() {
		return
	}
	p.into.Whole = s.since(open)
	if end := s.check.space(s.pos); end < len(s.body()) {
		s.check.broken(end, "data after the end of the JSON object")
		return
	}
	p.checkNeeds(open)
}

// noObject stops at a body that is no JSON object.
func (p *parser) noObject() {
	s, b := p.json, p.json.body()
	switch {
	case s.pos >= len(b):
		s.check.broken(s.pos, "the body is empty")
	case seemsUTF16(b):
		s.check.broken(0, "the body seems to be UTF-16 or UTF-32, send UTF-8")
	case b[s.pos] == '-' && bytes.HasPrefix(b[s.pos:], []byte("--")):
		s.check.broken(s.pos, "the body seems to be a multipart form, which this route does not take")
	case b[s.pos] == '[' || b[s.pos] == '"':
		s.check.broken(s.pos, "expected a JSON object, but got "+typeAt(b, s.pos))
	default:
		if s.check.value(s.pos, 0) >= 0 {
			s.check.broken(s.pos, "expected a JSON object, but got "+typeAt(b, s.pos))
		}
	}
}

// seemsUTF16 tells whether the body begins with UTF-16's or UTF-32's mark, or
// with a zero byte beside its first character.
func seemsUTF16(b []byte) bool {
	return len(b) > 1 && (b[0] == 0xFE && b[1] == 0xFF || b[0] == 0xFF && b[1] == 0xFE || b[0] == 0 || b[1] == 0)
}

// checkNeeds judges what is not there, in the top-level object that begins at open.
func (p *parser) checkNeeds(open int) {
	if p.need&readsChat != 0 && p.given&needsMessages != 0 {
		p.given |= needsInput // embeddings of a conversation
	}
	missing := p.need &^ p.given
	switch {
	case missing&needsModel != 0 && len(p.into.Model) == 0:
		p.json.missing(open, "model")
	case missing&needsMessages != 0:
		p.json.missing(open, "messages")
	case missing&needsPrompt != 0:
		p.json.missing(open, "prompt")
	case missing&needsInput != 0:
		p.json.missing(open, "input")
	}
}
