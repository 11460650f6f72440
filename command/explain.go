// `kvasir explain`: what is found in one request, which decision follows and why, without sending it.

package command

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kvasir/command/explain"
)

func explainCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	var asJSON bool
	var route string
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say what would become of a request and why, without sending it",
		Long: `Reads the body of one request and says what would become of it: every signal,
what the guards do, each decision with the parts of its condition, what follows
from it, what the cache would answer, and which worker would get it at which
price. For the placement it asks the Kvasir that serves this configuration, on
its admin listener; the cache it looks up in its file or its Milvus.

The request is taken to come from a client without a key. Nothing is sent to a
worker, except the text of the prompt where only a worker can count its tokens.
Personal data are named by type and place, never shown.`,
		Example: `  echo '{"model": "MoM", "messages": [{"role": "user", "content": "Solve x+1=3"}]}' | kvasir explain
  kvasir explain --config kvasir.yaml --json < request.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := flags.load(cmd)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(io.LimitReader(stdin(cmd, "the body of a request"), maxLine))
			if err != nil {
				return fmt.Errorf("cannot read the request: %w", err)
			}
			e, err := explain.Request(g, route, body)
			if err != nil {
				return err
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(e)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), e.Text())
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&route, "route", "/v1/chat/completions", "the route that the body is for")
	return cmd
}
