// Clocks: deadlines of connections, set as rarely as possible.

package wire

import (
	"errors"
	"net"
	"time"
)

// A Clock is one deadline of a connection, for reads or for writes. The zero value
// is ready.
//
// Setting a deadline moves a timer in the runtime; at 64 connections that was 7 % of a plain
// request's time. So each deadline is set later than requested, by an eighth of the wait, and the
// next wait keeps it if it still rings at the requested moment or a little later: a wait of ten
// seconds ends after 10 to 11.25 s, and moves the timer once in 1.25 s. A deadline left by an
// earlier, longer wait may end this wait late by at most a quarter of this wait's length.
type Clock struct {
	rings time.Time     // the deadline now set
	slack time.Duration // how much later than requested it was set
}

// Wind sets the deadline to d after now, or a little later, never earlier. set is the
// connection's SetReadDeadline or SetWriteDeadline.
func (k *Clock) Wind(set func(time.Time) error, now time.Time, d time.Duration) error {
	if late := k.rings.Sub(now) - d; late >= 0 && late <= min(k.slack, d/4) {
		return nil
	}
	k.slack = max(d/8, 0)
	k.rings = now.Add(d + k.slack)
	return set(k.rings)
}

// IsTimeout reports whether err means that a deadline has passed, not that the connection broke.
func IsTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
