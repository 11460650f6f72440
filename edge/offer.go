// Offers: a client is given what it takes at once, so that nobody who waits for the same bytes waits for it.

package edge

import (
	"net"
	"time"

	"kvasir/wire"
)

// offerTime is how long a client has to take what it is offered. Others wait as long,
// once for each offer.
const offerTime = 2 * time.Millisecond

// Offer writes what the client takes at once, more or less. It returns how many bytes
// of b the client took, or that wait here and go out before what is written next. That
// it was not all is no error.
func (c *Conn) Offer(b []byte) (n int, err error) {
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

// A lateConn is the socket beneath TLS. A record that was begun has to be ended, so
// what a slow client does not take of an offer waits here, encrypted.
type lateConn struct {
	net.Conn
	offers bool   // what is written now may wait
	late   []byte // goes out before what is written next
}

// Waiting is how many bytes of offers wait beneath TLS; none without TLS.
func (c *Conn) Waiting() int { return c.beneath.waiting() }

// Flush sends what waits beneath TLS, under the write clock.
func (c *Conn) Flush(now time.Time) error {
	err := c.windWrite(now)
	if err == nil && c.beneath.waiting() > 0 {
		_, err = c.beneath.Write(nil)
	}
	return err
}

// waiting is how many bytes wait. l is nil without TLS.
func (l *lateConn) waiting() int {
	if l == nil {
		return 0
	}
	return len(l.late)
}

// Write writes b. Of an offer it keeps what the client does not take.
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
