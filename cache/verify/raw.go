// Raw: a text cut at what anybody can see: letters, digits, characters, signs, code.
package verify

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A kind is what a raw piece is written in.
type kind uint8

const (
	letters   kind = iota // a run of letters
	digits                // a number, or the first part of one
	ideograph             // one character of a script without spaces
	sign                  // an operator
	code                  // an identifier, path, address, or text in backquotes
	stop                  // the end of a clause: nothing to compare
)

// A raw is a piece of a text.
type raw struct {
	hash       uint64
	start, end int32 // in side.text
	kind       kind
	capital    bool // begins with a capital, and not because a sentence does
	acronym    bool // two or more letters, capitals only
	glued      bool // no space before it
	first      bool // begins a sentence
	colon      bool // a stop, and what it announces follows
	owns       bool // what follows is this one's: dog's
}

// A side is one text of a pair. Its slices grow to the text's size, and are
// reused.
type side struct {
	text   []byte // folded, contractions written out
	raws   []raw
	quotes []span // of raws, between quotation marks
	words  []word

	letters, capitals, ideographs int // counted characters
	titled                        bool
	shouted                       bool
	form                          form   // of question
	bare                          bool   // it is a "what" alone
	languages                     [8]int // function words of each
	numbers                       int
}

// A span is the raws from from to to.
type span struct{ from, to int32 }

// maxQuotes bounds the quotations of a text that are compared.
const maxQuotes = 16

// scanner reads a text into a side.
type scanner struct {
	*side
	words *lexicon
	in    []byte
	at    int
	first bool // what comes begins a sentence
	space bool // white space came before
	quote int32
}

// scan fills s.raws from text.
func (s *side) scan(words *lexicon, text []byte) {
	*s = side{text: s.text[:0], raws: s.raws[:0], quotes: s.quotes[:0], words: s.words[:0]}
	c := scanner{side: s, words: words, in: text, first: true, space: true, quote: -1}
	for c.at < len(text) {
		c.next()
	}
	s.shouted = s.letters >= 12 && s.capitals*10 > s.letters*7
	s.titled = s.isTitled(words)
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
	p.hash = c.words.hash(c.text[p.start:p.end])
	c.raws = append(c.raws, p)
	c.space, c.first = false, false
}

func (c *scanner) addRune(r rune, k kind) {
	start := len(c.text)
	c.text = utf8.AppendRune(c.text, r)
	c.add(raw{start: int32(start), end: int32(len(c.text)), kind: k})
}

