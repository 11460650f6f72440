// Where each byte of a normalised text came from.

package tokenize

import (
	"bytes"
	"unicode/utf8"
)

// Span is a part of a text, in bytes: text[Start:End].
type Span struct{ Start, End uint32 }

// aligned is a text with the origin of each of its bytes in the original text. The bytes of one
// character have the same origin.
type aligned struct {
	text []byte
	from []Span // of each byte; nil: the text is an unchanged part of the original, which begins there at base
	base uint32
}

// at is the origin of a byte.
func (a *aligned) at(i int) Span {
	if a.from != nil {
		return a.from[i]
	}
	for !utf8.RuneStart(a.text[i]) {
		i--
	}
	start := a.base + uint32(i)
	return Span{start, start + uint32(runeSize(a.text[i]))}
}

// span is the origin of text[from:to], which is not empty.
func (a *aligned) span(from, to int) Span { return Span{a.at(from).Start, a.at(to - 1).End} }

func (a *aligned) cut(from, to int) aligned {
	if a.from == nil {
		return aligned{text: a.text[from:to], base: a.base + uint32(from)}
	}
	return aligned{text: a.text[from:to], from: a.from[from:to]}
}

// tracer makes a new text from an old one and notes the origin of its bytes, by the rules of the
// reference library (NormalizedString::transform): a character that replaces another has the
// origin of that one; an added character has the origin of the character before it in the old
// text. So the spans are the library's, even where they are strange.
type tracer struct {
	old  aligned
	done int // bytes of the old text that are done: copied, replaced or left out
	text []byte
	from []Span
}

// put appends a character. change 0: it replaces the next character of the old text; -n: it
// replaces that one and the n after it; 1: it is added.
func (t *tracer) put(r rune, change int) {
	var origin Span
	switch n := len(t.old.text); {
	case change > 0 && t.done == 0 || n == 0:
	case change > 0:
		origin = t.old.at(t.done - 1)
	default:
		origin = t.old.at(min(t.done, n-1))
		t.skip(1 - change)
	}
	size := len(t.text)
	t.text = utf8.AppendRune(t.text, r)
	for size = len(t.text) - size; size > 0; size-- {
		t.from = append(t.from, origin)
	}
}

// skip leaves out characters of the old text.
func (t *tracer) skip(n int) {
	for ; n > 0 && t.done < len(t.old.text); n-- {
		t.done += runeSize(t.old.text[t.done])
	}
}

// keep copies bytes of the old text unchanged; they must be whole characters.
func (t *tracer) keep(n int) {
	for i := t.done; i < t.done+n; i++ {
		t.from = append(t.from, t.old.at(i))
	}
	t.text = append(t.text, t.old.text[t.done:t.done+n]...)
	t.done += n
}

// rest is the part of the old text that is not done yet.
func (t *tracer) rest() []byte { return t.old.text[t.done:] }

// add appends a string that is not in the old text.
func (t *tracer) add(s []byte) {
	for _, r := range string(s) {
		t.put(r, 1)
	}
}

// prepend puts a string before the text, which is not empty. As in the library, it replaces the
// first character, and that character is then added again.
func (t *tracer) prepend(prefix []byte) {
	first, _ := decode(t.rest(), 0)
	for i, r := range string(prefix) {
		t.put(r, min(i, 1))
	}
	t.put(first, 1)
}

func (n prepending) trace(t *tracer, _ *scratch) {
	t.prepend(n.prefix)
	t.keep(len(t.rest()))
}

func (n replacing) trace(t *tracer, _ *scratch) {
	for {
		at := bytes.Index(t.rest(), n.from)
		if at < 0 {
			t.keep(len(t.rest()))
			return
		}
		t.keep(at)
		t.done += len(n.from)
		t.add(n.to)
	}
}

func (n collapsing) trace(t *tracer, _ *scratch) {
	for len(t.rest()) > 0 {
		from, to := spaceRun(t.rest())
		t.keep(from)
		if from < to {
			t.done += to - from
			t.add(n.to)
		}
	}
}

func (n lowering) trace(t *tracer, _ *scratch) {
	for len(t.rest()) > 0 {
		r, _ := decode(t.rest(), 0)
		to, ok := n.u.lower[r]
		if !ok {
			t.put(r, 0)
			continue
		}
		for i, r := range to {
			t.put(r, min(i, 1))
		}
	}
}

