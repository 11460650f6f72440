// Splices change what they are asked to change and no other byte.

package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A pair is a member as it stands in a document.
type pair struct{ key, value string }

// pairsOf reads the members of an object in order, values byte for byte, with
// encoding/json.
func pairsOf(t testing.TB, object []byte) (pairs []pair) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%v in %q", err, object)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%v in %q", err, object)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%v in %q", err, object)
		}
		pairs = append(pairs, pair{key.(string), string(value)})
	}
	if _, err := d.Token(); err != nil {
		t.Fatalf("%v in %q", err, object)
	}
	return pairs
}

func spliced(s *Splices, body []byte) []byte { return bytes.Join(s.Segments(nil, body), nil) }

func randomSpace(rng *rand.Rand) string {
	if rng.IntN(2) == 0 {
		return ""
	}
	return strings.Repeat(" ", rng.IntN(2)) + strings.Repeat("\n\t", rng.IntN(2)) + strings.Repeat("\r", rng.IntN(2))
}

// TestSplicesRandomDocuments makes objects with white space anywhere, removes,
// replaces and inserts members in any order, and reads back what is left.
func TestSplicesRandomDocuments(t *testing.T) {
	values := []string{`0`, `"a,}{"`, `null`, `{"x" : [1, 2] }`, `[ ]`, `{}`, `"\u00e9\\"`, `-1.5e3`}
	rng := rand.New(rand.NewPCG(1, 2))
	var s Splices
	for round := range 10_000 {
		var doc strings.Builder
		var ops []func()
		var want []pair
		s.Reset()
		space := func() { doc.WriteString(randomSpace(rng)) }
		space()
		open := doc.Len()
		doc.WriteString("{")
		space()
		n := rng.IntN(6)
		for i := range n {
			if i > 0 {
				doc.WriteString(",")
				space()
			}
			start := doc.Len()
			fmt.Fprintf(&doc, `"k%d"`, i)
			space()
			doc.WriteString(":")
			space()
			value, from := values[rng.IntN(len(values))], doc.Len()
			doc.WriteString(value)
			end := doc.Len()
			space()
			switch rng.IntN(3) {
			case 0:
				ops = append(ops, func() { s.Remove(Span{int32(start), int32(end)}) })
			case 1:
				ops = append(ops, func() { s.Replace(Span{int32(from), int32(end)}, []byte(`"new"`)) })
				want = append(want, pair{fmt.Sprint("k", i), `"new"`})
			default:
				want = append(want, pair{fmt.Sprint("k", i), value})
			}
		}
		doc.WriteString("}")
		whole := Span{int32(open), int32(doc.Len())}
		space()
		rng.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		// Insertions keep their order; the other edits come between them anyhow.
		for i, left := 0, rng.IntN(3); left > 0 || len(ops) > 0; {
			if len(ops) > 0 && (left == 0 || rng.IntN(2) == 0) {
				ops[0]()
				ops = ops[1:]
				continue
			}
			s.InsertMember(whole, fmt.Appendf(nil, `"in%d":[%d]`, i, i))
			want = append(want, pair{fmt.Sprint("in", i), fmt.Sprintf("[%d]", i)})
			i, left = i+1, left-1
			s.Length([]byte(doc.String())) // asked for in between, to no effect
		}
		body := []byte(doc.String())
		got := spliced(&s, body)
		if found := pairsOf(t, got); !slices.Equal(found, want) || len(got) != s.Length(body) {
			t.Fatalf("round %d\nbody %q\ngot  %q\nhas  %q\nwant %q\nlength %d", round, body, got, found, want, s.Length(body))
		}
		if !bytes.Equal(body, []byte(doc.String())) {
			t.Fatal("the body itself was changed")
		}
	}
}

