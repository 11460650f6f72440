// The small tokenizers of testdata against what the reference library made of the same texts.

package tokenize

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixture reads a tokenizer of testdata.
func fixture(tb testing.TB, name string) *Tokenizer {
	tb.Helper()
	t, err := Open(filepath.Join("testdata", name+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func fixtureNames(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		tb.Fatal("no golden files", err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".golden")
	}
	return files
}

// golden is a line of a golden file.
type golden struct {
	text        string
	plain, with []uint32
}

func goldens(tb testing.TB, name string) (all []golden) {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".golden"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &[]any{&g.text, &g.plain, &g.with}); err != nil {
			tb.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

func TestGolden(t *testing.T) {
	for _, name := range fixtureNames(t) {
		t.Run(name, func(t *testing.T) {
			tokenizer := fixture(t, name)
			for _, g := range goldens(t, name) {
				for range 2 { // cold and warm
					if got := tokenizer.Append(nil, []byte(g.text), false); !slices.Equal(got, g.plain) {
						t.Errorf("%q:\n got %v\nwant %v", g.text, got, g.plain)
					}
					if got := tokenizer.Append(nil, []byte(g.text), true); !slices.Equal(got, g.with) {
						t.Errorf("%q with specials:\n got %v\nwant %v", g.text, got, g.with)
					}
				}
			}
		})
	}
}
