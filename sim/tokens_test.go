// Tokens convert back to the same text, and equal beginnings give equal blocks.

package sim

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTokens(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"Hello world", "Hell|o| worl|d"},
		{"a  b, c\n", "a| | b|,| c|\n"},
		{" ", " "},
		{"\x00", "\x00"},
		{"né 日本", "n|é| |日|本"},
		{"a🙂b", "a||🙂|b"},
		{"abcdefghi", "abcd|efgh|i"},
	} {
		var got []string
		for _, id := range appendTokens(nil, c.text) {
			got = append(got, string(appendTokenText(nil, id)))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q is cut into %q, want %s", c.text, got, c.want)
		}
	}
}

func TestEqualBeginningsShareBlocks(t *testing.T) {
	words := strings.Repeat("one two three ", 40)
	a := appendHashes(nil, 1, appendTokens(nil, words+strings.Repeat("four ", 40)), 16)
	b := appendHashes(nil, 1, appendTokens(nil, words+strings.Repeat("five ", 40)), 16)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if want := len(appendTokens(nil, words[:len(words)-1])) / 16; n != want || n == len(a) {
		t.Errorf("%d blocks are shared, want %d of %d", n, want, len(a))
	}
	if other := appendHashes(nil, 2, appendTokens(nil, words), 16); other[0] == a[0] {
		t.Error("another parent gives the same hash")
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"Hello, world", "né 日本 🙂🙂", "a\x00b  c", "<|im_end|>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		var back []byte
		for _, id := range appendTokens(nil, text) {
			if id&markBit != 0 {
				t.Fatalf("%q gives a mark", text)
			}
			back = appendTokenText(back, id)
		}
		if string(back) != text {
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}
