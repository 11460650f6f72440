// The same conversations without jinja2 at hand: testdata/golden.txt has a hash of what it answered.

package template

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

var update = flag.Bool("update", false, "ask jinja2 anew for testdata/golden.txt")

const goldenEach = 150

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jinja")
	if err != nil || len(files) == 0 {
		t.Fatal("no templates", err)
	}
	if *update {
		part(t, "tokenizers")
	}
	want, err := os.ReadFile("testdata/golden.txt")
	if err != nil && !*update {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&got, filepath.Base(f))
		answer := ours(t, string(source))
		if *update {
			j := startJinja(t)
			j.template(t, string(source))
			answer = func(vars *Dict) rendered { return j.render(t, vars) }
		}
		r := rand.New(rand.NewPCG(9, 9))
		for i := range goldenEach {
			a := answer(talk(r))
			said := "refused"
			if a.Error == "" {
				said = fmt.Sprintf("%016x %d", xxh3.HashString(a.Text), len(a.Text))
			}
			fmt.Fprintln(&got, i, said)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/golden.txt", []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	ours, theirs := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(ours), len(theirs)) {
		if i >= len(ours) || i >= len(theirs) || ours[i] != theirs[i] {
			t.Fatalf("line %d of golden.txt and on (scripts/parts.sh tokenizers, then TestJinja shows the texts)", i+1)
		}
	}
}

func ours(t *testing.T, source string) func(*Dict) rendered {
	c := compile(t, source)
	return func(vars *Dict) rendered {
		text, err := c.Render(nil, vars)
		if err != nil {
			return rendered{Error: err.Error()}
		}
		return rendered{Text: string(text)}
	}
}
