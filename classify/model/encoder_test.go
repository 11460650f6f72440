// Tokenizer and embedding against what the Python package itself gives (scripts/train/fixtures.py).

package model

import (
	"encoding/binary"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// expectation is what the package gives for one text.
type expectation struct {
	text   string
	ids    []int32
	vector [Dim]float32 // as the package's, rounded to 8 bits
}

// expectations reads the fixture: the lines of texts.txt, each 12 lines joined, each 60.
func expectations(tb testing.TB) []expectation {
	tb.Helper()
	lines := strings.Split(strings.TrimSuffix(readFile(tb, "testdata/texts.txt"), "\n"), "\n")
	texts := slices.Clone(lines)
	for _, n := range []int{12, 60} {
		for chunk := range slices.Chunk(lines, n) {
			texts = append(texts, strings.Join(chunk, "\n"))
		}
	}
	ts, err := OpenTensors([]byte(readFile(tb, "testdata/expected.safetensors")))
	if err != nil {
		tb.Fatal(err)
	}
	counts := must(ts.view("counts", "U32", []int{len(texts)}))(tb)
	ids := must(ts.view("ids", "U32", []int{-1}))(tb)
	vectors := must(ts.int8s("embeddings", len(texts), Dim))(tb)
	scales := must(ts.Float32s("scales", len(texts)))(tb)

	all := make([]expectation, len(texts))
	for i := range all {
		e := &all[i]
		e.text = texts[i]
		for range binary.LittleEndian.Uint32(counts[4*i:]) {
			e.ids = append(e.ids, int32(binary.LittleEndian.Uint32(ids)))
			ids = ids[4:]
		}
		for k, v := range vectors[i*Dim:][:Dim] {
			e.vector[k] = float32(v) * scales[i]
		}
	}
	return all
}

func readFile(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func TestTokensAreThoseOfThePackage(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	for _, want := range expectations(t) {
		got := ids(m.Tokenize(nil, []byte(want.text), &s))
		if len(got) == 0 {
			got = []int32{unknownID} // the package says so where nothing is left of a text
		}
		if !slices.Equal(got, want.ids) {
			t.Errorf("%q: ids\n%v, want\n%v", want.text, got, want.ids)
		}
	}
}

func ids(tokens []Token) []int32 {
	var all []int32
	for _, token := range tokens {
		all = append(all, token.ID)
	}
	return all
}

// TestEmbeddingsAreCloseToThePackages bounds the loss of 4 bits a table value, 8 bits a layer, which
// alone make 0.998, of what the second layers do not read, and of blends that are cut off: a cosine of
// 0.995 on average and 0.95 for each text. Short texts lose most, since the error of few rows does not even out.
func TestEmbeddingsAreCloseToThePackages(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	var sum, least float64 = 0, 1
	all := expectations(t)
	for _, want := range all {
		var got [Dim]float32
		m.Embed(&got, m.Tokenize(nil, []byte(want.text), &s), &s)
		if n := math.Sqrt(dot(&got, &got)); math.Abs(n-1) > 1e-5 {
			t.Errorf("%q: length %v, want 1", want.text, n)
		}
		cosine := dot(&got, &want.vector) / math.Sqrt(dot(&want.vector, &want.vector))
		if cosine < 0.95 {
			t.Errorf("%q: cosine %.4f, want at least 0.95", want.text, cosine)
		}
		sum, least = sum+cosine, min(least, cosine)
	}
	mean := sum / float64(len(all))
	if mean < 0.995 {
		t.Errorf("mean cosine %.5f, want at least 0.995", mean)
	}
	t.Logf("%d texts: cosine %.5f on average, at least %.4f", len(all), mean, least)
}

func dot(a, b *[Dim]float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// withModel runs test in each form with a model opened in it.
func withModel(t *testing.T, test func(t *testing.T, m *Model)) {
	t.Helper()
	withForm(t, func(t *testing.T) {
		m, err := open(bytesOf(tokensFile), bytesOf(encoderFile))
		if err != nil {
			t.Fatal(err)
		}
		test(t, m)
	})
}

func TestEmbeddingHasTheSameBitsInEveryForm(t *testing.T) {
	texts := []string{"", "one", "Why does ice float on water? 为什么冰会浮在水上？", strings.Repeat(benchText, 2)}
	want := map[string][Dim]float32{}
	withModel(t, func(t *testing.T, m *Model) {
		var s Scratch
		for _, text := range texts {
			var got [Dim]float32
			m.Embed(&got, m.Tokenize(nil, []byte(text), &s), &s)
			if first, ok := want[text]; !ok {
				want[text] = got
			} else if first != got {
				t.Errorf("%.20q: not as in form %s", text, forms()[0].name)
			}
		}
	})
}

// TestEmbeddingDoesNotDependOnWhatWasEmbeddedBefore fills the scratch with other values first.
func TestEmbeddingDoesNotDependOnWhatWasEmbeddedBefore(t *testing.T) {
	withModel(t, func(t *testing.T, m *Model) {
		var used Scratch
		tokens := m.Tokenize(nil, []byte(strings.Repeat(benchText, 12)), &used)
		for _, n := range []int{0, 1, 2, 3, 4, 5, 92, 93, 94, 95, 186, 187, 188, 189, 190, 191, 400, 1000} {
			var clean, again [Dim]float32
			m.Embed(&clean, tokens[:n], new(Scratch))
			m.Embed(&again, tokens[:n/2], &used)
			es := used.encoder
			for i := range es.hidden {
				es.hidden[i] = -1e9
			}
			for i := range es.mixed {
				es.mixed[i] = 1e9
			}
			for i := range used.quant {
				used.quant[i] = 0x55
			}
			for i := range es.sums {
				for k := range es.sums[i] {
					es.sums[i][k] = 1e9
				}
			}
			es.n, es.wholeN = 0, 0
			m.Embed(&again, tokens[:n], &used)
			if clean != again {
				t.Errorf("%d tokens: another embedding in a used scratch", n)
			}
		}
	})
}

// TestBlocksDoNotShow moves the border between two blocks through a text, by words before it that
// take no part: the embedding of the blocks' sum must agree with the one block that holds it all.
func TestBlocksDoNotShow(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	ids := ids(m.Tokenize(nil, []byte(benchText), &s))[:blockTokens]
	m.Embed(new([Dim]float32), nil, &s)
	var whole [Dim]float32
	sums := func(borders ...int) [Dim]float32 {
		clear(s.encoder.sums[:spansOf(len(ids))])
		for i, from := range borders[:len(borders)-1] {
			m.addBlock(ids, from, borders[i+1], &s)
		}
		s.encoder.n, s.encoder.have[0] = len(ids), true
		var view [viewDim]float32
		m.viewRuns(view[:], []run{{to: int32(spansOf(len(ids)))}}, &s)
		return [Dim]float32(view[:])
	}
	whole = sums(0, len(ids))
	for _, at := range []int{1, 2, 3, 4, 5, 60, 92, 93, 94, 95} {
		// Not the same bits: activations are rounded by the largest of their block, and tokens have other
		// neighbours in their pair. Blocks that do not see one another's tokens give 0.9978.
		parts := sums(0, at, len(ids))
		if cosine := dot(&whole, &parts); cosine < 0.999 {
			t.Errorf("blocks that meet at token %d: cosine %.5f with one block", at, cosine)
		}
	}
}

func TestEmbedReadsTheFirstTokensOnly(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	tokens := m.Tokenize(nil, []byte(strings.Repeat(benchText, 40)), &s)
	if len(tokens) <= MaxTokens {
		t.Fatalf("%d tokens are too few", len(tokens))
	}
	var all, first [Dim]float32
	m.Embed(&all, tokens, &s)
	m.Embed(&first, tokens[:MaxTokens], &s)
	if all != first {
		t.Error("tokens after MaxTokens change the embedding")
	}
}

func TestRowOfForeignIDIsTheUnknownPieces(t *testing.T) {
	m := embeddedModel(t)
	var unknown, foreign [Dim]float32
	m.Row(unknown[:], unknownID)
	for _, id := range []int32{-1, 128000, math.MaxInt32, math.MinInt32} {
		if m.Row(foreign[:], id); foreign != unknown {
			t.Errorf("row of id %d is another", id)
		}
	}
}

func TestTokenizeAndEmbedAllocateNothing(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	var vector [Dim]float32
	text := []byte(strings.Repeat(benchText, 3))
	tokens := m.Tokenize(nil, text, &s)
	m.Embed(&vector, tokens, &s)
	if n := testing.AllocsPerRun(10, func() { tokens = m.Tokenize(tokens[:0], text, &s) }); n != 0 {
		t.Errorf("Tokenize: %v allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() { m.Embed(&vector, tokens, &s) }); n != 0 {
		t.Errorf("Embed: %v allocations", n)
	}
}

func TestHashNamesTheWeights(t *testing.T) {
	if h := Hash(); len(h) != 12 || strings.Trim(h, "0123456789abcdef") != "" {
		t.Errorf("hash %q", h)
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	empty := container("{}", "")
	for _, row := range []struct {
		tokens, encoder []byte
		want            string
	}{
		{nil, nil, "cannot read weights"},
		{empty, empty, `cannot open token table: cannot read tensor "kinds": no such tensor`},
		{bytesOf(tokensFile), empty, `cannot open encoder: cannot read tensor "project.weight": no such tensor`},
	} {
		if _, err := open(row.tokens, row.encoder); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("error %v, want %q", err, row.want)
		}
	}
}
