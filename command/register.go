// `kvasir register`: keeps a worker's key in etcd, for an engine that knows nothing of it.

package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvasir/command/serve"
	"kvasir/config"
	"kvasir/discovery/etcd"
	"kvasir/wording"
)

// Bounds of --lease. etcd grants no lease of less than two seconds by default.
const (
	leastLease = 2 * time.Second
	mostLease  = time.Hour
)

// How often a worker is asked that does not answer yet, and how long one answer may take.
const (
	probeEvery  = 500 * time.Millisecond
	probeWithin = 5 * time.Second
)

// registerHelp says what each key of a worker's value does; a test asks for all.
var registerHelp = map[string]string{
	"url":          "where Kvasir reaches the worker, such as http://10.0.0.5:8000 (required)",
	"name":         "its name, which is also the key's; default: host:port of --url",
	"engine":       "vllm, sglang, trtllm, dynamo, llamacpp or openai; default: detected",
	"role":         "both, prefill or decode",
	"models":       "models that it serves; default: the worker is asked",
	"max_requests": "most requests under way at once; 0: no limit",
	"kv_events":    "`address` of its KV events, such as tcp://10.0.0.5:5557; default: the worker is asked",
	"kv_replay":    "`address` where it repeats events that were missed",
	"instance":     "another name for it in x-worker-instance-id",
	"gpus":         "NVML indices or UUIDs of its GPUs, if it runs beside Kvasir",
}

// A registration is what the flags ask for.
type registration struct {
	source  config.Discovery // where to, as a source that would find it
	values  map[string]any   // of the worker's keys
	lists   map[string]*[]string
	lease   time.Duration
	noProbe bool
}

