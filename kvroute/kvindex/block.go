// Block: how often a worker was told to hold one block, by tier.

package kvindex

// A block is one block of one worker.
type block struct {
	low, high uint32 // of the engine's hash; two halves take 12 bytes with counts instead of 16
	counts    counts
}

func (b *block) hash() uint64 { return uint64(b.high)<<32 | uint64(b.low) }

// counts are 10, 9 and 9 bits of stores less removes by tier, and whether other
// hashes stand for the same block (see alias).
type counts uint32

const shared counts = 1 << 28

var countAt = [tiers + 1]uint{0, 10, 19, 28}

func (c counts) of(t Tier) counts { return c >> countAt[t] & (1<<(countAt[t+1]-countAt[t]) - 1) }

func (c counts) full(t Tier) bool { return c.of(t) == 1<<(countAt[t+1]-countAt[t])-1 }

// store counts one more; false: a count that is full stays, so that the block
// may be taken for gone early, never late.
func (c *counts) store(t Tier) bool {
	if c.full(t) {
		return false
	}
	*c += 1 << countAt[t]
	return true
}

// remove counts one less; false: there was none.
func (c *counts) remove(t Tier) bool {
	if c.of(t) == 0 {
		return false
	}
	*c -= 1 << countAt[t]
	return true
}

func (c counts) held() bool { return c&^shared != 0 }

// tier is the fastest tier that holds the block; tiers: none.
func (c counts) tier() uint8 {
	if c&(1<<10-1) != 0 { // most
		return uint8(Device)
	}
	for t := Host; t < tiers; t++ {
		if c.of(t) != 0 {
			return uint8(t)
		}
	}
	return tiers
}
