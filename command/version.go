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
	"kvasir/gpu"
)

func versionCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and how it was built",
		Example: "  kvasir version",
		Run:     func(cmd *cobra.Command, _ []string) { printVersion(cmd.OutOrStdout(), p.Version) },
	}
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
