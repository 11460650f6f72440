// Pieces: long texts are judged piece by piece, so that memory is bounded and
// the deadline is looked at in between.

package classify

import "bytes"

// The longest pieces in bytes: those that names are looked for in, and those
// of long texts that are compared as attacks. One in shareOfOverlap is what the
// piece before ends with: what lies over the border is whole in one.
const (
	maxPiece       = 8 << 10
	attackPiece    = 2 << 10
	shareOfOverlap = 8
)

// pieces cut a text.
type pieces struct {
	text  []byte
	size  int // of the longest
	piece []byte
	at    int // of the piece in the text
	end   int // of the piece
}

// next moves to the next piece; false: there is none.
func (p *pieces) next() bool {
	if p.end == len(p.text) {
		return false
	}
	if p.end > 0 {
		p.at = border(p.text, p.end-p.size/shareOfOverlap)
	}
	if p.end = len(p.text); p.end-p.at > p.size {
		p.end = border(p.text, p.at+p.size)
	}
	p.piece = p.text[p.at:p.end]
	return true
}

// border is where to cut near at, not after it: at a space within the last 64
// bytes, else between two letters.
func border(text []byte, at int) int {
	if i := bytes.LastIndexByte(text[at-64:at], ' '); i >= 0 {
		return at - 64 + i + 1
	}
	for back := 0; back < 3 && text[at]&0xc0 == 0x80; back++ {
		at--
	}
	return at
}
