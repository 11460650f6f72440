// Contraction: the letters that an apostrophe replaces: isn't means is not, what's means what is.

package verify

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// apostrophe adds the word and the word that is contracted with it.
func (c *scanner) apostrophe(p raw) {
	tail := contractionAt(c.in[c.at:])
	c.at += tail.taken
	text := c.side.text[p.start:p.end]
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

// contraction is the part of a word from its apostrophe on: its kind, and its bytes with the
// apostrophe.
type contraction struct {
	kind  byte
	taken int
}

var contractions = [...]struct {
	text string
	kind byte
}{{"re", 'r'}, {"ve", 'v'}, {"ll", 'l'}, {"t", 't'}, {"s", 's'}, {"d", 'd'}, {"m", 'm'}}

// contractionAt reads the contraction that follows a word, if any.
func contractionAt(text []byte) contraction {
	r, n := utf8.DecodeRune(text)
	if r == '`' || r != '\'' && folded(r) != '\'' {
		return contraction{}
	}
	rest := text[n:]
	for _, t := range contractions {
		if k := len(t.text); len(rest) >= k && bytes.EqualFold(rest[:k], []byte(t.text)) {
			if after, _ := utf8.DecodeRune(rest[k:]); len(rest) == k || !unicode.IsLetter(after) {
				return contraction{t.kind, n + k}
			}
		}
	}
	return contraction{}
}
