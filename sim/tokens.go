// Tokens without a vocabulary: the id of a token encodes its bytes, and a block of tokens is
// named by its chained hash.

package sim

import (
	"math/bits"
	"unicode/utf8"
)

// A token is one of the following. Its id encodes the text, so that ids and text convert both
// ways without a table:
//
//	an optional space and one to four ASCII letters or digits   seven bits a byte, the first lowest; bit 28: space
//	any other ASCII byte                                        the byte
//	a character of two or three bytes                           bit 29 and the code point
//	a character of four bytes: two tokens                       bit 30, bit 21 on the second, and the code point
//	a mark of the chat template                                 bit 31 and its number
//
// Tokenizing depends only on the text since the last mark or the start, so equal beginnings give
// equal tokens.
const (
	spaceBit  = 1 << 28
	wideBit   = 1 << 29
	halfBit   = 1 << 30
	secondBit = 1 << 21
	markBit   = 1 << 31

	imStart = markBit
	imEnd   = markBit | 1 // ends a message, and an answer that ends by itself
)

var markText = map[uint32]string{imStart: "<|im_start|>", imEnd: "<|im_end|>"}

// appendTokens cuts valid UTF-8 text into tokens.
func appendTokens(dst []uint32, text string) []uint32 {
	for i := 0; i < len(text); {
		if text[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			i += n
			if n == 4 {
				dst = append(dst, halfBit|uint32(r), halfBit|secondBit|uint32(r))
			} else {
				dst = append(dst, wideBit|uint32(r))
			}
			continue
		}
		id := uint32(0)
		if text[i] == ' ' && i+1 < len(text) && wordByte(text[i+1]) {
			id = spaceBit
			i++
		}
		if !wordByte(text[i]) {
			dst = append(dst, uint32(text[i]))
			i++
			continue
		}
		for shift := 0; shift < 28 && i < len(text) && wordByte(text[i]); shift += 7 {
			id |= uint32(text[i]) << shift
			i++
		}
		dst = append(dst, id)
	}
	return dst
}

// appendTokenText appends the text of a token: nothing for the first half of a character. Ids
// that no text produces have some text too.
func appendTokenText(dst []byte, id uint32) []byte {
	switch {
	case id&markBit != 0:
		return append(dst, markText[id]...)
	case id&halfBit != 0:
		if id&secondBit == 0 {
			return dst
		}
		return utf8.AppendRune(dst, rune(id&(secondBit-1)))
	case id&wideBit != 0:
		return utf8.AppendRune(dst, rune(id&(secondBit-1)))
	}
	if id&spaceBit != 0 {
		dst = append(dst, ' ')
		id &^= spaceBit
	}
	for ok := true; ok; ok = id != 0 {
		dst = append(dst, byte(id&127))
		id >>= 7
	}
	return dst
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// appendHashes appends the chained hash of each full block of tokens. The first is chained to
// parent, which identifies everything that separates caches: the model and the cache salt.
func appendHashes(dst []uint64, parent uint64, tokens []uint32, size int) []uint64 {
	for ; len(tokens) >= size; tokens = tokens[size:] {
		parent = hashTokens(parent, tokens[:size])
		dst = append(dst, parent)
	}
	return dst
}

func hashTokens(h uint64, tokens []uint32) uint64 {
	h = mix(h, uint64(len(tokens)))
	for _, id := range tokens {
		h = mix(h, uint64(id))
	}
	return h
}

func hashString(h uint64, s string) uint64 {
	h = mix(h, uint64(len(s)))
	for i := range len(s) {
		h = mix(h, uint64(s[i]))
	}
	return h
}

// unnamed seeds the hashes of blocks without a name.
const unnamed = 0x6b7661736972

// mix folds a 128-bit product, as wyhash does: fast and well distributed, but not safe against
// deliberate collisions.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, v^0xd1b54a32d192ed03)
	return hi ^ lo
}
