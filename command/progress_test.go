// Tests of progress on a terminal.

package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgressBar(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	bar := &progressBar{to: &out, all: 1000}
	for n := range 1000 {
		bar.set(n + 1)
	}
	bar.clear()
	lines := strings.Split(out.String(), "\r")
	if len(lines) != 103 || lines[50] != "[====================                    ]  50 %" || lines[102] != "" {
		t.Errorf("%d pieces: %q", len(lines), lines)
	}
}

// TestProgressOnATerminal has util-linux's script give the commands a terminal for stderr.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip(err)
	}
	kvasir, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(t.TempDir(), "in.jsonl")
	do(t, os.WriteFile(in, bytes.Repeat([]byte("{\"text\": \"What is two and two?\"}\n"), 2500), 0o600))
	for _, c := range []struct{ what, command, shows string }{
		{"a replay", kvasir + " replay --trace " + replayTrace + " > /dev/null", "[========================================] 100 %"},
		{"a file", kvasir + " classify < " + in + " > /dev/null", "[========================================] 100 %"},
		{"a pipe", "cat " + in + " | " + kvasir + " classify > /dev/null", "\r2500 lines"},
		{"output on the terminal", "head -3 " + in + " | " + kvasir + " classify", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), script, "--quiet", "--return", "--command", c.command, "/dev/null")
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err != nil || !strings.Contains(text, c.shows) {
				t.Errorf("%v: %q", err, text)
			}
			if c.shows == "" && (strings.Contains(text, "%") || strings.Contains(text, " lines")) {
				t.Errorf("%q", text)
			}
			if c.shows != "" && strings.TrimSpace(text[strings.LastIndex(strings.TrimRight(text, "\r\n"), "\r")+1:]) != "" {
				t.Errorf("it leaves something on the line: %q", text)
			}
		})
	}
	if out, err := exec.Command("sh", "-c", kvasir+" classify < "+in+" 2>&1 >/dev/null").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("without a terminal it says %q, %v", out, err)
	}
}
