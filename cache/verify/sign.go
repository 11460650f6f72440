// Sign: operators, quotation marks, and the ends of clauses.

package verify

import (
	"unicode"
	"unicode/utf8"
)

// punctuation reads a sign: an operator, a quotation mark, the end of a clause.
func (c *scanner) punctuation(r rune) {
	if (r < utf8.RuneSelf || unicode.IsPunct(r)) && (c.at == 0 || rune(c.in[c.at-1]) != r) {
		c.side.marks++
	}
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
		if n := len(c.side.raws); n > 0 {
			c.side.raws[n-1].colon = r == ':'
		}
		c.first = c.first || r != ','
	case '+', '=', '<', '>', '^', '*', '%', '$', '€', '£', '¥', '₹', '√', '≠', '≤', '≥', '&', '|', '~', '/', '-':
		c.operator(r)
	default:
		c.unread(r)
	}
	c.space = true
}

// operator adds a sign if it has a meaning where it stands.
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
		if n := len(c.side.raws); space(before) && space(after) && (n == 0 || c.side.raws[n-1].kind != digits) {
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
	at := int32(len(c.side.raws))
	if c.quote < 0 {
		c.quote = at
		return
	}
	if at > c.quote && len(c.side.quotes) < maxQuotes {
		c.side.quotes = append(c.side.quotes, span{c.quote, at})
	}
	c.quote = -1
}

// closesSingle reports whether this apostrophe begins a quotation: a space stands before it, and
// a later apostrophe has none before it.
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
