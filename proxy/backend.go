// Backends: the connections to one worker.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/kvroute"
)

const (
	// idleConn is below the 5 s after which uvicorn, and so vLLM, closes a
	// connection that nobody used: the race for it is lost least often so.
	idleConn = 4 * time.Second

	// maxConns to one worker: one stream is one connection.
	maxConns = 1 << 16
)

// A backend is how one worker is reached. It lives as long as a configuration
// names the worker with the same settings, so connections outlive a reload.
type backend struct {
	*kvroute.Worker
	settings Worker

	client *fasthttp.HostClient // the pool of connections; the requests are our own
	spare  func()               // closes what lies idle to other workers, where no descriptor is left
	base   string               // path before the route's, "" or "/like/this"
	host   string               // Host header

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
	b.client = &fasthttp.HostClient{
		Addr:                address,
		MaxConns:            maxConns,
		MaxIdleConnDuration: idleConn,
		ConnPoolStrategy:    fasthttp.LIFO,
		Dial: func(addr string) (net.Conn, error) {
			return dialApart(addr, conf, t)
		},
		MaxResponseBodySize: probeBody,
	}
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
		return droppedFromRequest
	}
	var own []string
	for name := range headers {
		own = append(own, strings.ToLower(name))
	}
	return func(name []byte) bool {
		return droppedFromRequest(name) || slices.ContainsFunc(own, func(o string) bool { return len(o) == len(name) && isHeader(name, o) })
	}
}

// dialApart connects on a goroutine of its own. Dialling needs a deep stack, and
// a stack that has grown stays: on the request's own it would cost each stream
// 8 KiB, and more with TLS, for as long as it lives.
func dialApart(addr string, conf *tls.Config, t Timeouts) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err = dialWorker(addr, conf, t)
	}()
	<-done
	return conn, err
}

// dialWorker connects within the connect clock, TLS included.
func dialWorker(addr string, conf *tls.Config, t Timeouts) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.Connect)
	defer cancel()
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if conf == nil {
		return newWorkerConn(raw, raw, t), nil
	}
	secure := tls.Client(raw, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return newWorkerConn(secure, raw, t), nil
}

// A workerConn is one connection to a worker, with a clock for each read.
type workerConn struct {
	net.Conn
	raw     net.Conn
	write   time.Duration
	reading clock
	writing clock
	used    bool   // has answered a request before this one
	keep    func() // back into the pool
	drop    func() // closed
	ack     ackNow
}

func newWorkerConn(conn, raw net.Conn, t Timeouts) *workerConn {
	c := &workerConn{Conn: conn, raw: raw, write: t.Write}
	c.ack.init(raw)
	return c
}

// readWithin reads once and waits at most d for it, from now on.
func (c *workerConn) readWithin(b []byte, now time.Time, d time.Duration) (int, error) {
	if err := c.reading.wind(c.Conn.SetReadDeadline, now, d); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// gatherLimit is up to which size a request is copied together: below it, one
// write of a copy is cheaper than one of several pieces.
const gatherLimit = 32 << 10

// send writes head and body in as few system calls as there are.
func (c *workerConn) send(bufs net.Buffers, now time.Time) error {
	if err := c.writing.wind(c.Conn.SetWriteDeadline, now, c.write); err != nil {
		return err
	}
	n := 0
	for _, b := range bufs {
		n += len(b)
	}
	if c.Conn == c.raw && n > gatherLimit {
		return writePieces(c.raw, bufs)
	}
	// TLS would make a record of each piece: it always gets them in one.
	buf := takeBuffer(n)
	all := buf[:0]
	for _, b := range bufs {
		all = append(all, b...)
	}
	_, err := c.Conn.Write(all)
	giveBuffer(buf)
	return err
}

// writePieces is apart because WriteTo lets its receiver escape: small requests
// would pay for it too.
func writePieces(raw net.Conn, bufs net.Buffers) error {
	_, err := bufs.WriteTo(raw)
	return err
}

// isTimeout tells a clock that ran out from a connection that broke.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// take lends a connection: a kept one, else a fresh one, for which those that lie
// idle to all workers make place.
func (b *backend) take() (*workerConn, error) {
	cc, err := b.client.AcquireConn(0, false)
	if err != nil && isOurs(err) && b.spare != nil {
		b.spare()
		cc, err = b.client.AcquireConn(0, false)
	}
	if err != nil {
		return nil, err
	}
	conn := cc.Conn().(*workerConn)
	if conn.keep == nil {
		conn.keep = func() { b.client.ReleaseConn(cc) }
		conn.drop = func() { b.client.CloseConn(cc) }
	}
	return conn, nil
}
