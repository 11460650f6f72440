// Client connections: what fasthttp reads requests from and the relay writes replies to.

package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kvasir/wire"
)

const (
	// readAhead is what one read of a request head asks the kernel for. fasthttp
	// in its frugal mode reads the first byte of a request on its own; without
	// reading ahead that is one more system call a request.
	readAhead = 4 << 10

	// unsentLimit is how much of a stream may wait in the kernel for a slow
	// reader (TCP_NOTSENT_LOWAT): bytes on the way to it are not counted.
	unsentLimit = 64 << 10

	lingerBytes = 1 << 20
	lingerTime  = time.Second
)

// A clientConn is one connection from a client.
//
//  1. Only the goroutine that serves the connection reads and writes it.
//  2. The watcher may call lost at any time, from its own goroutine.
//  3. What is bound is closed at most once by lost, and never after unbind.
type clientConn struct {
	net.Conn           // plain or TLS; plain TCP or unix beneath
	raw      net.Conn  // the socket itself
	beneath  *lateConn // it beneath TLS; nil: plain
	watch    *watcher
	token    uint64 // the watcher's name for this connection

	readBy  time.Time // until when fasthttp will wait for bytes; zero: for ever
	reading wire.Clock
	writing wire.Clock

	ahead *[readAhead]byte // bytes read before they were asked for
	from  int
	to    int
	head  headEnd // of the request that is read

	body    body      // of the request that is answered
	arrived time.Time // when that had come whole

	writeTimeout time.Duration
	booked       bool        // the request has its line in the log
	answered     bool        // the reply is out: drop the one that fasthttp writes next
	sent         int64       // bytes written since the request began
	linger       atomic.Bool // on Close, let a client that still sends read the reply

	gone atomic.Bool // the client has closed its side

	idle   atomic.Int64                // waiting for the next request until then, Unix nanoseconds; 0: it is served
	counts atomic.Pointer[descriptors] // whose client it is; nil: not counted, or closed

	mu     sync.Mutex
	bound  io.Closer     // what a lost client must stop
	goneCh chan struct{} // closed when gone; made when somebody waits for it
	woken  bool          // goneCh is closed
}

var aheadPool = sync.Pool{New: func() any { return new([readAhead]byte) }}

// Read gives fasthttp bytes of one request's head and none behind it: the body
// is for receive. The next Read begins the next head.
func (c *clientConn) Read(b []byte) (int, error) {
	if c.from == c.to && !c.head.begun && !c.arrived.IsZero() { // it has been answered before
		if err := c.waitIdle(); err != nil {
			return 0, err
		}
	} else if err := c.fill(); err != nil {
		return 0, err
	}
	ahead := c.ahead[c.from:c.to]
	n, _ := c.head.scan(ahead[:min(len(ahead), len(b))])
	copy(b, ahead[:n])
	c.took(n)
	return n, nil
}

// fill reads ahead, if nothing is left that was.
func (c *clientConn) fill() error {
	if c.from < c.to {
		return nil
	}
	c.ahead = aheadPool.Get().(*[readAhead]byte)
	n, err := c.readRaw(c.ahead[:])
	if n == 0 {
		c.dropAhead()
		return err
	}
	c.from, c.to = 0, n
	return nil
}

// took says that n bytes of what was read ahead were used.
func (c *clientConn) took(n int) {
	if c.from += n; c.from == c.to {
		c.dropAhead()
	}
}

