// The command lines of the pages: each is one that the program takes.

package command

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```(?:sh|console|bash)\n(.*?)^```")
	ofKvasir   = regexp.MustCompile(`(?:^|[ (])(?:bin/|kvasir )?kvasir( [^|<>#;&)]*)?`)
)

// TestCommandsOfPages reads every command line with kvasir in the pages as the program does, but runs none.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	do(t, err)
	count := 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		do(t, err)
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for _, line := range strings.Split(strings.ReplaceAll(block[1], "\\\n", " "), "\n") {
				found := ofKvasir.FindStringSubmatch(quotedAway(line))
				if found == nil || otherPrograms.MatchString(strings.TrimPrefix(line, "$ ")) {
					continue
				}
				count++
				takes(t, filepath.Base(page), line, strings.Fields(found[1]))
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d command lines were found", count)
	}
}

// otherPrograms begin lines in which kvasir is a file, an image or a service.
var otherPrograms = regexp.MustCompile(`^(sudo|docker|helm|kubectl|make|tar|cd|cp|curl|mkdir|chmod|git|for|hot=|go|xattr|install|journalctl|systemctl)\b`)

// takes wants the program to know the command and its flags.
func takes(t *testing.T, page, line string, args []string) {
	t.Helper()
	root := rootCommand(Program{Version: "dev"})
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		t.Errorf("%s: %s\n%v", page, line, err)
		return
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: %s\n%v", page, line, err)
		return
	}
	if args := cmd.Flags().Args(); len(args) > 0 && !slices.Equal(args, []string{"..."}) {
		if err := cmd.ValidateArgs(args); err != nil {
			t.Errorf("%s: %s\n%v", page, line, err)
		}
	}
}

// quotedAway is a line whose quoted parts are one word each, so that it can be cut at blanks and signs of the shell.
func quotedAway(line string) string {
	var out strings.Builder
	var quote rune
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
			out.WriteByte('q')
		case quote == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}
