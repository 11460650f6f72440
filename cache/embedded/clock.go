// The store's clock: it never runs backwards, even when the machine's wall clock is set back.

package embedded

import "time"

// A clock counts nanoseconds since the file was created: by Go's monotonic clock while a process
// has the file open, and by the wall clock only between two processes. If the wall clock was set
// back in between, no time passes on this clock: expired entries stay expired, and no others
// expire.
type clock struct {
	start time.Time
	at    int64 // this clock's value at start
	wall  func() time.Time
}

// A stamp is one moment on both clocks. Every record of the file has one.
type stamp struct {
	at   int64 // on the store's clock
	wall int64 // Unix nanoseconds
}

func (c *clock) now() int64 { return c.at + int64(time.Since(c.start)) }

func (c *clock) stamp() stamp { return stamp{c.now(), c.wall().UnixNano()} }

// goOn continues the clock from the last stamp of the file.
func (c *clock) goOn(last stamp) {
	c.start = time.Now()
	c.at = last.at
	if last.wall != 0 {
		c.at += max(0, c.wall().UnixNano()-last.wall)
	}
}

// time converts a value of the store's clock to a time.Time.
func (c *clock) time(at int64) time.Time { return c.start.Add(time.Duration(at - c.at)) }

// longest is the longest life of an entry: 73 years, far from an overflow.
const longest = 1 << 61

// moment converts a time.Time to a value of the store's clock.
func (c *clock) moment(t time.Time) int64 {
	return c.at + max(-longest, min(int64(t.Sub(c.start)), longest))
}
