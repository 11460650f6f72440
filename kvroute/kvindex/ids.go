// IDs: 64-bit keys -> records under small numbers; for the writer only.

package kvindex

import "unsafe"

// ids numbers keys from 1 on and gives the numbers of dropped keys again. A
// number costs 8 bytes for its key, what T takes (24 for a record), and 4.4 to 6 in the
// hash table of numbers, which has at most 9/10 of its places used.
//
// A place that was left stays used, so that what lies behind it is found: it
// is taken by the next key that comes by, and emptied once the one after it is
// empty. To move keys up instead would be to look each of them up: half of the
// time of a remove.
type ids[T any] struct {
	all   chunked[entry[T]]
	table []uint32 // number | 8 bits of the key's hash << 24; 0: empty
	n     int      // keys held
	used  int      // places that are not empty
	last  uint32   // greatest number given
	free  uint32   // number to give next, the one after it is its key; 0: none

	expect int // keys that are likely to come to be held
}

// An entry is a key and what is kept under its number, together because they
// are needed together.
type entry[T any] struct {
	key uint64
	val T
}

const (
	maxIDs = 1<<24 - 1
	left   = 1 << 24 // number 0: a place that was left
)

// hash spreads keys that are no hashes themselves.
func hash(key uint64) uint64 {
	key ^= key >> 32
	key *= 0x9E3779B97F4A7C15
	return key ^ key>>29
}

func (d *ids[T]) home(hash uint64) int {
	return int(uint64(uint32(hash>>16)) * uint64(len(d.table)) >> 32)
}

// find returns the number of key, 0: it has none.
func (d *ids[T]) find(key uint64) uint32 {
	if len(d.table) == 0 {
		return 0
	}
	h := hash(key)
	tag := uint32(h) << 24
	for i := d.home(h); ; i = next(i, len(d.table)) {
		e := d.table[i]
		if e == 0 {
			return 0
		}
		if (e^tag)>>24 == 0 && d.all.at(e&maxIDs).key == key && e&maxIDs != 0 {
			return e & maxIDs
		}
	}
}

// touch reads where the search for key begins.
func (d *ids[T]) touch(key uint64) uint32 {
	if len(d.table) == 0 {
		return 0
	}
	return d.table[d.home(hash(key))]
}

// add numbers a key that has no number; 0: there are maxIDs keys.
func (d *ids[T]) add(key uint64) uint32 {
	if d.n == maxIDs {
		return 0
	}
	if 10*(d.used+1) > 9*len(d.table) {
		d.grow()
	}
	id := d.free
	if id != 0 {
		d.free = uint32(d.all.at(id).key)
	} else {
		d.last++
		id = d.last
		d.all.grow(id)
	}
	*d.all.at(id) = entry[T]{key: key}
	d.place(key, id)
	d.n++
	return id
}

func (d *ids[T]) place(key uint64, id uint32) {
	h := hash(key)
	i := d.home(h)
	for d.table[i]&maxIDs != 0 {
		i = next(i, len(d.table))
	}
	if d.table[i] == 0 {
		d.used++
	}
	d.table[i] = uint32(h)<<24 | id
}

// grow leaves two thirds of the places used, or doubles them up to that for
// expect keys.
func (d *ids[T]) grow() {
	old := d.table
	n := max(d.n+1, min(d.expect, 2*d.n))
	d.table = make([]uint32, max(16, n*3/2))
	d.used = 0
	for _, e := range old {
		if e&maxIDs != 0 {
			d.place(d.all.at(e&maxIDs).key, e&maxIDs)
		}
	}
}

// drop takes a number back.
func (d *ids[T]) drop(id uint32) {
	e := d.all.at(id)
	i := d.home(hash(e.key))
	for d.table[i]&maxIDs != id {
		i = next(i, len(d.table))
	}
	*e = entry[T]{key: uint64(d.free)}
	d.free = id
	d.n--
	d.table[i] = left
	if d.table[next(i, len(d.table))] != 0 {
		return
	}
	for d.table[i] != 0 && d.table[i]&maxIDs == 0 {
		d.table[i] = 0
		d.used--
		if i--; i < 0 {
			i = len(d.table) - 1
		}
	}
}

// at returns what is kept under a number; nothing at first.
func (d *ids[T]) at(id uint32) *T { return &d.all.at(id).val }

// each calls f with what is kept under each number.
func (d *ids[T]) each(f func(*T)) {
	for _, e := range d.table {
		if e&maxIDs != 0 {
			f(d.at(e & maxIDs))
		}
	}
}

func (d *ids[T]) bytes() int {
	return d.all.bytes(int(unsafe.Sizeof(entry[T]{}))) + 4*len(d.table)
}

// chunked is a slice that grows without being copied; number 0 is left unused.
type chunked[T any] [][]T

const chunkLen = 256

func (c chunked[T]) at(i uint32) *T { return &c[i/chunkLen][i%chunkLen] }

// grow makes room for number i.
func (c *chunked[T]) grow(i uint32) {
	for int(i/chunkLen) >= len(*c) {
		*c = append(*c, make([]T, chunkLen))
	}
}

func (c chunked[T]) bytes(each int) int { return len(c)*chunkLen*each + 24*cap(c) }
