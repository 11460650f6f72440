// `kvasir serve`, which `kvasir` alone is, too.

package command

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"kvasir/command/serve"
)

// serveCommand is `kvasir serve`, and `kvasir` alone does the same.
func serveCommand(name string, p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
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
			signal.Notify(signals, append([]os.Signal{syscall.SIGHUP}, serve.StopSignals...)...)
			defer signal.Stop(signals)
			// When the reader of our log ends, Kvasir must not end with it.
			signal.Ignore(syscall.SIGPIPE)
			return serve.Run(flags.layers(cmd), p.Version, signals)
		},
	}
	flags.add(cmd)
	return cmd
}
