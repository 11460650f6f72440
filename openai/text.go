// Texts: every part of a request that a model reads as text, and who says it.

package openai

// A Role is who says a text.
type Role uint8

// Who says a text.
const (
	RoleUser      Role = iota // also prompts, inputs and queries
	RoleSystem                // system, developer, instructions
	RoleAssistant             // earlier answers, reasoning, arguments of calls
	RoleTool                  // results of tools and functions
	RoleTools                 // the descriptions of the tools on offer
	RoleDocument              // documents to answer from or to rank
	RoleOther                 // a message with a role that we do not know
)

// A Text is one string of a request.
type Text struct {
	At      Span  // the JSON string as it stands in the body, quotes included
	Message int32 // index of its message or input item; -1: in none
	Role    Role  // who says it
	Escaped bool  // it has escapes, so that its bytes in the body are not yet the text
	Bare    bool  // a form's field, or a number: At has no quotes around it
}

// MaxTexts is how many texts one request may have: a bound on what is kept of
// a body, 2 MiB.
const MaxTexts = 1 << 16

const tooManyTexts = "The request has more than 65536 texts"

// AppendTo appends the text as it is meant, escapes resolved, to dst. body is
// the body that was parsed.
func (t Text) AppendTo(dst, body []byte) []byte {
	raw := t.Inside().Of(body)
	if t.Escaped {
		return AppendUnescaped(dst, raw)
	}
	return append(dst, raw...)
}

// Inside is where the text stands without its quotes.
func (t Text) Inside() Span {
	if t.Bare {
		return t.At
	}
	return Span{t.At.Start + 1, t.At.End - 1}
}
