// Table: the n-grams and words of languages.bin, read once, when first asked.
package language

import (
	_ "embed" // languages.bin
	"encoding/binary"
	"sync"
)

//go:embed languages.bin
var file []byte

// Log probabilities are counted in steps of 1/16 nat.
const (
	perNat     = 16
	maxColumns = 64
)

// table is what is known; see scripts/train/language.py for the file.
type table struct {
	scripts []columns // by script, the first five
	sets    []uint64
	hashes  []uint64 // of words
	setOf   []uint16 // by word
	places  []uint16 // of words, one more, by their hash: open addressing, a power of two
}

// columns are the languages of one script.
type columns struct {
	codes []string
	first int // of them among those of all scripts
	prior []int32
	slots []slot          // open addressing, a power of two
	rows  []byte          // [gram][language], and seven bytes after them
	some  [1 << 10]uint64 // a bit for each gram: where there is none, nothing is in slots
}

// A slot holds one gram. No gram is 0.
type slot struct {
	key uint32
	row uint32
}

var tables = sync.OnceValue(func() *table { return read(file) })

// read reads the file, which is ours: what is wrong with it is a bug.
func read(b []byte) *table {
	t := &table{}
	first := 0
	for b[0] != 0 {
		var c columns
		c, b = readColumns(b, first)
		t.scripts = append(t.scripts, c)
		first += len(c.codes)
	}
	n := int(binary.LittleEndian.Uint16(b[1:]))
	b = b[3:]
	t.sets, b = uint64s(b, n), b[8*n:]
	n = int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	t.hashes, b = uint64s(b, n), b[8*n:]
	t.setOf = make([]uint16, n)
	for i := range t.setOf {
		t.setOf[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	t.place()
	return t
}

// place fills places.
func (t *table) place() {
	size := 1
	for size < 2*len(t.hashes) {
		size *= 2
	}
	t.places = make([]uint16, size)
	for i, hash := range t.hashes {
		at := hash & uint64(size-1)
		for t.places[at] != 0 {
			at = (at + 1) & uint64(size-1)
		}
		t.places[at] = uint16(i + 1)
	}
}

func readColumns(b []byte, first int) (c columns, rest []byte) {
	c.first = first
	n := int(b[0])
	for i := range n {
		code := string(b[1+2*i : 3+2*i])
		c.codes = append(c.codes, code)
		c.prior = append(c.prior, speakers[code])
	}
	b = b[1+2*n:]
	grams := int(binary.LittleEndian.Uint16(b))
	b = b[2:]
	size := 1
	for size < 2*grams {
		size *= 2
	}
	c.slots = make([]slot, size)
	for i := range grams {
		key := binary.LittleEndian.Uint32(b[4*i:])
		at := c.home(key)
		for c.slots[at].key != 0 {
			at = (at + 1) % uint32(size)
		}
		c.slots[at] = slot{key, uint32(i * n)}
		c.some[bitOf(key)/64] |= 1 << (bitOf(key) % 64)
	}
	b = b[4*grams:]
	c.rows = b[:n*grams+7] // more than seven bytes of other things follow
	return c, b[n*grams:]
}

func uint64s(b []byte, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

func (c *columns) home(key uint32) uint32 {
	return key * 0x9e3779b1 >> 7 & uint32(len(c.slots)-1)
}

// bitOf is the bit of a gram, one of 1 << 16.
func bitOf(key uint32) uint32 { return key * 0x9e3779b1 >> 16 }

// mayHave says that there may be a row of a gram; false: there is none.
func (c *columns) mayHave(key uint32) bool {
	bit := bitOf(key)
	return c.some[bit/64]>>(bit%64)&1 != 0
}

// find is where the row of a gram begins; false: it is none that counts.
func (c *columns) find(key uint32) (at uint32, ok bool) {
	for at := c.home(key); c.slots[at].key != 0; at = (at + 1) & uint32(len(c.slots)-1) {
		if c.slots[at].key == key {
			return c.slots[at].row, true
		}
	}
	return 0, false
}

// word is the set of columns that have a word.
func (t *table) word(hash uint64) uint64 {
	mask := uint64(len(t.places) - 1)
	for at := hash & mask; t.places[at] != 0; at = (at + 1) & mask {
		if i := t.places[at] - 1; t.hashes[i] == hash {
			return t.sets[t.setOf[i]]
		}
	}
	return 0
}
