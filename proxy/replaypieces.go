// Pieces: an answer's text in the pieces that a stream brings it in.
package proxy

import "unicode/utf8"

const (
	// maxPieces is about how many pieces a text comes in at most: those of a
	// longer one are put together, so that a stream is not a hundred times as
	// long as its text.
	maxPieces = 2048

	// wordLimit is the longest piece of a text whose pieces nobody knows, in
	// bytes: about what tokens come to.
	wordLimit = 16
)

// textPieces go over a text from piece to piece. Together they are the text, byte
// for byte, and none begins or ends within a character.
type textPieces struct {
	text  []byte
	ends  []int32 // where the worker's own pieces end; nil: words
	at    int
	least int // of the bytes of a piece, but the last
}

func newPieces(text []byte, ends []int32) textPieces {
	return textPieces{text: text, ends: ends, least: len(text) / maxPieces}
}

func (p *textPieces) more() bool { return p.at < len(p.text) }

// next returns the next piece. There must be more.
func (p *textPieces) next() []byte {
	start := p.at
	for p.more() && (p.at == start || p.at-start < p.least) {
		p.at = p.end()
	}
	return p.text[start:p.at]
}

// end is where the piece that begins at at ends. The ends are taken for what
// they say only where they can be.
func (p *textPieces) end() int {
	for len(p.ends) > 0 {
		end := int(p.ends[0])
		p.ends = p.ends[1:]
		if end > p.at && end <= len(p.text) && (end == len(p.text) || utf8.RuneStart(p.text[end])) {
			return end
		}
	}
	return p.word()
}

// word is where a word ends, the spaces before it included as in tokens, or a
// run of line ends, or a part of a long word.
func (p *textPieces) word() int {
	rest := p.text[p.at:]
	i := 0
	for i < len(rest) && rest[i] == '\n' {
		i++
	}
	if i > 0 {
		return p.at + i
	}
	for i < len(rest) && (rest[i] == ' ' || rest[i] == '\t') {
		i++
	}
	for letters := i; i < len(rest) && rest[i] != ' ' && rest[i] != '\n' && rest[i] != '\t' && i-letters < wordLimit; {
		_, n := utf8.DecodeRune(rest[i:])
		i += n
	}
	return p.at + i
}
