// Matcher: many words looked for in one pass (Aho and Corasick 1975), over
// letters without case and with the borders of words as letters of their own.

package classify

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// A matcher is a finite automaton over bytes. Each border between a word and
// what is none is a symbol, so that a pattern asks for the borders it has: `cat`
// begins and ends with one and is not found in concatenate. Chinese, Japanese,
// Korean and Thai write no spaces: their letters have no borders.
type matcher struct {
	class   [256]uint8 // of a byte; 0: in no pattern
	classes int
	next    []int32 // [state*classes+class]: the state after it
	ends    []int32 // by state: 1 + the first pattern that ends here, 0: none
	shorter []int32 // by state: the longest proper suffix where a pattern ends, 0: none
	same    []int32 // by pattern: 1 + another pattern of equal letters, 0: none
	exact   bool    // case counts
}

const (
	wordBorder = 0xff    // a byte that UTF-8 does not have
	maxTable   = 4 << 20 // states times classes: 16 MiB
)

// newMatcher compiles the patterns.
func newMatcher(patterns []string, caseSensitive bool) (*matcher, error) {
	m := &matcher{exact: caseSensitive, classes: 1}
	var written [][]byte
	states := 1
	for _, p := range patterns {
		s := symbols{exact: caseSensitive}
		var w []byte
		s.feed([]byte(p), func(b byte) bool { w = append(w, b); return true })
		written = append(written, w)
		states += len(w)
		for _, b := range w {
			if m.class[b] == 0 {
				m.class[b] = uint8(m.classes)
				m.classes++
			}
		}
	}
	if m.classes > 255 || states*m.classes > maxTable {
		return nil, fmt.Errorf("its %d keywords are too long together", len(patterns))
	}
	m.next = make([]int32, m.classes, states*m.classes)
	m.ends = make([]int32, 1, states)
	m.same = make([]int32, len(patterns))
	for i, w := range written {
		m.add(w, int32(i))
	}
	m.link()
	return m, nil
}

// add grows the tree of patterns.
func (m *matcher) add(written []byte, pattern int32) {
	at := int32(0)
	for _, b := range written {
		edge := int(at)*m.classes + int(m.class[b])
		if m.next[edge] == 0 {
			m.next[edge] = int32(len(m.ends))
			m.next = append(m.next, make([]int32, m.classes)...)
			m.ends = append(m.ends, 0)
		}
		at = m.next[edge]
	}
	m.same[pattern] = m.ends[at]
	m.ends[at] = pattern + 1
}

// link makes an automaton of the tree: where there is no edge, that of the
// longest suffix.
func (m *matcher) link() {
	fail := make([]int32, len(m.ends))
	m.shorter = make([]int32, len(m.ends))
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for class := range m.classes {
			edge := int(at)*m.classes + class
			suffix := int32(0)
			if at != 0 {
				suffix = m.next[int(fail[at])*m.classes+class]
			}
			to := m.next[edge]
			if to == 0 {
				m.next[edge] = suffix
				continue
			}
			fail[to] = suffix
			if m.shorter[to] = suffix; m.ends[suffix] == 0 {
				m.shorter[to] = m.shorter[suffix]
			}
			queue = append(queue, to)
		}
	}
}

// search calls found with each pattern at each place where it ends, until
// found says stop. again false: a pattern that was found need not be told
// again, which keeps many nested patterns linear.
func (m *matcher) search(text []byte, again bool, seen func(int) bool, found func(int) bool) {
	s := symbols{exact: m.exact}
	state := int32(0)
	s.feed(text, func(b byte) bool {
		state = m.next[int(state)*m.classes+int(m.class[b])]
		at := state
		if m.ends[at] == 0 {
			at = m.shorter[at]
		}
		for ; at != 0; at = m.shorter[at] {
			first := int(m.ends[at]) - 1
			if !again && seen(first) {
				return true // and so are all shorter ones
			}
			for p := first; p >= 0; p = int(m.same[p]) - 1 {
				if !found(p) {
					return false
				}
			}
		}
		return true
	})
}

// symbols turn text into what a matcher reads: letters without case, runs of
// white space as one space, the borders of words.
type symbols struct {
	exact  bool
	inWord bool
	space  bool
}

// feed gives the symbols of the text to step, until it says stop.
func (s *symbols) feed(text []byte, step func(byte) bool) {
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			i++
			if !s.ascii(b, step) {
				return
			}
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n
		if !s.letter(r, step) {
			return
		}
	}
	if s.inWord {
		step(wordBorder)
	}
}

// ascii is letter for most letters, three times as fast.
func (s *symbols) ascii(b byte, step func(byte) bool) bool {
	switch {
	case byteClass[b]&(classLetter|classDigit) != 0 || b == '_':
		if !s.inWord {
			s.inWord, s.space = true, false
			if !step(wordBorder) {
				return false
			}
		}
		if !s.exact && 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		return step(b)
	case b == ' ' || '\t' <= b && b <= '\r':
		if s.space {
			return true
		}
		s.space, b = true, ' '
	default:
		s.space = false
	}
	if s.inWord {
		s.inWord = false
		if !step(wordBorder) {
			return false
		}
	}
	return step(b)
}

func (s *symbols) letter(r rune, step func(byte) bool) bool {
	if isSpace(r) {
		r = ' '
		if s.space {
			return true
		}
	}
	s.space = r == ' '
	if word := isWord(r); word != s.inWord {
		s.inWord = word
		if !step(wordBorder) {
			return false
		}
	}
	if !s.exact {
		r = caseless(r)
	}
	if r < utf8.RuneSelf {
		return step(byte(r))
	}
	var encoded [utf8.UTFMax]byte
	for _, b := range utf8.AppendRune(encoded[:0], r) {
		if !step(b) {
			return false
		}
	}
	return true
}

// caseless is one letter for all cases of a letter.
func caseless(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	if r == 'ſ' {
		return 's'
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

func isSpace(r rune) bool {
	return r == ' ' || '\t' <= r && r <= '\r' || r >= 0x80 && unicode.IsSpace(r)
}

// isWord says that words are made of this letter, and end where it does not
// stand.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return !unspaced(r) && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}

// unspaced says that this letter is of a script that writes no spaces.
func unspaced(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r < 0x1100:
		return r <= 0x0eff || 0x1000 <= r && r <= 0x109f // Thai, Lao; Myanmar
	case r < 0x2e80:
		return r <= 0x11ff || 0x1780 <= r && r <= 0x17ff // Hangul letters; Khmer
	}
	return r <= 0x9fff && r >= 0x3040 || 0xac00 <= r && r <= 0xd7ff ||
		0xf900 <= r && r <= 0xfaff || 0x20000 <= r && r <= 0x3ffff
}
