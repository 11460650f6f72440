// Clocks: deadlines of connections, moved as seldom as possible.

package wire

import (
	"errors"
	"net"
	"time"
)

// A Clock is one deadline of a connection, for reads or for writes. The zero value
// is ready.
//
// Setting a deadline moves a timer in the runtime; at 64 connections that was 7 %
// of a plain request's time. So each deadline is set an eighth of the wait too
// late, and the next wait leaves it alone as long as it still rings at the wanted
// moment or a little after: a wait of ten seconds ends after 10 to 11.25 s, and
// moves the timer once in 1.25 s. A deadline that an earlier, longer wait has set
// may end this one late by a quarter of its own length, no more.
type Clock struct {
	rings time.Time     // the deadline that is set
	slack time.Duration // how much later it was set than was asked for
}

// Wind has the deadline ring d after now, or a little later, never earlier. set is
// the connection's SetReadDeadline or SetWriteDeadline.
func (k *Clock) Wind(set func(time.Time) error, now time.Time, d time.Duration) error {
	if late := k.rings.Sub(now) - d; late >= 0 && late <= min(k.slack, d/4) {
		return nil
	}
	k.slack = max(d/8, 0)
	k.rings = now.Add(d + k.slack)
	return set(k.rings)
}

// IsTimeout tells a deadline that has passed from a connection that broke.
func IsTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
