// Lines to classify as they come.

package command

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"kvasir/config"
)

func plainConfig(t *testing.T) *config.Config {
	t.Helper()
	builtIn, err := os.ReadFile("../config.yaml")
	do(t, err)
	g, _, err := (&config.Layers{BuiltIn: builtIn}).Load()
	do(t, err)
	return g.Config
}

func TestClassifyOddLines(t *testing.T) {
	var out bytes.Buffer
	in := "\ufeff{\"text\": \"a\"}\r\n\r\n5\n{\"text\": 5}\n{\"text\": \"b\"} c\nnull\n{\"text\": \"last, no line end\"}"
	err := classifyLines(plainConfig(t), strings.NewReader(in), &out)
	if err == nil || !strings.Contains(err.Error(), "4 lines") {
		t.Errorf("the error is %v", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		`{"category":`, `must be an object with \"text\" or \"messages\", is a JSON number`, `\"text\" must be a string, is a JSON number`,
		"the line is not JSON", "neither", `{"category":`,
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d is not as %q: %.200q", i, want, lines)
		}
	}
}

// endless is input that never ends.
type endless struct{ line string }

func (e endless) Read(b []byte) (int, error) { return copy(b, e.line), nil }

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// All of the input was classified though nothing could be written any more.
func TestClassifyEndsWhenNothingCanBeWritten(t *testing.T) {
	if err := classifyLines(plainConfig(t), endless{`{"text":"a"}` + "\n"}, fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("the error is %v", err)
	}
}
