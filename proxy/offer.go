// Offers: a leader's own client may read slowly while others wait for the same answer.

package proxy

import (
	"net"
	"time"

	"kvasir/wire"
)

const (
	// offerTime is how long a client has to take what it is offered. Others wait as long, once for
	// each read of the worker.
	offerTime = 2 * time.Millisecond

	// lateLimit is how much waits for a client that reads slowly. Beyond it the
	// others wait for it, up to timeouts.write.
	lateLimit = 4 << 20
)

// deliver writes to the client, at most what it takes at once while others
// follow; the rest goes out with the next write, or at the end.
func (r *reply) deliver(b []byte, now time.Time) error {
	c := r.x.conn
	offers := !r.ending && len(r.late)+c.beneath.waiting()+len(b) <= lateLimit && r.x.recipients.hasFollowers()
	if len(r.late) > 0 {
		r.late = append(r.late, b...)
		b = r.late
	}
	if !offers {
		r.late = nil
		if len(b) == 0 {
			return c.flush(now)
		}
		_, err := c.send(b, now)
		return err
	}
	n, err := c.offer(b)
	r.late = append(r.late[:0], b[n:]...)
	return err
}

// offer writes what the client takes at once, more or less. It returns how much
// that was, and no error if it was not all.
func (c *clientConn) offer(b []byte) (n int, err error) {
	if c.beneath != nil {
		c.beneath.offers = true
		n, err = c.Conn.Write(b)
		c.beneath.offers = false
	} else {
		n, err = offerTo(c.Conn, b)
	}
	c.sent += int64(n)
	c.writing = wire.Clock{}
	return n, err
}

// offerTo writes what the socket takes within offerTime.
func offerTo(c net.Conn, b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(offerTime)); err != nil {
		return 0, err
	}
	n, err := c.Write(b)
	if wire.IsTimeout(err) {
		err = nil
	}
	if cleared := c.SetWriteDeadline(time.Time{}); err == nil {
		err = cleared
	}
	return n, err
}

// A lateConn is the socket beneath TLS. A record that was begun has to be ended,
// so that what a slow client does not take of an offer waits here, encrypted.
type lateConn struct {
	net.Conn
	offers bool   // what is written now may wait
	late   []byte // goes out before what is written next
}

// flush sends what waits beneath TLS.
func (c *clientConn) flush(now time.Time) error {
	err := c.windWrite(now)
	if err == nil && c.beneath.waiting() > 0 {
		_, err = c.beneath.Write(nil)
	}
	return err
}

// waiting is how many bytes wait; none without TLS.
func (l *lateConn) waiting() int {
	if l == nil {
		return 0
	}
	return len(l.late)
}

// Write writes b, or keeps of an offer what the client does not take.
func (l *lateConn) Write(b []byte) (n int, err error) {
	all := b
	if len(l.late) > 0 {
		l.late = append(l.late, b...)
		all = l.late
	}
	if l.offers {
		n, err = offerTo(l.Conn, all)
		l.late = append(l.late[:0], all[n:]...)
	} else {
		l.late = nil
		n, err = l.Conn.Write(all)
	}
	if err != nil {
		return max(0, n-(len(all)-len(b))), err
	}
	return len(b), nil
}
