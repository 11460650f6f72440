// Clocks: deadlines on connections that are moved as seldom as can be.
package proxy

import "time"

// A clock is one deadline of a connection, for reads or for writes. Setting a
// deadline moves a timer in the runtime, which at 64 connections was 7 % of a
// plain request's time. So a deadline that was set stays while it lies at the
// wanted moment or up to an eighth of the wait behind it: a clock of ten
// seconds rings after 10 to 11.25 s, and is moved once in 1.25 s. What a longer
// wait has left behind may be late by a quarter of this one, no more.
type clock struct {
	rings time.Time
	slack time.Duration
}

// wind makes the deadline ring at the wanted moment or a little after it.
func (k *clock) wind(set func(time.Time) error, now time.Time, d time.Duration) error {
	if late := k.rings.Sub(now) - d; late >= 0 && late <= min(k.slack, d/4) {
		return nil
	}
	k.slack = max(d/8, 0)
	k.rings = now.Add(d + k.slack)
	return set(k.rings)
}
