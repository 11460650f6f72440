// Check: says whether a configuration is good, and with --live whether its workers and its cache answer.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"kvasir/proxy"
)

// liveTimeout bounds all of check --live.
const liveTimeout = 10 * time.Second

func checkCommand() *cobra.Command {
	var flags configFlags
	var live bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Validate the configuration",
		Long: `Validates the configuration as serve would read it: file, environment and flags.
Each problem is one line: file:line:column: key: what is wrong.`,
		Example: `  kvasir check --config config.yaml
  kvasir check --config config.yaml --live`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.checkSet(); err != nil {
				return err
			}
			l := flags.layers(cmd)
			g, _, err := l.load()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s: ok (%s)\n", l.name(), summary(g.config))
			if !live {
				return nil
			}
			return checkLive(cmd.Context(), out, g)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "also ask every worker and the cache's store; exit code 1 if one does not answer")
	return cmd
}

// summary counts what a configuration has.
func summary(c *Config) string {
	s := count(len(c.Workers), "worker") + ", "
	if len(c.Simulate) > 0 {
		s += fmt.Sprintf("%d simulated, ", len(c.Simulate))
	}
	return s + count(len(c.Models), "model") + ", " + count(len(c.Keys), "key")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkLive asks every worker once, simulated ones too, and the cache's store,
// and prints a line for each.
func checkLive(ctx context.Context, out io.Writer, g *generation) error {
	e, err := startEngines(g.config.Simulate, func(error) {})
	if err != nil {
		return err
	}
	defer e.close()
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	bad := 0
	results := proxy.CheckWorkers(ctx, withEngines(g.settings, e))
	for _, r := range results {
		if r.Err != nil {
			bad++
			fmt.Fprintf(out, "%s: failed: %v\n", r.Worker, r.Err)
			continue
		}
		fmt.Fprintf(out, "%s: ok (%s)\n", r.Worker, r.What)
	}
	what, cacheErr := checkStore(ctx, g)
	if cacheErr != nil {
		fmt.Fprintf(out, "cache: failed: %v\n", cacheErr)
	} else {
		fmt.Fprintf(out, "cache: ok (%s)\n", what)
	}
	switch {
	case bad > 0:
		return errors.New(count(bad, "worker") + " of " + fmt.Sprint(len(results)) + " failed")
	case cacheErr != nil:
		return errors.New("the cache failed")
	}
	return nil
}
