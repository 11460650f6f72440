// Normalising: what happens to a text before it is cut into words.

package tokenize

import (
	"bytes"
	"unicode/utf8"
)

// A normaliser appends what a text becomes to dst. The text is valid UTF-8, and so is the result.
type normaliser interface {
	append(dst, text []byte, s *scratch) []byte
	// keeps reports whether the text stays unchanged. Callers ask it first, to save the copy.
	keeps(text []byte) bool
	// trace does the same as append, for a text that changes, and notes where each character came
	// from.
	trace(t *tracer, s *scratch)
}

// prepending puts a string before a text that is not empty.
type prepending struct{ prefix []byte }

func (n prepending) keeps(text []byte) bool { return len(text) == 0 }

func (n prepending) append(dst, text []byte, _ *scratch) []byte {
	return append(append(dst, n.prefix...), text...)
}

// replacing puts one string for another.
type replacing struct{ from, to []byte }

func (n replacing) keeps(text []byte) bool { return !bytes.Contains(text, n.from) }

func (n replacing) append(dst, text []byte, _ *scratch) []byte {
	for {
		at := bytes.Index(text, n.from)
		if at < 0 {
			return append(dst, text...)
		}
		dst = append(append(dst, text[:at]...), n.to...)
		text = text[at+len(n.from):]
	}
}

type lowering struct{ u *unicodeTables }

func (n lowering) keeps([]byte) bool { return false }

func (n lowering) append(dst, text []byte, _ *scratch) []byte {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := decode(text, i)
		if to, ok := n.u.lower[r]; ok {
			dst = append(dst, to...)
		} else {
			dst = append(dst, text[i:i+size]...)
		}
		i += size
	}
	return dst
}

// cleaning is BertNormalizer's first half: control characters go, white space becomes a space, and
// Chinese characters get spaces around them.
type cleaning struct {
	u              *unicodeTables
	clean, chinese bool
}

func (n cleaning) keeps([]byte) bool { return false }

func (n cleaning) append(dst, text []byte, _ *scratch) []byte {
	for i := 0; i < len(text); {
		r, size := decode(text, i)
		char := text[i : i+size]
		i += size
		if n.clean {
			flags := n.u.bert.of(r)
			if flags&bertDropped != 0 {
				continue
			}
			if flags&bertBlank != 0 {
				dst = append(dst, ' ')
				continue
			}
		}
		if n.chinese && r >= 0x3400 && chinese(r) {
			dst = append(append(append(dst, ' '), char...), ' ')
			continue
		}
		dst = append(dst, char...)
	}
	return dst
}

// chinese has the reference library's ranges, with its mistake: one begins at 2B920 instead of
// 2B820.
func chinese(r rune) bool {
	switch {
	case r >= 0x4e00 && r <= 0x9fff, r >= 0x3400 && r <= 0x4dbf, r >= 0x20000 && r <= 0x2a6df,
		r >= 0x2a700 && r <= 0x2b73f, r >= 0x2b740 && r <= 0x2b81f, r >= 0x2b920 && r <= 0x2ceaf,
		r >= 0xf900 && r <= 0xfaff, r >= 0x2f800 && r <= 0x2fa1f:
		return true
	}
	return false
}

// dropping removes the characters with a flag of unicodeTables.bert: accents.
type dropping struct {
	u    *unicodeTables
	flag uint8
}

func (n dropping) keeps(text []byte) bool {
	for i := 0; i < len(text); {
		r, size := decode(text, i)
		if n.u.bert.of(r)&n.flag != 0 {
			return false
		}
		i += size
	}
	return true
}

func (n dropping) append(dst, text []byte, _ *scratch) []byte {
	for i := 0; i < len(text); {
		r, size := decode(text, i)
		if n.u.bert.of(r)&n.flag == 0 {
			dst = append(dst, text[i:i+size]...)
		}
		i += size
	}
	return dst
}

// stripping takes white space off the ends.
type stripping struct {
	u           *unicodeTables
	left, right bool
}

// inner is what is left: text[from:to].
func (n stripping) inner(text []byte) (from, to int) {
	to = len(text)
	for n.left && from < to {
		r, size := decode(text, from)
		if n.u.bert.of(r)&bertWhite == 0 {
			break
		}
		from += size
	}
	for n.right && to > from {
		r, size := utf8.DecodeLastRune(text[from:to])
		if n.u.bert.of(r)&bertWhite == 0 {
			break
		}
		to -= size
	}
	return from, to
}

func (n stripping) keeps(text []byte) bool {
	from, to := n.inner(text)
	return to-from == len(text)
}

func (n stripping) append(dst, text []byte, _ *scratch) []byte {
	from, to := n.inner(text)
	return append(dst, text[from:to]...)
}

// collapsing puts a string for two spaces or more: Replace with the pattern " {2,}".
type collapsing struct{ to []byte }

// spaceRun is the first run of two spaces or more: s[from:to]; both are len(s) where there is none.
func spaceRun(s []byte) (from, to int) {
	from = bytes.Index(s, []byte("  "))
	if from < 0 {
		return len(s), len(s)
	}
	for to = from + 2; to < len(s) && s[to] == ' '; {
		to++
	}
	return from, to
}

func (n collapsing) keeps(text []byte) bool {
	from, _ := spaceRun(text)
	return from == len(text)
}

func (n collapsing) append(dst, text []byte, _ *scratch) []byte {
	for len(text) > 0 {
		from, to := spaceRun(text)
		dst = append(dst, text[:from]...)
		if from < to {
			dst = append(dst, n.to...)
		}
		text = text[to:]
	}
	return dst
}

// metaspace is the pre-tokenizer that writes spaces as another character, and puts one before a text
// that has none there.
type metaspace struct {
	mark    []byte
	prepend string // "always", "first" or "never"
}

// append has one argument more than a normaliser's: first says whether the piece begins the whole
// text.
func (m *metaspace) append(dst, text []byte, first bool) []byte {
	if m.prepends(text, first) {
		dst = append(dst, m.mark...)
	}
	return replacing{[]byte{' '}, m.mark}.append(dst, text, nil)
}

// prepends says whether a text that is not empty gets a mark before it.
func (m *metaspace) prepends(text []byte, first bool) bool {
	return (m.prepend == "always" || m.prepend == "first" && first) && text[0] != ' ' && !bytes.HasPrefix(text, m.mark)
}

// appendValid appends text and replaces each maximal part of a broken sequence by U+FFFD, as
// Python does with errors="replace": The Unicode Standard, section 3.9, table 3-8.
func appendValid(dst, text []byte) []byte {
	for len(text) > 0 {
		n, broken := validSize(text)
		if broken {
			dst = append(dst, "\ufffd"...)
		} else {
			dst = append(dst, text[:n]...)
		}
		text = text[n:]
	}
	return dst
}

// validSize is the bytes of the first character of a text, or of the broken sequence that counts as
// one.
func validSize(text []byte) (n int, broken bool) {
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError && n == 1 {
		return brokenSize(text), true
	}
	return n, false
}

// brokenSize returns how many bytes of a broken sequence count as one: as many as could begin a
// valid character.
func brokenSize(s []byte) int {
	low, high, size := byte(0x80), byte(0xbf), 0
	switch c := s[0]; {
	case c >= 0xe0 && c <= 0xef:
		size = 3
	case c >= 0xf0 && c <= 0xf4:
		size = 4
	default:
		return 1
	}
	switch s[0] {
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for n < size && n < len(s) && s[n] >= low && s[n] <= high {
		n, low, high = n+1, 0x80, 0xbf
	}
	return n
}
