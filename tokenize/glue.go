// Where a long word may be cut, so that its parts can be known words.

package tokenize

import "unicode/utf8"

// glue knows which two characters some merge puts together. Where two neighbours are not among them
// no token reaches across, so the word can be cut there and each part merged by itself: the order of
// merges within one part does not depend on another part. Text without spaces, such as Chinese or,
// for models that do not split it, any text, becomes short parts that the cache knows.
//
// pairs is a hash set with one bit an entry. It may have pairs that no merge joins: then a cut is
// missed, and none is wrong.
type glue struct {
	pairs [1 << (glueBits - 6)]uint64
	// Byte-level merges may also join parts of characters: the bytes that meet there.
	edges [256][4]uint64
}

const glueBits = 19

func glueBit(left, right rune) uint32 {
	return (uint32(left)*0x9e3779b1 ^ uint32(right)*0x85ebca6b) >> 3 * 0xc2b2ae35 >> (32 - glueBits)
}

func (g *glue) add(left, right rune) {
	bit := glueBit(left, right)
	g.pairs[bit>>6] |= 1 << (bit & 63)
}

// addBytes notes where the merge of two byte-level tokens joins. Within a character nothing is cut.
func (g *glue) addBytes(left, right string) {
	if left == "" || right == "" || !utf8.RuneStart(right[0]) {
		return
	}
	a, n := utf8.DecodeLastRuneInString(left)
	b, m := utf8.DecodeRuneInString(right)
	if a == utf8.RuneError && n == 1 || b == utf8.RuneError && m == 1 {
		end, start := left[len(left)-1], right[0]
		g.edges[end][start>>6] |= 1 << (start & 63)
		return
	}
	g.add(a, b)
}

// part is the end of the shortest part of s that begins at i and that no merge reaches out of. s is
// valid UTF-8.
func (g *glue) part(s []byte, i int) int {
	left, n := decode(s, i)
	for i += n; i < len(s); i += n {
		var right rune
		right, n = decode(s, i)
		bit, start := glueBit(left, right), s[i]
		if g.pairs[bit>>6]>>(bit&63)&1 == 0 && g.edges[s[i-1]][start>>6]>>(start&63)&1 == 0 {
			break
		}
		left = right
	}
	return i
}
