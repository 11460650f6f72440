// Check: says whether a configuration is good, and with --live whether its workers and its cache answer.

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"kvasir/classify"
	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/discovery"
	"kvasir/kvroute"
	"kvasir/planner/scale"
	"kvasir/proxy"
	"kvasir/tracing"
	"kvasir/upstream"
	"kvasir/wording"
)

// liveTimeout bounds all of check --live.
const liveTimeout = 10 * time.Second

func checkCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
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
			g, _, err := l.Load()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s: ok (%s)\n", l.Name(), summary(g.Config))
			for _, warning := range slices.Concat(exposed(g.Config), contradicted(g.Config), g.Tracing.Ignored) {
				fmt.Fprintf(out, "warning: %s\n", warning)
			}
			if !live {
				return nil
			}
			return checkLive(cmd.Context(), out, g)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "also ask every worker, the cache's store, NATS, what the planner scales and the collector of traces; exit code 1 if one does not answer")
	return cmd
}

// exposed says what stands open to a network, each with what to do.
func exposed(c *config.Config) (warnings []string) {
	s := &c.Server
	if !config.IsLoopback(s.Listen) {
		if len(c.Keys) == 0 && s.TLS.ClientCA == "" {
			warnings = append(warnings, "keys: there are none, so everybody who reaches server.listen "+wording.Quote(s.Listen)+" may ask; set keys, or listen on 127.0.0.1")
		}
		if s.TLS.Cert == "" {
			warnings = append(warnings, "server.tls: keys and prompts go in the clear to server.listen "+wording.Quote(s.Listen)+"; set server.tls, or put a proxy with TLS in front")
		}
	}
	switch {
	case s.Admin == "" || config.IsLoopback(s.Admin):
	case s.AdminKey != "":
		warnings = append(warnings, "server.admin: "+wording.Quote(s.Admin)+" is plain HTTP, so that its key and what it shows go in the clear; let only your monitoring through, or put a proxy with TLS in front")
	default:
		warnings = append(warnings, "server.admin: "+wording.Quote(s.Admin)+" shows metrics, profiles and the cache, and reloads, for everybody who reaches it; listen on 127.0.0.1, let only your monitoring through, or set server.admin_key_file")
	}
	for i, raw := range c.Peers.Servers {
		if u, err := url.Parse(raw); err == nil && u.Scheme == "nats" && c.Peers.TLS == (config.PeerTLS{}) && !config.IsLoopback(net.JoinHostPort(u.Hostname(), "1")) {
			warnings = append(warnings, fmt.Sprintf("peers.servers[%d]: what replicas share, and the token, may go in the clear to %s; use tls:// or peers.tls, or a network that is theirs alone", i, wording.Quote(u.Host)))
		}
	}
	if c.Tracing.Content {
		warnings = append(warnings, "tracing.content: what clients ask and are answered leaves this machine, for the collector and all who read there; of personal data only what classify.pii blocks or redacts is left out")
	}
	if u, err := url.Parse(c.Tracing.Endpoint); err == nil && u.Scheme == "http" && !config.IsLoopback(net.JoinHostPort(u.Hostname(), "1")) {
		warnings = append(warnings, "tracing.endpoint: "+inTraces(c)+", and tracing.headers, go in the clear to "+wording.Quote(u.Host)+"; use https, or a network that is the collector's alone")
	}
	for i, w := range c.Workers {
		if u, err := url.Parse(w.URL); err == nil && u.Scheme == "http" && !config.IsLoopback(net.JoinHostPort(u.Hostname(), "1")) {
			warnings = append(warnings, fmt.Sprintf("workers[%d].url: prompts go in the clear to %s; use https, or a network that is the workers' alone", i, wording.Quote(u.Host)))
		}
	}
	return warnings
}

// inTraces is what traces have that is not for everybody.
func inTraces(c *config.Config) string {
	if c.Tracing.Content {
		return "prompts, answers, names of models, keys and tenants"
	}
	return "names of models, keys and tenants"
}

// contradicted says what does not go together, though each is good by itself.
func contradicted(c *config.Config) (warnings []string) {
	if c.PlannerMode() == "apply" && c.Peers.On() && !c.Planner.Kubernetes.On() {
		warnings = append(warnings, "planner.mode: apply is for a single Kvasir: with peers each replica plans for its part of the requests, and its command would scale to that; use advise, and sum kvasir_planner_workers over the replicas, or set planner.kubernetes.lease, by which they plan together")
	}
	return warnings
}

