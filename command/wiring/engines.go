// Engines: the simulated workers inside this process.

package wiring

import (
	"fmt"
	"net"
	"sync"

	"kvasir/config"
	"kvasir/proxy"
	"kvasir/sim"
)

// Engines are the workers of `simulate`, each behind a loopback listener of
// its own: for the proxy they are workers like any other.
type Engines struct {
	Workers []proxy.Worker // one for each, in the order of the list

	servers []*sim.Server
	running sync.WaitGroup
}

// StartEngines starts all engines or none. failed is called when one stops by
// itself.
func StartEngines(list []config.Simulate, failed func(error)) (*Engines, error) {
	e := &Engines{}
	for _, c := range list {
		if err := e.start(c, failed); err != nil {
			e.Close()
			return nil, fmt.Errorf("cannot simulate worker %q: %w", c.Name, err)
		}
	}
	return e, nil
}

func (e *Engines) start(c config.Simulate, failed func(error)) error {
	server, err := sim.NewServer(SimOptions(&c))
	if err != nil {
		return err
	}
	e.servers = append(e.servers, server) // Close closes it from here on
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	worker := proxy.Worker{
		Name: c.Name, URL: "http://" + ln.Addr().String(), Engine: c.Engine, Role: c.Role, Models: []string{c.Model}, GPUs: c.GPUs,
	}
	// The sockets of events come first: the proxy asks for them as soon as it finds
	// the worker up. Only vLLM's HTTP form says where they are, so those of the
	// others are settings of the worker.
	if c.Events {
		events, replay, err := e.publish(server, c.Name, failed)
		if err != nil {
			_ = ln.Close()
			return err
		}
		if c.Engine != "vllm" {
			worker.KVEvents, worker.KVReplay = "tcp://"+events.String(), "tcp://"+replay.String()
		}
	}
	e.Workers = append(e.Workers, worker)
	e.running.Add(1)
	go e.serve(server.Serve, ln, c.Name, failed)
	return nil
}

// publish opens the sockets of an engine's KV events. The proxy finds them at /kv_event_sources.
func (e *Engines) publish(server *sim.Server, name string, failed func(error)) (eventsAt, replayAt net.Addr, err error) {
	events, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	replay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = events.Close()
		return nil, nil, err
	}
	server.Announce(events.Addr(), replay.Addr())
	e.running.Add(2)
	go e.serve(server.ServeEvents, events, name, failed)
	go e.serve(server.ServeReplay, replay, name, failed)
	return events.Addr(), replay.Addr(), nil
}

func (e *Engines) serve(serve func(net.Listener) error, ln net.Listener, name string, failed func(error)) {
	defer e.running.Done()
	if err := serve(ln); err != nil {
		failed(fmt.Errorf("simulated worker %q stopped: %w", name, err))
	}
}

// Close stops all engines and waits for them.
func (e *Engines) Close() {
	for _, s := range e.servers {
		_ = s.Close()
	}
	e.running.Wait()
}

// SimOptions are what a simulated engine is told.
func SimOptions(c *config.Simulate) sim.Options {
	return sim.Options{
		Name: c.Name, Model: c.Model, Engine: c.Engine, Role: c.Role,
		BlockSize: c.BlockSize, Blocks: c.Blocks, MaxBatchedTokens: c.MaxBatchedTokens, MaxSeqs: c.MaxSeqs, MaxModelLen: c.MaxModelLen,
		Speedup: c.Speedup, Seed: uint64(c.Seed), Faults: c.Faults, Events: c.Events,
	}
}

// Among is the settings with the simulated engines among the workers.
func (e *Engines) Among(s *proxy.Settings) *proxy.Settings {
	all := *s
	all.Workers = append(append([]proxy.Worker(nil), s.Workers...), e.Workers...)
	return &all
}
