// Reading texts: the values of a body that a model may read, in whatever shape they come.

package openai

import "bytes"

// A textReader reads values for their texts. All that it finds goes into a
// Content.
type textReader struct {
	json scanner // by value: a pointer to it, as the others have, cost a body full of tools 3 %
	into *Content

	message   int32 // index of the message or item at hand, -1 between them
	numbers   int   // elements of arrays so far that are numbers, in values read for their texts
	fractions int   // of them, numbers such as 0.5: elements of a vector, and no token ids
	strays    int   // whole numbers in arrays of members that nobody here knows
}

// text reads the string at pos as a text.
func (t *textReader) text(role Role) {
	if end := t.keep(t.json.pos, role); end >= 0 {
		t.json.pos = end
	}
}

// keep takes the string at start for a text, unless it is empty, and returns
// the offset behind it, negative after a fault.
func (t *textReader) keep(start int, role Role) int {
	end, escaped := t.json.check.str(start)
	switch {
	case end < 0 || end-start == 2:
	case len(t.into.Texts) == MaxTexts:
		return t.json.check.stop(faultOther, start, tooManyTexts)
	default:
		t.into.Texts = append(t.into.Texts, Text{At: Span{int32(start), int32(end)}, Message: t.message, Role: role, Escaped: escaped})
	}
	return end
}

// setRole gives role to the texts from mark on that are RoleUser: when they were
// read nothing had said yet whose message or part they stood in.
func (t *textReader) setRole(mark int, role Role) {
	texts := t.into.Texts
	for i := mark; i < len(texts); i++ {
		if texts[i].Role == RoleUser {
			texts[i].Role = role
		}
	}
}

// nameText reads a string that names something. A model does not read it as
// text, unless somebody hid there what does not look like a name.
func (t *textReader) nameText(role Role) { t.textUnless(isName, role) }

// idText reads an id. Some templates (Kimi's, Mistral's) write the ids of calls
// and of their results into the prompt, so one that is not written as ids are
// is text.
func (t *textReader) idText(role Role) { t.textUnless(isID, role) }

// textUnless reads a string as a text unless harmless holds of its bytes as they
// stand in the body. Anything but a string is text.
func (t *textReader) textUnless(harmless func([]byte) bool, role Role) {
	if t.json.peek() != '"' {
		t.anyText(role)
		return
	}
	mark := len(t.into.Texts)
	t.text(role)
	if texts := t.into.Texts; len(texts) > mark && harmless(texts[mark].Inside().Of(t.json.body())) {
		t.into.Texts = texts[:mark]
	}
}

// roleName reads the name of a role. Templates write it beside the content, so
// one that is not written as a name is text.
func (t *textReader) roleName() []byte {
	name, at := t.json.name()
	if !t.json.failed() && !isName(name) {
		t.keep(int(at.Start), RoleOther)
	}
	return name
}

// anyText takes the value at pos for text in whatever shape it comes: every
// string in it is one, and every key that is not written as a name. Numbers in
// arrays are counted.
func (t *textReader) anyText(role Role) {
	switch t.json.peek() {
	case '"':
		t.text(role)
	case '[':
		e := t.json.array()
		for t.json.element(&e) {
			t.countNumber()
			t.anyText(role)
		}
	case '{':
		m := t.json.object()
		for t.json.member(&m) {
			t.keyText(&m, role)
			t.anyText(role)
		}
	default:
		t.number(role)
	}
}

// looseText is anyText for values that hold names as often as sentences: a
// string that looks like a name, and like no secret, is no text. So are read JSON
// schemas, which engines show the model together with their keys, and parameters
// that nobody here knows.
func (t *textReader) looseText(role Role) {
	switch t.json.peek() {
	case '[':
		e := t.json.array()
		for t.json.element(&e) {
			t.countNumber()
			t.looseText(role)
		}
	case '{':
		m := t.json.object()
		for t.json.member(&m) {
			t.keyText(&m, role)
			start := t.json.pos
			if string(m.key) == "description" && t.json.peek() == '"' {
				t.text(role)
			} else {
				t.looseText(role)
			}
			if role != RoleTools { // a tool's parameters have any name
				t.noteSteering(&m, start)
			}
		}
	case '"':
		t.textUnless(isHarmlessName, role)
	default:
		t.number(role)
	}
}

// loose reads a value that is one of a few words, such as an effort, and returns
// where it stands. Templates write it into the prompt as it comes ("Reasoning:
// low"), so what is not written as a name is text.
func (t *textReader) loose() Span {
	start := t.json.pos
	t.looseText(RoleOther)
	if t.json.failed() {
		return Span{}
	}
	return t.json.since(start)
}

