// A trie of the vocabulary's pieces, to find all pieces that begin at a place of a text.

package tokenize

import (
	"math/bits"
	"slices"
)

// trie is a double array over bytes: the child of a node by byte c lies at base^c, if its label is c.
// No two nodes have the same base, so the label alone tells whose child a unit is. Immutable after it
// is built.
type trie []trieUnit

// trieUnit is `base<<32 | token<<9 | label`. The token is noPiece where no piece ends; the label is
// noLabel where there is no node.
type trieUnit uint64

const (
	noPiece = maxToken // ids are smaller
	noLabel = 256
)

func (u trieUnit) base() uint32  { return uint32(u >> 32) }
func (u trieUnit) token() uint32 { return uint32(u) >> 9 }
func (u trieUnit) label() uint32 { return uint32(u) & 0x1ff }

func newTrieUnit(base, token, label uint32) trieUnit {
	return trieUnit(base)<<32 | trieUnit(token)<<9 | trieUnit(label)
}

// root is the base of the root.
func (t trie) root() uint32 { return t[0].base() }

// step is the child by byte c of a node whose base is given.
func (t trie) step(base uint32, c byte) (trieUnit, bool) {
	u := t[base^uint32(c)]
	return u, u.label() == uint32(c)
}

// find is the token of a piece, or noPiece.
func (t trie) find(piece []byte) uint32 {
	base, token := t.root(), uint32(noPiece)
	for _, c := range piece {
		u, ok := t.step(base, c)
		if !ok {
			return noPiece
		}
		base, token = u.base(), u.token()
	}
	return token
}

// trieBuilder fills a trie. Units are allotted in blocks of 256; base^c always lies in the block
// of base.
type trieBuilder struct {
	units trie
	keys  []string // sorted
	token map[string]uint32
	free  [][4]uint64 // of each block, the units without a node
	bases [][4]uint64 // of each block, the bases that no node has
	open  []uint32    // blocks in which there may be room
}

// maxOpen is how many blocks are looked through for room: with more of them the array is hardly
// smaller, and takes longer to build.
const maxOpen = 16

func newTrie(tokens map[string]uint32) trie {
	b := &trieBuilder{token: tokens, keys: make([]string, 0, len(tokens))}
	for key := range tokens {
		if key != "" {
			b.keys = append(b.keys, key)
		}
	}
	slices.Sort(b.keys)
	b.block()
	b.take(0)
	b.units[0] = newTrieUnit(b.children(0, len(b.keys), 0), noPiece, noLabel)
	return b.units
}

// block adds an empty block.
func (b *trieBuilder) block() {
	b.open = append(b.open, uint32(len(b.free)))
	all := [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	b.free, b.bases = append(b.free, all), append(b.bases, all)
	for range 256 {
		b.units = append(b.units, newTrieUnit(0, noPiece, noLabel))
	}
	if len(b.open) > maxOpen {
		b.open = slices.Delete(b.open, 0, 1)
	}
}

func (b *trieBuilder) take(unit uint32) { b.free[unit>>8][unit>>6&3] &^= 1 << (unit & 63) }

// children places the nodes below a node, at all depths, and returns the base of its children.
// keys[from:to] are the keys that lead through the node; they are equal in their first depth
// bytes.
func (b *trieBuilder) children(from, to, depth int) uint32 {
	if from < to && len(b.keys[from]) == depth {
		from++ // the key that ends here; the caller has noted its token
	}
	if from == to {
		return 0 // no node has this base, so no label will match
	}
	var labels []byte
	for i := from; i < to; i++ {
		if c := b.keys[i][depth]; len(labels) == 0 || labels[len(labels)-1] != c {
			labels = append(labels, c)
		}
	}
	base := b.base(labels)
	for _, c := range labels {
		b.take(base ^ uint32(c))
	}
	for i := from; i < to; {
		c, end := b.keys[i][depth], i+1
		for end < to && b.keys[end][depth] == c {
			end++
		}
		token := uint32(noPiece)
		if len(b.keys[i]) == depth+1 {
			token = b.token[b.keys[i]]
		}
		b.units[base^uint32(c)] = newTrieUnit(b.children(i, end, depth+1), token, uint32(c))
		i = end
	}
	return base
}

// base returns an unused base for which the units of all labels are free.
func (b *trieBuilder) base(labels []byte) uint32 {
	for i := len(b.open) - 1; i >= 0; i-- {
		if base, ok := b.within(b.open[i], labels); ok {
			return base
		}
	}
	b.block()
	base, _ := b.within(uint32(len(b.free)-1), labels)
	return base
}

func (b *trieBuilder) within(block uint32, labels []byte) (uint32, bool) {
	free, bases := &b.free[block], &b.bases[block]
	for word, units := range free {
		for ; units != 0; units &= units - 1 {
			first := uint32(word)<<6 | uint32(bits.TrailingZeros64(units))
			base := first ^ uint32(labels[0])
			if bases[base>>6]>>(base&63)&1 == 0 || block == 0 && base == 0 { // 0 stands for no children
				continue
			}
			fits := true
			for _, c := range labels[1:] {
				unit := base ^ uint32(c)
				if fits = free[unit>>6]>>(unit&63)&1 == 1; !fits {
					break
				}
			}
			if fits {
				bases[base>>6] &^= 1 << (base & 63)
				return block<<8 | base, true
			}
		}
	}
	return 0, false
}
