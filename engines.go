// Engines: the simulated workers inside this process.
package main

import (
	"fmt"
	"net"
	"sync"

	"kvasir/proxy"
	"kvasir/sim"
)

// engines are the workers of `simulate`, each behind a loopback listener of
// its own: for the proxy they are workers like any other.
type engines struct {
	servers []*sim.Server
	workers []proxy.Worker
	running sync.WaitGroup
}

// startEngines starts all engines or none. One that stops by itself is told
// to failed.
func startEngines(list []simulateConfig, failed func(error)) (*engines, error) {
	e := &engines{}
	for _, c := range list {
		if err := e.start(c, failed); err != nil {
			e.close()
			return nil, fmt.Errorf("cannot simulate worker %q: %w", c.Name, err)
		}
	}
	return e, nil
}

func (e *engines) start(c simulateConfig, failed func(error)) error {
	server, err := sim.NewServer(c.options())
	if err != nil {
		return err
	}
	e.servers = append(e.servers, server) // close closes it from here on
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	worker := proxy.Worker{
		Name: c.Name, URL: "http://" + ln.Addr().String(), Engine: c.Engine, Role: c.Role, Models: []string{c.Model}, GPUs: c.GPUs,
	}
	// The events' sockets come first: the proxy asks for them once it finds the worker up. Only vLLM's form says
	// where they are.
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
	e.workers = append(e.workers, worker)
	e.running.Add(1)
	go e.serve(server.Serve, ln, c.Name, failed)
	return nil
}

// publish opens the sockets of an engine's KV events. The proxy finds them at /kv_event_sources.
func (e *engines) publish(server *sim.Server, name string, failed func(error)) (eventsAt, replayAt net.Addr, err error) {
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

func (e *engines) serve(serve func(net.Listener) error, ln net.Listener, name string, failed func(error)) {
	defer e.running.Done()
	if err := serve(ln); err != nil {
		failed(fmt.Errorf("simulated worker %q stopped: %w", name, err))
	}
}

// close stops all engines and waits for them.
func (e *engines) close() {
	for _, s := range e.servers {
		_ = s.Close()
	}
	e.running.Wait()
}

// tooLong says that a single sequence would not fit into the engine's blocks;
// "" if it does.
func (c simulateConfig) tooLong() string {
	if pool := c.Blocks * c.BlockSize; c.MaxModelLen > pool {
		return fmt.Sprintf("%d is more than the %d tokens that the blocks hold (%d of %d)", c.MaxModelLen, pool, c.Blocks, c.BlockSize)
	}
	return ""
}

func (c simulateConfig) options() sim.Options {
	return sim.Options{
		Name: c.Name, Model: c.Model, Engine: c.Engine, Role: c.Role,
		BlockSize: c.BlockSize, Blocks: c.Blocks, MaxBatchedTokens: c.MaxBatchedTokens, MaxSeqs: c.MaxSeqs, MaxModelLen: c.MaxModelLen,
		Speedup: c.Speedup, Seed: uint64(c.Seed), Faults: c.Faults, Events: c.Events,
	}
}
