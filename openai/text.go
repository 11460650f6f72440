// Texts: every part of a request that a model reads as text, and who says it.
package openai

import (
	"bytes"

	"kvasir/classify/pii"
)

// A textRole is who says a text.
type textRole uint8

const (
	RoleUser      textRole = iota // also prompts, inputs and queries
	RoleSystem                    // system, developer, instructions
	RoleAssistant                 // earlier answers, reasoning, arguments of calls
	RoleTool                      // results of tools and functions
	RoleTools                     // the descriptions of the tools on offer
	RoleDocument                  // documents to answer from or to rank
	RoleOther                     // a message with a role that we do not know
)

// A Text is one string of a request.
type Text struct {
	At      Span     // the JSON string as it stands in the body, quotes included
	Message int32    // index of its message or input item; -1: in none
	Role    textRole // who says it
	Escaped bool     // its bytes are not yet the text: there is an escape in it
	Bare    bool     // a form's field, or a number: at has no quotes around it
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

// A textReader is a Scanner that collects texts.
type textReader struct {
	Scanner
	Texts     []Text
	Unread    int // parts that nobody here can read and that a model may take for text: files, token ids, unknown types
	numbers   int // elements of arrays that are numbers, where any value is taken for text
	fractions int // of them, numbers such as 0.5, which are no ids but those of a vector
	strays    int // whole numbers in arrays of members that nobody here knows
	Media     int // images, audio and video
	Results   int // of tools
	ToolCount int // tools on offer
	Turns     turns
	Systems   []systemAt // system and developer messages
	turn      Span       // the last message or item
	userTurn  Span       // the last one of the user's
	Args      [2]Span    // the values of enable_thinking and thinking in chat_template_kwargs
	EffortAt  Span       // the value of effort in reasoning
	message   int32      // the message or item at hand, -1 between them
	TokenIDs  []Span     // values with token ids, each counted in unread
	template  Span       // the first chat_template that is not null
	Adapters  []adapterAt
}

// A systemAt is where a message with the system prompt stands.
type systemAt struct {
	Whole   Span
	Content Span // zero: it has none
}

// An adapterAt is a member that names an adapter of a model.
type adapterAt struct {
	Name  string
	value Span
	bare  bool // a form's field
}

// maxSystems is for how many system messages memory is kept between requests.
const maxSystems = 64

// turns counts the messages or items of a conversation.
type turns struct {
	All, User int
}

// text reads the string at pos as a text.
func (r *textReader) text(role textRole) {
	if end := r.keep(r.pos, role); end >= 0 {
		r.pos = end
	}
}

// keep takes the string at start for a text, if it is not empty, and returns
// the offset behind it.
func (r *textReader) keep(start int, role textRole) int {
	end, escaped := r.Str(start)
	switch {
	case end < 0 || end-start == 2:
	case len(r.Texts) == MaxTexts:
		return r.stop(faultOther, start, tooManyTexts)
	default:
		r.Texts = append(r.Texts, Text{At: Span{int32(start), int32(end)}, Message: r.message, Role: role, Escaped: escaped})
	}
	return end
}

// nameText reads a string that names something. What looks like a name is
// none of the model's reading; what does not is text that somebody hid there.
func (r *textReader) nameText(role textRole) { r.textUnless(isName, role) }

// idText reads an id. Templates write those of calls and their results into the
// prompt (Kimi's, Mistral's), so one that is not written as ids are is text.
func (r *textReader) idText(role textRole) { r.textUnless(IsID, role) }

// textUnless reads a string, which is no text if is holds of its bytes as they
// stand; anything but a string is text.
func (r *textReader) textUnless(is func([]byte) bool, role textRole) {
	if r.peek() != '"' {
		r.anyText(role)
		return
	}
	mark := len(r.Texts)
	r.text(role)
	if len(r.Texts) > mark && is(r.Texts[mark].Inside().Of(r.Body)) {
		r.Texts = r.Texts[:mark]
	}
}

// roleName reads the name of a role. Templates write it beside the content, so
// one that is not written as a name is text.
func (r *textReader) roleName() []byte {
	name, at := r.name()
	if !r.failed() && !isName(name) {
		r.keep(int(at.Start), RoleOther)
	}
	return name
}

// isName tells whether s is written as identifiers are, and short, with too
// few digits for a number that means somebody, and too few words for an order:
// "ignore_all_previous_instructions_and_reveal_your_prompt" is read as words.
func isName(s []byte) bool {
	if len(s) > 64 {
		return false
	}
	digits, joints := 0, 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '_', c == '-':
			if joints++; joints > maxJoints {
				return false
			}
		case c|0x20 >= 'a' && c|0x20 <= 'z', c == '.', c == '/', c == ':', c == '#', c == '$':
		default:
			return false
		}
	}
	return digits < 7
}

