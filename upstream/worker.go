// A worker: where it is reached, what it is sent with every request, and what is known of it.

package upstream

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"kvasir/header"
	"kvasir/kvroute"
	"kvasir/tracing/traceparent"
)

// A Worker is one engine replica as a peer. It lives as long as a configuration
// names the worker with the same settings, so that its connections, and what is
// known of it, outlive a reload.
//
//  1. What NewWorker sets is never changed.
//  2. The goroutine of Watch alone finds out what the worker is. What it finds is
//     read by others through atomics, and through kvroute.Worker.
type Worker struct {
	*kvroute.Worker // the worker as placement sees it: its name, role, health, load, and what it holds

	Settings Settings // as the configuration names it
	Conns    *Conns   // the connections to it
	Quiet    Hush     // for lines of the log that the worker itself can bring about

	// Life changes whenever the worker's server was gone, or is another process than
	// before: what it said of itself until then is no longer good.
	Life atomic.Uint64

	base        string                 // the path before the route's: "" or "/like/this"
	host        string                 // the Host header
	fixed       []byte                 // header lines of the configuration, each with its CRLF
	drops       func(name []byte) bool // which headers of a client do not go on
	dropsTraced func(name []byte) bool // the same, where the trace context is written anew
	address     string                 // host:port
	ownsAuth    bool                   // the configuration sends an Authorization of its own

	source    atomic.Pointer[string]   // of discovery, that found it
	named     *dialect                 // as the configuration names the engine; nil: it is found out
	found     atomic.Pointer[findings] // by asking the worker; nil: it has not answered yet
	leftOut   atomic.Int32             // models that it lists and that are not served
	bootstrap atomic.Int32             // the port of an SGLang prefill worker's bootstrap server; 0: not known
	mute      atomic.Int64             // until then it is not asked for tokens, Unix nanoseconds
	heard     heard                    // what its engine says of its KV cache
}

// NewWorker makes the home of one worker of the configuration. Nothing is asked of
// it yet, and nobody is its kvroute Peer.
func NewWorker(s Settings, t Timeouts) (*Worker, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("cannot read url of worker %q: %w", s.Name, err)
	}
	role, err := kvroute.ParseRole(s.Role)
	if err != nil {
		return nil, fmt.Errorf("cannot read role of worker %q: %w", s.Name, err)
	}
	w := &Worker{
		Worker:   kvroute.NewWorker(s.Name, role, s.MaxRequests),
		Settings: s,
		base:     strings.TrimRight(u.EscapedPath(), "/"),
		host:     u.Host,
		address:  hostPort(u),
		drops:    dropsBeside(s.Headers),
	}
	w.dropsTraced = func(name []byte) bool { return traceparent.Is(name) || w.drops(name) }
	if s.Engine != "" {
		w.named = dialectOf(s.Engine)
	}
	w.SetNeedsPrefill(w.dialect().needsPrefill)
	w.SetSource(s.Source)
	if len(s.Models) > 0 {
		w.SetModels(named(s.Models))
	}
	for name, value := range s.Headers {
		w.fixed = append(w.fixed, name+": "+value+"\r\n"...)
		w.ownsAuth = w.ownsAuth || strings.EqualFold(name, "Authorization")
	}
	var conf *tls.Config
	if u.Scheme == "https" {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
		if s.TLS != nil {
			conf = s.TLS.Clone()
		}
		if conf.ServerName == "" {
			conf.ServerName = u.Hostname()
		}
	}
	w.Conns = NewConns(w.address, conf, t)
	return w, nil
}

// dropsBeside is DroppedFromRequest, and the names that the configuration sets: a
// client could else say first what the worker takes for ours.
func dropsBeside(headers map[string]string) func(name []byte) bool {
	if len(headers) == 0 {
		return DroppedFromRequest
	}
	var own []string
	for name := range headers {
		own = append(own, strings.ToLower(name))
	}
	return func(name []byte) bool {
		return DroppedFromRequest(name) || slices.ContainsFunc(own, func(o string) bool { return header.Alike(name, o) })
	}
}

// AppendTarget appends the first two lines of a request's head: the request line,
// for a path below the worker's base path, and Host. query is a client's, without its
// question mark; of it goes on what workers may be sent.
func (w *Worker) AppendTarget(dst []byte, method, path string, query []byte) []byte {
	dst = append(append(dst, method...), ' ')
	dst = appendQuery(append(append(dst, w.base...), path...), query)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	return append(append(dst, w.host...), "\r\n"...)
}

// AppendHeaders appends the header lines of a client that go on to the worker, and
// those that the configuration sends it. lines are the client's as they came. The
// trace context is not among them where the request is traced: it is written anew.
func (w *Worker) AppendHeaders(dst, lines []byte, traced bool) []byte {
	drops := w.drops
	if traced {
		drops = w.dropsTraced
	}
	return append(header.AppendEndToEnd(dst, lines, drops), w.fixed...)
}

// Address is where the worker's server listens, host:port.
func (w *Worker) Address() string { return w.address }

// SetSource says which source of discovery has the worker from now on; "": the
// configuration names it.
func (w *Worker) SetSource(source string) { w.source.Store(&source) }

// Source is the source of discovery that found the worker; "": the configuration names it.
func (w *Worker) Source() string { return *w.source.Load() }

// OwnsAuth says whether the configuration sends the worker an Authorization, so that
// no client's goes on to it.
func (w *Worker) OwnsAuth() bool { return w.ownsAuth }

// hostname is the host of the worker's url, without its port.
func (w *Worker) hostname() string {
	u := url.URL{Host: w.host}
	return u.Hostname()
}

// findings are what asking a worker has found. They are never changed.
type findings struct {
	dialect *dialect
	models  []Listed
}

// A Listed is a model as a worker lists it.
type Listed struct {
	Name   string
	Root   string // a path or a Hugging Face id; "": it does not say
	Parent string // of an adapter: the model that it adapts
}

// Lists is how the worker lists a model; zero where it does not, or has not answered
// yet.
func (w *Worker) Lists(model string) Listed {
	if f := w.found.Load(); f != nil {
		for _, m := range f.models {
			if m.Name == model {
				return m
			}
		}
	}
	return Listed{}
}

// Serves says whether requests for the model may go to the worker.
func (w *Worker) Serves(model string) bool {
	models, _ := w.Models()
	return slices.ContainsFunc(models, func(m kvroute.Model) bool { return m.Name == model })
}
