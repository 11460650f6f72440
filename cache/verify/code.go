// Code: identifiers, paths, addresses and text in backquotes are compared letter by letter.

package verify

import "bytes"

// maxChunk bounds a piece of code in bytes; a longer one is split.
const maxChunk = 128

// chunk returns the bytes up to the next white space or character beyond ASCII,
// without the punctuation of a sentence at its end.
func (c *scanner) chunk() []byte {
	in := c.in[c.at:]
	n := 0
	for n < min(len(in), maxChunk) && in[n] > ' ' && in[n] < 0x80 {
		n++
	}
	chunk := bytes.TrimRight(in[:n], ".,?!:;\"'")
	if bytes.HasSuffix(chunk, []byte(")")) && bytes.IndexByte(chunk, '(') < 0 {
		chunk = chunk[:len(chunk)-1]
	}
	return chunk
}

// beginsCode reports whether code follows: it has signs inside that no word of a language has.
func (c *scanner) beginsCode() bool {
	if c.at > 0 {
		if b := c.in[c.at-1]; b > ' ' && b < 0x80 && b != '(' && b != '"' && b != '\'' {
			return false
		}
	}
	b := c.in[c.at]
	if b <= ' ' || b >= 0x80 {
		return false
	}
	chunk := c.chunk()
	switch {
	case len(chunk) < 2:
		return false
	case bytes.HasPrefix(chunk, []byte("--")) && isLetter(chunk[len(chunk)-1]),
		chunk[0] == '-' && isLetter(chunk[1]),
		chunk[0] == '/' && isLetter(chunk[1]),
		chunk[0] == '$' && isLetter(chunk[1]),
		bytes.Contains(chunk, []byte("://")), bytes.Contains(chunk, []byte("::")),
		bytes.Contains(chunk, []byte("()")), bytes.Contains(chunk, []byte("->")):
		return true
	}
	for i := 1; i < len(chunk); i++ {
		inner := i+1 < len(chunk)
		switch chunk[i] {
		case '_', '@', '\\', '{', '[', '=', '<':
			if inner && (isLetter(chunk[i-1]) || isLetter(chunk[i+1])) {
				return true
			}
		case '(':
			if inner && isLetter(chunk[i-1]) && bytes.IndexByte(chunk[i:], ')') > 0 && !bytes.HasSuffix(chunk, []byte("(s)")) {
				return true
			}
		}
	}
	return false
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// addCode adds a piece of code as it is written.
func (c *scanner) addCode(chunk []byte) {
	start := len(c.side.text)
	c.side.text = append(c.side.text, chunk...)
	c.at += len(chunk)
	c.add(raw{start: int32(start), end: int32(len(c.side.text)), kind: code})
}

// backquoted reads text in backquotes, one piece for each part between white space, so that the
// same code with another layout is equal.
func (c *scanner) backquoted() {
	c.side.marks++
	fence := 1
	for c.at+fence < len(c.in) && c.in[c.at+fence] == '`' {
		fence++
	}
	c.at += fence
	end := bytes.IndexByte(c.in[c.at:], '`')
	if end < 0 {
		return
	}
	limit := c.at + end
	for c.at < limit {
		if c.in[c.at] <= ' ' {
			c.at++
			continue
		}
		n := 0
		for c.at+n < limit && c.in[c.at+n] > ' ' {
			n++
		}
		c.addCode(c.in[c.at : c.at+n])
	}
	for c.at < len(c.in) && c.in[c.at] == '`' {
		c.at++
	}
}

// codeDiffers refuses pairs whose code or arithmetic differs.
func codeDiffers(p *pair) bool {
	return p.a.hasUnmatched(isCode|operator) || p.b.hasUnmatched(isCode|operator)
}

// keywordDiffers refuses pairs in which function words name two different statements of a
// programming language: a for loop, a while loop.
func keywordDiffers(p *pair) bool {
	for i := range p.a.words {
		m := p.a.words[i].match
		if i == 0 || m < 1 || !p.a.isKeyword(i-1) || !p.b.isKeyword(int(m)-1) {
			continue
		}
		switch string(p.a.word(i)) {
		case "loop", "loops", "statement", "statements", "clause", "clauses", "keyword", "operator", "gate":
			return true
		}
	}
	return false
}

// isKeyword reports whether word i is a keyword of a programming language without a match on the
// other side.
func (s *side) isKeyword(i int) bool {
	if s.words[i].match >= 0 {
		return false
	}
	switch string(s.word(i)) {
	case "for", "while", "until", "do", "if", "else", "and", "or", "not", "in", "is", "with", "case", "where", "having", "switch":
		return true
	}
	return false
}
