// Connections to a worker: dialled, kept, lent, and closed when idle.

package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/wire"
)

const (
	// idleConn is below the 5 s after which uvicorn, and so vLLM, closes a connection
	// that nobody used. Above it, requests would often meet a connection that is being
	// closed.
	idleConn = 4 * time.Second

	// maxConns is how many connections one worker may have: one stream takes one.
	maxConns = 1 << 16
)

// Timeouts are the clocks of a worker's connections and calls. None runs over a
// whole stream.
type Timeouts struct {
	Connect   time.Duration // to make a connection, TLS included
	FirstByte time.Duration // from the request being sent to the first byte of the reply's body
	Idle      time.Duration // between two reads of the body after that
	Write     time.Duration // for one write
}

// Conns are the connections to one worker. Idle ones are kept for a few seconds;
// the last one used is lent first.
type Conns struct {
	// Spare makes room when this process has no file descriptor left for a new
	// connection, by closing the idle ones to all workers; nil: nothing can be done. It
	// is set before the first use and not changed after.
	Spare func()

	client *fasthttp.HostClient // keeps the connections; what is sent on them is our own
}

// NewConns returns the connections to address, host:port. conf is for TLS, nil: none.
// Of the timeouts it takes Connect and Write.
func NewConns(address string, conf *tls.Config, t Timeouts) *Conns {
	return &Conns{client: &fasthttp.HostClient{
		Addr:                address,
		MaxConns:            maxConns,
		MaxIdleConnDuration: idleConn,
		ConnPoolStrategy:    fasthttp.LIFO,
		Dial: func(addr string) (net.Conn, error) {
			return dialApart(addr, conf, t)
		},
	}}
}

// CloseIdle closes the connections that are not lent.
func (p *Conns) CloseIdle() { p.client.CloseIdleConnections() }

// Count is how many connections are open, lent ones among them.
func (p *Conns) Count() int { return p.client.ConnsCount() }

// take lends a connection: a kept one, else a new one. It goes back by its keep or
// its drop.
func (p *Conns) take() (*conn, error) {
	cc, err := p.client.AcquireConn(0, false)
	if err != nil && IsShort(err) && p.Spare != nil {
		p.Spare()
		cc, err = p.client.AcquireConn(0, false)
	}
	if err != nil {
		return nil, err
	}
	c := cc.Conn().(*conn)
	if c.keep == nil {
		c.keep = func() { p.client.ReleaseConn(cc) }
		c.drop = func() { p.client.CloseConn(cc) }
	}
	return c, nil
}

// IsShort says that a connection could not be made because this host has no file
// descriptor or memory left for it. That tells nothing of the other side.
func IsShort(err error) bool {
	for _, errno := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, fasthttp.ErrNoFreeConns)
}

// dialApart dials on a goroutine of its own. Dialling needs a deep stack, and a
// stack that has grown stays: on the request's own goroutine it would cost each
// stream 8 KiB, and more with TLS, for as long as the stream lives.
func dialApart(addr string, conf *tls.Config, t Timeouts) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err = dial(addr, conf, t)
	}()
	<-done
	return c, err
}

// dial connects within the connect clock, TLS included.
func dial(addr string, conf *tls.Config, t Timeouts) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.Connect)
	defer cancel()
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if conf == nil {
		return newConn(raw, raw, t.Write), nil
	}
	secure := tls.Client(raw, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return newConn(secure, raw, t.Write), nil
}

// A conn is one connection to a worker, with a clock for each read and write.
//
//  1. It belongs to one call at a time, from take until keep or drop.
//  2. Others may close raw at any time, and nothing else: the Close of TLS can wait
//     for a worker that does not read.
type conn struct {
	net.Conn               // plain or TLS
	raw      net.Conn      // the socket itself
	write    time.Duration // how long one write may take
	reading  wire.Clock    // the read deadline of Conn
	writing  wire.Clock    // the write deadline of Conn
	used     bool          // it has answered a request before this one
	keep     func()        // gives it back to the pool, to be lent again
	drop     func()        // gives it back to the pool, closed
	ack      ackNow        // acknowledges what came without delay
}

func newConn(of, raw net.Conn, write time.Duration) *conn {
	c := &conn{Conn: of, raw: raw, write: write}
	c.ack.init(raw)
	return c
}

// readWithin reads once and waits at most d for it, from now on.
func (c *conn) readWithin(b []byte, now time.Time, d time.Duration) (int, error) {
	if err := c.reading.Wind(c.Conn.SetReadDeadline, now, d); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// gatherLimit is the size up to which the pieces of a request are copied together,
// in bytes: below it one write of a copy is cheaper than one write of many pieces.
const gatherLimit = 32 << 10

// send writes the head and the pieces of the body in as few system calls as can be.
func (c *conn) send(bufs net.Buffers, now time.Time) error {
	if err := c.writing.Wind(c.Conn.SetWriteDeadline, now, c.write); err != nil {
		return err
	}
	n := 0
	for _, b := range bufs {
		n += len(b)
	}
	if c.Conn == c.raw && n > gatherLimit {
		return writePieces(c.raw, bufs)
	}
	// TLS makes a record of each write, so it always gets the pieces in one.
	buf := wire.TakeBuffer(n)
	all := buf[:0]
	for _, b := range bufs {
		all = append(all, b...)
	}
	_, err := c.Conn.Write(all)
	wire.GiveBuffer(buf)
	return err
}

// writePieces is a function of its own because WriteTo lets its receiver escape:
// in send, small requests would pay for that too.
func writePieces(raw net.Conn, bufs net.Buffers) error {
	_, err := bufs.WriteTo(raw)
	return err
}
