// Listeners: accepting clients, as many as there are descriptors for.

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
	// keepIdle is how long a client's connection may lie quiet between two
	// requests: longer than clients and load balancers keep theirs (Go's 90 s, the
	// usual 60 to 75 s), so that none sends on one that we are just closing.
	keepIdle = 2 * time.Minute

	// evictIdle is how long a client's connection must have lain quiet between two
	// requests before it may be closed to make place for another.
	evictIdle  = 10 * time.Second
	evictEvery = 250 * time.Millisecond

	// acceptAgain is how long accepting waits where there is no descriptor: enough
	// for a connection to be closed.
	acceptAgain = 10 * time.Millisecond
)

// A Listener hands out Conns. Its fields are set before the first Accept and not
// changed after.
type Listener struct {
	net.Listener
	TLS          *tls.Config          // nil: plain
	Watcher      *Watcher             // nil: nobody has to know at once when a client leaves
	Descriptors  *Descriptors         // nil: connections are not counted; needs a Watcher
	WriteTimeout func() time.Duration // of one write, asked for at each Accept; nil: none

	closed atomic.Bool
}

// Accept waits for the next client, also where there is no descriptor left for it.
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
			_ = raw.Close() // it was gone before we could look at it
			continue
		}
		if l.Descriptors != nil {
			c.counts.Store(l.Descriptors)
			l.Descriptors.clients.Add(1)
		}
		return c, nil
	}
}

// Close ends accepting, also where it waits for a place.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.Listener.Close()
}

// waitForPlace waits until another client may be taken. Clients that lie idle
// make place.
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

// evict closes up to n connections that lie idle between two requests.
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

// A patient listener waits where Accept fails for want of descriptors or memory.
// fasthttp takes any error of Accept for the end of the listener.
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

// isPassing says that an error of accept(2) says nothing about the listener.
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
