// Kvasir: an LLM gateway between OpenAI clients and GPU inference workers.
//
// This file has the commands; what each does stands in the file of its name.
//
//	kvasir [serve] [--config F]          serve.go
//	kvasir check [--config F] [--live]   check.go
//	kvasir explain [--config F] < F      explain.go
//	kvasir classify [--config F] < F     classifycmd.go
//	kvasir similar [--config F] < F      similarcmd.go
//	kvasir replay --trace F ...          replaycmd.go
//	kvasir simulate --listen A ...       simulate.go
//	kvasir gpu [--watch] [--json]        gpucmd.go
//	kvasir health [--config F]           healthcmd.go
//	kvasir version                       version.go
//
// Exit codes: 0 good, 1 failed, 2 wrong usage or configuration.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.DurationFieldUnit = time.Millisecond
	os.Exit(execute(os.Args[1:]))
}

// A usageError is a command line that cannot be understood.
type usageError string

func (e usageError) Error() string { return string(e) }

// execute runs one command line and gives its exit code. Messages go to
// stderr, what was asked for to stdout.
func execute(args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	var bad problems
	var usage usageError
	switch {
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

func rootCommand() *cobra.Command {
	root := serveCommand("kvasir")
	root.Short = "LLM gateway between OpenAI clients and GPU inference workers"
	root.Long = `Kvasir is an LLM gateway: OpenAI clients on one side, GPU inference workers
(vLLM, SGLang, TensorRT-LLM, any OpenAI server) on the other. Without a command
it serves; without --config with two simulated workers, to try things out.`
	root.Example = `  kvasir                                       serve on 127.0.0.1:8080 with two simulated workers
  kvasir --config kvasir.yaml                  serve your own workers
  kvasir check --config kvasir.yaml --live     is the file good, do its workers answer
  kvasir simulate --listen 127.0.0.1:8000      one simulated worker
  kvasir serve --help                          every command has examples`
	serve := serveCommand("serve")
	root.AddCommand(serve, checkCommand(), explainCommand(), classifyCommand(), similarCommand(), replayCommand(), simulateCommand(), gpuCommand(), healthCommand(), versionCommand(), completionCommand())
	root.SetHelpCommand(helpCommand())
	root.Version = version
	root.SetVersionTemplate("kvasir {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(helpTemplate)
	root.SetFlagErrorFunc(flagError)
	for _, c := range append(root.Commands(), root) {
		if c.Args == nil {
			c.Args = noArguments
		}
	}
	return root
}

// serveCommand is `kvasir serve`, and `kvasir` alone does the same.
func serveCommand(name string) *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   name,
		Short: "Serve the OpenAI API (the default)",
		Long: `Serves the OpenAI API until SIGTERM or SIGINT, then lets running streams finish;
a second signal stops at once. SIGHUP, a changed file and POST /reload on the
admin listener read the configuration again.`,
		Example: `  kvasir serve
  kvasir serve --config config.yaml
  kvasir serve --set workers='[{url: http://10.0.0.5:8000}]' --set simulate='[]'
  KVASIR_SERVER_LISTEN=:8080 kvasir serve`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.checkSet(); err != nil {
				return err
			}
			signals := make(chan os.Signal, 4)
			signal.Notify(signals, append([]os.Signal{syscall.SIGHUP}, stopSignals...)...)
			defer signal.Stop(signals)
			// A reader of our log that ended shall not end us.
			signal.Ignore(syscall.SIGPIPE)
			return serve(flags.layers(cmd), signals)
		},
	}
	flags.add(cmd)
	return cmd
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
		return usageError(fmt.Sprintf("%s takes no argument %s%s", cmd.Name(), quote(args[0]), hint))
	}
	return usageError(fmt.Sprintf("there is no command %s%s", quote(args[0]), didYouMean(args[0], commandNames(cmd))))
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
		hint = didYouMean("--"+name, names)
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

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Help for a command",
		Example: "  kvasir help serve",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			target, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return noArguments(root, append(slices.Clone(rest), args...))
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

func completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash": func(root *cobra.Command) error { return root.GenBashCompletionV2(os.Stdout, true) },
		"zsh":  func(root *cobra.Command) error { return root.GenZshCompletion(os.Stdout) },
		"fish": func(root *cobra.Command) error { return root.GenFishCompletion(os.Stdout, true) },
	}
	names := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the completion script of a shell",
		Example: `  source <(kvasir completion bash)
  kvasir completion zsh > "${fpath[1]}/_kvasir"
  kvasir completion fish > ~/.config/fish/completions/kvasir.fish`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one shell: bash, zsh or fish")
			}
			if shells[args[0]] == nil {
				return usageError(fmt.Sprintf("no completion for %s, only for %s%s", quote(args[0]), words(names, "and"), didYouMean(args[0], names)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root()) },
	}
}

// helpTemplate shows examples first: most people want one of them.
const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}{{end}}
{{if .HasExample}}
Examples:
{{.Example}}
{{end}}
Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} [command] [flags]{{else}}{{.UseLine}}{{end}}
{{if .HasAvailableSubCommands}}
Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}`