// readRaw reads once under the read clock.
func (c *clientConn) readRaw(b []byte) (int, error) {
	if err := c.windRead(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// SetReadDeadline is fasthttp's: it names a new moment three times a request.
// Only a Read that may have to wait makes it true.
func (c *clientConn) SetReadDeadline(t time.Time) error {
	c.readBy = t
	return nil
}

func (c *clientConn) windRead() error {
	if c.readBy.IsZero() {
		c.reading = wire.Clock{}
		return c.Conn.SetReadDeadline(time.Time{})
	}
	now := time.Now()
	return c.reading.Wind(c.Conn.SetReadDeadline, now, c.readBy.Sub(now))
}

func (c *clientConn) dropAhead() {
	if c.ahead != nil {
		aheadPool.Put(c.ahead)
	}
	c.ahead, c.from, c.to = nil, 0, 0
}

// Write sends b under the write clock. After reply has sent an answer of its
// own, the one reply that fasthttp writes when the handler returns is dropped
// here: it is empty, fits the writer's buffer, and so comes as one Write.
func (c *clientConn) Write(b []byte) (int, error) {
	if c.answered {
		c.answered = false
		return len(b), nil
	}
	return c.send(b, time.Now())
}

// send writes b to the client, whatever fasthttp is told.
func (c *clientConn) send(b []byte, now time.Time) (int, error) {
	if err := c.windWrite(now); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.sent += int64(n)
	return n, err
}

func (c *clientConn) windWrite(now time.Time) error {
	if c.writeTimeout <= 0 {
		return nil
	}
	return c.writing.Wind(c.Conn.SetWriteDeadline, now, c.writeTimeout)
}

// Close closes the connection. A client that still sends a body that was
// refused would lose the reply to the reset that unread bytes cause, so it is
// given a moment: half-close, drain, close. Shutdown calls Close from another
// goroutine, on connections that wait in Read.
func (c *clientConn) Close() error {
	if c.linger.Swap(false) {
		c.drain()
	}
	if c.watch != nil {
		c.watch.remove(c)
	}
	err := c.Conn.Close()
	if d := c.counts.Swap(nil); d != nil {
		d.clients.Add(-1)
	}
	return err
}

func (c *clientConn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if _, isTLS := c.Conn.(*tls.Conn); isTLS {
		if tcp, ok := c.raw.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}
	if c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
}

// abort ends the connection so that the client cannot take what it got for a
// whole reply: with a reset where only the end of the connection ends the body.
func (c *clientConn) abort(reset bool) {
	if tcp, ok := c.raw.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	c.linger.Store(false)
	c.watch.remove(c)
	_ = c.raw.Close()
}

// bind names what must be stopped when the client is lost; false when it already is.
func (c *clientConn) bind(up io.Closer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Load() {
		return false
	}
	c.bound = up
	return true
}

// unbind takes the binding back: from now on nobody else closes it. False when
// it was closed.
func (c *clientConn) unbind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.bound != nil
	c.bound = nil
	return held
}

// lost says that the client has gone: what is bound is closed at once.
func (c *clientConn) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Swap(true) {
		return
	}
	c.release()
}

// stop closes what is bound although the client is still there: the proxy is
// going down. The relay finds its worker's connection closed.
func (c *clientConn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release()
}

// release closes what is bound and wakes who waits. The lock is held.
func (c *clientConn) release() {
	if c.bound != nil {
		_ = c.bound.Close()
		c.bound = nil
	}
	if c.goneCh != nil && !c.woken {
		close(c.goneCh)
		c.woken = true
	}
}

// whenGone is closed when the client is lost, or the proxy stops.
func (c *clientConn) whenGone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.goneCh == nil {
		c.goneCh = make(chan struct{})
		if c.gone.Load() {
			close(c.goneCh)
			c.woken = true
		}
	}
	return c.goneCh
}

// A patient listener waits where Accept fails for want of descriptors or memory.
// fasthttp takes any error of Accept for the end of the listener.
type patient struct{ net.Listener }

// acceptAgain is how long it waits: enough for a connection to be closed.
const acceptAgain = 10 * time.Millisecond

// Accept waits for the next connection.
func (l patient) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err == nil || !isPassing(err) {
			return c, err
		}
		time.Sleep(acceptAgain)
	}
}

// isPassing says that an error of accept(2) says nothing of the listener.
func isPassing(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED:
		return true
	}
	return false
}

// A clientListener hands out clientConns.
type clientListener struct {
	net.Listener
	descriptors *descriptors // nil: they are not counted
	closed      atomic.Bool
	tls         *tls.Config          // nil: plain
	watch       *watcher             // nil: nobody has to know at once when a client leaves
	write       func() time.Duration // the clock of one write; nil: none
}

// Accept waits for the next client.
func (l *clientListener) Accept() (net.Conn, error) {
	for {
		if err := l.waitForPlace(); err != nil {
			return nil, err
		}
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &clientConn{Conn: raw, raw: raw, watch: l.watch}
		if l.write != nil {
			c.writeTimeout = l.write()
		}
		if l.tls != nil {
			c.beneath = &lateConn{Conn: raw}
			c.Conn = tls.Server(c.beneath, l.tls)
		}
		if l.watch == nil {
			return c, nil
		}
		if err := l.watch.add(c); err != nil {
			_ = raw.Close() // it was gone before we could look at it
			continue
		}
		if l.descriptors != nil {
			c.counts.Store(l.descriptors)
			l.descriptors.clients.Add(1)
		}
		return c, nil
	}
}

// Close ends accepting, also where it waits for a place.
func (l *clientListener) Close() error {
	l.closed.Store(true)
	return l.Listener.Close()
}
