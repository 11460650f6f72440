// How old the blocks are that an engine would evict next, without seeing one evicted.

package cost

import "time"

// steps is how finely a pool's worth of new blocks is dated.
const steps = 32

// cacheAge dates the blocks that an engine's cache took in. A least-recently-used cache evicts about what has gone
// unused while as many new blocks as it has room for came in; so the age of what goes next is how long that took.
type cacheAge struct {
	step  int // new blocks between two dates
	room  int
	total int
	since int // new blocks after the last date
	dates [steps]time.Time
	next  int // index of the oldest date
}

// unknownAge is the age of what is evicted while the cache has not turned over yet.
const unknownAge = time.Minute

func (c *cacheAge) resize(blocks int) {
	c.room = blocks
	c.step = max(blocks/steps, 1)
}

// grow notes new blocks.
func (c *cacheAge) grow(now time.Time, blocks int) {
	c.total = min(c.total+blocks, 2*c.room)
	c.since += blocks
	for n := 0; c.since >= c.step && n < steps; n++ {
		c.since -= c.step
		c.dates[c.next] = now
		c.next = (c.next + 1) % steps
	}
}

// held is how many blocks the cache has.
func (c *cacheAge) held() int { return min(c.total, c.room) }

// age is that of what is evicted next, where a share of the pool is in use by requests.
func (c *cacheAge) age(now time.Time, used float64) time.Duration {
	back := min(max(int(steps*(1-used)), 1), steps)
	date := c.dates[(c.next-back+steps)%steps]
	if date.IsZero() {
		return unknownAge
	}
	return max(now.Sub(date), 0)
}