// summary counts what a configuration has.
func summary(c *config.Config) string {
	s := wording.Count(len(c.Workers), "worker") + ", "
	if len(c.Simulate) > 0 {
		s += fmt.Sprintf("%d simulated, ", len(c.Simulate))
	}
	if len(c.Discovery) > 0 {
		s += wording.Count(len(c.Discovery), "source") + " of workers, "
	}
	return s + wording.Count(len(c.Models), "model") + ", " + wording.Count(len(c.Keys), "key")
}

// checkLive asks every worker once, simulated ones too, and the cache's store,
// and prints a line for each.
func checkLive(ctx context.Context, out io.Writer, g *config.Generation) error {
	e, err := wiring.StartEngines(g.Config.Simulate, func(error) {})
	if err != nil {
		return err
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	bad := 0
	settings, badSources := findWorkers(out, e.Among(wiring.Settings(g)), g)
	results := proxy.CheckWorkers(ctx, settings)
	for _, r := range results {
		name := r.Worker
		if r.Source != "" {
			name += " (" + r.Source + ")"
		}
		if r.Err != nil {
			bad++
			fmt.Fprintf(out, "%s: failed: %v\n", name, r.Err)
			continue
		}
		fmt.Fprintf(out, "%s: ok (%s)\n", name, r.What)
	}
	unserved := 0
	if bad == 0 && badSources == 0 && len(results) > 0 {
		unserved = checkServed(out, settings, results)
	}
	what, cacheErr := checkStore(ctx, g)
	if cacheErr != nil {
		fmt.Fprintf(out, "cache: failed: %v\n", cacheErr)
	} else {
		fmt.Fprintf(out, "cache: ok (%s)\n", what)
	}
	peersWhat, peersErr := wiring.CheckPeers(ctx, g)
	if peersErr != nil {
		fmt.Fprintf(out, "peers: failed: %v\n", peersErr)
	} else if peersWhat != "" {
		fmt.Fprintf(out, "peers: ok (%s)\n", peersWhat)
	}
	plannerErr := checkPlanner(ctx, out, g.Config)
	tracesErr := checkTraces(ctx, out, g)
	if modelErr := checkModels(out, g.Config); modelErr != nil {
		fmt.Fprintf(out, "classify: failed: %v\n", modelErr)
		return errors.New("a model of classify failed")
	}
	if len(results) == 0 {
		fmt.Fprintln(out, "warning: there is no worker; requests get an error until a source finds one")
	}
	switch {
	case bad > 0:
		return errors.New(wording.Count(bad, "worker") + " of " + fmt.Sprint(len(results)) + " failed")
	case badSources > 0:
		return errors.New(wording.Count(badSources, "source") + " of workers failed")
	case unserved > 0:
		return errors.New(wording.Count(unserved, "name") + " of models that no worker serves")
	case cacheErr != nil:
		return errors.New("the cache failed")
	case peersErr != nil:
		return errors.New("what replicas share by failed")
	case plannerErr != nil:
		return errors.New("what the planner scales failed")
	case tracesErr != nil:
		return errors.New("the collector of traces failed")
	}
	return nil
}

// checkPlanner asks for what the planner scales in Kubernetes, and whether it may.
func checkPlanner(ctx context.Context, out io.Writer, c *config.Config) error {
	mode := c.PlannerMode()
	o := wiring.Scaling(&c.Planner, mode)
	if o == nil || mode == "off" {
		return nil
	}
	what, err := scale.New(o).Check(ctx, time.Now())
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(out, "planner: failed: %s\n", strings.TrimSpace(line))
		}
		return err
	}
	fmt.Fprintf(out, "planner: ok (%s)\n", what)
	return nil
}

// checkTraces asks the collector of traces, if there is one.
func checkTraces(ctx context.Context, out io.Writer, g *config.Generation) error {
	o := wiring.Tracing(g, "")
	if o == nil {
		return nil
	}
	to, err := tracing.Check(ctx, o)
	if err != nil {
		fmt.Fprintf(out, "tracing: failed: %s: %v\n", to, err)
	} else {
		fmt.Fprintf(out, "tracing: ok (a collector at %s)\n", to)
	}
	return err
}

