// Version: what this binary is and how it was built.

package command

import (
	"encoding/json"
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and how it was built",
		Long:  "Prints the version and how it was built; with --config or --set, also the models of your own that it names.",
		Example: `  kvasir version
  kvasir version --json
  kvasir version --config config.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := buildOf(p)
			if cmd.Flags().Changed("config") || cmd.Flags().Changed("set") {
				g, err := flags.load(cmd)
				if err != nil {
					return err
				}
				if b.Models, err = ownModels(g.Config); err != nil {
					return err
				}
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(b)
			}
			b.print(cmd.OutOrStdout())
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// ownModels names the models of the user's own.
func ownModels(c *config.Config) ([]string, error) {
	classifier, err := classify.New(wiring.Classify(c))
	if err != nil {
		return nil, err
	}
	return classifier.Models(), nil
}

// A build is what a binary says of itself.
type build struct {
	Version  string   `json:"version"`
	Date     string   `json:"date,omitempty"` // of the commit, RFC 3339
	Go       string   `json:"go"`
	Platform string   `json:"platform"` // linux/amd64
	Flags    []string `json:"build"`
	Weights  string   `json:"weights"`     // a hash of the embedded classifiers
	Helper   string   `json:"nvml_helper"` // its protocol; "": it is not inside
	Models   []string `json:"models,omitempty"`
}

func buildOf(p Program) *build {
	b := &build{
		Version: p.Version, Date: p.Date, Go: strings.TrimPrefix(runtime.Version(), "go"), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Flags: []string{}, Weights: classify.WeightsHash(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			// The environment of the build and its flags; not the vcs.* of the tree.
			if s.Value != "" && (strings.HasPrefix(s.Key, "-") || s.Key == "CGO_ENABLED" || strings.HasPrefix(s.Key, "GOA")) {
				b.Flags = append(b.Flags, s.Key+"="+s.Value)
			}
		}
	}
	if protocol, ok := gpu.Inside(); ok {
		b.Helper = protocol
	}
	return b
}

func (b *build) print(w io.Writer) {
	date := ""
	if b.Date != "" {
		date = " of " + b.Date
	}
	fmt.Fprintf(w, "kvasir %s%s\n", b.Version, date)
	fmt.Fprintf(w, "go: %s %s\n", b.Go, b.Platform)
	if len(b.Flags) > 0 {
		fmt.Fprintf(w, "build: %s\n", strings.Join(b.Flags, " "))
	}
	fmt.Fprintf(w, "weights: %s\n", b.Weights)
	if b.Helper != "" {
		fmt.Fprintf(w, "nvml helper: inside, protocol %s\n", b.Helper)
	} else {
		fmt.Fprintln(w, "nvml helper: not inside, so GPU telemetry is off; make build puts it there where a C compiler is at hand")
	}
	for _, m := range b.Models {
		fmt.Fprintf(w, "model for %s\n", m)
	}
}
