// Where a long word may be cut, so that its parts can be known words.

package tokenize

import "unicode/utf8"

// glue knows which two characters some merge puts together. If no merge puts two neighbouring
// characters together, no token reaches from one to the other. The word can then be cut between
// them and each part merged by itself, because the order of merges in one part does not depend on
// the other part. So a long word becomes short parts that may be in the cache: Chinese, which has
// no spaces, or any text for models that do not split at spaces.
//
// pairs is a hash set with one bit an entry. By collision it may also have pairs that no merge
// joins. That only misses a possible cut; it never allows a wrong one.
type glue struct {
	pairs [1 << (glueBits - 6)]uint64
	// Byte-level merges may also join parts of characters; these are the pairs of bytes that meet
	// there.
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

// part returns the end of the shortest part of s from i on whose end no merge crosses. s is valid
// UTF-8.
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
