// The command line: which commands there are, and what is said of one that cannot be understood.

// Package command has the commands of the program, each in the file of its
// name:
//
//	kvasir [serve] [--config F]
//	kvasir check [--config F] [--live]
//	kvasir import --from PROGRAM FILE
//	kvasir explain [--config F] < F
//	kvasir classify [--config F] < F
//	kvasir similar [--config F] < F
//	kvasir replay --trace F ...
//	kvasir plan --trace F ...
//	kvasir simulate --listen A ...
//	kvasir register --etcd URL --url URL ...
//	kvasir drain WORKER [--wait | --undo]
//	kvasir gpu [--watch] [--json]
//	kvasir health [--config F]
//	kvasir version
//	kvasir help [--man] COMMAND
//
// Exit codes: 0 good, 1 failed, 2 wrong usage or configuration, 3 a worker that drains has not ended in
// time what it has.
//
//	os.Exit(command.Main(os.Args[1:], command.Program{Version: version, Config: builtIn}))
package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvasir/config"
	"kvasir/wording"
)

// A Program is what the commands know of the binary that they are in.
type Program struct {
	Version string // "v1.2.3"
	Date    string // when its source was committed, RFC 3339; "": not known
	Config  []byte // the configuration that runs where no file is named
}

// A usageError is a command line that cannot be understood.
type usageError string

func (e usageError) Error() string { return string(e) }

// Main runs one command line, without the program's name, and gives its exit
// code. Messages go to stderr, what was asked for to stdout.
func Main(args []string, p Program) int {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.DurationFieldUnit = time.Millisecond
	root := rootCommand(p)
	root.SetArgs(args)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	var bad config.Problems
	var usage usageError
	var busy busyError
	switch {
	case errors.As(err, &busy):
		fmt.Fprintln(os.Stderr, "kvasir: "+busy.Error())
		return 3
	case errors.As(err, &bad):
		fmt.Fprintln(os.Stderr, bad.Error())
		return 2
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "kvasir: %v\nRun %q for help.\n", err, cmd.CommandPath()+" --help")
		return 2
	}
	fmt.Fprintln(os.Stderr, "kvasir: "+err.Error())
	return 1
}

func rootCommand(p Program) *cobra.Command {
	root := serveCommand("kvasir", p)
	root.Short = "LLM gateway between OpenAI clients and GPU inference workers"
	root.Long = `Kvasir is an LLM gateway: OpenAI clients on one side, GPU inference workers
(vLLM, SGLang, TensorRT-LLM, any OpenAI server) on the other. Without a command
it serves; without --config with two simulated workers, to try things out.`
	root.Example = `  kvasir                                       serve on 127.0.0.1:8080 with two simulated workers
  kvasir --config kvasir.yaml                  serve your own workers
  kvasir check --config kvasir.yaml --live     is the file good, do its workers answer
  kvasir simulate --listen 127.0.0.1:8000      one simulated worker
  kvasir serve --help                          every command has examples`
	root.AddCommand(serveCommand("serve", p), checkCommand(p), importCommand(), explainCommand(p), classifyCommand(p), similarCommand(p), replayCommand(), planCommand(),
		simulateCommand(), registerCommand(), drainCommand(p), gpuCommand(p), healthCommand(p), versionCommand(p), completionCommand())
	root.SetHelpCommand(helpCommand(manualOf(p)))
	root.Version = p.Version
	root.SetVersionTemplate("kvasir {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { writeHelp(cmd.OutOrStderr(), cmd); return nil })
	root.SetFlagErrorFunc(flagError)
	for _, c := range append(root.Commands(), root) {
		if c.Args == nil {
			c.Args = noArguments
		}
	}
	return root
}

// noArguments refuses words that are no command and no flag.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if ext := filepath.Ext(args[0]); ext == ".yaml" || ext == ".yml" {
		hint = fmt.Sprintf(", did you mean %q?", "--config "+args[0])
	}
	if cmd.HasParent() || hint != "" {
		return usageError(fmt.Sprintf("%s takes no argument %s%s", cmd.Name(), wording.Quote(args[0]), hint))
	}
	return usageError(fmt.Sprintf("there is no command %s%s", wording.Quote(args[0]), wording.DidYouMean(args[0], commandNames(cmd))))
}

func commandNames(root *cobra.Command) []string {
	names := []string{"help"}
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// flagError says which flag was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := strings.TrimLeft(unknown.GetSpecifiedName(), "-")
		hint = wording.DidYouMean("--"+name, names)
		if other := otherFlags[name]; slices.Contains(names, other) {
			hint = fmt.Sprintf(", did you mean %q?", other)
		}
	}
	return usageError(err.Error() + hint)
}

// otherFlags are what other programs call ours.
var otherFlags = map[string]string{
	"port": "--listen", "p": "--listen", "host": "--listen", "address": "--listen", "bind": "--listen",
	"c": "--config", "f": "--config", "file": "--config", "verbose": "--log-level", "debug": "--log-level", "served-model-name": "--model",
}

func helpCommand(m manual) *cobra.Command {
	var man bool
	var folder string
	help := &cobra.Command{
		Use:   "help [command]",
		Short: "Help for a command, also as a manual page",
		Example: `  kvasir help serve
  kvasir help serve --man | man -l -
  kvasir help --man-pages /usr/local/share/man/man1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			target, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return noArguments(root, append(slices.Clone(rest), args...))
			}
			switch {
			case folder != "":
				return m.write(root, folder)
			case man:
				m.page(cmd.OutOrStdout(), target)
				return nil
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
	help.Flags().BoolVar(&man, "man", false, "print it as a manual page, for man(1)")
	help.Flags().StringVar(&folder, "man-pages", "", "write the manual pages of all commands into a `folder`")
	_ = help.MarkFlagDirname("man-pages")
	return help
}
