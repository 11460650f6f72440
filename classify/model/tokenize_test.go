// Tokens' places in the text, bad input, windows.

package model

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTokensKnowTheirPlaces(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	for _, row := range []struct{ text, want string }{
		{"Hello, world", "Hello|,|world"},
		{"  two   spaces ", "two|spaces"},
		{"ﬁne", "ﬁne"},
		{"e\u0301te\u0301", "e\u0301te\u0301"},
		{"中国 ab", "中国|ab"},
		{"\u200b\u200b", ""},
		{"", ""},
		{" \t\n ", ""},
	} {
		var parts []string
		for _, token := range m.Tokenize(nil, []byte(row.text), &s) {
			if part := row.text[token.Start:token.End]; part != "" {
				parts = append(parts, part)
			}
		}
		if got := strings.Join(parts, "|"); got != row.want {
			t.Errorf("%q: %q, want %q", row.text, got, row.want)
		}
	}
}

// TestTokensOfJoinedTextsAreJoined puts all texts into one of several windows: since no piece holds
// white space, the tokens are those of the parts.
func TestTokensOfJoinedTextsAreJoined(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	var want []Token
	var joined strings.Builder
	for range 3 {
		for _, e := range expectations(t) {
			offset := int32(joined.Len())
			for _, token := range m.Tokenize(nil, []byte(e.text), &s) {
				want = append(want, Token{token.ID, token.Start + offset, token.End + offset})
			}
			joined.WriteString(e.text + "\n")
		}
	}
	if got := m.Tokenize(nil, []byte(joined.String()), &s); !slices.Equal(got, want) {
		t.Errorf("%d tokens of %d bytes, want %d", len(got), joined.Len(), len(want))
	}
}

// TestTextWithoutAnyCutIsTokenized has no place that no piece reaches across.
func TestTextWithoutAnyCutIsTokenized(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	for _, text := range []string{
		strings.Repeat("a", 3*windowSize), strings.Repeat("ab", 3*windowSize), strings.Repeat("。", 3*windowSize),
	} {
		checkTokens(t, m, []byte(text), m.Tokenize(nil, []byte(text), &s))
	}
}

// checkTokens looks at what holds for tokens of any text: known ids, places in order, each
// beginning not before the last.
func checkTokens(t *testing.T, m *Model, text []byte, tokens []Token) {
	t.Helper()
	var last Token
	for i, token := range tokens {
		if token.ID < 0 || int(token.ID) >= len(m.table.kinds) {
			t.Fatalf("token %d of %.40q has id %d", i, text, token.ID)
		}
		if token.Start > token.End || token.Start < last.Start || token.End < last.End || int(token.End) > len(text) {
			t.Fatalf("token %d of %.40q at [%d, %d) after [%d, %d)", i, text, token.Start, token.End, last.Start, last.End)
		}
		last = token
	}
}

// TestInvalidUTF8IsUnknown wants one unknown piece for each byte that is no UTF-8, at its place,
// and the rest as without it.
func TestInvalidUTF8IsUnknown(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	for _, text := range []string{
		"\xff", "a\x80b", "caf\xc3", "x\xe2\x82 x", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ok\xc0\xaf ok",
	} {
		got := m.Tokenize(nil, []byte(text), &s)
		checkTokens(t, m, []byte(text), got)
		var places, want []int32
		for _, token := range got {
			if token.ID == unknownID {
				places = append(places, token.Start)
			}
		}
		for i, r := range text {
			if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
				want = append(want, int32(i))
			}
		}
		if !slices.Equal(places, want) {
			t.Errorf("%q: unknown at %v, want %v", text, places, want)
		}
	}
}

func FuzzTokenize(f *testing.F) {
	for _, text := range []string{
		"Hello, world", "中文 text\u200b", "e\u0301", "\xff\xfe a", strings.Repeat("x", 5000), "<s>▁</s>", "ﷺ ㎞\x00½",
	} {
		f.Add([]byte(text))
	}
	m := embeddedModel(f)
	var s Scratch
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens := m.Tokenize(nil, text, &s)
		checkTokens(t, m, text, tokens)
		if again := m.Tokenize(nil, text, &s); !slices.Equal(again, tokens) {
			t.Fatalf("%.40q: other tokens the second time", text)
		}
	})
}

// FuzzTrie walks arrays that nobody built.
func FuzzTrie(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 'a', 1, 0, 0}, []byte("abc"))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f}, []byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, units, text []byte) {
		if _, length := trie(units).longest(text); length > len(text) {
			t.Fatalf("a key of %d bytes in a text of %d", length, len(text))
		}
	})
}
