// `kvasir drain`: takes a worker out of placement, or puts it back, at the Kvasir that runs.

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvasir/command/listener"
	"kvasir/proxy/browser"
	"kvasir/wording"
)

// drainWithin bounds the whole question.
const drainWithin = 10 * time.Second

func drainCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	var undo bool
	var keyFile string
	cmd := &cobra.Command{
		Use:   "drain WORKER",
		Short: "Take a worker out, so that it gets nothing new and ends what it has",
		Long: `Tells the Kvasir that serves this configuration, at server.admin, to give a worker
no new request. What it has goes on to its end. It stays out, over reloads and
when it leaves and comes back, until --undo, or until Kvasir is started anew.
Other Kvasirs before the same worker are told by their own drain.`,
		Example: `  kvasir drain gpu-5 --config kvasir.yaml
  kvasir drain gpu-5 --undo
  kvasir drain gpu-5 --admin http://10.0.0.2:9090 --key-file admin.key`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usageError("name one worker; GET /api/workers and /metrics of server.admin have the names")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.checkSet(); err != nil {
				return err
			}
			flags.admin = strings.TrimRight(strings.TrimPrefix(flags.admin, "http://"), "/")
			server, err := serverOf(flags.layers(cmd))
			if err != nil {
				return err
			}
			if server.Admin == "" {
				return errors.New("there is no admin listener to ask: server.admin is off")
			}
			if keyFile == "" {
				keyFile = string(server.AdminKey)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), drainWithin)
			defer cancel()
			said, err := drain(ctx, server.Admin, keyFile, args[0], undo)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), said)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "put it back")
	cmd.Flags().StringVar(&keyFile, "key-file", "", "`file` with the admin listener's key; default: server.admin_key_file")
	_ = cmd.MarkFlagFilename("key-file")
	return cmd
}

// drain asks the admin listener at a checked address, and gives a line of what it says.
func drain(ctx context.Context, admin, keyFile, worker string, undo bool) (string, error) {
	route := "/drain"
	if undo {
		route = "/undrain"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/workers/"+url.PathEscape(worker)+route, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set(browser.AdminHeader, "1")
	if err := listener.ShowKey(req, keyFile); err != nil {
		return "", err
	}
	resp, err := listener.Client(admin, nil).Do(req)
	if err != nil {
		return "", fmt.Errorf("no Kvasir answers at server.admin %s: %w", wording.Quote(admin), innermost(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	var said struct {
		Worker   string
		Draining bool
		Requests int
		Error    struct{ Message string }
	}
	if json.Unmarshal(text, &said) != nil || said.Worker == "" && said.Error.Message == "" {
		return "", fmt.Errorf("what answers at %s is not a Kvasir that can drain workers: %s", wording.Quote(admin), resp.Status)
	}
	switch {
	case said.Error.Message != "":
		return "", errors.New(said.Error.Message)
	case said.Draining:
		return fmt.Sprintf("%s gets nothing new; %s under way there", said.Worker, wording.Count(said.Requests, "request")), nil
	}
	return said.Worker + " gets requests again", nil
}
