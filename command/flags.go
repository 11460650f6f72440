// Flags: the part of the configuration that stands on the command line.

package command

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kvasir/config"
)

// configFlags are the flags of every command that reads a configuration.
type configFlags struct {
	builtIn                          []byte // the configuration that runs where no file is named
	config                           string
	listen, admin, logLevel, logForm string
	set                              []string
}

func (f *configFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.config, "config", "", "configuration `file`; default: $KVASIR_CONFIG, else the built-in one")
	fs.StringVar(&f.listen, "listen", "", "`address` of the OpenAI API: server.listen")
	fs.StringVar(&f.admin, "admin", "", "`address` of metrics and health: server.admin; \"\" switches it off")
	fs.StringVar(&f.logLevel, "log-level", "", "log `level`: trace, debug, info, warn or error")
	fs.StringVar(&f.logForm, "log-format", "", "log `format`: auto, pretty or json")
	fs.StringArrayVar(&f.set, "set", nil, "set any key of the configuration, as `path=value`; may be given again")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	complete := func(name string) {
		path := strings.ReplaceAll(name, "-", ".")
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(config.Find(path).OneOf, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("log-level")
	complete("log-format")
	_ = cmd.RegisterFlagCompletionFunc("set", completePaths)
}

// completePaths offers the paths of all keys that can be set.
func completePaths(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var paths []string
	for _, path := range config.Paths() {
		paths = append(paths, path+"=")
	}
	return paths, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// layers are the sources that the flags and the environment name.
func (f *configFlags) layers(cmd *cobra.Command) *config.Layers {
	l := &config.Layers{File: f.config, BuiltIn: f.builtIn, Environ: os.Environ()}
	if !cmd.Flags().Changed("config") {
		l.File = os.Getenv("KVASIR_CONFIG")
	}
	for _, s := range []struct{ flag, path, text string }{
		{"listen", "server.listen", f.listen},
		{"admin", "server.admin", f.admin},
		{"log-level", "log.level", f.logLevel},
		{"log-format", "log.format", f.logForm},
	} {
		if cmd.Flags().Changed(s.flag) {
			l.Flags = append(l.Flags, config.FlagValue{Flag: "--" + s.flag, Path: s.path, Text: s.text})
		}
	}
	for _, s := range f.set {
		path, text, _ := strings.Cut(s, "=")
		l.Flags = append(l.Flags, config.FlagValue{Flag: "--set " + path, Path: path, Text: text})
	}
	return l
}

// checkSet wants --set as path=value; the rest is checked with the other layers.
func (f *configFlags) checkSet() error {
	for _, s := range f.set {
		if !strings.Contains(s, "=") {
			return usageError("--set " + s + ": write it as path=value")
		}
	}
	return nil
}

// load reads the configuration that the flags lead to.
func (f *configFlags) load(cmd *cobra.Command) (*config.Generation, error) {
	if err := f.checkSet(); err != nil {
		return nil, err
	}
	g, _, err := f.layers(cmd).Load()
	return g, err
}
