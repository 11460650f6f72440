// The names of the cached blocks: a hash table with open addressing from hash to block number.

package sim

// names finds blocks by their hash. It is a hash table with open addressing, because a map took
// two fifths of the time of a round-robin replay. A slot is 0, or has the upper half of the
// spread hash in its upper half and the block's number in its lower half; the hash itself is in
// the block. A search goes from the hash's home slot to the first empty one; at most half of the
// slots are used.
type names struct {
	slots []uint64 // length: a power of two
	shift uint     // 64 - log2(len(slots))
	n     int
}

func newNames() names { return names{slots: make([]uint64, 64), shift: 64 - 6} }

// spread mixes a hash so that its upper bits differ, whatever hashes the caller uses.
func spread(hash uint64) uint64 { return (hash ^ hash>>32) * 0x9E3779B97F4A7C15 }

const numberBits = 32

// find returns the number of the block named hash; 0: none.
func (n *names) find(hash uint64, blocks []block) int32 {
	h, mask := spread(hash), len(n.slots)-1
	for i := int(h >> n.shift); ; i = (i + 1) & mask {
		v := n.slots[i]
		if v == 0 {
			return 0
		}
		if (v^h)>>numberBits == 0 {
			if at := int32(v); blocks[at].hash == hash {
				return at
			}
		}
	}
}

// touch reads the slot where the search for hash begins.
func (n *names) touch(hash uint64) uint64 { return n.slots[spread(hash)>>n.shift] }

// add gives block number at, which has no name, a hash that names no other block.
func (n *names) add(hash uint64, at int32) {
	if n.n++; 2*n.n > len(n.slots) {
		n.grow()
	}
	n.put(spread(hash)>>numberBits<<numberBits | uint64(at))
}

func (n *names) put(v uint64) {
	i, mask := int(v>>n.shift), len(n.slots)-1
	for n.slots[i] != 0 {
		i = (i + 1) & mask
	}
	n.slots[i] = v
}

func (n *names) grow() {
	old := n.slots
	n.slots = make([]uint64, 2*len(old))
	n.shift--
	for _, v := range old {
		if v != 0 {
			n.put(v)
		}
	}
}

// drop removes the name of block number at. It moves the following entries of the run up, so that
// no search stops before them.
func (n *names) drop(hash uint64, at int32) {
	h, mask := spread(hash), len(n.slots)-1
	v := h>>numberBits<<numberBits | uint64(at)
	i := int(h >> n.shift)
	for n.slots[i] != v {
		i = (i + 1) & mask
	}
	n.n--
	for k := (i + 1) & mask; n.slots[k] != 0; k = (k + 1) & mask {
		if home := int(n.slots[k] >> n.shift); (k-home)&mask >= (k-i)&mask {
			n.slots[i] = n.slots[k]
			i = k
		}
	}
	n.slots[i] = 0
}
