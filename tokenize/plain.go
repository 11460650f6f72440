// Plain words: ASCII letters, behind a space or not, eight bytes at a time.

package tokenize

import "math/bits"

// plainRule says which runs of ASCII letters, with or without a space before them, a pattern
// always takes as one word. Most words of most texts are such runs.
type plainRule uint8

const (
	noPlain plainRule = iota
	// anyCase: letters of either case, followed by another ASCII character or by the end.
	anyCase
	// lowerCase: the same, but only the first letter may be upper case, and no apostrophe may
	// follow: it may begin a contraction, which the pattern takes as part of the word.
	lowerCase
)

func (*gpt2) plain() plainRule       { return anyCase }
func (*plain) plain() plainRule      { return anyCase }
func (*cased) plain() plainRule      { return lowerCase }
func (*punctuated) plain() plainRule { return anyCase }

const eachByte, highBits = 0x0101010101010101, 0x8080808080808080

// notLetters sets the highest bit of each byte of w that is not a lower-case ASCII letter. With
// 0x20 in each byte of fold, upper-case letters count as letters too.
func notLetters(w, fold uint64) uint64 {
	low := (w | fold) &^ highBits
	return ^((low + (0x80-'a')*eachByte) &^ (low + (0x7f-'z')*eachByte) &^ w) & highBits
}

const bothCases = 0x20 * eachByte

// end is the end of the plain word at s[i]; i: there is none.
func (rule plainRule) end(s []byte, i int) int {
	from := i
	if s[i] == ' ' && i+1 < len(s) {
		from++
	}
	fold := uint64(bothCases)
	if rule == lowerCase {
		if fold = 0; s[from] >= 'A' && s[from] <= 'Z' {
			from++
		}
	}
	end := letters(s, from, fold)
	if end == from || end < len(s) && (s[end] >= 0x80 || rule == lowerCase && (s[end] == '\'' || asciiLetter(s[end]))) {
		return i
	}
	return end
}

// letters returns where the ASCII letters from s[i] on end: lower-case ones, or letters of both
// cases, by fold (see notLetters).
func letters(s []byte, i int, fold uint64) int {
	for ; i+8 <= len(s); i += 8 {
		if others := notLetters(load64(s[i:]), fold); others != 0 {
			return i + bits.TrailingZeros64(others)>>3
		}
	}
	for i < len(s) && s[i]|byte(fold) >= 'a' && s[i]|byte(fold) <= 'z' {
		i++
	}
	return i
}

// known appends the tokens of the plain words from s[i] on, as long as each word has at most
// seven bytes and is in the cache as a single token. It returns where the first other word
// begins. It finds a word and looks it up with the same load of eight bytes and no branch on the
// word's length, in half the time of the general way.
func (c *wordCache) known(dst []uint32, s []byte, i int, rule plainRule) ([]uint32, int) {
	for i+8 <= len(s) {
		w := load64(s[i:])
		space := uint64(0)
		if byte(w) == ' ' {
			space = 0x80
		}
		first := uint64(0x80) << (space >> 4) // the byte of the first letter
		ends := notLetters(w, bothCases) &^ space
		others := ends
		if rule == lowerCase {
			others |= notLetters(w, 0) &^ (first | space)
		}
		n := bits.TrailingZeros64(others) >> 3
		behind := byte(w >> (8 * n))
		if others&first != 0 || n == 8 || behind >= 0x80 {
			break
		}
		if rule == lowerCase && (behind == '\'' || ends>>(8*n)&0x80 == 0) {
			break
		}
		word := w & firstBytes(n)
		slot := &c.slots[hashOf(word, 0, uint64(n))&(1<<slotBits-1)]
		meta := slot.meta.Load()
		if meta&0x1ffff != 1<<8|uint64(n) || slot.key[0].Load() != word {
			break
		}
		token := uint32(slot.ids[0].Load())
		if slot.meta.Load() != meta {
			break
		}
		dst = append(dst, token)
		i += n
	}
	return dst, i
}
