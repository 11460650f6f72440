// Tests of `kvasir similar`.

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// similar runs the command over lines and returns what it writes of each.
func similar(t *testing.T, args []string, in string) (lines []map[string]any, code int) {
	t.Helper()
	cmd := command(t, nil, append([]string{"similar"}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	for line := range strings.Lines(string(out)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, stderr.String())
		}
		lines = append(lines, m)
	}
	return lines, cmd.ProcessState.ExitCode()
}

func TestSimilarPairs(t *testing.T) {
	t.Parallel()
	lines, code := similar(t, nil, `{"a":"How do I reset my password?","b":"How do I reset my password? "}
{"a":"How do I reset my password?","b":"how can I reset my password"}
{"a":"How tall is Mont Blanc?","b":"How tall is Mont Ventoux?"}
{"a":"How tall is Mont Blanc?","b":"Write a haiku about autumn rain."}

{"a":"How tall is Mont Blanc?"}
[1]
`)
	if len(lines) != 6 || code != 1 {
		t.Fatalf("%d lines, exit code %d: %v", len(lines), code, lines)
	}
	for i, want := range []bool{true, true, false, false} {
		l := lines[i]
		if l["hit"] != want || (l["why"] == "") != want {
			t.Errorf("line %d is %v", i+1, l)
		}
		if similarity := l["similarity"].(float64); similarity < -1 || similarity > 1 || want && similarity < 0.55 {
			t.Errorf("line %d has the similarity %v", i+1, similarity)
		}
	}
	for i, want := range []string{`the line has no "a" or no "b"`, `the line must be an object with "a" and "b", is a JSON array`} {
		if lines[4+i]["error"] != want {
			t.Errorf("line %d is %v", 5+i, lines[4+i])
		}
	}
}

// The threshold is the configuration's.
func TestSimilarThreshold(t *testing.T) {
	t.Parallel()
	const pair = `{"a":"How do I reset my password?","b":"how can I reset my password"}` + "\n"
	low, _ := similar(t, []string{"--set", "cache.threshold=0.001"}, pair)
	high, _ := similar(t, []string{"--set", "cache.threshold=1"}, pair)
	if low[0]["hit"] != true || high[0]["hit"] != false || high[0]["why"] != "score" || low[0]["score"] != high[0]["score"] {
		t.Errorf("%v, %v", low, high)
	}
}

func TestSimilarStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "texts")
	do(t, os.WriteFile(path, []byte("How tall is Mont Blanc?\r\n\r\nHow do I reset my password?\nHow do I bake bread?\n"), 0o600))
	lines, code := similar(t, []string{"--store", path}, `{"b":"how can I reset my password?"}
{"b":"How do I bake bread?"}
{"b":"How tall is Mont Ventoux?"}
{"a":"x"}
`)
	if len(lines) != 4 || code != 1 {
		t.Fatalf("%d lines, exit code %d: %v", len(lines), code, lines)
	}
	for i, want := range []struct {
		a    string
		line float64
		hit  bool
	}{{"How do I reset my password?", 3, true}, {"How do I bake bread?", 4, true}, {"How tall is Mont Blanc?", 1, false}} {
		if l := lines[i]; l["a"] != want.a || l["line"] != want.line || l["hit"] != want.hit {
			t.Errorf("line %d is %v", i+1, l)
		}
	}
	if lines[1]["similarity"] != 1.0 || lines[3]["error"] != `the line has no "b"` {
		t.Errorf("%v", lines)
	}
	if _, code := similar(t, []string{"--store", path + ".none"}, ""); code != 1 {
		t.Errorf("a file that is not there: exit code %d", code)
	}
}
