// Records: what the index knows of one worker's blocks, and what follows which.

package kvindex

// A record is one block of one worker, under the number of its engine's hash.
// It is dropped when the block is held in no tier and nothing that follows it
// is known.
type record struct {
	name Name

	prev  uint32 // the block before this one in the list of those that follow the same block; the first one's is that block
	next  uint32
	child uint32 // first of the blocks that follow this one

	state uint32 // 10, 9 and 9 bits of stores less removes by tier, 2 of level, 2 of the level of the block before
}

// unrooted is the level of a block that is held nowhere or follows one that is not rooted.
const unrooted = tiers

var countAt = [tiers + 1]uint{0, 10, 19, 28}

const levelAt, parentAt = 28, 30

func (r *record) count(t Tier) uint32 {
	return r.state >> countAt[t] & (1<<(countAt[t+1]-countAt[t]) - 1)
}

// store counts one more; a count that is full stays, so that the block may be
// taken for gone early, never late.
func (r *record) store(t Tier) {
	if r.count(t) < 1<<(countAt[t+1]-countAt[t])-1 {
		r.state += 1 << countAt[t]
	}
}

// remove counts one less; false: there was none.
func (r *record) remove(t Tier) bool {
	if r.count(t) == 0 {
		return false
	}
	r.state -= 1 << countAt[t]
	return true
}

func (r *record) held() bool         { return r.state&(1<<levelAt-1) != 0 }
func (r *record) level() uint32      { return r.state >> levelAt & 3 }
func (r *record) before() uint32     { return r.state >> parentAt }
func (r *record) setLevel(l uint32)  { r.state = r.state&^(3<<levelAt) | l<<levelAt }
func (r *record) setBefore(l uint32) { r.state = r.state&^(3<<parentAt) | l<<parentAt }

// due returns the level that follows from the counts and the block before.
func (r *record) due() uint32 {
	for t := range Tier(tiers) {
		if r.count(t) != 0 {
			return max(uint32(t), r.before())
		}
	}
	return unrooted
}

// records are one worker's, by the engine's hashes.
type records struct{ ids[record] }

// add makes the record of a block that follows parent (0: none); 0: there is no number left.
func (b *records) add(hash uint64, name Name, parent uint32) uint32 {
	id := b.ids.add(hash)
	if id == 0 {
		return 0
	}
	r := b.at(id)
	*r = record{name: name, prev: parent}
	r.setLevel(unrooted)
	if parent != 0 {
		p := b.at(parent)
		r.setBefore(p.level())
		if r.next = p.child; r.next != 0 {
			b.at(r.next).prev = id
		}
		p.child = id
	}
	return id
}

// drop drops a record that is not held and has none behind it, and those
// before it that were kept for it only. It returns how many.
func (b *records) drop(id uint32) (n int) {
	for {
		r := b.at(id)
		if r.held() || r.child != 0 {
			return n
		}
		var parent uint32
		if r.prev != 0 {
			if p := b.at(r.prev); p.child == id {
				p.child = r.next
				parent = r.prev
			} else {
				p.next = r.next
			}
		}
		if r.next != 0 {
			b.at(r.next).prev = r.prev
		}
		b.ids.drop(id)
		n++
		if parent == 0 {
			return n
		}
		id = parent
	}
}
