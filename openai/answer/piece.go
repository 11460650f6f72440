// Pieces: an answer's text in the pieces that a stream brings it in.

package answer

import "unicode/utf8"

const (
	// maxPieces is about how many pieces a text comes in at most. Those of a longer text are put
	// together: its stream would be a hundred times as long as the text.
	maxPieces = 2048

	// wordLimit is the longest piece, in bytes, of a text that came whole: about what tokens come to.
	wordLimit = 16
)

// Pieces go over a text from piece to piece. Together they are the text, byte
// for byte, and none begins or ends within a character.
//
//	for p := answer.PiecesOf(a.Text, a.Pieces, 0); p.More(); {
//		events = replay.Say(events, p.Next())
//	}
type Pieces struct {
	text  []byte
	ends  []int32 // where the worker's own pieces end
	at    int     // where the next piece begins
	least int     // bytes that a piece must have, but the last
}

// PiecesOf are the pieces of text from the byte at from on. ends are where the
// worker's own pieces end, those before from left out or not; nil: the pieces
// are words.
func PiecesOf(text []byte, ends []int32, from int) Pieces {
	return Pieces{text: text, ends: ends, at: from, least: len(text) / maxPieces}
}

// More says whether there is a next piece.
func (p *Pieces) More() bool { return p.at < len(p.text) }

// Next returns the next piece. There must be one. It is a sub-slice of the text.
func (p *Pieces) Next() []byte {
	start := p.at
	for p.More() && (p.at == start || p.at-start < p.least) {
		p.at = p.pieceEnd()
	}
	return p.text[start:p.at]
}

// pieceEnd is where the piece that begins at p.at ends. An end of the worker's
// that cannot be one is passed over: it is not behind p.at, or within a
// character.
func (p *Pieces) pieceEnd() int {
	for len(p.ends) > 0 {
		end := int(p.ends[0])
		p.ends = p.ends[1:]
		if end > p.at && end <= len(p.text) && (end == len(p.text) || utf8.RuneStart(p.text[end])) {
			return end
		}
	}
	return p.wordEnd()
}

// wordEnd is where the word at p.at ends: a word has the spaces before it, as
// tokens do. A run of line ends is one, and a part of a long word.
func (p *Pieces) wordEnd() int {
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
