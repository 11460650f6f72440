// Tests of the manual pages.

package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManual wants a page of each command, with each of its flags and the lines of its examples, that the programs
// which show manual pages have nothing to say about.
func TestManual(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	root := rootCommand(Program{Version: "v1.2.3-4-gabc", Date: "2026-11-28T21:08:58+00:00"})
	root.SetArgs([]string{"help", "--man-pages", folder})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	commands := append([]*cobra.Command{root}, root.Commands()...)
	pages := 0
	for _, cmd := range commands {
		if !cmd.IsAvailableCommand() && cmd != root || cmd.Name() == "help" {
			continue
		}
		pages++
		text, err := os.ReadFile(filepath.Join(folder, pageName(cmd)+".1"))
		if err != nil {
			t.Fatal(err)
		}
		page := string(text)
		if !strings.HasPrefix(page, ".TH "+roff.Replace(strings.ToUpper(pageName(cmd)))+" 1 \"2026-11-28\" \"kvasir v1.2.3\\-4\\-gabc\"") {
			t.Errorf("%s begins with %.80q", cmd.CommandPath(), page)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, `\fB\-\-`+roff.Replace(f.Name)+`\fR`) {
				t.Errorf("the page of %q has no --%s", cmd.CommandPath(), f.Name)
			}
		})
		if _, status, found := strings.Cut(page, ".SH EXIT STATUS\n"); !found || strings.Contains(strings.SplitN(status, "\n", 2)[0], "; 3: ") != (cmd.Name() == "drain") {
			t.Errorf("the page of %q says of its exit status %.100q", cmd.CommandPath(), status)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.Contains(page, "\n"+roffLine(strings.TrimSuffix(line, "\n"))+"\n") {
				t.Errorf("the page of %q lacks the example %q", cmd.CommandPath(), line)
			}
		}
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "'") {
				t.Errorf("the page of %q has the line %q, which is read as a request", cmd.CommandPath(), line)
			}
		}
	}
	if files, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(files) != pages || pages < 10 {
		t.Errorf("%d files for %d commands, %v", len(files), pages, err)
	}
	for _, lint := range [][]string{{"groff", "-man", "-ww", "-z", "-Tutf8"}, {"mandoc", "-T", "lint", "-W", "warning"}} {
		if _, err := exec.LookPath(lint[0]); err != nil {
			continue
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.1"))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(lint[0], append(lint[1:], files...)...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", lint[0], err, out)
		}
	}
}

// TestManualOnStdout: the page alone, as `man -l -` takes it, and what is no command has none.
func TestManualOnStdout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, begins, problem string }{
		{"help serve --man", ".TH KVASIR\\-SERVE 1 ", ""},
		{"help --man", ".TH KVASIR 1 ", ""},
		{"help serv --man", "", `there is no command "serv", did you mean "serve"?`},
		{"help --man-pages /nowhere/at/all", "", "cannot write a manual page: open /nowhere/at/all/kvasir.1: no such file or directory"},
	} {
		var out bytes.Buffer
		root := rootCommand(Program{Version: "dev"})
		root.SetOut(&out)
		root.SetArgs(strings.Fields(c.args))
		problem := ""
		if err := root.Execute(); err != nil {
			problem = err.Error()
		}
		if problem != c.problem || !strings.HasPrefix(out.String(), c.begins) || c.begins == "" && out.Len() > 0 {
			t.Errorf("%s: %q, and prints %.60q", c.args, problem, out.String())
		}
	}
}
