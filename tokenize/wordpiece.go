// The WordPiece model.

package tokenize

import "unicode/utf8"

// wordPiece is BERT's model: it repeatedly takes the longest piece from the left.
type wordPiece struct {
	first     map[string]uint32 // at a word's beginning
	following map[string]uint32 // within it, without the prefix (##)
	prefix    int               // bytes of the prefix
	longest   int               // bytes of the longest piece
	maxRunes  int               // of a word; longer ones are unknown
	unknown   uint32
}

func (p *wordPiece) word(dst []uint32, w []byte) []uint32 {
	if len(w) > p.maxRunes && runesOf(w) > p.maxRunes {
		return append(dst, p.unknown)
	}
	start, pieces := len(dst), p.first
	for len(w) > 0 {
		end := min(len(w), p.longest)
		for end > 0 {
			if end == len(w) || utf8.RuneStart(w[end]) {
				if token, ok := pieces[string(w[:end])]; ok {
					dst = append(dst, token)
					break
				}
			}
			end--
		}
		if end == 0 {
			return append(dst[:start], p.unknown)
		}
		w, pieces = w[end:], p.following
	}
	return dst
}

// runesOf counts characters without allocating; utf8.RuneCount would allocate a string when
// inlined.
func runesOf(s []byte) (n int) {
	for _, c := range s {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}
