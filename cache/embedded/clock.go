// The store's clock, which neither stops nor runs back with the machine's.

package embedded

import "time"

// A clock counts nanoseconds since the file was made: by Go's monotonic clock
// while a process has it open, by the wall clock only between two of them. When
// the wall clock was set back in between, no time has passed: what was expired
// stays so, and nothing else dies.
type clock struct {
	start time.Time
	at    int64 // when start was
	wall  func() time.Time
}

// A stamp is one moment by both clocks. Every record of the file has one.
type stamp struct {
	at   int64 // by clock
	wall int64 // Unix nanoseconds
}

func (c *clock) now() int64 { return c.at + int64(time.Since(c.start)) }

func (c *clock) stamp() stamp { return stamp{c.now(), c.wall().UnixNano()} }

// goOn makes now follow the last stamp of the file.
func (c *clock) goOn(last stamp) {
	c.start = time.Now()
	c.at = last.at
	if last.wall != 0 {
		c.at += max(0, c.wall().UnixNano()-last.wall)
	}
}

// time returns when the clock was at, by the clock that Go's programs go by.
func (c *clock) time(at int64) time.Time { return c.start.Add(time.Duration(at - c.at)) }

// longest is how long an entry lives at most: 73 years, far from an overflow.
const longest = 1 << 61

// moment returns where the clock is at t.
func (c *clock) moment(t time.Time) int64 {
	return c.at + max(-longest, min(int64(t.Sub(c.start)), longest))
}
