// Unveiling: hidden values are put back into the answer, whole or streamed.
package proxy

import (
	"bytes"
	"slices"
	"strings"

	"kvasir/openai"
)

// An unveiler puts what a veil hid back into one answer. Placeholders are
// plain ASCII inside JSON strings, so they are found in the raw bytes; in a
// stream one may come in pieces, token by token: its beginning is held until
// it is known what it is.
type unveiler struct {
	hidden []hidden
	kind   openai.Kind
	held   []heldText
	inside bool   // an event that comes in pieces is not at its end
	out    []byte // of the last call
}

// A heldText is one text of a stream: the content of a choice, a block ...
type heldText struct {
	slot   textSlot
	rest   []byte // held back: the beginning of what may be a placeholder
	before []byte // the event that the rest came in, without any text:
	behind []byte // what a rest that comes to nothing is sent in
}

// A textSlot tells the texts of a stream apart.
type textSlot struct {
	key   string
	index indices
}

// indices are the numbers of a choice and its call, or of an item and its part,
// from the outside in. Each stands in the object whose texts it numbers.
type indices [4]struct {
	depth  int // 0: none
	second bool
	number string
}

// note takes over the index that the scanner stands at.
func (x *indices) note(s *stringScanner) {
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

// ahead finds the index of a choice that stands behind its text.
func (x *indices) ahead(s stringScanner) {
	const choice = 3 // deep: the object, its choices, the choice
	for s.depth >= choice && s.next() && s.low >= choice {
		if s.depth == choice && isIndex(s.key) {
			x.note(&s)
			return
		}
	}
}

const (
	maxSlots    = 64      // texts of one stream with a rest of their own
	unveilLimit = 8 << 20 // of a body that is no stream; a longer one goes on as it is
)

// newUnveiler is nil when there is nothing to put back. A value that JSON
// would have to escape stays hidden: in the arguments of a call it would have
// to be escaped twice, and nobody can tell from the outside.
func newUnveiler(v *veil, k openai.Kind) *unveiler {
	u := &unveiler{kind: k}
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

// body returns the answer with its values. What it returns is valid until the
// next call.
func (u *unveiler) body(b []byte) []byte {
	u.out = u.restore(u.out[:0], b)
	return u.out
}

// restore appends text with every placeholder replaced.
func (u *unveiler) restore(dst, text []byte) []byte {
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

// at is what hides behind the placeholder that text begins with, nil if none.
func (u *unveiler) at(text []byte) *hidden {
	for i := range u.hidden {
		if h := &u.hidden[i]; len(text) >= len(h.placeholder) && string(text[:len(h.placeholder)]) == h.placeholder {
			return h
		}
	}
	return nil
}

// unfinished is how many bytes at the end of text may be the beginning of a
// placeholder.
func (u *unveiler) unfinished(text []byte) int {
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

// events returns whole events with their values; what it returns is valid
// until the next call.
func (u *unveiler) events(b []byte) []byte {
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
func (u *unveiler) event(event []byte) {
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
		u.flush() // [DONE], a block's end: nothing more comes of what is held
		u.out = u.restore(u.out, event)
		return
	}
	u.delta(event, len(event)-len(data), finishes(data))
}

// finishes says whether a choice has its finish_reason.
func finishes(data []byte) bool {
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

func (u *unveiler) holding() bool {
	return slices.ContainsFunc(u.held, func(h heldText) bool { return len(h.rest) > 0 })
}

// isDelta says whether the texts of an event are pieces that the next ones
// continue.
func (u *unveiler) isDelta(data []byte) bool {
	switch u.kind {
	case openai.KindResponses:
		return bytes.Contains(data, deltaOf)
	case openai.KindMessages:
		return bytes.Contains(data, blockDelta)
	}
	return true
}

// delta appends an event whose texts are pieces. With final none is continued.
func (u *unveiler) delta(event []byte, from int, final bool) {
	start := len(u.out)
	copied := 0 // of the event
	var index indices
	texts := 0
	for s := (stringScanner{b: event, at: from}); s.next(); {
		index.leave(s.low)
		if isIndex(s.key) {
			index.note(&s)
		}
		if !s.isText() {
			continue
		}
		if texts++; index[0].depth == 0 && (u.kind == openai.KindChat || u.kind == openai.KindText) {
			index.ahead(s)
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

// keepShape keeps the event whose text begins at text without that text, and
// without what must not be said twice: other texts, and in the deltas of choices
// roles, ids and names, which clients put together piece by piece.
func (h *heldText) keepShape(event []byte, from, text int) {
	h.before, h.behind = h.before[:0], h.behind[:0]
	to := &h.before
	copied := 0
	for s := (stringScanner{b: event, at: from}); s.next(); {
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

// flush sends what is held and will not become a placeholder, each text in the
// shape of its last event.
func (u *unveiler) flush() {
	for i := range u.held {
		h := &u.held[i]
		if len(h.rest) == 0 {
			continue
		}
		u.out = append(append(append(u.out, h.before...), h.rest...), h.behind...)
		h.rest = h.rest[:0]
	}
}

// last returns what is still held when the stream ends without a word.
func (u *unveiler) last() []byte {
	u.out = u.out[:0]
	u.flush()
	return u.out
}

// slot finds the memory of a text, nil when there are too many.
func (u *unveiler) slot(s textSlot) *heldText {
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
