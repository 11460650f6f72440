// The string scanner beside a slow twin that looks at one character at a time.

package openai

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// slowString is what str does: the offset behind the string at the start of b,
// or -1, and whether it has an escape.
func slowString(b []byte) (end int, escaped bool) {
	unit := func(i int) rune { // the code unit of the escape at i, -1 if there is none
		if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
			return -1
		}
		r := rune(0)
		for _, c := range b[i+2 : i+6] {
			d := strings.IndexByte("0123456789abcdef", c|0x20)
			if c < '0' || d < 0 {
				return -1
			}
			r = r<<4 | rune(d)
		}
		return r
	}
	for i := 1; i < len(b); {
		c, n := utf8.DecodeRune(b[i:])
		switch {
		case c == '"':
			return i + 1, escaped
		case c < ' ', c == utf8.RuneError && n == 1:
			return -1, false
		case c != '\\':
			i += n
		case i+1 < len(b) && strings.IndexByte(`"\/bfnrt`, b[i+1]) >= 0:
			i, escaped = i+2, true
		default:
			r := unit(i)
			i, escaped = i+6, true
			if r >= 0xD800 && r <= 0xDBFF {
				if low := unit(i); low < 0xDC00 || low > 0xDFFF {
					return -1, false
				}
				i += 6
			} else if r < 0 || r >= 0xDC00 && r <= 0xDFFF {
				return -1, false
			}
		}
	}
	return -1, false
}

func TestStringAgainstSlowTwin(t *testing.T) {
	good := []string{"a", "#", "!", " ", "]", "[", "~", "\x7f", "plain prose", `\"`, `\\`, `\/`, `\n`, `\u0041`, `\u00E9`, `\ud83d\ude00`,
		"é", "\u07ff", "\u0800", "日", "日本", "\ud7ff", "\ue000", "\ufffd", "😀", "\U0010ffff", "Привет"}
	odd := []string{`"`, `\`, `\x`, `\u`, `\u12`, `\u12g4`, `\ud800`, `\udc00`, `\ud800\n`, `\ud800\u0041`, "\x00", "\n", "\x1f",
		"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe6\x97", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5", "\xff", "\xf0\x9f\x98"}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300_000 {
		var b strings.Builder
		b.WriteByte('"')
		for range rng.IntN(12) {
			if rng.IntN(20) == 0 {
				b.WriteString(odd[rng.IntN(len(odd))])
			} else {
				b.WriteString(good[rng.IntN(len(good))])
			}
		}
		if rng.IntN(8) > 0 {
			b.WriteByte('"')
		}
		b.WriteString([]string{"", "}", "#\"\\\xff      "}[rng.IntN(3)])
		s := validator{body: []byte(b.String())}
		end, escaped := s.str(0)
		wantEnd, wantEscaped := slowString(s.body)
		if end != wantEnd || escaped != wantEscaped || (end < 0) != s.failed() {
			t.Fatalf("%q: %d %v, want %d %v", s.body, end, escaped, wantEnd, wantEscaped)
		}
		if end < 0 {
			continue
		}
		var want string
		if err := json.Unmarshal(s.body[:end], &want); err != nil {
			t.Fatalf("%q: %v", s.body[:end], err)
		}
		if got := string(AppendUnescaped(nil, s.body[1:end-1])); got != want {
			t.Fatalf("%q: %q, want %q", s.body[:end], got, want)
		}
	}
}

// What AppendString writes, encoding/json reads as it was meant, and no byte of it
// is an escape that need not be.
func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                        `""`,
		"a\"b\\c/":                `"a\"b\\c/"`,
		"\n\t\r\b\x00\x1f\x7f":    `"\n\t\r\u0008\u0000\u001f` + "\x7f\"",
		"é日😀\u2028":               "\"é日😀\u2028\"",
		"a\xffb\xe6\x97 \xc0\xaf": "\"a\ufffdb\ufffd\ufffd \ufffd\ufffd\"",
	} {
		if got := string(AppendString(nil, in)); got != want || string(AppendString(nil, []byte(in))) != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var dst []byte
	for range 100_000 {
		in := make([]byte, rng.IntN(12))
		for i := range in {
			in[i] = "\x00\x1f \"\\a\x7f\x80\x97\xa5\xc3\xe6\xed\xf0\xff"[rng.IntN(15)]
		}
		var got string
		dst = AppendString(dst[:0], in)
		if err := json.Unmarshal(dst, &got); err != nil || got != string([]rune(string(in))) {
			t.Fatalf("%q: %s: %v", in, dst, err)
		}
	}
	text := []byte(strings.Repeat("a \"piece\" of an answer, 日本\n", 10))
	if n := testing.AllocsPerRun(100, func() { dst = AppendString(dst[:0], text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
