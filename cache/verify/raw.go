// Raw: a text cut into runs of letters, digits, single characters, signs and code.

package verify

import (
	"unicode"
	"unicode/utf8"
)

// A kind is the kind of a raw piece.
type kind uint8

const (
	letters   kind = iota // a run of letters
	digits                // a number, or its first part
	ideograph             // one character of a script without spaces
	sign                  // an operator
	code                  // an identifier, path, address, or text in backquotes
	stop                  // the end of a clause; not compared
)

// A raw is a piece of a text.
type raw struct {
	hash       uint64
	start, end int32 // in side.text
	kind       kind
	capital    bool // begins with a capital, but not because a sentence begins
	acronym    bool // two or more letters, capitals only
	glued      bool // no space before it
	first      bool // begins a sentence
	colon      bool // a stop that is a colon
	owns       bool // possessive: dog's
}

// scanner reads a text into a side.
type scanner struct {
	side  *side
	words *lexicon
	in    []byte
	at    int
	first bool // the next piece begins a sentence
	space bool // white space precedes the next piece
	quote int32
}

// scan fills s.raws from text.
func (s *side) scan(words *lexicon, text []byte) {
	*s = side{text: s.text[:0], raws: s.raws[:0], quotes: s.quotes[:0], words: s.words[:0], signs: s.signs[:0]}
	c := scanner{side: s, words: words, in: text, first: true, space: true, quote: -1}
	for c.at < len(text) {
		c.next()
	}
	s.shouted = s.letters >= 12 && s.capitals*10 > s.letters*7
	s.titled = s.isTitled(words)
	s.tongues.count(s.raws, words)
}

// next reads one piece.
func (c *scanner) next() {
	r, n := utf8.DecodeRune(c.in[c.at:])
	folded := c.words.simple.fold(r)
	switch {
	case r == '`':
		c.backquoted()
	case unicode.IsSpace(r):
		if r == '\n' {
			c.clause()
			c.first = true
		}
		c.space = true
		c.at += n
	case isIdeograph(folded):
		c.ideograph(folded)
		c.at += n
	case c.beginsCode():
		c.addCode(c.chunk())
	case '0' <= folded && folded <= '9':
		c.number()
	case unicode.IsLetter(folded):
		c.word()
	default:
		c.punctuation(folded)
		c.at += n
	}
}

func (c *scanner) add(p raw) {
	p.glued, p.first = !c.space, c.first
	p.hash = c.words.hash(c.side.text[p.start:p.end])
	c.side.raws = append(c.side.raws, p)
	c.space, c.first = false, false
}

func (c *scanner) addRune(r rune, k kind) {
	start := len(c.side.text)
	c.side.text = utf8.AppendRune(c.side.text, r)
	c.add(raw{start: int32(start), end: int32(len(c.side.text)), kind: k})
}

// ideograph adds a character, or the two characters that it abbreviates.
func (c *scanner) ideograph(r rune) {
	c.side.ideographs++
	switch r {
	case '啥':
		c.addRune('什', ideograph)
		r = '么'
	case '咋':
		c.addRune('怎', ideograph)
		r = '么'
	}
	c.addRune(r, ideograph)
}

// addWord adds a word that is not in the text in this form.
func (c *scanner) addWord(word string) {
	c.side.text = append(c.side.text, ' ')
	start := len(c.side.text)
	c.side.text = append(c.side.text, word...)
	c.add(raw{start: int32(start), end: int32(len(c.side.text)), kind: letters})
}

// clause ends a clause.
func (c *scanner) clause() {
	if n := len(c.side.raws); n > 0 && c.side.raws[n-1].kind != stop {
		c.side.raws = append(c.side.raws, raw{kind: stop})
	}
}

// word reads letters, and a contraction after them.
func (c *scanner) word() {
	begin := len(c.side.text)
	capitals, count := 0, 0
	var head bool
	for c.at < len(c.in) {
		r, n := utf8.DecodeRune(c.in[c.at:])
		f := c.words.simple.fold(r)
		if unicode.IsMark(r) && len(c.side.text) > begin {
			c.mark(r)
			c.at += n
			continue
		}
		if !unicode.IsLetter(f) || isIdeograph(f) {
			break
		}
		if unicode.IsUpper(r) {
			capitals++
			head = head || count == 0
		}
		count++
		c.at += n
		if to := c.composed(r); to != r {
			r, f = to, c.words.simple.fold(to)
		}
		if r|0x20 >= 0xe0 && r|0x20 <= 0xff {
			c.side.accents++
		}
		c.side.text = utf8.AppendRune(c.side.text, f)
	}
	if count == 1 {
		count, capitals = c.dotted(count, capitals)
	}
	c.side.letters += count
	c.side.capitals += capitals
	if c.at < len(c.in) && count <= 2 { // C++, C#
		for c.at < len(c.in) && (c.in[c.at] == '#' || c.in[c.at] == '+' && c.at+1 < len(c.in) && (c.in[c.at+1] == '+' || c.in[c.at-1] == '+')) {
			c.side.text = append(c.side.text, c.in[c.at])
			c.at++
		}
	}
	p := raw{start: int32(begin), end: int32(len(c.side.text)), kind: letters}
	p.capital = head && !c.first && !(count == 1 && c.side.text[begin] == 'i')
	p.acronym = count >= 2 && capitals == count
	if capitals > 0 && capitals < count && !(capitals == 1 && head) {
		c.side.oddCase++
	}
	c.apostrophe(p)
}

// dotted reads the rest of an abbreviation with points: U.S., p.m.
func (c *scanner) dotted(count, capitals int) (int, int) {
	for c.at+1 < len(c.in) && c.in[c.at] == '.' && isLetter(c.in[c.at+1]) && (c.at+2 == len(c.in) || !isLetter(c.in[c.at+2])) {
		b := c.in[c.at+1]
		if 'A' <= b && b <= 'Z' {
			capitals++
		}
		count++
		c.side.text = append(c.side.text, b|0x20)
		c.at += 2
	}
	if count > 1 && c.at < len(c.in) && c.in[c.at] == '.' && c.at+1 < len(c.in) {
		c.at++
	}
	return count, capitals
}

// number reads digits with their points and commas.
func (c *scanner) number() {
	begin := len(c.side.text)
	for c.at < len(c.in) {
		r, n := utf8.DecodeRune(c.in[c.at:])
		f := c.words.simple.fold(r)
		if f == ',' || f == '.' {
			if next, _ := utf8.DecodeRune(c.in[c.at+n:]); !isDigit(c.words.simple.fold(next)) || r == '。' || r == '、' {
				break
			}
			if f == ',' && !hasThousands(c.in[c.at+n:]) {
				break
			}
		} else if !isDigit(f) {
			break
		}
		if f != ',' {
			c.side.text = utf8.AppendRune(c.side.text, f)
		}
		c.at += n
	}
	c.add(raw{start: int32(begin), end: int32(len(c.side.text)), kind: digits})
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// hasThousands reports whether a text begins with exactly three digits.
func hasThousands(text []byte) bool {
	n := 0
	for n < len(text) && n < 4 && isDigit(rune(text[n])) {
		n++
	}
	return n == 3
}

// isTitled reports whether a text is written as a heading: function words have capitals where no
// sentence begins.
func (s *side) isTitled(words *lexicon) bool {
	for i := range s.raws {
		if p := &s.raws[i]; p.capital && !p.acronym && p.end-p.start > 1 && (words.isSmall(p.hash) || string(s.text[p.start:p.end]) == "to") {
			return true
		}
	}
	return false
}
