// ngram.go: hashed features of a text's words and letters, what the linear heads look at.

package model

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

const (
	// NgramBuckets is how many weights a linear head has per class.
	NgramBuckets = 1 << 18
	// maxNgrams bounds the distinct features of one text; what comes after is not looked at.
	maxNgrams  = 12 << 10
	ngramSlots = 32 << 10 // open addressing, at most 3/8 full
	maxWord    = 48       // letters of one word that are cut into n-grams
)

// The kinds of features; each starts its hash from another value.
const (
	kindWord   = 0x9E3779B97F4A7C15
	kindPair   = 0xC2B2AE3D27D4EB4F
	kindLetter = 0x165667B19E3779F9
	kindMark   = 0x27D4EB2F165667C5
)

// Ngrams collects the distinct features of one text. It is used again for the next text without
// being cleared: a slot counts only if it carries the present round.
type Ngrams struct {
	slots [ngramSlots]uint32 // round << 18 | feature
	round uint32
	list  []uint32
	of    []byte // the text of list, if it is short: the next question is often about the same
}

// maxAgain is how many bytes of a text are kept to know it again.
const maxAgain = 1 << 10

// Collect returns the distinct features of text, each below NgramBuckets, in the order of their
// first appearance. They are, over lower-cased letters:
//
//   - words (runs of letters and digits; each Chinese, Japanese or Korean character is a word),
//   - pairs of neighbouring words, whatever stands between them,
//   - triples of neighbouring CJK characters,
//   - runs of 3, 4 and 5 letters within a word and its two borders,
//   - runs of other marks ("###", "():", "?").
//
// The list is valid until the next call. Time is linear in text; memory is fixed.
func (g *Ngrams) Collect(text []byte) []uint32 {
	if len(text) > 0 && bytes.Equal(text, g.of) {
		return g.list
	}
	g.begin()
	if g.of = g.of[:0]; len(text) <= maxAgain {
		g.of = append(g.of, text...)
	}
	var word [maxWord + 2]rune // with a border before and after
	var prev, prev2 uint64     // hashes of the words before; 0: none
	for i := 0; i < len(text) && len(g.list) < maxNgrams-4*maxWord; {
		r, size := lowerAt(text, i)
		switch {
		case isIdeograph(r):
			h := step(kindWord, r)
			g.add(h)
			if prev != 0 {
				g.add(pair(prev, h))
				if prev2 != 0 {
					g.add(pair(prev2, pair(prev, h)))
				}
			}
			prev2, prev = prev, h
			i += size
		case isLetter(r):
			word[0] = '_'
			n, h := 1, uint64(kindWord)
			for isLetter(r) && !isIdeograph(r) {
				h = step(h, r)
				if n <= maxWord {
					word[n] = r
					n++
				}
				if i += size; i >= len(text) {
					break
				}
				r, size = lowerAt(text, i)
			}
			word[n] = '_'
			g.add(h)
			if prev != 0 {
				g.add(pair(prev, h))
			}
			prev2, prev = 0, h
			g.letters(word[:n+1])
		case r <= ' ' || unicode.IsSpace(r):
			i += size
		default:
			h := uint64(kindMark)
			for n := 0; isMark(r); n++ {
				if n < 4 { // "-----" of any length is one feature
					h = step(h, r)
				}
				if i += size; i >= len(text) {
					break
				}
				r, size = lowerAt(text, i)
			}
			g.add(h)
		}
	}
	return g.list
}

func (g *Ngrams) begin() {
	if g.list == nil {
		g.list = make([]uint32, 0, maxNgrams)
		g.of = make([]byte, 0, maxAgain)
	}
	g.list = g.list[:0]
	g.round++
	if g.round == 1<<14 {
		g.slots = [ngramSlots]uint32{}
		g.round = 1
	}
}

// letters adds the runs of 3, 4 and 5 of a word with its borders; the whole word is already in.
func (g *Ngrams) letters(word []rune) {
	for i := 0; i+3 <= len(word); i++ {
		h := step(step(kindLetter, word[i]), word[i+1])
		for j := i + 2; j < len(word) && j < i+5; j++ {
			h = step(h, word[j])
			g.add(h)
		}
	}
}

// add notes the feature of a hash unless it is there already. Its slot follows from the feature
// alone: two hashes may have one feature.
func (g *Ngrams) add(h uint64) {
	h ^= h >> 32
	f := uint32(h) & (NgramBuckets - 1)
	mark := g.round<<18 | f
	for at := f & (ngramSlots - 1); ; at = (at + 1) & (ngramSlots - 1) {
		switch s := g.slots[at]; {
		case s == mark:
			return
		case s>>18 != g.round:
			g.slots[at] = mark
			g.list = append(g.list, f)
			return
		}
	}
}

// step takes one more character into a hash; pair joins two hashes, the order matters.
func step(h uint64, r rune) uint64 {
	h = (h ^ uint64(r)) * 0x9FB21C651E98DF25
	return h ^ h>>28
}

func pair(a, b uint64) uint64 {
	h := (a*3 ^ b ^ kindPair) * 0x9FB21C651E98DF25
	return h ^ h>>28
}

// lowerAt decodes the character at i in lower case; a byte that is not UTF-8 counts as a blank.
func lowerAt(text []byte, i int) (rune, int) {
	if b := text[i]; b < utf8.RuneSelf {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		return rune(b), 1
	}
	r, size := utf8.DecodeRune(text[i:])
	if r == utf8.RuneError {
		return ' ', size
	}
	return unicode.ToLower(r), size
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N)
}

func isMark(r rune) bool { return r > ' ' && !isLetter(r) && !unicode.IsSpace(r) }

// isIdeograph holds for characters written without blanks between words: Han, kana; Hangul is
// written in words, yet its syllables carry what letters carry elsewhere, so it is cut up too.
func isIdeograph(r rune) bool {
	return r >= 0x2E80 && (r >= 0x4E00 && r <= 0x9FFF || r >= 0x3040 && r <= 0x30FF ||
		r >= 0x3400 && r <= 0x4DBF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x20000 && r <= 0x323AF)
}
