// Version: what this binary is and how it was built.

package command

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"kvasir/classify"
	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/gpu"
)

func versionCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and how it was built",
		Long:  "Prints the version and how it was built; with --config or --set, also the models of your own that it names.",
		Example: `  kvasir version
  kvasir version --config config.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			printVersion(cmd.OutOrStdout(), p.Version)
			if !cmd.Flags().Changed("config") && !cmd.Flags().Changed("set") {
				return nil
			}
			g, err := flags.load(cmd)
			if err != nil {
				return err
			}
			return printModels(cmd.OutOrStdout(), g.Config)
		},
	}
	flags.add(cmd)
	return cmd
}

// printModels names the models of the user's own.
func printModels(w io.Writer, c *config.Config) error {
	classifier, err := classify.New(wiring.Classify(c))
	if err != nil {
		return err
	}
	for _, m := range classifier.Models() {
		fmt.Fprintf(w, "model for %s\n", m)
	}
	return nil
}

func printVersion(w io.Writer, version string) {
	fmt.Fprintf(w, "kvasir %s\n", version)
	fmt.Fprintf(w, "go: %s %s/%s\n", strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		var flags []string
		for _, s := range info.Settings {
			// The environment of the build and its flags; not the vcs.* of the tree.
			if s.Value != "" && (strings.HasPrefix(s.Key, "-") || s.Key == "CGO_ENABLED" || strings.HasPrefix(s.Key, "GOA")) {
				flags = append(flags, s.Key+"="+s.Value)
			}
		}
		fmt.Fprintf(w, "build: %s\n", strings.Join(flags, " "))
	}
	fmt.Fprintf(w, "weights: %s\n", classify.WeightsHash())
	if protocol, ok := gpu.Inside(); ok {
		fmt.Fprintf(w, "nvml helper: inside, protocol %s\n", protocol)
	} else {
		fmt.Fprintln(w, "nvml helper: not inside, so GPU telemetry is off; make build puts it there where a C compiler is at hand")
	}
}
