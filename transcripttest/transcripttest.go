// Package transcripttest tests what is told as a story: a file in testdata of commands and what they
// answered. A test plays the commands again, and the answers have to be the same.
//
// A transcript is a row of blocks with a blank line between two: commands, a line of four dashes,
// their answers. Lines with # are comments. With -update the answers are written anew, for a person
// to read the difference.
//
//	transcripttest.Run(t, "testdata/*.txt", func(t *testing.T, text string) string {
//		s := newStory(t)
//		return transcripttest.Replay(text, s.tell, s.told)
//	})
package transcripttest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers into the transcripts")

// Run plays each file of a pattern in a test of its own. play gives the transcript as it comes out now.
func Run(t *testing.T, pattern string, play func(t *testing.T, text string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s\n--- want\n%s\n--- got\n%s", file, want, got)
			}
		})
	}
}

// Replay tells the commands of a transcript one after the other, and puts what was answered since the
// last block in the place of its answers.
func Replay(text string, tell func(command string), told func() string) string {
	var out strings.Builder
	answers := false // the old ones, which are left out
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case answers:
			if answers = line != ""; !answers {
				out.WriteString("\n")
			}
		case line == "----":
			answers = true
			out.WriteString("----\n" + told())
		default:
			out.WriteString(line + "\n")
			if line != "" && line[0] != '#' {
				tell(line)
			}
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}
