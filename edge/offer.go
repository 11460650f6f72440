// Offers: short writes, so that one slow client does not hold up others that wait for the same
// bytes.

package edge

import (
	"net"
	"time"

	"kvasir/wire"
)

// offerTime bounds one Offer to one client. The other clients of the same answer wait up to this
// long for each offer.
const offerTime = 2 * time.Millisecond

// Offer writes as much of b as the client accepts within offerTime. It returns how many bytes the
// client accepted or, under TLS, the connection buffered to send before the next write. A short
// count is not an error.
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

// offerTo writes what the socket accepts within offerTime.
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

// A lateConn is the socket beneath TLS. A TLS record that was begun must be completed, so the
// rest of an offer that a slow client did not accept waits here, encrypted.
type lateConn struct {
	net.Conn
	offers bool   // the current write is an offer: its rest may wait in late
	late   []byte // encrypted bytes that go out before the next write
}

// Waiting returns how many encrypted bytes of offers wait beneath TLS; 0 without TLS.
func (c *Conn) Waiting() int { return c.beneath.waiting() }

// Flush sends the bytes that wait beneath TLS, under the write timeout.
func (c *Conn) Flush(now time.Time) error {
	err := c.windWrite(now)
	if err == nil && c.beneath.waiting() > 0 {
		_, err = c.beneath.Write(nil)
	}
	return err
}

// waiting returns how many bytes wait. l is nil without TLS.
func (l *lateConn) waiting() int {
	if l == nil {
		return 0
	}
	return len(l.late)
}

// Write writes b. During an offer it keeps the bytes that the client does not accept.
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
