// Where the head of a request ends.

package edge

import "bytes"

// A headEnd finds where a request's head ends: at its first blank line, CRLF or bare LF, and
// never after the place where fasthttp sees the end. Blank lines before the request line are part
// of the head.
type headEnd struct {
	begun bool // a non-blank line has begun
	line  lineState
}

type lineState uint8

const (
	atLine lineState = iota // at the start of a line
	atCR                    // after a CR at the start of a line
	inLine                  // within a line
)

// scan takes the next bytes. It returns how many of them belong to the head, and whether the head
// ended with them; it is then ready for the next head.
func (h *headEnd) scan(b []byte) (n int, ended bool) {
	for n < len(b) {
		i := bytes.IndexByte(b[n:], '\n')
		if i < 0 {
			h.part(b[n:])
			return len(b), false
		}
		h.part(b[n : n+i])
		n += i + 1
		blank := h.line != inLine
		h.line = atLine
		if blank && h.begun {
			h.begun = false
			return n, true
		}
		h.begun = h.begun || !blank
	}
	return n, false
}

// part takes a piece of one line.
func (h *headEnd) part(b []byte) {
	switch {
	case len(b) == 0:
	case len(b) == 1 && b[0] == '\r' && h.line == atLine:
		h.line = atCR
	default:
		h.line, h.begun = inLine, true
	}
}
