// Table: the n-grams and words of languages.bin, read once, when first asked.
package language

import (
	_ "embed" // languages.bin
	"encoding/binary"
	"slices"
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
	hashes  []uint64 // of words, ascending
	setOf   []uint16 // by word
}

// columns are the languages of one script.
type columns struct {
	codes []string
	first int // of them among those of all scripts
	prior []int32
	slots []slot // open addressing, a power of two
	rows  []byte // [gram][language]
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
	return t
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
	}
	b = b[4*grams:]
	c.rows = b[: n*grams : n*grams]
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

// find is the row of a gram; nil: it is none that counts.
func (c *columns) find(key uint32) []byte {
	for at := c.home(key); c.slots[at].key != 0; at = (at + 1) & uint32(len(c.slots)-1) {
		if c.slots[at].key == key {
			row := c.slots[at].row
			return c.rows[row : row+uint32(len(c.codes))]
		}
	}
	return nil
}

// word is the set of columns that have a word.
func (t *table) word(hash uint64) uint64 {
	i, ok := slices.BinarySearch(t.hashes, hash)
	if !ok {
		return 0
	}
	return t.sets[t.setOf[i]]
}
