// The tagger against what training computed, on long texts, in time and memory.

package tagger

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvasir/classify/model"
	"kvasir/classify/pii"
	"kvasir/jsonltest"
)

// memory is that of one goroutine.
type memory struct {
	net    model.Scratch
	s      Scratch
	tokens []model.Token
}

func (m *memory) tag(g *Tagger, dst []pii.Span, text []byte) []pii.Span {
	m.tokens = g.model.Tokenize(m.tokens[:0], text, &m.net)
	return g.Tag(dst, text, m.tokens, &m.net, &m.s)
}

func embeddedTagger(tb testing.TB) *Tagger {
	tb.Helper()
	g, err := Embedded()
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// tagged returns the names in text, as "TYPE:name".
func tagged(g *Tagger, text string, m *memory) (names []string) {
	for _, e := range m.tag(g, nil, []byte(text)) {
		names = append(names, e.Type.String()+":"+text[e.Start:e.End])
	}
	return names
}

// TestTaggerAgrees compares the scores of the tags with those that training computed in float32,
// on rows that training did not see. int8 costs a little: 0.15 on average, of scores whose distances
// are about 10, and one word in 100 may get another tag.
func TestTaggerAgrees(t *testing.T) {
	g := embeddedTagger(t)
	var m memory
	words, other, off := 0, 0, 0.0
	for _, row := range jsonltest.Read[struct {
		Text   string
		Scores [][]float64
		Tags   []uint8
	}](t, "testdata/tagger.jsonl") {
		text := []byte(row.Text)
		b := new(block)
		b.begin(text)
		b.fill(&g.lists)
		if b.size != len(row.Tags) {
			t.Fatalf("%q has %d words, training saw %d", text, b.size, len(row.Tags))
		}
		g.score(b, 0, b.size, g.model.Tokenize(nil, text, &m.net), &m.net)
		g.decode(b, 0, b.size)
		for i, scores := range row.Scores {
			for k, v := range scores {
				off += math.Abs(v - float64(b.score[i*tags+k]))
			}
			if b.tag[i] != row.Tags[i] {
				other++
			}
		}
		words += b.size
	}
	if words < 200 {
		t.Fatalf("fixture has %d words", words)
	}
	off /= float64(words * tags)
	t.Logf("%d words: scores differ by %.3f on average, %d tags differ", words, off, other)
	if off > 0.15 || other*100 > words {
		t.Errorf("cannot accept scores that differ by %.3f on average and %d other tags of %d", off, other, words)
	}
}

func TestTaggerFinds(t *testing.T) {
	g := embeddedTagger(t)
	var m memory
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Hi, my name is Sarah Connor and I live in Berlin.", []string{"PERSON:Sarah Connor", "GPE:Berlin"}},
		{"Please ask Kaito Yamamoto whether Siemens AG has paid.", []string{"PERSON:Kaito Yamamoto", "ORGANIZATION:Siemens AG"}},
		{"my friend julia moved to chicago last week", []string{"PERSON:julia", "GPE:chicago"}},
		{"如果王建国同意，我们明天去上海。", []string{"PERSON:王建国", "GPE:上海"}},
		{"Ich heiße Jürgen Schneider und wohne in Hamburg.", []string{"PERSON:Jürgen Schneider", "GPE:Hamburg"}},
		{"How do I sort a list of numbers in Python?", nil},
		{"The May deadline will not move; mark it in your calendar.", nil},
		{"Die Rose im Garten blüht im Sommer.", nil},
		{"", nil},
		{" \n ", nil},
	} {
		if got := tagged(g, c.text, &m); !slices.Equal(got, c.want) {
			t.Errorf("%q: found %q, want %q", c.text, got, c.want)
		}
	}
}

// TestTaggerLong puts names far into a long text: they are found there as in the short one, in
// whatever block they lie.
func TestTaggerLong(t *testing.T) {
	g := embeddedTagger(t)
	var m memory
	const sentence = "Then my colleague Emily Watson flew to Toronto for the weekend. "
	const filler = "there was not much to see on the way and so we went on. "
	for n := range 40 {
		text := strings.Repeat(filler, n) + sentence + strings.Repeat(filler, 30)
		if got, want := tagged(g, text, &m), []string{"PERSON:Emily Watson", "GPE:Toronto"}; !slices.Equal(got, want) {
			t.Errorf("after %d sentences: found %q, want %q", n, got, want)
		}
	}
	text := strings.Repeat(sentence, 1500)
	if got := tagged(g, text, &m); len(got) < 2990 {
		t.Errorf("found %d names in 1500 sentences with two each", len(got))
	}
}

