// Simulate: one simulated worker as a process of its own.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/cobra"

	"kvasir/sim"
)

// simulateHelp says what each key of `simulate` does; a test asks for all.
var simulateHelp = map[string]string{
	"name":               "its name, said in its answers",
	"engine":             "vllm, sglang or trtllm: whose HTTP form it speaks",
	"role":               "both, prefill or decode",
	"model":              "the model it serves",
	"block_size":         "tokens of one KV block",
	"blocks":             "KV blocks there are",
	"max_batched_tokens": "tokens of one pass",
	"max_seqs":           "sequences at once",
	"max_model_len":      "tokens of prompt and answer",
	"speedup":            "2: twice as fast as the GPU it imitates",
	"seed":               "of its text",
	"faults":             "requests may ask it to fail, with x-sim-fault",
	"gpus":               "GPUs whose telemetry stands for its own",
	"events":             "publish KV events at this `address`, such as tcp://127.0.0.1:5557",
}

func simulateCommand() *cobra.Command {
	var at addresses
	engine := knownKeys.find("simulate").elem
	values := engine.defaults()
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
			c, err := simulated(at, values)
			if err != nil {
				return err
			}
			return simulate(at, c)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&at.http, "listen", "127.0.0.1:8000", "`address` to serve on: host:port or unix:/path")
	fs.StringVar(&at.events, "events", "", simulateHelp["events"])
	fs.StringVar(&at.replay, "replay", "", "give missed KV events again at this `address`")
	for _, key := range engine.children {
		if key.name == "events" || key.name == "gpus" {
			continue // a process of its own says where, and is no worker of `simulate` whose GPUs could be named
		}
		name := strings.ReplaceAll(key.name, "_", "-")
		fs.Var(&keyFlag{key, values}, name, simulateHelp[key.name])
		if key.kind == kindBool {
			fs.Lookup(name).NoOptDefVal = "true"
		}
		if len(key.oneOf) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(key.oneOf, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return cmd
}

// addresses are where one simulated worker listens; of events and replay
// empty: nowhere.
type addresses struct{ http, events, replay string }

// check says what is wrong with the addresses.
func (at addresses) check() error {
	if err := checkListen(at.http); err != nil {
		return usageError("--listen: " + err.Error())
	}
	for _, a := range [...]struct{ flag, address string }{{"--events: ", at.events}, {"--replay: ", at.replay}} {
		host, isTCP := strings.CutPrefix(a.address, "tcp://")
		if a.address == "" {
			continue
		}
		if _, port, err := net.SplitHostPort(host); !isTCP || err != nil || port == "" {
			return usageError(a.flag + quote(a.address) + " is no address such as tcp://127.0.0.1:5557")
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
	return listen(strings.Replace(strings.TrimPrefix(address, "tcp://"), "*", "", 1))
}

// A keyFlag is a flag that is read like the configuration key of its name.
type keyFlag struct {
	key  *knownKey
	into map[string]any // by the key's name
}

func (f *keyFlag) Set(text string) error {
	v, err := f.key.parse(text)
	if err != nil {
		return err
	}
	f.into[f.key.name] = v
	return nil
}

func (f *keyFlag) String() string {
	if f.key == nil || f.into[f.key.name] == nil {
		return "" // pflag asks a zero value, too
	}
	return show(f.into[f.key.name])
}

// Type is pflag's word for the kind, which knows what to leave out of --help.
func (f *keyFlag) Type() string {
	switch f.key.kind {
	case kindBool:
		return "bool"
	case kindInt:
		return "int"
	case kindFloat:
		return "float64"
	}
	return "string"
}

// simulated is the checked configuration of the one engine.
func simulated(at addresses, values map[string]any) (simulateConfig, error) {
	var c simulateConfig
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{TagName: "koanf", Result: &c, ErrorUnused: true})
	if err == nil {
		err = dec.Decode(values)
	}
	if err != nil {
		panic("BUG: checked values do not fit simulateConfig: " + err.Error())
	}
	if err := at.check(); err != nil {
		return c, err
	}
	v := &validation{}
	v.name("--name", c.Name, quote(c.Name))
	v.modelNames("--model", []string{c.Model}, false)
	if text := c.tooLong(); text != "" {
		v.add(text, "--max-model-len")
	}
	for _, found := range v.found {
		return c, usageError(found.paths[0] + ": " + found.text)
	}
	return c, nil
}

// simulate runs until a signal says to stop.
func simulate(at addresses, c simulateConfig) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, stopSignals...)
	defer signal.Stop(stop)

	server, err := sim.NewServer(c.options())
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
func serveSimulated(server *sim.Server, at addresses, c simulateConfig, serving *sync.WaitGroup, ended chan<- error) error {
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
	ln, err := listen(at.http)
	if err != nil {
		return err
	}
	url, _ := baseURL(ln, false)
	fmt.Fprintf(os.Stderr, "simulated worker %s serves model %s (role %s) on %s\n", c.Name, c.Model, c.Role, url)
	serve(server.Serve, ln)
	return nil
}
