// Tokens up to a mark are kept when tokenising goes on from it, also for a text that only begins
// like the first one.

package tokenize

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMarks(t *testing.T) {
	files := map[string]string{}
	for _, name := range fixtureNames(t) {
		files[name] = filepath.Join("testdata", name+".json")
	}
	for _, name := range realFiles {
		if path := filepath.Join(cached+"tokenizer-files", name, "tokenizer.json"); exists(path) {
			files[name] = path
		}
	}
	for name, path := range files {
		t.Run(name, func(t *testing.T) {
			tokenizer, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			marks := 0
			m := newTexts(7, tokenizer)
			r := rand.New(rand.NewPCG(1, 2))
			for range 2000 {
				marks += cutAtMarks(t, tokenizer, []byte(m.text()), []byte(m.text()), r)
			}
			t.Log(marks, "marks")
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// cutAtMarks resumes at each mark of a text, with the rest of that text and with another rest.
func cutAtMarks(t *testing.T, tokenizer *Tokenizer, text, other []byte, r *rand.Rand) int {
	t.Helper()
	whole, marks := tokenizer.AppendMarks(nil, nil, text, false)
	if want := tokenizer.Append(nil, text, false); !slices.Equal(whole, want) {
		t.Fatalf("%q:\n got %v\nwant %v", text, whole, want)
	}
	for _, m := range marks {
		got, _ := tokenizer.AppendMarks(slices.Clone(whole[:m.Token]), nil, text[m.Byte:], true)
		if !slices.Equal(got, whole) {
			t.Fatalf("%q at %v:\n got %v\nwant %v", text, m, got, whole)
		}
		keep := m.Byte + tokenizer.Reach()
		if keep > len(text) {
			continue
		}
		keep += r.IntN(len(text) - keep + 1)
		changed := append(slices.Clone(text[:keep]), other...)
		got, _ = tokenizer.AppendMarks(slices.Clone(whole[:m.Token]), nil, changed[m.Byte:], true)
		if want := tokenizer.Append(nil, changed, false); !slices.Equal(got, want) {
			t.Fatalf("%q from %v:\n got %v\nwant %v", changed, m, got, want)
		}
	}
	return len(marks)
}
