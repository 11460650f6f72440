// Byte for byte: jinja2 in transformers' settings, on real templates and on some of ours.

package template

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const cached = "../../.cache/"

// part skips the test where scripts/parts.sh could not have this real part.
func part(tb testing.TB, name string) {
	tb.Helper()
	if _, err := os.Stat(cached + "parts/" + name); err == nil {
		return
	}
	if os.Getenv("KVASIR_REAL") == "required" {
		tb.Fatalf("the real part %s is missing: scripts/parts.sh %s", name, name)
	}
	tb.Skipf("SKIP real part: %s: scripts/parts.sh %s brings it", name, name)
}

// jinja is a running scripts/tokenizers/templates.py.
type jinja struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func startJinja(t *testing.T) *jinja {
	python := cached + "tokenizers/bin/python"
	if p := os.Getenv("KVASIR_PYTHON"); p != "" {
		python = p
	}
	cmd := exec.Command(python, "../../scripts/tokenizers/templates.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	return &jinja{in, bufio.NewReader(out)}
}

func (j *jinja) template(t *testing.T, source string) {
	t.Helper()
	line, err := json.Marshal(map[string]string{"template": source})
	if err == nil {
		_, err = j.in.Write(append(line, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rendered is what jinja2 says: a text, or why there is none.
type rendered struct{ Text, Error string }

func (j *jinja) render(t *testing.T, vars *Dict) (a rendered) {
	t.Helper()
	line, err := AppendJSON(nil, dict("vars", vars))
	if err == nil {
		_, err = j.in.Write(append(line, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err = j.out.ReadBytes('\n'); err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// clock is strftime_now's in templates.py.
func clock() time.Time { return time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC) }

func compile(t *testing.T, source string) *Template {
	t.Helper()
	c, err := Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	c.Now = clock
	return c
}

// chatTemplate is the template of a tokenizer_config.json, "" if it has none.
func chatTemplate(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Template any `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	s, _ := config.Template.(string)
	return s
}

func TestJinja(t *testing.T) {
	part(t, "tokenizers")
	j := startJinja(t)
	t.Run("real", func(t *testing.T) {
		part(t, "tokenizer-files")
		files, err := filepath.Glob(cached + "tokenizer-files/*/tokenizer_config.json")
		if err != nil || len(files) == 0 {
			t.Fatal("no templates", err)
		}
		for _, f := range files {
			if source := chatTemplate(t, f); source != "" {
				t.Run(filepath.Base(filepath.Dir(f)), func(t *testing.T) { agree(t, j, source, 400) })
			}
		}
	})
	more := os.Getenv("KVASIR_TEMPLATES") // a directory with others
	files, err := filepath.Glob(filepath.Join("testdata", "*.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	if more != "" {
		others, _ := filepath.Glob(filepath.Join(more, "*.jinja"))
		files = append(files, others...)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(f), ".jinja"), func(t *testing.T) { agree(t, j, string(source), 400) })
	}
}

// agree gives n conversations to both.
func agree(t *testing.T, j *jinja, source string, n int) {
	c := compile(t, source)
	j.template(t, source)
	r := rand.New(rand.NewPCG(1, uint64(len(source))))
	wrong, refused := 0, 0
	for i := range n {
		vars := talk(r)
		want := j.render(t, vars)
		got, err := c.Render(nil, vars)
		if want.Error != "" {
			refused++
		}
		if (want.Error != "") == (err != nil) && (err != nil || string(got) == want.Text) {
			continue
		}
		if wrong++; wrong <= 3 {
			line, _ := AppendJSON(nil, vars)
			t.Errorf("conversation %d: %.3000s\n got %.3000q %v\nwant %.3000q %s", i, line, got, err, want.Text, want.Error)
		}
	}
	t.Logf("%d of %d differ; %d of them refused by both", wrong, n, refused)
}
