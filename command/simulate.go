// Simulate: one simulated worker as a process of its own.

package command

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"kvasir/command/listener"
	"kvasir/command/serve"
	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/sim"
	"kvasir/wording"
)

// simulateHelp says what each key of `simulate` does; a test asks for all.
var simulateHelp = map[string]string{
	"name":               "its name, which its answers mention",
	"engine":             "vllm, sglang or trtllm: the engine whose API it imitates",
	"role":               "both, prefill or decode",
	"model":              "the model it serves",
	"block_size":         "tokens in a KV block",
	"blocks":             "number of KV blocks",
	"max_batched_tokens": "most tokens in a pass",
	"max_seqs":           "most sequences at once",
	"max_model_len":      "most tokens of prompt and answer",
	"speedup":            "2: twice as fast as the GPU it imitates",
	"seed":               "seed of its made-up text",
	"faults":             "requests may ask it to fail, with x-sim-fault",
	"gpus":               "GPUs whose telemetry counts as its own",
	"events":             "publish KV events at this `address`, such as tcp://127.0.0.1:5557",
}

func simulateCommand() *cobra.Command {
	var at addresses
	engine := config.Find("simulate").Elem
	values := engine.Defaults()
	values["name"] = "sim-0"
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Serve one simulated worker",
		Long: `Serves one simulated worker: an engine without a GPU that schedules, caches and
times requests as vLLM would, and answers with made-up text that says so.`,
		Example: `  kvasir simulate --listen 127.0.0.1:8000
  kvasir simulate --listen 127.0.0.1:8001 --model qwen --speedup 10 --faults
  kvasir simulate --events tcp://127.0.0.1:5557 --replay tcp://127.0.0.1:5558`,
		RunE: func(*cobra.Command, []string) error {
			values["events"] = at.events != ""
			if err := at.check(); err != nil {
				return err
			}
			c, err := config.NewSimulate(values)
			if err != nil {
				return usageError(err.Error())
			}
			return simulate(at, c)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&at.http, "listen", "127.0.0.1:8000", "`address` to serve on: host:port or unix:/path")
	fs.StringVar(&at.events, "events", "", simulateHelp["events"])
	fs.StringVar(&at.replay, "replay", "", "give missed KV events again at this `address`")
	for _, key := range engine.Children {
		if key.Name == "events" || key.Name == "gpus" {
			continue // a process of its own says where, and is no worker of `simulate` whose GPUs could be named
		}
		name := strings.ReplaceAll(key.Name, "_", "-")
		fs.Var(&keyFlag{key, values}, name, simulateHelp[key.Name])
		if key.Kind == config.KindBool {
			fs.Lookup(name).NoOptDefVal = "true"
		}
		if len(key.OneOf) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(key.OneOf, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return cmd
}

// addresses are where one simulated worker listens; of events and replay
// empty: nowhere.
type addresses struct{ http, events, replay string }

// check says what is wrong with the addresses.
func (at addresses) check() error {
	if err := config.CheckListen(at.http); err != nil {
		return usageError("--listen: " + err.Error())
	}
	for _, a := range [...]struct{ flag, address string }{{"--events: ", at.events}, {"--replay: ", at.replay}} {
		host, isTCP := strings.CutPrefix(a.address, "tcp://")
		if a.address == "" {
			continue
		}
		if _, port, err := net.SplitHostPort(host); !isTCP || err != nil || port == "" {
			return usageError(a.flag + wording.Quote(a.address) + " is no address such as tcp://127.0.0.1:5557")
		}
	}
	if at.replay != "" && at.events == "" {
		return usageError("--replay: repeats what --events missed; set --events, too")
	}
	return nil
}

// listenZMQ opens a checked address of a ZeroMQ socket that binds; tcp://*:5557
// is every address of the host.
func listenZMQ(address string) (net.Listener, error) {
	return listener.Open(strings.Replace(strings.TrimPrefix(address, "tcp://"), "*", "", 1))
}

// A keyFlag is a flag that is read like the configuration key of its name.
type keyFlag struct {
	key  *config.Key
	into map[string]any // by the key's name
}

func (f *keyFlag) Set(text string) error {
	v, err := f.key.Parse(text)
	if err != nil {
		return err
	}
	f.into[f.key.Name] = v
	return nil
}

func (f *keyFlag) String() string {
	if f.key == nil || f.into[f.key.Name] == nil {
		return "" // pflag asks a zero value, too
	}
	return config.Show(f.into[f.key.Name])
}

// Type is pflag's word for the kind, which knows what to leave out of --help.
func (f *keyFlag) Type() string {
	switch f.key.Kind {
	case config.KindBool:
		return "bool"
	case config.KindInt:
		return "int"
	case config.KindFloat:
		return "float64"
	}
	return "string"
}

// simulate runs until a signal says to stop.
func simulate(at addresses, c config.Simulate) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, serve.StopSignals...)
	defer signal.Stop(stop)

	server, err := sim.NewServer(wiring.SimOptions(&c))
	if err != nil {
		return fmt.Errorf("cannot simulate worker %q: %w", c.Name, err)
	}
	var serving sync.WaitGroup
	ended := make(chan error, 3)
	err = serveSimulated(server, at, c, &serving, ended)
	if err == nil {
		select {
		case <-stop:
		case err = <-ended:
		}
	}
	_ = server.Close()
	serving.Wait()
	close(ended)
	for e := range ended {
		if err == nil {
			err = e
		}
	}
	return err
}

// serveSimulated opens the worker's sockets, those of events first: who finds
// it up asks for them. Each is served by a goroutine that tells ended why it
// ended.
func serveSimulated(server *sim.Server, at addresses, c config.Simulate, serving *sync.WaitGroup, ended chan<- error) error {
	serve := func(serve func(net.Listener) error, ln net.Listener) {
		serving.Go(func() { ended <- serve(ln) })
	}
	var announced [2]net.Addr
	for i, socket := range [...]struct {
		address string
		serve   func(net.Listener) error
	}{{at.events, server.ServeEvents}, {at.replay, server.ServeReplay}} {
		if socket.address == "" {
			continue
		}
		ln, err := listenZMQ(socket.address)
		if err != nil {
			return err
		}
		announced[i] = ln.Addr()
		server.Announce(announced[0], announced[1])
		serve(socket.serve, ln)
	}
	ln, err := listener.Open(at.http)
	if err != nil {
		return err
	}
	url, _ := listener.URL(ln, false)
	fmt.Fprintf(os.Stderr, "simulated worker %s serves model %s (role %s) on %s\n", c.Name, c.Model, c.Role, url)
	serve(server.Serve, ln)
	return nil
}
