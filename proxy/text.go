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
