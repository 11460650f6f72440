// Help: what --help prints of a command.

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeHelp shows examples before the flags: most people want one of them.
func writeHelp(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintln(w, strings.TrimSpace(longOrShort(cmd)))
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " [command] [flags]"
	}
	fmt.Fprintf(w, "\nUsage:\n  %s\n", use)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(w, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s", flagUsages(cmd.LocalFlags()))
	}
}

// flagUsages are the flags as pflag lists them, but --json where it would say --json[=true|false]: nobody
// types that, and it widens the column of names.
func flagUsages(flags *pflag.FlagSet) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			plain := *f
			plain.Value = struct{ pflag.Value }{f.Value} // without IsBoolFlag, which pflag looks for
			f = &plain
		}
		shown.AddFlag(f)
	})
	return shown.FlagUsages()
}
