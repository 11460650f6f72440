// Backends: the connections to one worker.
package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"kvasir/header"
	"kvasir/kvroute"
	"kvasir/upstream"
)

// A backend is how one worker is reached. It lives as long as a configuration
// names the worker with the same settings, so connections outlive a reload.
type backend struct {
	*kvroute.Worker
	settings Worker

	conns *upstream.Pool
	base  string // path before the route's, "" or "/like/this"
	host  string // Host header

	fixed    []byte                 // header lines of the configuration, each with its CRLF
	drops    func(name []byte) bool // a client's headers that do not go on
	ownsAuth bool                   // the configuration sends an Authorization of its own

	probe      probe                     // the asking of it
	discovered atomic.Pointer[discovery] // what that found; nil: nothing yet
	leftOut    atomic.Int32              // models that it lists and that are not taken
	agreement  agreement                 // of its cached tokens with what was predicted
	bootstrap  atomic.Int32              // of an SGLang prefill worker: its bootstrap server's port; 0: not known
	life       atomic.Uint64             // another one: the server was gone in between
	apart      atomic.Bool               // it was said that it hands over to nobody
	listening  listening                 // what its engine says of its KV cache
	mute       atomic.Int64              // until then it is not asked for tokens, Unix nanoseconds
	tokens     atomic.Pointer[tokenMetrics]
}

// newBackend makes the connections' home for one worker of the configuration.
func newBackend(w Worker, t Timeouts) (*backend, error) {
	u, err := url.Parse(w.URL)
	if err != nil {
		return nil, fmt.Errorf("cannot read url of worker %q: %w", w.Name, err)
	}
	role, err := kvroute.ParseRole(w.Role)
	if err != nil {
		return nil, fmt.Errorf("cannot read role of worker %q: %w", w.Name, err)
	}
	b := &backend{
		Worker:   kvroute.NewWorker(w.Name, role, w.MaxRequests),
		settings: w,
		base:     strings.TrimRight(u.EscapedPath(), "/"),
		host:     u.Host,
	}
	b.Peer = b
	b.SetHelped(computesNoPrompts(w.Engine))
	if len(w.Models) > 0 {
		b.SetModels(named(w.Models))
	}
	for name, value := range w.Headers {
		b.fixed = append(b.fixed, name+": "+value+"\r\n"...)
		b.ownsAuth = b.ownsAuth || strings.EqualFold(name, "Authorization")
	}
	b.drops = dropsOf(w.Headers)
	address, secure := hostPort(u), u.Scheme == "https"
	var conf *tls.Config
	if secure {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
		if w.TLS != nil {
			conf = w.TLS.Clone()
		}
		if conf.ServerName == "" {
			conf.ServerName = u.Hostname()
		}
	}
	b.conns = upstream.NewPool(address, conf, t.upstream())
	return b, nil
}

// hostPort is where a worker's server listens.
func hostPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// dropsOf adds the names that the configuration sets to those that never go on:
// a client could else say first what the worker takes for ours.
func dropsOf(headers map[string]string) func(name []byte) bool {
	if len(headers) == 0 {
		return upstream.DroppedFromRequest
	}
	var own []string
	for name := range headers {
		own = append(own, strings.ToLower(name))
	}
	return func(name []byte) bool {
		return upstream.DroppedFromRequest(name) || slices.ContainsFunc(own, func(o string) bool { return header.Is(name, o) })
	}
}
