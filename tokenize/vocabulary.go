// What each token stands for.

package tokenize

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// vocabulary is the bytes of each token, by id. Immutable.
type vocabulary struct {
	text []byte
	ends []uint32 // of token i in text; it begins where the one before ends
}

// newVocabulary spells each token; if two tokens have the same id, the alphabetically later one
// stays.
func newVocabulary(tokens map[string]uint32, added []addedToken, spell func(token string) string) vocabulary {
	highest := 0
	for _, id := range tokens {
		highest = max(highest, int(id)+1)
	}
	for _, a := range added {
		highest = max(highest, int(a.token)+1)
	}
	all := make([]string, highest)
	for token, id := range tokens {
		if token > all[id] {
			all[id] = token
		}
	}
	for i, token := range all {
		all[i] = spell(token)
	}
	for _, a := range added {
		all[a.token] = a.Content
	}
	v := vocabulary{ends: make([]uint32, 0, highest)}
	for _, token := range all {
		v.text = append(v.text, token...)
		v.ends = append(v.ends, uint32(len(v.text)))
	}
	v.text = slices.Clip(v.text)
	return v
}

func (v *vocabulary) size() int { return len(v.ends) }

// of is the bytes of a token; none for ids that are no token. The caller must not change them.
func (v *vocabulary) of(token uint32) []byte {
	if int64(token) >= int64(len(v.ends)) {
		return nil
	}
	start := uint32(0)
	if token > 0 {
		start = v.ends[token-1]
	}
	return v.text[start:v.ends[token]]
}

func (v *vocabulary) append(dst []byte, token uint32) []byte { return append(dst, v.of(token)...) }

// byteAlphabet is how byte-level vocabularies spell bytes: those that are printable in Latin-1 as
// themselves, the others as the characters from U+0100 on, in order. From GPT-2's encoder.py.
func byteAlphabet() (spelled [256]rune, bytes map[rune]byte) {
	bytes = map[rune]byte{}
	next := rune(0x100)
	for b := range 256 {
		c := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			c, next = next, next+1
		}
		spelled[b], bytes[c] = c, byte(b)
	}
	return spelled, bytes
}

// fromAlphabet is the bytes that a byte-level token spells; false where it spells none.
func fromAlphabet(bytes map[rune]byte, token string) (string, bool) {
	out := make([]byte, 0, len(token))
	for _, c := range token {
		b, ok := bytes[c]
		if !ok {
			return token, false
		}
		out = append(out, b)
	}
	return string(out), true
}

// byteToken is the byte of a token like <0x0A>.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil && token == byteTokenOf(byte(b))
}

func byteTokenOf(b byte) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{'<', '0', 'x', digits[b>>4], digits[b&15], '>'})
}

// oneRune is the character of a token that is one character.
func oneRune(token string) (rune, bool) {
	r, n := utf8.DecodeRuneInString(token)
	return r, n == len(token) && n > 0
}
