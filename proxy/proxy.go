// Package proxy takes requests of OpenAI clients on their way to inference workers,
// and the answers back. Package edge is its side toward clients, upstream that toward
// workers.
//
//	p, err := proxy.New(log, version)
//	err = p.Apply(&settings)              // workers, keys, clocks; again at each reload
//	go p.ServeAdmin(adminListener, h)     // h: of package admin
//	go p.Serve(listener, nil)             // the OpenAI API
//	p.Drain(2*time.Second, time.Minute, secondSignal)
//	p.Close()
//
// The way stands in pipeline.go.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"kvasir/edge"
	"kvasir/proxy/hardware"
	"kvasir/proxy/health"
	"kvasir/proxy/record"
	"kvasir/proxy/tokens"
	"kvasir/tracing/content"
)

// A Proxy serves the OpenAI API and forwards it to workers.
type Proxy struct {
	log     zerolog.Logger
	metrics *metrics
	access  accessLog
	busy    busy
	bugs    bugs
	watch   *edge.Watcher // over clients that leave
	nearby  *edge.Watcher // over operators who leave the admin listener
	started time.Time
	mark    string // of this process, by which it knows its own requests

	bodies      edge.Budget
	descriptors edge.Descriptors
	talks       content.Budget // prompts and answers of traced requests

	coalesced  coalesceGroup   // calls for equal requests
	tokenizers *tokens.Sources // where models' tokens come from

	hardware *hardware.Watch // what telemetry says of the workers' GPUs
	planning planning        // what the planner is told, and what it says

	observers atomic.Pointer[[]func(*record.Record)] // nil: nobody looks

	state    atomic.Pointer[state]
	applying sync.Mutex      // one Apply at a time
	accounts *accounts       // of keys, over several Kvasirs; nil: there is one. Written with applying held
	drained  map[string]bool // names of workers that an operator has taken out; guarded by applying
	reasons  health.Reasons  // why /readyz is not plainly ready

	unserved struct {
		sync.Mutex
		told []string // what the log has said of unserved models
	}

	draining atomic.Bool // ready no more
	refusing atomic.Bool // new requests get 503
	stopping atomic.Bool // running requests are ended

	loopback atomic.Bool // only this machine reaches the API

	main    edge.Service
	admin   edge.Service
	watches sync.WaitGroup // over workers

	patience closePatience // of Close
}

// New returns a proxy that serves nothing yet.
func New(log zerolog.Logger, version string) (*Proxy, error) {
	w, err := edge.NewWatcher()
	if err != nil {
		return nil, err
	}
	nearby, err := edge.NewWatcher()
	if err != nil {
		w.Close()
		return nil, err
	}
	p := &Proxy{log: log, watch: w, nearby: nearby, started: time.Now(), mark: newMark(), patience: standardPatience}
	p.metrics = newMetrics(p, version)
	p.access = accessLog{log: log, metrics: p.metrics}
	p.bugs = bugs{log: log, panics: p.metrics.panics}
	p.tokenizers = tokens.New(log, p.reasons.Set, p.bugs.note)
	p.hardware = hardware.New(log, p.metrics.registry, p.bugs.note)
	if !edge.NoticesLost {
		p.Degrade("on this system a lost client is noticed only at the next write to it")
	}
	return p, nil
}

// LimitFiles says how many files the process may have open, at least edge.LeastFiles.
// It is called before Apply.
func (p *Proxy) LimitFiles(limit uint64) { p.descriptors.SetLimit(limit) }

// Serve takes clients from ln until Drain or Close; with tlsConf, over TLS.
func (p *Proxy) Serve(ln net.Listener, tlsConf *tls.Config) error {
	p.loopback.Store(onLoopback(ln))
	return p.main.Serve(p.server(), p.clients(ln, tlsConf))
}

func (p *Proxy) clients(ln net.Listener, tlsConf *tls.Config) *edge.Listener {
	return &edge.Listener{
		Listener: ln, TLS: tlsConf, Watcher: p.watch, Descriptors: &p.descriptors,
		WriteTimeout: func() time.Duration { return p.state.Load().settings.Timeouts.Write },
	}
}

// Drain lets the requests under way finish. Readiness fails at once; after
// delay, in which load balancers notice, new requests are refused; what still
// runs after timeout is ended with an error. Closing now ends every wait.
func (p *Proxy) Drain(delay, timeout time.Duration, now <-chan struct{}) {
	p.draining.Store(true)
	wait(delay, now)
	p.refusing.Store(true)
	done := make(chan struct{})
	go p.shutMain(done)
	if waitFor(done, timeout, now) {
		return
	}
	p.stopping.Store(true)
	for patience := stopPatience; !waitFor(done, stopStep, nil); patience -= stopStep {
		if patience > 0 {
			p.watch.StopAll()
		} else {
			p.watch.AbortAll()
		}
	}
}

const (
	stopStep     = 50 * time.Millisecond
	stopPatience = 400 * time.Millisecond // for clients to take the error that ends their stream
)

// A closePatience is how long Close waits for what it cannot end.
type closePatience struct {
	admin time.Duration // for replies of the admin listener: a profile may take minutes
	rest  time.Duration // for all goroutines together
}

var standardPatience = closePatience{admin: 200 * time.Millisecond, rest: 250 * time.Millisecond}

func (p *Proxy) shutMain(done chan<- struct{}) {
	defer close(done)
	_ = p.main.Shutdown(context.Background())
}

func wait(d time.Duration, now <-chan struct{}) { waitFor(nil, d, now) }

// waitFor says whether done was closed within d and before now.
func waitFor(done <-chan struct{}, d time.Duration, now <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	case <-now:
	}
	return false
}

// errLeft is Close's for what it could not wait for.
var errLeft = errors.New("a probe, or reading a tokenizer, has not ended")

// Close ends what Drain has left and waits for every goroutine, but no longer than a moment: one may be connecting
// to a worker that does not answer, another in the middle of a large tokenizer. They hold nothing that
// the process's end would harm.
func (p *Proxy) Close() error {
	if !p.stopping.Load() {
		now := make(chan struct{})
		close(now)
		p.Drain(0, 0, now)
	}
	if s := p.state.Load(); s != nil {
		s.retire(nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.patience.admin)
	defer cancel()
	err := p.admin.Shutdown(ctx)
	ended := make(chan struct{})
	go p.end(ended)
	if !waitFor(ended, p.patience.rest, nil) {
		return errors.Join(err, errLeft)
	}
	return err
}

// end waits for every goroutine.
func (p *Proxy) end(ended chan<- struct{}) {
	defer close(ended)
	p.hardware.Close()
	p.watches.Wait() // they have tokens looked for
	p.tokenizers.Close()
	p.watch.Close()
	p.nearby.Close()
}