// TestTaggerSpans holds for any text: spans lie within it, in order, and are not empty.
func TestTaggerSpans(t *testing.T) {
	g := embeddedTagger(t)
	var m memory
	for _, text := range []string{
		"\xff\xfeJohn \xc3", strings.Repeat("A", 9000), strings.Repeat("John Smith ", 4000), strings.Repeat("王", 3000),
		strings.Repeat("\u0301", 2000), strings.Repeat("@", 3000), "𝓙𝓸𝓱𝓷 Ｊｏｈｎ", "Anna\u200bMaria",
	} {
		checkTagged(t, g, []byte(text), &m)
	}
}

// TestTaggerGate says which texts the network is run for, and on which words.
func TestTaggerGate(t *testing.T) {
	g := embeddedTagger(t)
	for text, want := range map[string]string{
		"how do i sort a list of numbers? i tried it twice.": "",
		"The list is long. It has many items, and it grows.": "",
		"1234 5678 !! ...": "",
		"how do i tell my friend julia that i am late today, without being rude?":  "i tell my friend julia that i am late",
		"then we met Zorblax on the way, and then we went home and had some cake.": "then we met Zorblax on the way,",
		"今天王小明来了": "今天王小明来了",
	} {
		b := new(block)
		b.begin([]byte(text))
		b.fill(&g.lists)
		got := ""
		if from, to := b.candidates(b.size); from < to {
			got = text[b.words[from].start:b.words[to-1].end]
		}
		if got != want {
			t.Errorf("%q: looks at %q, want %q", text, got, want)
		}
	}
}

func checkTagged(t *testing.T, g *Tagger, text []byte, m *memory) {
	t.Helper()
	last := int32(0)
	for _, e := range m.tag(g, nil, text) {
		if e.Start < last || e.End <= e.Start || int(e.End) > len(text) || !(e.Score > 0 && e.Score <= 1) || e.Type < pii.StreetAddress {
			t.Fatalf("bad span %+v in a text of %d bytes", e, len(text))
		}
		last = e.End
	}
}

func FuzzTag(f *testing.F) {
	for _, text := range []string{"John Smith lives in New York", "王小明\u200b@x #y", "a\xffB\n\n.C", "McDonald’s O'Neill-Ünal"} {
		f.Add([]byte(text))
	}
	g := embeddedTagger(f)
	var m memory
	f.Fuzz(func(t *testing.T, text []byte) { checkTagged(t, g, text, &m) })
}

func TestTaggerAllocates(t *testing.T) {
	g := embeddedTagger(t)
	var m memory
	text := []byte(strings.Repeat("Ada Lovelace wrote to Charles Babbage in London. ", 400))
	dst := m.tag(g, nil, text)
	if n := testing.AllocsPerRun(5, func() { dst = m.tag(g, dst[:0], text) }); n > 0 {
		t.Errorf("Tag allocates %v times", n)
	}
}

func BenchmarkTag(b *testing.B) {
	g := embeddedTagger(b)
	var m memory
	prose := []byte(strings.Repeat("The committee will publish its report on renewable energy next Thursday; early drafts by Ingrid Solberg suggest that storage, not generation, has become the bottleneck in Norway. ", 600))
	plain := bytes.ToLower(bytes.ReplaceAll(bytes.ReplaceAll(prose, []byte("Ingrid Solberg"), []byte("the author")), []byte("Norway"), []byte("the end")))
	for _, c := range []struct {
		name   string
		text   []byte
		tokens int
	}{{"64 tokens", prose, 64}, {"512 tokens", prose, 512}, {"100 KB", prose[:100<<10], 0}, {"100 KB without names", plain[:min(len(plain), 100<<10)], 0}} {
		b.Run(c.name, func(b *testing.B) {
			text, tokens := c.text, g.model.Tokenize(nil, c.text, &m.net)
			if c.tokens > 0 {
				tokens = tokens[:c.tokens]
				text = text[:tokens[c.tokens-1].End]
			}
			b.SetBytes(int64(len(text)))
			var dst []pii.Span
			for b.Loop() {
				dst = g.Tag(dst[:0], text, tokens, &m.net, &m.s)
			}
		})
	}
}

// A directory's tagger is taken in place of the embedded one, and what is wrong with it is said.
func TestOwn(t *testing.T) {
	dir := t.TempDir()
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "tagger.safetensors"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Own(dir); !errors.Is(err, model.ErrNoWeights) || !strings.Contains(err.Error(), "none of heads.safetensors, guard.safetensors, tagger.safetensors is in it") {
		t.Errorf("an empty directory: %v", err)
	}
	write(Weights())
	m, own, err := Own(dir)
	if err != nil || m == nil || own == embeddedTagger(t) {
		t.Fatalf("%v, %p, %v", m, own, err)
	}
	var mem memory
	if got, want := tagged(own, "My name is Sarah Connor.", &mem), []string{"PERSON:Sarah Connor"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	write(Weights()[:len(Weights())/2])
	if _, _, err := Own(dir); err == nil || !strings.Contains(err.Error(), "in a file with") {
		t.Errorf("half a file: %v", err)
	}
}