// ideograph adds a character, or the two that it is short for.
func (c *scanner) ideograph(r rune) {
	c.ideographs++
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

// addWord adds a word that the text does not hold as such.
func (c *scanner) addWord(word string) {
	c.text = append(c.text, ' ')
	start := len(c.text)
	c.text = append(c.text, word...)
	c.add(raw{start: int32(start), end: int32(len(c.text)), kind: letters})
}

// clause ends a clause.
func (c *scanner) clause() {
	if n := len(c.raws); n > 0 && c.raws[n-1].kind != stop {
		c.raws = append(c.raws, raw{kind: stop})
	}
}

// word reads letters, and what an apostrophe adds to them.
func (c *scanner) word() {
	begin := len(c.text)
	capitals, count := 0, 0
	var head bool
	for c.at < len(c.in) {
		r, n := utf8.DecodeRune(c.in[c.at:])
		f := c.words.simple.fold(r)
		if unicode.Is(unicode.Mn, r) {
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
		c.text = utf8.AppendRune(c.text, f)
		c.at += n
	}
	if count == 1 {
		count, capitals = c.dotted(count, capitals)
	}
	c.letters += count
	c.capitals += capitals
	if c.at < len(c.in) && count <= 2 { // C++, C#
		for c.at < len(c.in) && (c.in[c.at] == '#' || c.in[c.at] == '+' && c.at+1 < len(c.in) && (c.in[c.at+1] == '+' || c.in[c.at-1] == '+')) {
			c.text = append(c.text, c.in[c.at])
			c.at++
		}
	}
	p := raw{start: int32(begin), end: int32(len(c.text)), kind: letters}
	p.capital = head && !c.first && !(count == 1 && c.text[begin] == 'i')
	p.acronym = count >= 2 && capitals == count
	c.apostrophe(p)
}

// dotted reads on in an abbreviation whose letters have points: U.S., p.m.
func (c *scanner) dotted(count, capitals int) (int, int) {
	for c.at+1 < len(c.in) && c.in[c.at] == '.' && isLetter(c.in[c.at+1]) && (c.at+2 == len(c.in) || !isLetter(c.in[c.at+2])) {
		b := c.in[c.at+1]
		if 'A' <= b && b <= 'Z' {
			capitals++
		}
		count++
		c.text = append(c.text, b|0x20)
		c.at += 2
	}
	if count > 1 && c.at < len(c.in) && c.in[c.at] == '.' && c.at+1 < len(c.in) {
		c.at++
	}
	return count, capitals
}

// apostrophe adds the word, and the one that it was contracted with.
func (c *scanner) apostrophe(p raw) {
	tail := c.afterApostrophe()
	c.at += tail.taken
	text := c.text[p.start:p.end]
	if tail.taken == 0 {
		c.add(p)
		return
	}
	switch tail.kind {
	case 't':
		if n := len(text); n > 1 && text[n-1] == 'n' && string(text) != "can" {
			p.end--
		}
		c.add(p)
		c.addWord("not")
	case 's':
		is := c.words.contracts[string(text)]
		p.owns = !is
		c.add(p)
		if is {
			c.addWord("is")
		}
	case 'r':
		c.add(p)
		c.addWord("are")
	case 'v':
		c.add(p)
		c.addWord("have")
	case 'l':
		c.add(p)
		c.addWord("will")
	case 'd':
		c.add(p)
		c.addWord("would")
	case 'm':
		c.add(p)
		c.addWord("am")
	}
}

// contraction is what follows an apostrophe: its kind, and its bytes with it.
type contraction struct {
	kind  byte
	taken int
}

var contractions = [...]struct {
	text string
	kind byte
}{{"re", 'r'}, {"ve", 'v'}, {"ll", 'l'}, {"t", 't'}, {"s", 's'}, {"d", 'd'}, {"m", 'm'}}

// afterApostrophe looks at what follows a word.
func (c *scanner) afterApostrophe() contraction {
	r, n := utf8.DecodeRune(c.in[c.at:])
	if r == '`' || r != '\'' && folded(r) != '\'' {
		return contraction{}
	}
	rest := c.in[c.at+n:]
	for _, t := range contractions {
		if k := len(t.text); len(rest) >= k && bytes.EqualFold(rest[:k], []byte(t.text)) {
			if after, _ := utf8.DecodeRune(rest[k:]); len(rest) == k || !unicode.IsLetter(after) {
				return contraction{t.kind, n + k}
			}
		}
	}
	return contraction{}
}

// number reads digits with their points and commas.
func (c *scanner) number() {
	begin := len(c.text)
	for c.at < len(c.in) {
		r, n := utf8.DecodeRune(c.in[c.at:])
		f := c.words.simple.fold(r)
		if f == ',' || f == '.' {
			if next, _ := utf8.DecodeRune(c.in[c.at+n:]); !isDigit(c.words.simple.fold(next)) || r == '。' || r == '、' {
				break
			}
			if f == ',' && !c.thousands(c.at+n) {
				break
			}
		} else if !isDigit(f) {
			break
		}
		if f != ',' {
			c.text = utf8.AppendRune(c.text, f)
		}
		c.at += n
	}
	c.add(raw{start: int32(begin), end: int32(len(c.text)), kind: digits})
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// thousands says whether exactly three digits begin at place at.
func (c *scanner) thousands(at int) bool {
	n := 0
	for at+n < len(c.in) && n < 4 && isDigit(rune(c.in[at+n])) {
		n++
	}
	return n == 3
}

// punctuation reads a sign: an operator, a quotation mark, the end of a clause.
func (c *scanner) punctuation(r rune) {
	switch r {
	case '"':
		if c.at+1 < len(c.in) && c.in[c.at] == '"' && c.in[c.at+1] == '"' { // doubled, as in CSV
			c.at++
		}
		c.quotation()
	case '\'':
		if c.quote >= 0 || c.closesSingle() {
			c.quotation()
		}
	case '℃':
		c.addWord("celsius")
	case '℉':
		c.addWord("fahrenheit")
	case '°':
		c.addWord("degrees")
	case '.', '!', '?', ';', ':', ',':
		if r == '!' && c.at+1 < len(c.in) && c.in[c.at+1] == '=' {
			c.addRune(r, sign)
			return
		}
		c.clause()
		if n := len(c.raws); n > 0 {
			c.raws[n-1].colon = r == ':'
		}
		c.first = c.first || r != ','
	case '+', '=', '<', '>', '^', '*', '%', '$', '€', '£', '¥', '₹', '√', '≠', '≤', '≥', '&', '|', '~', '/', '-':
		c.operator(r)
	}
	c.space = true
}

// operator adds a sign where it means something.
func (c *scanner) operator(r rune) {
	before, after := byte(' '), byte(' ')
	if c.at > 0 {
		before = c.in[c.at-1]
	}
	if c.at+1 < len(c.in) {
		after = c.in[c.at+1]
	}
	space := func(b byte) bool { return b == ' ' || b == '\n' || b == '\t' }
	digit := func(b byte) bool { return isDigit(rune(b)) }
	switch r {
	case '-':
		if n := len(c.raws); space(before) && space(after) && (n == 0 || c.raws[n-1].kind != digits) {
			return
		}
		if !(digit(after) && (space(before) || before == '(')) && !(space(before) && space(after) && !c.first) {
			return
		}
	case '/':
		if !digit(after) && !space(after) && !digit(before) {
			return
		}
	case '*', '+', '>':
		if r == '+' && isLetter(before) && !isLetter(after) && !digit(after) { // Disney+
			c.addWord("plus")
			return
		}
		if c.first && space(after) || r == '*' && (before == '*' || after == '*') { // a list, or bold
			return
		}
	case '&':
		c.addWord("and")
		return
	}
	c.addRune(r, sign)
}

// quotation begins or ends a quotation.
func (c *scanner) quotation() {
	at := int32(len(c.raws))
	if c.quote < 0 {
		c.quote = at
		return
	}
	if at > c.quote && len(c.quotes) < maxQuotes {
		c.quotes = append(c.quotes, span{c.quote, at})
	}
	c.quote = -1
}

// closesSingle says whether the apostrophe at hand begins a quotation: a space
// before it, and another one with none before it later.
func (c *scanner) closesSingle() bool {
	if !c.space {
		return false
	}
	rest := c.in[c.at+1 : min(len(c.in), c.at+200)]
	for i := 1; i < len(rest); i++ {
		if rest[i] == '\'' && rest[i-1] != ' ' && (i+1 == len(rest) || !unicode.IsLetter(rune(rest[i+1]))) {
			return true
		}
	}
	return false
}

// isTitled says whether a text is written as a heading: small words have
// capitals where no sentence begins.
func (s *side) isTitled(words *lexicon) bool {
	for i := range s.raws {
		if p := &s.raws[i]; p.capital && !p.acronym && p.end-p.start > 1 && (words.isSmall(p.hash) || string(s.text[p.start:p.end]) == "to") {
			return true
		}
	}
	return false
}