func TestSplicesTable(t *testing.T) {
	at := func(body, part string) Span {
		i := strings.Index(body, part)
		if i < 0 {
			t.Fatalf("%q is not in %q", part, body)
		}
		return Span{int32(i), int32(i + len(part))}
	}
	all := func(body string) Span { return Span{0, int32(len(body))} }
	for _, c := range []struct {
		name, body, want string
		do               func(s *Splices, body string)
	}{
		{"nothing", `{"a":1}`, `{"a":1}`, func(*Splices, string) {}},
		{"the first member", `{"a":1, "b":2}`, `{"b":2}`, func(s *Splices, b string) { s.Remove(at(b, `"a":1`)) }},
		{"a member between", `{"a":1,"b":2 ,  "c":3}`, `{"a":1,"c":3}`, func(s *Splices, b string) { s.Remove(at(b, `"b":2`)) }},
		{"the last member", `{"a":1 , "b":2 }`, `{"a":1  }`, func(s *Splices, b string) { s.Remove(at(b, `"b":2`)) }},
		{"the only member", `{ "a":1 }`, `{  }`, func(s *Splices, b string) { s.Remove(at(b, `"a":1`)) }},
		{"the last two, the last first", `{"a":1,"b":2,"c":3}`, `{"a":1}`, func(s *Splices, b string) {
			s.Remove(at(b, `"c":3`))
			s.Remove(at(b, `"b":2`))
		}},
		{"into an empty object", `{ }`, `{"z":0 }`, func(s *Splices, b string) { s.InsertMember(all(b), []byte(`"z":0`)) }},
		{"behind the last member", "{\"a\":1\n}", "{\"a\":1,\"z\":0\n}", func(s *Splices, b string) { s.InsertMember(all(b), []byte(`"z":0`)) }},
		{"two, in place of the only member", `{"a":1}`, `{"y":0,"z":0}`, func(s *Splices, b string) {
			s.InsertMember(all(b), []byte(`"y":0`))
			s.Remove(at(b, `"a":1`))
			s.InsertMember(all(b), []byte(`"z":0`))
		}},
		{"into the inner and the outer object", `{"a":{}}`, `{"a":{"y":0},"z":0}`, func(s *Splices, b string) {
			s.InsertMember(all(b), []byte(`"z":0`))
			s.InsertMember(at(b, `{}`), []byte(`"y":0`))
		}},
		{"behind a replaced value", `{"a":1}`, `{"a":{},"z":0}`, func(s *Splices, b string) {
			s.InsertMember(all(b), []byte(`"z":0`))
			s.Replace(at(b, `1`), []byte(`{}`))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Splices
			c.do(&s, c.body)
			if got := string(spliced(&s, []byte(c.body))); got != c.want || s.Length([]byte(c.body)) != len(c.want) {
				t.Errorf("got %q, %d bytes; want %q", got, s.Length([]byte(c.body)), c.want)
			}
		})
	}
}

// AppendSpan gives the part of the new body that stands in the place of a span: what Segments gives for
// all of it, cut at a length, with what is put in whole.
func TestAppendSpan(t *testing.T) {
	body := []byte(`{"a":"one SECRET two SECRET","b":"SECRET","c":"three"}`)
	var s Splices
	for at := 0; ; {
		n := bytes.Index(body[at:], []byte("SECRET"))
		if n < 0 {
			break
		}
		s.Replace(Span{int32(at + n), int32(at + n + 6)}, []byte("[X]"))
		at += n + 6
	}
	for _, c := range []struct {
		part string
		most int
		want string
	}{
		{`one SECRET two SECRET`, 100, `one [X] two [X]`},
		{`one SECRET two SECRET`, 2, `on`},
		{`one SECRET two SECRET`, 4, `one `},
		{`one SECRET two SECRET`, 5, `one [X]`},
		{`one SECRET two SECRET`, 12, `one [X] two `},
		{`"SECRET"`, 100, `"[X]"`},
		{`"SECRET"`, 1, `"`},
		{`three`, 100, `three`},
		{`three`, 0, ``},
		{string(body), 1000, `{"a":"one [X] two [X]","b":"[X]","c":"three"}`},
	} {
		at := int32(bytes.Index(body, []byte(c.part)))
		if got := s.AppendSpan([]byte("- "), body, Span{at, at + int32(len(c.part))}, c.most); string(got) != "- "+c.want {
			t.Errorf("%d bytes of %s are %q, want %q", c.most, c.part, got, "- "+c.want)
		}
	}
}