// number reads a number, true, false or null. A number whose whole part is long
// may be somebody's, of an account or a card, and is a text without quotes. One
// that is long only because of its exponent, as 4.111111111111111e15, is written
// out by whoever shows it to the model; nobody here writes it out, and it counts
// as unread.
func (t *textReader) number(role Role) {
	at := t.json.skip()
	if at.End-at.Start < 7 { // isName holds of as few digits
		return
	}
	whole := at.Of(t.json.body())
	if end := bytes.IndexAny(whole, ".eE"); end >= 0 {
		if exponent := bytes.IndexAny(whole, "eE"); exponent >= longMantissa && whole[exponent+1] != '-' {
			t.into.Unread++
			return
		}
		whole = whole[:end]
	}
	switch {
	case isName(whole):
	case len(t.into.Texts) == MaxTexts:
		t.json.stop(faultOther, int(at.Start), tooManyTexts)
	default:
		t.into.Texts = append(t.into.Texts, Text{At: at, Message: t.message, Role: role, Bare: true})
	}
}

// longMantissa is as many characters as the shortest number of an account or a
// card has before its exponent.
const longMantissa = 13

// keyText takes the key of the member at hand for a text, unless it is a name.
func (t *textReader) keyText(m *members, role Role) {
	if !isName(m.key) {
		t.keep(m.start(), role)
	}
}

// prompt reads what is to be completed, embedded, spoken ...: a string, an
// array of strings, or token ids, which nobody here can read.
func (t *textReader) prompt() {
	switch t.json.peek() {
	case '"', '[':
		t.textOrTokens(RoleUser)
	default:
		t.json.unlike("a string, an array of strings or token ids")
	}
}

// textOrTokens is anyText where an array of numbers means token ids, which
// nobody here can read.
func (t *textReader) textOrTokens(role Role) {
	start, before := t.json.pos, t.numbers
	t.anyText(role)
	if t.numbers > before {
		t.noteTokens(start)
	}
}

// countNumber counts the element at hand if it is a number, or what Python takes
// for one: true and false are 1 and 0 there.
func (t *textReader) countNumber() {
	switch t.json.peek() {
	case '"', '[', '{':
	default:
		t.numbers++
		if isFraction(t.json.body()[t.json.pos:]) {
			t.fractions++
		}
	}
}

// isFraction says whether b begins with a number that is not whole: 0.5, but not
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
// knows: a box or a vector of settings has as many, and so few tokens are too
// few to give a model an order.
const fewNumbers = 8

// Bounds of the numbers in arrays that may be token ids all the same.
const (
	manyStrays   = 4 * fewNumbers // whole ones, in all members together that nobody knows
	fewFractions = 64             // in one such member, fractions included: more may be an embedding
)

// unknown reads the value of a member that nobody here knows. Many numbers in it
// may be token ids, by a name that engines came up with later.
func (t *textReader) unknown(m *members, role Role) {
	start, before, whole := t.json.pos, t.numbers, t.numbers-t.fractions
	t.looseText(role)
	whole = t.numbers - t.fractions - whole
	t.strays += whole
	if whole > fewNumbers || t.strays > manyStrays || t.numbers-before > fewFractions {
		t.into.Unread++
	}
	t.noteSteering(m, start)
}

// unknownMember is unknown within a message, a part, a call or an item, whose
// keys templates may show.
func (t *textReader) unknownMember(m *members, role Role) {
	if memberNames.refuse(&t.json, m) {
		return
	}
	t.keyText(m, role)
	t.unknown(m, role)
}

// noteSteering notes the member just read, whose value began at start, if by its
// name engines may take it for a chat template, for token ids or for the name of
// an adapter or of another model.
func (t *textReader) noteSteering(m *members, start int) {
	b := t.json.body()
	switch {
	case t.json.failed() || b[start] == 'n':
	case isTemplate(m.key):
		if !t.into.template.Given() {
			t.into.template = t.json.since(start)
		}
	case isTokenIDs(m.key) && (b[start] == '[' || b[start] == '"'): // a number is a count
		t.into.Unread++
	case !namesModel(m.key):
	case len(t.into.Adapters) == maxAdapters:
		t.json.stop(faultOther, m.start(), "More than 64 parameters that name adapters. Send one")
	default:
		t.into.Adapters = append(t.into.Adapters, Adapter{Name: string(m.key), value: t.json.since(start)})
	}
}

// noteTokens notes the value from start on, which has token ids in it, as unread.
func (t *textReader) noteTokens(start int) {
	t.into.Unread++
	if !t.json.failed() {
		t.into.TokenIDs = append(t.into.TokenIDs, t.json.since(start))
	}
}
