// The small tokenizers of testdata against what the reference library made of the same texts.

package tokenize

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	spans       []Span   // of plain
	two         []uint32 // with the line's number as a second text
	types       []uint8
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
		var spans [][2]uint32
		var types []int
		if err := json.Unmarshal(lines.Bytes(), &[]any{&g.text, &g.plain, &g.with, &spans, &g.two, &types}); err != nil {
			tb.Fatal(err)
		}
		for _, s := range spans {
			g.spans = append(g.spans, Span{s[0], s[1]})
		}
		for _, kind := range types {
			g.types = append(g.types, uint8(kind))
		}
		all = append(all, g)
	}
	return all
}

// frames compares spans, and the frames around one text and around two.
func frames(t *testing.T, tokenizer *Tokenizer, i int, g *golden) {
	t.Helper()
	ids, spans := tokenizer.AppendSpans(nil, nil, []byte(g.text))
	if !slices.Equal(ids, g.plain) || tokenizer.spells() && !slices.Equal(spans, g.spans) {
		t.Errorf("%q:%s", g.text, firstDifference(tokenizer, ids, spans, g.plain, g.spans))
	}
	with, types := tokenizer.Frame(nil, nil, ids)
	if !slices.Equal(with, g.with) || len(types) != len(with) || len(with)-len(ids) != tokenizer.Around(false) {
		t.Errorf("%q framed:\n got %v\nwant %v", g.text, with, g.with)
	}
	second := tokenizer.Append(nil, strconv.AppendInt(nil, int64(i), 10), false)
	two, types, ok := tokenizer.FramePair(nil, nil, ids, second)
	if !ok || !slices.Equal(two, g.two) || !slices.Equal(types, g.types) || len(two)-len(ids)-len(second) != tokenizer.Around(true) {
		t.Errorf("%q and %d:\n got %v\n     %v\nwant %v\n     %v", g.text, i, two, types, g.two, g.types)
	}
}

func TestGolden(t *testing.T) {
	for _, name := range fixtureNames(t) {
		t.Run(name, func(t *testing.T) {
			tokenizer := fixture(t, name)
			for i, g := range goldens(t, name) {
				frames(t, tokenizer, i, &g)
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