func (n cleaning) trace(t *tracer, _ *scratch) {
	for len(t.rest()) > 0 {
		r, _ := decode(t.rest(), 0)
		flags := n.u.bert.of(r)
		switch {
		case n.clean && flags&bertDropped != 0:
			t.skip(1)
		case n.clean && flags&bertBlank != 0:
			t.put(' ', 0)
		case n.chinese && chinese(r):
			t.put(' ', 0)
			t.put(r, 1)
			t.put(' ', 1)
		default:
			t.put(r, 0)
		}
	}
}

func (n dropping) trace(t *tracer, _ *scratch) {
	for len(t.rest()) > 0 {
		r, size := decode(t.rest(), 0)
		if n.u.bert.of(r)&n.flag != 0 {
			t.done += size
		} else {
			t.keep(size)
		}
	}
}

func (n stripping) trace(t *tracer, _ *scratch) {
	from, to := n.inner(t.rest())
	t.done += from
	t.keep(to - from)
}

func (n normalForm) trace(t *tracer, s *scratch) { n.u.trace(t, n.form, n.composes, s) }

// trace does what nfc and nfd do. An ASCII character ends what stands before it, because it
// composes with nothing before it.
func (u *unicodeTables) trace(t *tracer, form form, compose bool, s *scratch) {
	for len(t.rest()) > 0 {
		rest := t.rest()
		ascii := 0
		for ascii < len(rest) && rest[ascii] < utf8.RuneSelf {
			ascii++
		}
		if ascii < len(rest) && ascii > 0 {
			ascii-- // what follows may compose with the last ASCII character
		}
		t.keep(ascii)
		if rest = rest[ascii:]; len(rest) == 0 {
			break
		}
		end := runeSize(rest[0])
		for end < len(rest) && rest[end] >= utf8.RuneSelf {
			end++
		}
		s.runes = u.tracedRunes(s.runes[:0], rest[:end], form)
		all := s.runes
		if compose {
			all = u.composed(all)
		}
		stop := t.done + end
		for _, c := range all {
			t.put(c.r, int(c.change))
		}
		t.done = stop
	}
}

// tracedRunes is decomposed, and notes which code points were added.
func (u *unicodeTables) tracedRunes(dst []ranked, s []byte, form form) []ranked {
	for i := 0; i < len(s); {
		r, n := decode(s, i)
		i += n
		start := len(dst)
		if to, ok := u.compat[r]; ok && form == compatible {
			for _, c := range to {
				dst = append(dst, ranked{r: c, rank: u.combining[c]})
			}
		} else {
			dst = u.decomposedRune(dst, r)
		}
		for j := start + 1; j < len(dst); j++ {
			dst[j].change = 1
		}
	}
	ordered(dst)
	return dst
}

func (m *charsmap) trace(t *tracer, s *scratch) {
	all, text := s.runes[:0], t.rest()
	for i := 0; i < len(text); {
		end := m.u.cluster(text, i)
		if end-i < longCluster {
			if v, ok := m.find(text[i:end]); ok {
				all = appendChange(all, text[i:end], m.text(v))
				i = end
				continue
			}
		}
		for i < end {
			r, size := decode(text, i)
			if v, ok := m.find(text[i : i+size]); ok {
				all = appendChange(all, text[i:i+size], m.text(v))
			} else {
				all = append(all, ranked{r: r})
			}
			i += size
		}
	}
	s.runes = all
	for _, c := range all {
		t.put(c.r, int(c.change))
	}
}

// appendChange appends what becomes of a key. What it has more than the key was added; what it has
// less went with the character before, or, at the beginning of a text, unnoticed, as in the
// library.
func appendChange(dst []ranked, key, value []byte) []ranked {
	start := len(dst)
	for _, r := range string(value) {
		dst = append(dst, ranked{r: r})
	}
	more := len(dst) - start - runesOf(key)
	for i := len(dst) - 1; more > 0 && i >= start; i, more = i-1, more-1 {
		dst[i].change = 1
	}
	if more < 0 && len(dst) > 0 {
		dst[len(dst)-1].change += int32(more)
	}
	return dst
}

// trace does what metaspace.append does, and keeps origins.
func (m *metaspace) trace(t *tracer, first bool) {
	if m.prepends(t.rest(), first) {
		t.prepend(m.mark)
	}
	replacing{[]byte{' '}, m.mark}.trace(t, nil)
}
