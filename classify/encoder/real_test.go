package encoder

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const cached = "../../.cache/"

// minilm is the directory of all-MiniLM-L6-v2, real weights.
func minilm(tb testing.TB) string {
	tb.Helper()
	const part = "encoder-tokenizers"
	if _, err := os.Stat(cached + "parts/" + part); err == nil {
		return filepath.Join(cached, part, "minilm")
	}
	if os.Getenv("KVASIR_REAL") == "required" {
		tb.Fatalf("the real part %s is missing: scripts/parts.sh %[1]s", part)
	}
	tb.Skipf("SKIP real part: %s: scripts/parts.sh %[1]s brings it", part)
	return ""
}

// The embeddings of a real model are those of the reference library, in 8 bits as far as 8 bits go.
func TestRealEmbeddings(t *testing.T) {
	dir := minilm(t)
	all := readExpected(t, "testdata/minilm-embeddings.json")
	e, s := mustOpen(t, dir, inInt8), new(Scratch)
	for _, want := range all {
		if len(want.IDs) > e.net.most {
			t.Fatalf("a text has %d tokens", len(want.IDs))
		}
		got, err := e.Embed(nil, []byte(want.Text), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.ids, want.IDs) {
			t.Fatalf("%q: ids %v, want %v", want.Text, s.ids, want.IDs)
		}
		least := 0.999
		if want.Text == "" {
			least = 0.997 // what two tokens that are in every text give
		}
		if c := cosine(got, want.Embedding); c < least {
			t.Errorf("%q: the cosine is %.5f", want.Text, c)
		}
	}
	slow := mustOpen(t, dir, inFloats)
	for _, want := range all[:2] { // a short text takes floats half a second
		got, err := slow.Embed(nil, []byte(want.Text), new(Scratch), nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := distance(got, want.Embedding); d > 1e-4 {
			t.Errorf("%q in floats: off by %g", want.Text, d)
		}
	}
}
