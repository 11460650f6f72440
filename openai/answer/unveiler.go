// Unveiling: hidden values are put back into an answer, whole or streamed.

package answer

import (
	"bytes"
	"slices"
	"strings"

	"kvasir/openai"
)

// An Unveiler puts what a Veil hid back into one answer.
//
//	u := answer.NewUnveiler(&veil, kind)
//	shown := u.Body(body)
//	shown = u.Events(events) // or of a stream, each time that events have come,
//	shown = u.Last()         // and at its end
//
// Placeholders are plain ASCII inside JSON strings, so they are found in the
// raw bytes. In a stream one may come in pieces, token by token: what may be
// its beginning is held back until more has come.
type Unveiler struct {
	hidden []hidden
	kind   openai.Kind
	held   []heldText
	inside bool   // an event that comes in pieces is not at its end
	out    []byte // what the last call returned
}

// A heldText is one text of a stream: the content of a choice, a block ...
type heldText struct {
	slot textSlot
	rest []byte // held back: what may be the beginning of a placeholder
	// If no placeholder comes of rest, it is sent as before + rest + behind: the event
	// that it came in, without what must not be said twice.
	before []byte // of that event: up to the text
	behind []byte // of that event: after the text
}

// A textSlot tells the texts of a stream apart: by their member's name, and the
// indices of the objects that they stand in.
type textSlot struct {
	key   string
	index indices
}

// indices are the numbers of a choice and its call, or of an item and its part,
// from the outside in. Each stands in the object whose texts it numbers.
type indices [4]struct {
	depth  int    // of the object; 0: there is no such index
	second bool   // it is the second of its object
	number string // its digits
}

// note takes over the index that the scanner stands at.
func (x *indices) note(s *memberScanner) {
	x.leave(s.depth)
	second := string(s.key) == "content_index" // beside output_index
	for i := range x {
		if x[i].depth == 0 || x[i].depth == s.depth && x[i].second == second {
			x[i].depth, x[i].second, x[i].number = s.depth, second, string(s.number())
			return
		}
	}
}

// leave forgets the indices of objects deeper than depth: they have ended.
func (x *indices) leave(depth int) {
	for i := range x {
		if x[i].depth > depth {
			x[i].depth, x[i].second, x[i].number = 0, false, ""
		}
	}
}

// lookAhead finds the index of a choice that stands behind its text, as some
// engines write it.
func (x *indices) lookAhead(s memberScanner) {
	const choice = 3 // deep: the object, its choices, the choice
	for s.depth >= choice && s.next() && s.low >= choice {
		if s.depth == choice && isIndex(s.key) {
			x.note(&s)
			return
		}
	}
}

// UnveilLimit is how many bytes of a body are read whole to be unveiled. A
// longer one goes on as it is.
const UnveilLimit = 8 << 20

// maxSlots is how many texts of one stream are told apart.
const maxSlots = 64

// NewUnveiler puts back what v hid from a request on a route of kind k. It is
// nil if there is nothing to put back. A value that JSON would have to escape
// stays hidden: in the arguments of a call it would have to be escaped twice,
// and the raw bytes do not say where that is so.
func NewUnveiler(v *Veil, k openai.Kind) *Unveiler {
	u := &Unveiler{kind: k}
	for _, h := range v.hidden {
		if !strings.ContainsFunc(h.value, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f || r == 0xFFFD }) {
			u.hidden = append(u.hidden, h)
		}
	}
	if len(u.hidden) == 0 {
		return nil
	}
	return u
}

// Body returns a whole body with its values. What it returns is valid until the
// next call.
func (u *Unveiler) Body(b []byte) []byte {
	u.out = u.restore(u.out[:0], b)
	return u.out
}

// restore appends text with every placeholder replaced.
func (u *Unveiler) restore(dst, text []byte) []byte {
	for {
		at := bytes.IndexByte(text, '[')
		if at < 0 {
			return append(dst, text...)
		}
		dst, text = append(dst, text[:at]...), text[at:]
		h := u.at(text)
		if h == nil {
			dst, text = append(dst, '['), text[1:]
			continue
		}
		dst, text = append(dst, h.value...), text[len(h.placeholder):]
	}
}

// at is what is hidden by the placeholder that text begins with, nil if it
// begins with none.
func (u *Unveiler) at(text []byte) *hidden {
	for i := range u.hidden {
		if h := &u.hidden[i]; len(text) >= len(h.placeholder) && string(text[:len(h.placeholder)]) == h.placeholder {
			return h
		}
	}
	return nil
}

// unfinished is how many bytes at the end of text may be the beginning of a
// placeholder.
func (u *Unveiler) unfinished(text []byte) int {
	at := bytes.LastIndexByte(text, '[')
	if at < 0 {
		return 0
	}
	for i := range u.hidden {
		if tail := text[at:]; len(tail) < len(u.hidden[i].placeholder) && strings.HasPrefix(u.hidden[i].placeholder, string(tail)) {
			return len(tail)
		}
	}
	return 0
}