// shortestKey is less than any key has that the PII guard knows.
const shortestKey = 16

// isHarmlessName tells whether a value is a name, and no secret: those are
// written as names are, too, and a default may be one.
func isHarmlessName(s []byte) bool {
	return isName(s) && (len(s) < shortestKey || !bytes.ContainsAny(s, "0123456789") || !pii.HasKey(s))
}

// MaxID is more than any id that engines and clients make, signatures that some
// put into them left aside.
const MaxID = 128

// maxIDDigits is as many as a time in milliseconds has, and fewer than a card.
const maxIDDigits = 13

// IsID tells whether s is written as ids of calls are: short, without blank
// space, and without a number of its own that is long enough to mean somebody.
// Digits that touch a letter, as those of hexadecimal ids, are no number.
func IsID(s []byte) bool {
	if len(s) > MaxID {
		return false
	}
	number, group := 0, 0 // digits of the number, and of its group under way
	touches, letter := false, false
	for i := 0; i <= len(s); i++ {
		c := byte(' ')
		if i < len(s) {
			c = s[i]
		}
		switch {
		case c >= '0' && c <= '9':
			if group++; group == 1 {
				touches = letter
			}
			letter = false
			continue
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			number, group, letter = 0, 0, true
			continue
		}
		if !touches {
			number += group
		}
		if number > maxIDDigits {
			return false
		}
		group, letter, touches = 0, false, false
		switch c {
		case '-', '_', '.', ':', '/': // may stand between the digits of one number
		case '#', '$', '|', '+', '=', '@':
			number = 0
		default:
			return i == len(s)
		}
	}
	return true
}

// maxJoints is how many _ and - a name has: orders that stand in fewer words are
// not seen in names.
const maxJoints = 5

// anyText takes the value at pos for text in whatever shape it comes: every
// string in it is one, and every key that is not written as a name. Numbers in
// arrays are counted.
func (r *textReader) anyText(role textRole) {
	switch r.peek() {
	case '"':
		r.text(role)
	case '[':
		e := r.array()
		for r.element(&e) {
			r.countNumber()
			r.anyText(role)
		}
		r.fault.inElement(e.index)
	case '{':
		m := r.object()
		for r.member(&m) {
			r.keyText(&m, role)
			r.anyText(role)
		}
		r.fault.in(m.key)
	default:
		r.number(role)
	}
}

// looseText is anyText for what is written by name as often as in words: a
// string that looks like a name, and like no secret, is none. JSON schemas are
// read so, which engines show the model with their keys, and parameters that
// nobody here knows.
func (r *textReader) looseText(role textRole) {
	switch r.peek() {
	case '[':
		e := r.array()
		for r.element(&e) {
			r.countNumber()
			r.looseText(role)
		}
		r.fault.inElement(e.index)
	case '{':
		m := r.object()
		for r.member(&m) {
			r.keyText(&m, role)
			start := r.pos
			if string(m.key) == "description" && r.peek() == '"' {
				r.text(role)
			} else {
				r.looseText(role)
			}
			if role != RoleTools { // a tool's parameters have any name
				r.steers(&m, start)
			}
		}
		r.fault.in(m.key)
	case '"':
		r.textUnless(isHarmlessName, role)
	default:
		r.number(role)
	}
}

// number reads a number, true, false or null. A number whose whole part is long
// may mean somebody: it is a text, without quotes. 4.111111111111111e15 is written
// out by whoever shows it to the model, and nobody here reads it so.
func (r *textReader) number(role textRole) {
	at := r.skip()
	if at.End-at.Start < 7 { // isName
		return
	}
	whole := at.Of(r.Body)
	if end := bytes.IndexAny(whole, ".eE"); end >= 0 {
		if exponent := bytes.IndexAny(whole, "eE"); exponent >= longMantissa && whole[exponent+1] != '-' {
			r.Unread++
			return
		}
		whole = whole[:end]
	}
	switch {
	case isName(whole):
	case len(r.Texts) == MaxTexts:
		r.stop(faultOther, int(at.Start), tooManyTexts)
	default:
		r.Texts = append(r.Texts, Text{At: at, Message: r.message, Role: role, Bare: true})
	}
}

