// Listeners: they accept as many clients as there are descriptors for.

package edge

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// keepIdle is how long a client's connection may be idle between two requests. That is longer
	// than clients and load balancers keep theirs (Go's 90 s, the usual 60 to 75 s), so that none
	// sends on a connection that we are just closing.
	keepIdle = 2 * time.Minute

	// evictIdle is how long a client's connection must have been idle between two requests before
	// it may be closed to make room for another.
	evictIdle  = 10 * time.Second
	evictEvery = 250 * time.Millisecond

	// acceptAgain is how long Accept waits when no descriptor is free: long enough for another
	// connection to close.
	acceptAgain = 10 * time.Millisecond
)

// A Listener accepts clients as Conns. Set its fields before the first Accept, and do not change
// them afterwards.
type Listener struct {
	net.Listener
	TLS          *tls.Config          // nil: plain
	Watcher      *Watcher             // nil: a leaving client is noticed only at the next read or write
	Descriptors  *Descriptors         // nil: connections are not counted; needs a Watcher
	WriteTimeout func() time.Duration // of one write, called at each Accept; nil: none

	closed atomic.Bool
}

// Accept waits for the next client. When no descriptor is free, it waits for one instead of
// failing.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		if err := l.waitForPlace(); err != nil {
			return nil, err
		}
		raw, err := patient{l.Listener}.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: raw, raw: raw, watch: l.Watcher}
		if l.WriteTimeout != nil {
			c.writeTimeout = l.WriteTimeout()
		}
		if l.TLS != nil {
			c.beneath = &lateConn{Conn: raw}
			c.Conn = tls.Server(c.beneath, l.TLS)
		}
		if l.Watcher == nil {
			return c, nil
		}
		if err := l.Watcher.add(c); err != nil {
			_ = raw.Close() // the client left before it was set up
			continue
		}
		if l.Descriptors != nil {
			c.counts.Store(l.Descriptors)
			l.Descriptors.clients.Add(1)
		}
		return c, nil
	}
}

// Close stops Accept, also when it waits for a free descriptor.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.Listener.Close()
}

// waitForPlace waits until another client may be accepted. It evicts idle clients to make room.
func (l *Listener) waitForPlace() error {
	d := l.Descriptors
	if d == nil || !d.full() {
		return nil
	}
	var evicted time.Time
	for d.full() {
		if l.closed.Load() {
			return net.ErrClosed
		}
		if now := time.Now(); now.Sub(evicted) >= evictEvery {
			evicted = now
			d.noteShort(&d.shortAccepting)
			l.evict(now, d.most.Load()/8+1)
		}
		time.Sleep(acceptAgain)
	}
	return nil
}

// evict closes up to n connections that are idle between two requests.
func (l *Listener) evict(now time.Time, n int64) {
	l.Watcher.each(func(c *Conn) {
		until := c.idle.Load()
		if n == 0 || until <= 0 || time.Unix(0, until).Sub(now) > keepIdle-evictIdle || !c.idle.CompareAndSwap(until, evicted) {
			return
		}
		n--
		_ = c.raw.Close()
	})
}

// A patient listener waits where Accept fails for want of descriptors or memory. Without it
// fasthttp would treat any error of Accept as the end of the listener.
type patient struct{ net.Listener }

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

// isPassing reports whether an error of accept(2) is temporary: it does not mean that the
// listener is broken.
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