func registerCommand() *cobra.Command {
	r := &registration{values: map[string]any{}, lists: map[string]*[]string{}}
	cmd := &cobra.Command{
		Use:   "register",
		Short: "Keep a worker's key in etcd while it runs",
		Long: `Writes a worker into etcd, where every Kvasir with an etcd source finds it
(discovery: [{kind: etcd, ...}]), and keeps it there by a lease. On SIGTERM and
SIGINT it is removed at once. Run it beside an engine that does not know etcd.

It waits until the worker answers before it registers it. From then on Kvasir
itself watches whether the worker is well. If this program is killed or cannot
reach etcd, the key goes when the lease ends, and is written again when etcd
answers.`,
		Example: `  kvasir register --etcd http://10.0.0.1:2379 --url http://10.0.0.5:8000
  kvasir register --etcd https://a:2379,https://b:2379 --ca ca.pem --user kvasir --password-file etcd.password \
    --url http://10.0.0.5:8000 --name gpu-5 --role prefill --engine vllm --lease 15s`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, w, err := r.keeper()
			if err != nil {
				return usageError(err.Error())
			}
			return r.run(k, w)
		},
	}
	fs := cmd.Flags()
	s := &r.source
	fs.StringSliceVar(&s.Endpoints, "etcd", nil, "`URLs` of etcd's servers, http or https (required)")
	fs.StringVar(&s.Prefix, "prefix", config.Find("discovery").Elem.Defaults()["prefix"].(string), "prefix of the key, the same as the source has")
	for _, key := range config.ValueKeys() {
		name := strings.ReplaceAll(key.Name, "_", "-")
		if key.Kind == config.KindList {
			r.lists[key.Name] = fs.StringSlice(name, nil, registerHelp[key.Name])
			continue
		}
		fs.Var(&keyFlag{key, r.values}, name, registerHelp[key.Name])
		if len(key.OneOf) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(key.OneOf, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	fs.DurationVar(&r.lease, "lease", 10*time.Second, "how long the key stays if this program is killed")
	fs.BoolVar(&r.noProbe, "no-probe", false, "register at once, whether the worker answers or not")
	fs.StringVar(&s.User, "user", "", "user name at etcd, if it asks for one")
	for _, f := range []struct {
		path *config.Path
		name string
		help string
	}{
		{&s.PasswordFile, "password-file", "`file` with the user's password"},
		{&s.TLS.CA, "ca", "PEM `file` of authorities for etcd's certificates; default: the system's"},
		{&s.TLS.Cert, "cert", "PEM `file` of a client certificate, if etcd asks for one"},
		{&s.TLS.Key, "key", "PEM `file` of its key"},
	} {
		fs.StringVar((*string)(f.path), f.name, "", f.help)
		_ = cmd.MarkFlagFilename(f.name)
	}
	fs.StringVar(&s.TLS.ServerName, "server-name", "", "the name in etcd's certificates, if it is not the URL's host")
	fs.BoolVar(&s.TLS.Insecure, "insecure", false, "check no certificate of etcd")
	return cmd
}

// keeper is who keeps the key, and the worker as sources will find it. The error is one of
// usage.
func (r *registration) keeper() (*etcd.Keeper, config.Worker, error) {
	if r.lease < leastLease || r.lease > mostLease || r.lease%time.Second != 0 {
		return nil, config.Worker{}, fmt.Errorf("--lease: must be whole seconds from %v to %v, is %v", leastLease, mostLease, r.lease)
	}
	r.source.Kind = "etcd"
	shown, err := config.NewSource(r.source)
	if err != nil {
		return nil, config.Worker{}, errors.New(strings.ReplaceAll(err.Error(), "--endpoints", "--etcd"))
	}
	for name, list := range r.lists {
		if len(*list) > 0 {
			r.values[name] = *list
		}
	}
	value, err := json.Marshal(r.values)
	if err != nil {
		return nil, config.Worker{}, err
	}
	w, err := config.ReadWorker(&config.Discovery{Role: "both"}, value)
	if err != nil {
		name, why, _ := strings.Cut(err.Error(), ": ")
		return nil, config.Worker{}, fmt.Errorf("--%s: %s", strings.ReplaceAll(name, "_", "-"), why)
	}
	return &etcd.Keeper{
		Options: etcd.Options{
			Endpoints: r.source.Endpoints, User: r.source.User, Password: shown.Password, TLS: shown.TLS, TLSName: shown.TLSName,
		},
		Key: r.source.Prefix + w.Name, Value: value, Lease: r.lease,
	}, w, nil
}

// run keeps the key until a signal says to stop.
func (r *registration) run(k *etcd.Keeper, w config.Worker) error {
	ctx, cancel := signal.NotifyContext(context.Background(), serve.StopSignals...)
	defer cancel()
	said := registering{key: k.Key, url: w.URL, lease: r.lease}
	if !r.noProbe && !said.answers(ctx) {
		return nil
	}
	k.Tell = said.tell
	if err := k.Run(ctx); err != nil {
		return fmt.Errorf("cannot remove %s, which goes when its lease of %v ends: %w", k.Key, r.lease, err)
	}
	if said.last != etcd.Unknown {
		fmt.Fprintf(os.Stderr, "removed %s\n", k.Key)
	}
	return nil
}

// registering is what is said while a key is kept.
type registering struct {
	key, url string
	lease    time.Duration
	last     etcd.State
}

func (g *registering) tell(s etcd.State, err error) {
	switch s {
	case etcd.Kept:
		fmt.Fprintf(os.Stderr, "registered %s as %s, by a lease of %v\n", g.url, g.key, g.lease)
	case etcd.Taken:
		fmt.Fprintf(os.Stderr, "another process has written %s, which stays as long as that keeps it: give each worker a name of its own\n", g.key)
	case etcd.Lost:
		fmt.Fprintf(os.Stderr, "cannot keep %s in etcd, and goes on trying: %s\n", g.key, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	g.last = s
}

// answers waits until the worker does, and says whether it does before ctx ends.
func (g *registering) answers(ctx context.Context) bool {
	// Whether it answers is the question, not who it is.
	client := &http.Client{Timeout: probeWithin, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for last := ""; ; {
		err := answersOnce(ctx, client, g.url)
		if err == nil {
			return true
		}
		if why := innermost(err).Error(); why != last && ctx.Err() == nil {
			last = why
			fmt.Fprintf(os.Stderr, "waiting for the worker at %s before it is registered: %s\n", g.url, why)
		}
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
		}
	}
}

// answersOnce asks the worker for /health. One that does not have it, or wants a key,
// answers, too.
func answersOnce(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode >= http.StatusInternalServerError {
		return errors.New("/health answers " + wording.Quote(resp.Status))
	}
	return nil
}