// Events returns the events in b with their values, but for what it holds back.
// An event too long to be held may come in pieces. What it returns is valid
// until the next call.
func (u *Unveiler) Events(b []byte) []byte {
	u.out = u.out[:0]
	for len(b) > 0 {
		var s openai.EventScanner
		n := s.Next(b)
		whole := n > 0
		if !whole {
			n = len(b) // a piece of an event too long to hold, or the last without its blank line
		}
		switch {
		case whole && !u.inside:
			u.event(b[:n])
		case !u.inside:
			u.flush()
			fallthrough
		default:
			u.out = u.restore(u.out, b[:n])
		}
		u.inside = !whole
		b = b[n:]
	}
	return u.out
}

// event appends one event.
func (u *Unveiler) event(event []byte) {
	if bytes.IndexByte(event, '[') < 0 && !u.holding() {
		u.out = append(u.out, event...)
		return
	}
	_, data := openai.EventFields(event)
	if len(data) == 0 {
		u.out = append(u.out, event...)
		return
	}
	if data[0] != '{' || !u.isDelta(data) {
		u.flush() // [DONE], the end of a block: what is held will not be continued
		u.out = u.restore(u.out, event)
		return
	}
	u.delta(event, len(event)-len(data), isFinished(data))
}

// isFinished says whether a choice has its finish_reason.
func isFinished(data []byte) bool {
	const key = `"finish_reason"`
	for {
		at := bytes.Index(data, []byte(key))
		if at < 0 {
			return false
		}
		data = bytes.TrimLeft(data[at+len(key):], " :")
		if len(data) > 0 && data[0] == '"' {
			return true
		}
	}
}

var (
	deltaOf    = []byte(`.delta"`)
	blockDelta = []byte(`"content_block_delta"`)
)

func (u *Unveiler) holding() bool {
	return slices.ContainsFunc(u.held, func(h heldText) bool { return len(h.rest) > 0 })
}

// isDelta says whether the texts of an event are pieces, which the next events
// may continue.
func (u *Unveiler) isDelta(data []byte) bool {
	switch u.kind {
	case openai.KindResponses:
		return bytes.Contains(data, deltaOf)
	case openai.KindMessages:
		return bytes.Contains(data, blockDelta)
	}
	return true
}

// delta appends an event whose texts are pieces; its data begins at from. With
// final the next events continue none of them.
func (u *Unveiler) delta(event []byte, from int, final bool) {
	start := len(u.out)
	copied := 0 // of the event
	var index indices
	texts := 0
	for s := (memberScanner{b: event, at: from}); s.next(); {
		index.leave(s.low)
		if isIndex(s.key) {
			index.note(&s)
		}
		if !s.isText() {
			continue
		}
		if texts++; index[0].depth == 0 && (u.kind == openai.KindChat || u.kind == openai.KindText) {
			index.lookAhead(s)
		}
		h := u.slot(textSlot{string(s.key), index})
		u.out = append(u.out, event[copied:s.from]...)
		if h == nil { // more texts than are kept apart
			u.out = u.restore(u.out, event[s.from:s.to])
			copied = s.to
			continue
		}
		text := append(h.rest, event[s.from:s.to]...)
		keep := 0
		if !final {
			keep = u.unfinished(text)
		}
		u.out = u.restore(u.out, text[:len(text)-keep])
		h.rest = append(text[:0], text[len(text)-keep:]...)
		if keep > 0 {
			h.keepShape(event, from, s.from)
		}
		copied = s.to
	}
	if texts == 0 || final {
		tail := append([]byte(nil), u.out[start:]...)
		u.out = u.out[:start]
		u.flush()
		u.out = append(u.out, tail...)
	}
	u.out = append(u.out, event[copied:]...)
}

// keepShape keeps the event whose text begins at text, without that text and
// without what must not be said twice: the other texts, and in the deltas of
// choices roles, ids and names, which clients put together piece by piece.
func (h *heldText) keepShape(event []byte, from, text int) {
	h.before, h.behind = h.before[:0], h.behind[:0]
	to := &h.before
	copied := 0
	for s := (memberScanner{b: event, at: from}); s.next(); {
		switch key := string(s.key); {
		case s.from == s.at || !s.isText() && (s.depth < 4 || key != "role" && key != "id" && key != "name"):
			continue
		case s.from == text:
			h.before = append(h.before, event[copied:text]...)
			to = &h.behind
		default:
			*to = append(*to, event[copied:s.from]...)
		}
		copied = s.to
	}
	*to = append(*to, event[copied:]...)
}

// flush appends what is held and will not become a placeholder, each text in
// the shape of its last event.
func (u *Unveiler) flush() {
	for i := range u.held {
		h := &u.held[i]
		if len(h.rest) == 0 {
			continue
		}
		u.out = append(append(append(u.out, h.before...), h.rest...), h.behind...)
		h.rest = h.rest[:0]
	}
}

// Last returns what is still held when the stream ends. What it returns is
// valid until the next call.
func (u *Unveiler) Last() []byte {
	u.out = u.out[:0]
	u.flush()
	return u.out
}

// slot finds what is remembered of a text, nil if there are too many texts.
func (u *Unveiler) slot(s textSlot) *heldText {
	for i := range u.held {
		if u.held[i].slot == s {
			return &u.held[i]
		}
	}
	if len(u.held) == maxSlots {
		return nil
	}
	u.held = append(u.held, heldText{slot: s})
	return &u.held[len(u.held)-1]
}

// isIndex recognises the members that number choices, calls and blocks.
func isIndex(key []byte) bool {
	return string(key) == "index" || string(key) == "output_index" || string(key) == "content_index"
}
