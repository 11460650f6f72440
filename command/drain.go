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

const (
	drainWithin = 10 * time.Second // bounds one question
	drainEvery  = time.Second      // between two questions while it waits
)

// A busyError is a worker that has not ended in time what it has.
type busyError string

func (e busyError) Error() string { return string(e) }

func drainCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	var undo, wait bool
	var timeout time.Duration
	var keyFile string
	cmd := &cobra.Command{
		Use:   "drain WORKER",
		Short: "Take a worker out, so that it gets nothing new and ends what it has",
		Long: `Tells the Kvasir that serves this configuration, at server.admin, to give a worker
no new request. What it has goes on to its end. It stays out, over reloads and
when it leaves and comes back, until --undo, or until Kvasir is started anew.
Other Kvasirs before the same worker are told by their own drain.

With --wait it returns when nothing is under way there from this Kvasir: with 0,
or with 3 when there still is something after --timeout. The worker stays out
either way. 1: it was not drained, or was put back meanwhile.`,
		Example: `  kvasir drain gpu-5 --config kvasir.yaml
  kvasir drain gpu-5 --wait && systemctl restart vllm
  kvasir drain gpu-5 --undo
  kvasir drain gpu-5 --admin http://10.0.0.2:9090 --key-file admin.key`,
		Annotations: map[string]string{exitStatus: "; 3: with --wait, after --timeout something is still under way"},
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
			switch {
			case wait && undo:
				return usageError("--wait and --undo cannot both be meant")
			case timeout <= 0:
				return usageError("--timeout must be more than 0")
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
			at := drainedAt{admin: server.Admin, keyFile: keyFile, worker: args[0]}
			left, said, err := at.drain(cmd.Context(), undo)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), said)
			if !wait || left == 0 {
				return nil
			}
			if err := at.wait(cmd.Context(), left, timeout); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "nothing is under way there any more")
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&undo, "undo", false, "put it back")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until nothing is under way there")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long --wait waits")
	cmd.Flags().StringVar(&keyFile, "key-file", "", "`file` with the admin listener's key; default: server.admin_key_file")
	_ = cmd.MarkFlagFilename("key-file")
	return cmd
}

// A drainedAt is a worker, and the Kvasir that is told to drain it.
type drainedAt struct {
	admin, keyFile string // a checked address, and the file with its key
	worker         string
}

// drain takes the worker out, or puts it back. It gives how many requests are under way there, and a
// line of what was said.
func (d *drainedAt) drain(ctx context.Context, undo bool) (left int, said string, err error) {
	route := "/drain"
	if undo {
		route = "/undrain"
	}
	var reply struct {
		Worker   string
		Draining bool
		Requests int
	}
	if err := d.ask(ctx, http.MethodPost, "/workers/"+url.PathEscape(d.worker)+route, &reply); err != nil {
		return 0, "", err
	}
	switch {
	case reply.Worker == "":
		return 0, "", d.noKvasir("its answer names no worker")
	case reply.Draining:
		return reply.Requests, fmt.Sprintf("%s gets nothing new until --undo, or until this Kvasir is started anew; %s under way there", reply.Worker, wording.Count(reply.Requests, "request")), nil
	}
	return 0, reply.Worker + " gets requests again", nil
}

// wait returns when nothing is under way at the worker any more, or it is gone.
func (d *drainedAt) wait(ctx context.Context, left int, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	again := time.NewTicker(drainEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return busyError(fmt.Sprintf("after %s still %s under way at %s; it stays drained", timeout, wording.Count(left, "request"), wording.Quote(d.worker)))
		case <-again.C:
		}
		var all struct {
			Workers []struct {
				Name     string
				Draining bool
				Requests int
			}
		}
		err := d.ask(ctx, http.MethodGet, "/api/workers", &all)
		if ctx.Err() != nil {
			continue // it says above what was under way last
		}
		if err != nil {
			return err
		}
		left = 0
		for _, w := range all.Workers {
			if w.Name != d.worker {
				continue
			}
			if !w.Draining {
				return fmt.Errorf("somebody has put %s back meanwhile; it gets requests again", wording.Quote(d.worker))
			}
			left = w.Requests
		}
		if left == 0 {
			return nil
		}
	}
}

// ask asks a route of the admin listener.
func (d *drainedAt) ask(ctx context.Context, method, route string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+route, nil)
	if err != nil {
		return err
	}
	req.Header.Set(browser.AdminHeader, "1")
	if err := listener.ShowKey(req, d.keyFile); err != nil {
		return err
	}
	resp, err := listener.Client(d.admin, nil).Do(req)
	if err != nil {
		return fmt.Errorf("no Kvasir answers at server.admin %s: %w", wording.Quote(d.admin), innermost(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return err
	}
	var refused struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &refused) == nil && refused.Error.Message != "" {
		return errors.New(refused.Error.Message)
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(text, into) != nil {
		return d.noKvasir(resp.Status)
	}
	return nil
}

func (d *drainedAt) noKvasir(why string) error {
	return fmt.Errorf("what answers at %s is not a Kvasir that can drain workers: %s", wording.Quote(d.admin), why)
}
