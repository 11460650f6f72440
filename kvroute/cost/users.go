// How many users blocks have: names -> counts, in one open table.

package cost

import "kvasir/kvroute/kvindex"

// users counts the users of blocks. It is a hash table with open addressing, because a map took an eighth of a replay's
// time: a block is looked for from its home on, up to the first empty slot. At most half of the slots are used.
type users struct {
	slots []userSlot // a power of two
	shift uint       // 64 less its logarithm
	n     int

	touched int32 // a sum of what was read ahead, so that it is read
}

type userSlot struct {
	name  kvindex.Name // 0: empty
	count int32
}

func newUsers() users { return users{slots: make([]userSlot, 64), shift: 64 - 6} }

// home is where the search for a block begins.
func (u *users) home(name kvindex.Name) int { return int(uint64(name) * 0x9E3779B97F4A7C15 >> u.shift) }

// of is how many users the block has.
func (u *users) of(name kvindex.Name) int32 {
	_, s := u.find(name)
	return s.count
}

// touch reads where the searches for some blocks begin, so that they wait for memory together.
func (u *users) touch(names []kvindex.Name, stride int) {
	var read int32
	for i := stride - 1; i < len(names); i += stride {
		read += u.slots[u.home(names[i])].count
	}
	u.touched = read
}

// find returns the slot of the block, or the empty one where it would be.
func (u *users) find(name kvindex.Name) (int, *userSlot) {
	for i := u.home(name); ; i = (i + 1) & (len(u.slots) - 1) {
		if s := &u.slots[i]; s.name == name || s.name == 0 {
			return i, s
		}
	}
}

// add adds a user and returns how many there were before.
func (u *users) add(name kvindex.Name) int32 {
	_, s := u.find(name)
	if s.name == 0 {
		if u.n++; 2*u.n > len(u.slots) {
			u.grow()
			_, s = u.find(name)
		}
		s.name = name
	}
	s.count++
	return s.count - 1
}

// remove takes a user away and returns how many are left.
func (u *users) remove(name kvindex.Name) int32 {
	i, s := u.find(name)
	if s.count > 1 {
		s.count--
		return s.count
	}
	if s.count == 1 {
		u.n--
		u.empty(i)
	}
	return 0
}

// empty empties slot i; what lies behind it moves up, so that no search stops short of it.
func (u *users) empty(i int) {
	mask := len(u.slots) - 1
	for k := (i + 1) & mask; u.slots[k].name != 0; k = (k + 1) & mask {
		if (k-u.home(u.slots[k].name))&mask >= (k-i)&mask {
			u.slots[i] = u.slots[k]
			i = k
		}
	}
	u.slots[i] = userSlot{}
}

func (u *users) grow() {
	old := u.slots
	u.slots = make([]userSlot, 2*len(old))
	u.shift--
	for _, o := range old {
		if o.name != 0 {
			_, s := u.find(o.name)
			*s = o
		}
	}
}