// checkServed prints a line for each model that the configuration names and no worker serves.
func checkServed(out io.Writer, s *proxy.Settings, results []upstream.CheckResult) (bad int) {
	var served []string
	for i := range results {
		if s.Workers[i].Role != kvroute.Prefill.String() { // which answers nobody
			served = append(served, results[i].Models...)
		}
	}
	slices.Sort(served)
	all := s.Unserved(slices.Compact(served))
	for i := range all {
		fmt.Fprintf(out, "models: failed: %v\n", &all[i])
	}
	return len(all)
}

// findWorkers lets each source of workers look once and prints a line for it. The settings
// have what was found among the workers.
func findWorkers(out io.Writer, s *proxy.Settings, g *config.Generation) (all *proxy.Settings, bad int) {
	if len(g.Config.Discovery) == 0 {
		return s, 0
	}
	set := discovery.Start(discovery.Options{Log: zerolog.Nop(), Changed: func() {}})
	defer set.Close()
	set.Follow(wiring.Sources(g))
	set.Settle(liveTimeout / 2)
	for _, src := range set.Status() {
		if src.Problem != "" {
			bad++
			fmt.Fprintf(out, "%s: failed: %s\n", src.Source, src.Problem)
			continue
		}
		fmt.Fprintf(out, "%s: ok (%s)\n", src.Source, wording.Count(src.Workers, "worker"))
	}
	all = wiring.WithFound(s, set)
	for _, c := range all.Conflicts {
		fmt.Fprintf(out, "warning: discovery: %s\n", c)
	}
	return all, bad
}

// checkModels lets the models of the user's own judge a sentence and a page, whatever their guards do.
func checkModels(out io.Writer, c *config.Config) error {
	o := wiring.Classify(c)
	o.Timeout, o.Jailbreak.Action, o.PII.Action = 0, classify.Annotate, classify.Annotate
	classifier, err := classify.New(o)
	if err != nil {
		return err
	}
	models := classifier.Models()
	if len(models) == 0 {
		return nil
	}
	const sentence = "Who was the first to walk on the moon?"
	took := [2]time.Duration{}
	for i, text := range []string{sentence, strings.Repeat("The weather in the valley was mild that year. ", 45)} {
		if took[i], err = judged(classifier, text); err != nil {
			return err
		}
	}
	for _, m := range models {
		fmt.Fprintf(out, "classify.%s: ok\n", m)
	}
	fmt.Fprintf(out, "classify: judged a sentence in %v, 2 KB of text in %v\n", took[0], took[1])
	if took[1] > c.Classify.Timeout {
		fmt.Fprintf(out, "warning: classify.timeout: %v is less than what 2 KB of text take here; requests like that are not judged, and on_error decides\n", c.Classify.Timeout)
	}
	return nil
}

// judged lets a classifier judge a text in all ways, and says how long it took.
func judged(c *classify.Classifier, text string) (time.Duration, error) {
	start := time.Now()
	v := c.Judge(&classify.Request{
		Auto: true, Texts: []classify.Text{{Bytes: []byte(text), Role: classify.User}},
		Also: []classify.Kind{classify.KindSentence}, Messages: 1, Turns: 1,
	})
	defer v.Release()
	if err := errors.Join(v.Jailbreak.Err, v.PII.Err); err != nil {
		return 0, err
	}
	for _, t := range v.Took {
		if t.Err {
			return 0, fmt.Errorf("%s: the model could not judge a text: its weights are damaged, or too large", t.Kind)
		}
	}
	return time.Since(start).Round(10 * time.Microsecond), nil
}

// checkStore is check --live for the cache: what it is, or why it is not.
func checkStore(ctx context.Context, g *config.Generation) (what string, err error) {
	s, err := wiring.OpenStore(zerolog.Nop(), g)
	if s == nil || err != nil {
		return "off", err
	}
	defer func() { _ = s.Close() }()
	if g.Config.Cache.Store != "milvus" {
		return "embedded", nil
	}
	if err := wiring.Connected(ctx, s); err != nil {
		return "", err
	}
	return "Milvus at " + g.Config.Cache.Milvus.Address, nil
}
