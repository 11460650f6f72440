// Properties of every result: order, boundaries, no allocation, linear time.

package pii

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzFind(f *testing.F) {
	for _, texts := range rows {
		for _, row := range texts {
			f.Add([]byte(row[0]))
		}
	}
	for _, text := range adversaries {
		f.Add(bytes.Repeat([]byte(text), 20))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkSpans(t, text, Find(nil, text))
	})
}

// checkSpans fails unless spans are as Find promises.
func checkSpans(t *testing.T, text []byte, spans []Span) {
	t.Helper()
	border := func(i int32) bool {
		return int(i) == len(text) || utf8.RuneStart(text[i]) || !utf8.Valid(text)
	}
	end := int32(0)
	for _, s := range spans {
		if s.Start < end || s.End <= s.Start || int(s.End) > len(text) {
			t.Fatalf("%q: %v is out of order or bounds after %d", text, s, end)
		}
		if !border(s.Start) || !border(s.End) {
			t.Fatalf("%q: %v cuts a character", text, s)
		}
		if s.Type == 0 || s.Type >= types || s.Score <= 0 || s.Score > 1 {
			t.Fatalf("%q: %v has no type or no score", text, s)
		}
		end = s.End
	}
}

// A find at the end of a long text has the right offsets, and earlier elements of dst stay.
func TestFindAppends(t *testing.T) {
	long := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 2500) + "Card 4111 1111 1111 1111."
	kept := Span{Start: 1, End: 2, Type: Person, Score: 1}
	spans := Find([]Span{kept}, []byte(long))
	if len(spans) != 2 || spans[0] != kept {
		t.Fatalf("got %v, want the span that was there and a card", spans)
	}
	if got := long[spans[1].Start:spans[1].End]; spans[1].Type != CreditCard || got != "4111 1111 1111 1111" {
		t.Errorf("got %v %q, want the card", spans[1], got)
	}
}

func TestTypes(t *testing.T) {
	for typ := Type(1); typ <= Types(); typ++ {
		if typeNamed(typ.String()) != typ {
			t.Errorf("type %d is named %q, which is another's", typ, typ)
		}
		if r := table[typ]; r.needs && r.label == lNone {
			t.Errorf("%s needs a word and has none", typ)
		}
	}
	if typeNamed("NONE") != 0 || typeNamed("") != 0 {
		t.Error("a name that is no type's has one")
	}
}

// adversaries are short texts that, when repeated, cost more than linear time once, or might do
// so.
var adversaries = []string{
	"1", "1 ", "12-", "1.", "12/34 ", "(1)", "+1 ", "1234 5678 ", "12345678901234567890", "1a", "a1-", "a1b2-c3_",
	"@", "a@", "a@b.", "@a.b", ".", "a.", "a.b", "www.", "http://", "http://a.b/", "x://a@", "x://a:b@", "user:pass@",
	":", "::", "1:", "a:", "ab:", "ab-", "12:34:56 ", "-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "sk-", "eyJ", "eyJa.", "ghp_", "bc1q",
	"password ", "password: ", "password is is ", "password\"", "api key ", "token=", "secret \"", "phone a-", "iban GB29 ", "GB29 ", "DE1 ", "DE 1",
	"January ", "1 January ", "in 2004 ", "3 ", "call 1 2 3 ", "x12 ext", "a ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1/", "日", "密码", "密码是", "电话1",
	"路1号", "1号", "Via A ", "1 A ", "1 A St", "\u00a0", "１", "１ ", "＠", "ａ＠", "\u0660", "\xff", "\xe5\xaf", "'", "\"", "= ",
	"<!-- >", "<!-- <", "<a \"", "<a '<a \"", "[b=", "[^", "][", "](1", "%25", "1%25", "\\N{", "\\u{", "?a=1+1+1+", "\n- 1", "1\n1. ", "1=2", "1¹",
}

// The work is linear in the text, not quadratic, and bounded for each byte. It is counted, not
// timed.
func TestLinear(t *testing.T) {
	for _, text := range adversaries {
		small := workOf(strings.Repeat(text, 20_000/len(text)))
		large := workOf(strings.Repeat(text, 200_000/len(text)))
		if large > 12*small+10_000 {
			t.Errorf("%q: ten times the text costs %d, after %d", text, large, small)
		}
		if large > 64*200_000 {
			t.Errorf("%q: %d bytes looked at for 200,000", text, large)
		}
	}
}

// Building the reading is also linear in the text. It is timed, with a loose bound, because its
// work is not counted.
func TestReadingIsLinear(t *testing.T) {
	for _, text := range adversaries {
		var r reading
		long := []byte(strings.Repeat(text, 300_000/len(text)))
		began := time.Now()
		r.read(long)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%q: %v", text, took)
		}
		if len(r.text) > 2*len(long) || len(r.steps) > 2*len(long) {
			t.Errorf("%q: %d bytes and %d steps for %d", text, len(r.text), len(r.steps), len(long))
		}
	}
}

func workOf(text string) int {
	s := new(scan)
	s.find(nil, []byte(text))
	return s.work
}

func TestFindAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools forget")
	}
	text := mixedText()
	dst := Find(nil, text)
	if len(dst) < 10 {
		t.Fatalf("got %d finds in the mixed text, want many", len(dst))
	}
	if n := testing.AllocsPerRun(50, func() { dst = Find(dst[:0], text) }); n != 0 {
		t.Errorf("%v allocations a call, want none", n)
	}
}

// mixedText is all rows, one a line.
func mixedText() []byte {
	var b bytes.Buffer
	for _, name := range []string{"email", "host", "ip", "date", "card", "phone", "national", "key", "password", "crypto", "labelled"} {
		for _, row := range rows[name] {
			b.WriteString(row[0] + "\n")
		}
	}
	return b.Bytes()
}

const prose = `It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, ` +
	`it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of darkness, ` +
	`it was the spring of hope, it was the winter of despair; we had everything before us, we had nothing before us. `

func BenchmarkFind(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	soup := make([]byte, 100_000)
	for i := range soup {
		soup[i] = "0123456789 -./(),+"[random.IntN(18)]
	}
	for _, c := range []struct {
		name string
		text string
	}{
		{"prose", strings.Repeat(prose, 1+100_000/len(prose))[:100_000]},
		{"chinese", strings.Repeat("我们今天下午去公园散步，看到很多人在跑步和放风筝，天气非常好，大家都很高兴。", 1000)[:99_999]},
		{"digits", string(soup)},
		{"mixed", strings.Repeat(string(mixedText()), 30)[:100_000]},
		{"ats", strings.Repeat("a@b.", 25_000)},
		{"colons", strings.Repeat("a1:", 33_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(c.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var dst []Span
			for b.Loop() {
				dst = Find(dst[:0], text)
			}
		})
	}
}

// typeNamed returns the Type with that name, or 0 if there is none.
func typeNamed(name string) Type {
	for t := Type(1); t < types; t++ {
		if table[t].name == name {
			return t
		}
	}
	return 0
}
