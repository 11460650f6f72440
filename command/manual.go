// Manual: the pages of man(1), made of what the commands say of themselves, so that nothing is written twice.

package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A manual is what its pages have in common.
type manual struct {
	version string
	date    string // 2026-11-28; "": not known
}

func manualOf(p Program) manual {
	day, _, _ := strings.Cut(p.Date, "T")
	return manual{version: p.Version, date: day}
}

// write makes one page of each command in a folder: kvasir.1, kvasir-serve.1 and so on.
func (m manual) write(root *cobra.Command, folder string) error {
	for _, cmd := range append([]*cobra.Command{root}, pagesOf(root)...) {
		var b strings.Builder
		m.page(&b, cmd)
		file := filepath.Join(folder, pageName(cmd)+".1")
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			return fmt.Errorf("cannot write a manual page: %w", err)
		}
	}
	return nil
}

// pagesOf are the commands that have a page of their own.
func pagesOf(root *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			found = append(found, cmd)
		}
	}
	return found
}

// exitStatus is the annotation of a command that exits with more than 0, 1 and 2: what its page says of that, after those.
const exitStatus = "exit status"

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page writes the page of one command, for the macros man of groff and mandoc.
func (m manual) page(w io.Writer, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	name := pageName(cmd)
	fmt.Fprintf(w, ".TH %s 1 \"%s\" \"%s\" \"Kvasir\"\n", roff.Replace(strings.ToUpper(name)), m.date, roff.Replace("kvasir "+m.version))
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff.Replace(name), roff.Replace(cmd.Short))
	use, _, _ := strings.Cut(cmd.UseLine(), " [flags]")
	if !cmd.HasParent() {
		use += " [command]"
	}
	fmt.Fprintf(w, ".SH SYNOPSIS\n\\fB%s\\fR [flags]\n", roff.Replace(use))
	manualDescription(w, cmd)
	fmt.Fprint(w, ".SH OPTIONS\n")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { manualFlag(w, f) })
	if cmd.HasExample() {
		fmt.Fprint(w, ".SH EXAMPLES\n.EX\n")
		for line := range strings.Lines(cmd.Example) {
			fmt.Fprintln(w, roffLine(strings.TrimSuffix(line, "\n")))
		}
		fmt.Fprint(w, ".EE\n")
	}
	fmt.Fprintf(w, ".SH EXIT STATUS\n0: good; 1: failed; 2: the command line or the configuration is wrong%s.\n", roff.Replace(cmd.Annotations[exitStatus]))
	if cmd.Flags().Lookup("config") != nil {
		fmt.Fprint(w, ".SH ENVIRONMENT\n.TP\nKVASIR_CONFIG\nthe configuration file where \\-\\-config names none\n"+
			".TP\nKVASIR_*\nany key of the configuration: KVASIR_SERVER_LISTEN is server.listen\n")
	}
	if cmd.HasParent() {
		fmt.Fprint(w, ".SH SEE ALSO\n.BR kvasir (1)\n")
	}
}

// manualDescription writes what the command says at length, and the list of commands.
func manualDescription(w io.Writer, cmd *cobra.Command) {
	fmt.Fprint(w, ".SH DESCRIPTION\n")
	for i, paragraph := range strings.Split(strings.TrimSpace(longOrShort(cmd)), "\n\n") {
		if i > 0 {
			fmt.Fprint(w, ".PP\n")
		}
		for line := range strings.Lines(paragraph) {
			fmt.Fprintln(w, roffLine(strings.TrimSuffix(line, "\n")))
		}
	}
	if !cmd.HasParent() {
		fmt.Fprint(w, ".SH COMMANDS\n")
		for _, c := range pagesOf(cmd) {
			fmt.Fprintf(w, ".TP\n.BR %s (1)\n%s\n", roff.Replace(pageName(c)), roffLine(c.Short))
		}
	}
}

func manualFlag(w io.Writer, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	short := ""
	if f.Shorthand != "" {
		short = "\\fB\\-" + f.Shorthand + "\\fR, "
	}
	fmt.Fprintf(w, ".TP\n%s\\fB\\-\\-%s\\fR", short, roff.Replace(f.Name))
	if value != "" && f.Value.Type() != "bool" {
		fmt.Fprintf(w, " \\fI%s\\fR", roff.Replace(value))
	}
	fmt.Fprintf(w, "\n%s\n", roffLine(usage))
	switch f.DefValue {
	case "", "0", "false", "[]", "0s":
	default:
		fmt.Fprintf(w, "(default %s)\n", roff.Replace(f.DefValue))
	}
}

func longOrShort(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short
}

// roff escapes what would be typeset otherwise: a hyphen as a dash, quotes as curly ones.
var roff = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, `"`, `\(dq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`)

// roffLine is a line of text; one that begins with a dot would be a request.
func roffLine(line string) string {
	line = roff.Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}
