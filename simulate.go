// Simulate: one simulated worker as a process of its own.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/cobra"

	"kvasir/sim"
)

// simulateHelp says what each key of `simulate` does; a test asks for all.
var simulateHelp = map[string]string{
	"name":               "its name, said in its answers",
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
}

func simulateCommand() *cobra.Command {
	var addr string
	engine := knownKeys.find("simulate").elem
	values := engine.defaults()
	values["name"] = "sim-0"
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Serve one simulated worker",
		Long: `Serves one simulated worker: an engine without a GPU that schedules, caches and
times requests as vLLM would, and answers with made-up text that says so.`,
		Example: `  kvasir simulate --listen 127.0.0.1:8000
  kvasir simulate --listen 127.0.0.1:8001 --model qwen --speedup 10 --faults`,
		RunE: func(*cobra.Command, []string) error {
			c, err := simulated(addr, values)
			if err != nil {
				return err
			}
			return simulate(addr, c)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&addr, "listen", "127.0.0.1:8000", "`address` to serve on: host:port or unix:/path")
	for _, key := range engine.children {
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
func simulated(addr string, values map[string]any) (simulateConfig, error) {
	var c simulateConfig
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{TagName: "koanf", Result: &c, ErrorUnused: true})
	if err == nil {
		err = dec.Decode(values)
	}
	if err != nil {
		panic("BUG: checked values do not fit simulateConfig: " + err.Error())
	}
	if err := checkListen(addr); err != nil {
		return c, usageError("--listen: " + err.Error())
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
func simulate(addr string, c simulateConfig) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, stopSignals...)
	defer signal.Stop(stop)

	server, err := sim.NewServer(c.options())
	if err != nil {
		return fmt.Errorf("cannot simulate worker %q: %w", c.Name, err)
	}
	defer server.Close()
	ln, err := listen(addr)
	if err != nil {
		return err
	}
	url, _ := baseURL(ln, false)
	fmt.Fprintf(os.Stderr, "simulated worker %s serves model %s (role %s) on %s\n", c.Name, c.Model, c.Role, url)
	ended := make(chan error, 1)
	go serveEngine(server, ln, ended)
	select {
	case <-stop:
		_ = server.Close()
		return <-ended
	case err := <-ended:
		return err
	}
}

func serveEngine(server *sim.Server, ln net.Listener, ended chan<- error) {
	ended <- server.Serve(ln)
}
