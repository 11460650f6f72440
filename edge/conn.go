// Client connections: what fasthttp reads heads from, and what replies are written to.

package edge

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
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

// A Conn is one connection from a client.
//
//  1. Only the goroutine that serves the connection reads and writes it.
//  2. The watcher may call lost, and who drains stop and Abort, at any time from
//     another goroutine.
//  3. What is bound is closed at most once, and never after Unbind.
type Conn struct {
	net.Conn           // plain or TLS; plain TCP or unix beneath
	raw      net.Conn  // the socket itself
	beneath  *lateConn // it beneath TLS; nil: plain
	watch    *Watcher
	token    uint64 // the watcher's name for this connection

	readBy  time.Time // until when fasthttp will wait for bytes; zero: for ever
	reading wire.Clock
	writing wire.Clock

	ahead *[readAhead]byte // bytes read before they were asked for
	from  int
	to    int
	head  headEnd // of the request that is read

	body    body      // of the request that is answered
	arrived time.Time // when that request had come whole

	writeTimeout time.Duration
	logged       bool        // the request has its line in the log
	answered     bool        // the reply is out: drop the one that fasthttp writes next
	sent         int64       // bytes written since the request began
	linger       atomic.Bool // on Close, let a client that still sends read the reply

	gone atomic.Bool // the client has closed its side

	idle   atomic.Int64                // until when it waits for the next request, Unix nanoseconds; 0: it does not; or evicted
	counts atomic.Pointer[Descriptors] // whose client it is; nil: not counted, or closed

	mu     sync.Mutex
	bound  io.Closer     // what a lost client must stop
	goneCh chan struct{} // closed when gone or stopped; made when somebody waits for it
	woken  bool          // goneCh is closed
}

var aheadPool = sync.Pool{New: func() any { return new([readAhead]byte) }}

// Read gives fasthttp bytes of one request's head and none behind it: the body
// is read by Receive. The next Read begins the next head.
func (c *Conn) Read(b []byte) (int, error) {
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

// evicted is what idle holds of a connection that is closed to make place for another.
const evicted = -1

// waitIdle waits for the next request; an eviction may end that.
func (c *Conn) waitIdle() error {
	until := c.readBy.UnixNano()
	c.idle.Store(until)
	err := c.fill()
	if !c.idle.CompareAndSwap(until, 0) {
		return net.ErrClosed
	}
	return err
}

// fill reads ahead, unless bytes that were read ahead are left.
func (c *Conn) fill() error {
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
func (c *Conn) took(n int) {
	if c.from += n; c.from == c.to {
		c.dropAhead()
	}
}

// readRaw reads once under the read clock.
func (c *Conn) readRaw(b []byte) (int, error) {
	if err := c.windRead(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// SetReadDeadline is called by fasthttp three times a request. Only a Read that may
// have to wait sets the deadline of the socket.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.readBy = t
	return nil
}

func (c *Conn) windRead() error {
	if c.readBy.IsZero() {
		c.reading = wire.Clock{}
		return c.Conn.SetReadDeadline(time.Time{})
	}
	now := time.Now()
	return c.reading.Wind(c.Conn.SetReadDeadline, now, c.readBy.Sub(now))
}

func (c *Conn) dropAhead() {
	if c.ahead != nil {
		aheadPool.Put(c.ahead)
	}
	c.ahead, c.from, c.to = nil, 0, 0
}

// Write sends b under the write clock. After Answered, the one reply that fasthttp
// writes when the handler returns is dropped here: it is empty, fits the writer's
// buffer, and so comes as one Write.
func (c *Conn) Write(b []byte) (int, error) {
	if c.answered {
		c.answered = false
		return len(b), nil
	}
	return c.Send(b, time.Now())
}

// Send writes b to the client under the write clock, past fasthttp.
func (c *Conn) Send(b []byte, now time.Time) (int, error) {
	if err := c.windWrite(now); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.sent += int64(n)
	return n, err
}

func (c *Conn) windWrite(now time.Time) error {
	if c.writeTimeout <= 0 {
		return nil
	}
	return c.writing.Wind(c.Conn.SetWriteDeadline, now, c.writeTimeout)
}

// Sent is how many bytes were written since the request began.
func (c *Conn) Sent() int64 { return c.sent }

// Arrived is when the request had come whole, its body too.
func (c *Conn) Arrived() time.Time { return c.arrived }

// Answered says that the reply to the request was sent with Send: the one that
// fasthttp writes next is dropped.
func (c *Conn) Answered() { c.answered = true }

// Logged says that the request has its line in the log.
func (c *Conn) Logged() { c.logged = true }

// Charge counts n bytes of memory for what was made of the request's body, until
// that is forgotten; false: the budget has no room for them.
func (c *Conn) Charge(g *Budget, n int64) bool { return c.body.charge(g, n) }

// Close closes the connection. A client that still sends a body that was
// refused would lose the reply to the reset that unread bytes cause, so it is
// given a moment: half-close, drain, close. Shutdown calls Close from another
// goroutine, on connections that wait in Read.
func (c *Conn) Close() error {
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

func (c *Conn) drain() {
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

// Abort ends the connection so that the client cannot take what it got for a
// whole reply. A reset is needed where only the end of the connection ends the body.
func (c *Conn) Abort(reset bool) {
	if tcp, ok := c.raw.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	c.linger.Store(false)
	c.watch.remove(c)
	_ = c.raw.Close()
}

func (c *Conn) reset() { c.Abort(true) }

// Bind names what has to be closed when the client is lost; false when it already is.
func (c *Conn) Bind(up io.Closer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Load() {
		return false
	}
	c.bound = up
	return true
}

// Unbind takes back what was bound: from now on nobody else closes it. False when
// it was closed.
func (c *Conn) Unbind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.bound != nil
	c.bound = nil
	return held
}

// Gone says whether the client has closed its side.
func (c *Conn) Gone() bool { return c.gone.Load() }

// lost notes that the client has gone: what is bound is closed at once.
func (c *Conn) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Swap(true) {
		return
	}
	c.release()
}

// stop closes what is bound although the client is still there, because the process
// ends. Who answers finds the connection to its worker closed.
func (c *Conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release()
}

// release closes what is bound and wakes whoever waits. The lock is held.
func (c *Conn) release() {
	if c.bound != nil {
		_ = c.bound.Close()
		c.bound = nil
	}
	if c.goneCh != nil && !c.woken {
		close(c.goneCh)
		c.woken = true
	}
}

// WhenGone is closed when the client is lost, or by the next StopAll.
func (c *Conn) WhenGone() <-chan struct{} {
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