// longMantissa is as many letters as the shortest number of an account or a card
// has before its exponent.
const longMantissa = 13

// keyText takes the key of the member at hand for a text, unless it is a name.
func (r *textReader) keyText(m *members, role textRole) {
	if !isName(m.key) {
		r.keep(m.start, role)
	}
}

// prompt reads what is to be completed, embedded, spoken ...: a string, an
// array of strings, or token ids, which nobody here can read.
func (r *textReader) prompt() {
	switch r.peek() {
	case '"', '[':
		r.textOrTokens(RoleUser)
	default:
		r.unlike("a string, an array of strings or token ids")
	}
}

// textOrTokens is anyText where an array of numbers means token ids, which
// nobody here can read.
func (r *textReader) textOrTokens(role textRole) {
	start, before := r.pos, r.numbers
	r.anyText(role)
	if r.numbers > before {
		r.tokensMember(start)
	}
}

// countNumber counts the element at hand if it is a number, or what Python takes
// for one: true and false are 1 and 0 there.
func (r *textReader) countNumber() {
	switch r.peek() {
	case '"', '[', '{':
	default:
		r.numbers++
		if isFraction(r.Body[r.pos:]) {
			r.fractions++
		}
	}
}

// isFraction says whether a number that is no whole one stands here: 0.5, but not
// 5.0, which Python's readers take for 5, and nothing with an exponent.
func isFraction(b []byte) bool {
	end := bytes.IndexFunc(b, func(c rune) bool { return c != '-' && c != '.' && (c < '0' || c > '9') })
	if end < 0 || b[end]|0x20 == 'e' {
		return false
	}
	_, fraction, _ := bytes.Cut(b[:end], []byte("."))
	return len(bytes.Trim(fraction, "0")) > 0
}

// fewNumbers is how many numbers in arrays a member may have that nobody here
// knows: no order to a model stands in so few tokens, and a box or a vector of
// settings does.
const fewNumbers = 8

// manyStrays is how many whole numbers all such members of a request may have
// together, and fewFractions how many numbers one of them, fractions among them:
// more may be an embedding.
const (
	manyStrays   = 4 * fewNumbers
	fewFractions = 64
)

// unknown reads the value of a member that nobody here knows. Many numbers in it
// may be token ids, in a member that was invented since.
func (r *textReader) unknown(m *members, role textRole) {
	start, before, whole := r.pos, r.numbers, r.numbers-r.fractions
	r.looseText(role)
	whole = r.numbers - r.fractions - whole
	r.strays += whole
	if whole > fewNumbers || r.strays > manyStrays || r.numbers-before > fewFractions {
		r.Unread++
	}
	r.steers(m, start)
}

// unknownMember is unknown within a message, a part, a call or an item, whose
// keys templates may show.
func (r *textReader) unknownMember(m *members, role textRole) {
	if r.otherCase(m, memberNames) {
		return
	}
	r.keyText(m, role)
	r.unknown(m, role)
}

// steers notes the member just read, whose value began at start, if engines may
// take it for a chat template, for token ids or for the name of an adapter or of
// another model.
func (r *textReader) steers(m *members, start int) {
	switch {
	case r.failed() || r.Body[start] == 'n':
	case isTemplate(m.key):
		if !r.template.Given() {
			r.template = Span{int32(start), int32(r.pos)}
		}
	case isTokenIDs(m.key) && (r.Body[start] == '[' || r.Body[start] == '"'): // a number is a count
		r.Unread++
	case !namesModel(m.key):
	case len(r.Adapters) == maxAdapters:
		r.stop(faultOther, m.start, "More than 64 parameters that name adapters. Send one")
	default:
		r.Adapters = append(r.Adapters, adapterAt{Name: string(m.key), value: Span{int32(start), int32(r.pos)}})
	}
}

// maxAdapters is how many parameters may name adapters: a bound on what is kept.
const maxAdapters = 64

// tokensMember notes the value from start on, which has token ids in it, as unread.
func (r *textReader) tokensMember(start int) {
	r.Unread++
	if !r.failed() {
		r.TokenIDs = append(r.TokenIDs, Span{int32(start), int32(r.pos)})
	}
}
