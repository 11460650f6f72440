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
	words   []word    // by their hash: open addressing, a power of two
}

// A word and the set of columns that have it lie in one line of a cache. No word has the hash 0.
type word struct{ hash, columns uint64 }

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
	sets := uint64s(b, n)
	b = b[8*n:]
	n = int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	hashes, of := uint64s(b, n), b[8*n:]
	size := 1
	for size < 2*n {
		size *= 2
	}
	t.words = make([]word, size)
	for i, hash := range hashes {
		*t.place(hash) = word{hash, sets[binary.LittleEndian.Uint16(of[2*i:])]}
	}
	return t
}

// place is where a word lies, or would.
func (t *table) place(hash uint64) *word {
	mask := uint64(len(t.words) - 1)
	at := hash & mask
	for t.words[at].hash != hash && t.words[at].hash != 0 {
		at = (at + 1) & mask
	}
	return &t.words[at]
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
