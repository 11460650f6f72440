// Client connections: fasthttp reads request heads from them, and replies are written to them.

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
	// readAhead is how many bytes one read of a request head asks the kernel for. With
	// ReduceMemoryUsage, fasthttp reads the first byte of a request on its own; without reading
	// ahead that costs one more system call per request.
	readAhead = 4 << 10

	// unsentLimit is how many bytes of a stream may wait in the kernel for a slow reader
	// (TCP_NOTSENT_LOWAT). Bytes already sent are not counted.
	unsentLimit = 64 << 10

	lingerBytes = 1 << 20
	lingerTime  = time.Second
)

// A Conn is one connection from a client.
//
//  1. Only the goroutine that serves the connection reads and writes it.
//  2. At any time, from another goroutine, the watcher may call lost, and a shutdown may call
//     stop and Abort.
//  3. The bound closer is closed at most once, and never after Unbind.
type Conn struct {
	net.Conn           // plain or TLS; plain TCP or unix beneath
	raw      net.Conn  // the socket itself
	beneath  *lateConn // the socket beneath TLS; nil: no TLS
	watch    *Watcher
	token    uint64 // the watcher's name for this connection

	readBy  time.Time // fasthttp's read deadline; zero: none
	reading wire.Clock
	writing wire.Clock

	ahead *[readAhead]byte // buffer for bytes read ahead
	from  int
	to    int
	head  headEnd // of the request being read

	body    body      // of the request being answered
	arrived time.Time // when that request had arrived completely

	writeTimeout time.Duration
	logged       bool        // the request has its line in the log
	answered     bool        // the reply has been sent: drop the one that fasthttp writes next
	sent         int64       // bytes written since the request began
	linger       atomic.Bool // on Close, give a client that is still sending time to read the reply

	gone atomic.Bool // the client has closed its side

	idle   atomic.Int64                // deadline of the wait for the next request, Unix nanoseconds; 0: not waiting; or evicted
	counts atomic.Pointer[Descriptors] // counts this connection; nil: not counted, or closed

	mu     sync.Mutex
	bound  io.Closer     // closed when the client is lost
	goneCh chan struct{} // closed when gone or stopped; made on first use
	woken  bool          // goneCh is closed
}

var aheadPool = sync.Pool{New: func() any { return new([readAhead]byte) }}

// Read gives fasthttp the bytes of one request's head and none after it: Receive reads the body.
// The Read after a complete head begins the next head.
func (c *Conn) Read(b []byte) (int, error) {
	if c.from == c.to && !c.head.begun && !c.arrived.IsZero() { // an earlier request was answered
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

// evicted is the value of idle while a connection is closed to make room for another.
const evicted = -1

// waitIdle waits for the next request; an eviction may end the wait.
func (c *Conn) waitIdle() error {
	until := c.readBy.UnixNano()
	c.idle.Store(until)
	err := c.fill()
	if !c.idle.CompareAndSwap(until, 0) {
		return net.ErrClosed
	}
	return err
}

// fill reads ahead, unless bytes of the last such read are left.
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

// took marks n of the bytes that were read ahead as used.
func (c *Conn) took(n int) {
	if c.from += n; c.from == c.to {
		c.dropAhead()
	}
}

// readRaw reads once under the read timeout.
func (c *Conn) readRaw(b []byte) (int, error) {
	if err := c.windRead(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// SetReadDeadline stores the deadline. fasthttp calls it three times per request; only a Read
// that may have to wait sets it on the socket.
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

// Write sends b under the write timeout. After Answered, it drops the one reply that fasthttp
// writes when the handler returns: that reply is empty and fits the writer's buffer, so it
// arrives as one Write.
func (c *Conn) Write(b []byte) (int, error) {
	if c.answered {
		c.answered = false
		return len(b), nil
	}
	return c.Send(b, time.Now())
}

// Send writes b to the client under the write timeout, bypassing fasthttp.
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

// Sent returns how many bytes were written since the request began.
func (c *Conn) Sent() int64 { return c.sent }

// Arrived returns when the whole request, body included, had arrived.
func (c *Conn) Arrived() time.Time { return c.arrived }

// Answered records that the reply was sent with Send. The reply that fasthttp writes next is
// dropped.
func (c *Conn) Answered() { c.answered = true }

// Logged records that the request has its line in the log.
func (c *Conn) Logged() { c.logged = true }

// Charge reserves n bytes of the budget for data derived from the request's body, until Forget.
// It returns false when the budget has no room for them.
func (c *Conn) Charge(g *Budget, n int64) bool { return c.body.charge(g, n) }

// Close closes the connection. Unread bytes would cause a reset, and a client still sending a
// refused body would lose the reply to it. So Close half-closes, drains for a moment, and then
// closes. Shutdown calls Close from another goroutine on connections that wait in Read.
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

// Abort ends the connection so that the client cannot mistake a partial reply for a whole one. A
// reset is needed where only the end of the connection ends the body.
func (c *Conn) Abort(reset bool) {
	if tcp, ok := c.raw.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	c.linger.Store(false)
	c.watch.remove(c)
	_ = c.raw.Close()
}

func (c *Conn) reset() { c.Abort(true) }

// Bind sets the closer to close when the client is lost. It returns false when the client is
// already lost.
func (c *Conn) Bind(up io.Closer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Load() {
		return false
	}
	c.bound = up
	return true
}

// Unbind takes the bound closer back: from now on only the caller closes it. It returns false
// when it was already closed.
func (c *Conn) Unbind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.bound != nil
	c.bound = nil
	return held
}

// Gone reports whether the client has closed its side.
func (c *Conn) Gone() bool { return c.gone.Load() }

// lost records that the client has gone, and closes the bound closer at once.
func (c *Conn) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone.Swap(true) {
		return
	}
	c.release()
}

// stop closes the bound closer although the client is still there, because the process is ending.
// The code that answers the client then finds its connection to the worker closed.
func (c *Conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release()
}

// release closes the bound closer and wakes goroutines that wait on WhenGone. The caller holds
// the lock.
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

// WhenGone returns a channel that is closed when the client is lost, or by the next StopAll.
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
