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
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.servers = append(e.servers, server)
	e.workers = append(e.workers, proxy.Worker{
		Name: c.Name, URL: "http://" + ln.Addr().String(), Engine: "vllm", Role: c.Role, Models: []string{c.Model},
	})
	e.running.Add(1)
	go e.serve(server, ln, c.Name, failed)
	return nil
}

func (e *engines) serve(server *sim.Server, ln net.Listener, name string, failed func(error)) {
	defer e.running.Done()
	if err := server.Serve(ln); err != nil {
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
		Name: c.Name, Model: c.Model, Role: c.Role,
		BlockSize: c.BlockSize, Blocks: c.Blocks, MaxBatchedTokens: c.MaxBatchedTokens, MaxSeqs: c.MaxSeqs, MaxModelLen: c.MaxModelLen,
		Speedup: c.Speedup, Seed: uint64(c.Seed), Faults: c.Faults,
	}
}
