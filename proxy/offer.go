// Offers: a leader's own client may read slowly while others wait for the same answer.
package proxy

import (
	"crypto/tls"
	"time"
)

const (
	// offerTime is how long a client has to take what it is offered. Others wait
	// for as long, once a read of the worker.
	offerTime = 2 * time.Millisecond

	// lateLimit is how much waits for a client that reads slowly. Beyond it the
	// others wait for it, up to timeouts.write.
	lateLimit = 4 << 20
)

// deliver writes to the client, at most what it takes at once while others
// follow; the rest goes out with the next write, or at the end.
func (r *reply) deliver(b []byte, now time.Time) error {
	offers := r.x.leading && len(r.late)+len(b) <= lateLimit && r.x.flight.isFollowed()
	if !offers && len(r.late) == 0 {
		_, err := r.x.conn.send(b, now)
		return err
	}
	if len(r.late) > 0 {
		r.late = append(r.late, b...)
		b = r.late
	}
	if !offers {
		r.late = nil
		_, err := r.x.conn.send(b, now)
		return err
	}
	n, err := r.x.conn.offer(b)
	r.late = append(r.late[:0], b[n:]...)
	return err
}

// offer writes what the client takes at once, more or less. It returns how much
// that was, and no error if it was not all.
func (c *clientConn) offer(b []byte) (int, error) {
	now := time.Now()
	if _, is := c.Conn.(*tls.Conn); is {
		return c.send(b, now) // a record that was begun has to be ended
	}
	if err := c.Conn.SetWriteDeadline(now.Add(offerTime)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.sent += int64(n)
	c.writing = clock{}
	if isTimeout(err) {
		err = nil
	}
	if cleared := c.Conn.SetWriteDeadline(time.Time{}); err == nil {
		err = cleared
	}
	return n, err
}
