// Byte pair merging: which neighbours become one token, lowest rank first, leftmost first.

package tokenize

import "math/bits"

// noPair is the merge of two tokens that do not merge.
const noPair = ^uint64(0)

// pairTable is the merges: open addressing, at most half full. Immutable after it is built.
type pairTable struct {
	slots []pairSlot
	shift uint
}

// pairSlot: `left<<32 | right` -> `rank<<32 | token`; noPair in both where it is empty.
type pairSlot struct{ pair, merge uint64 }

func newPairTable(n int) *pairTable {
	size := uint(bits.Len(uint(max(n, 8)*2 - 1)))
	t := &pairTable{slots: make([]pairSlot, 1<<size), shift: 64 - size}
	for i := range t.slots {
		t.slots[i] = pairSlot{noPair, noPair}
	}
	return t
}

// set overwrites: of two equal merges the reference library takes the last.
func (t *pairTable) set(left, right, rank, token uint32) {
	s := t.slot(uint64(left)<<32 | uint64(right))
	*s = pairSlot{uint64(left)<<32 | uint64(right), uint64(rank)<<32 | uint64(token)}
}

func (t *pairTable) slot(pair uint64) *pairSlot {
	mask := uint64(len(t.slots) - 1)
	for i := pair * 0x9e3779b97f4a7c15 >> t.shift; ; i++ {
		if s := &t.slots[i&mask]; s.pair == pair || s.pair == noPair {
			return s
		}
	}
}

// merge is what two neighbours become, `rank<<32 | token`, or noPair.
func (t *pairTable) merge(left, right uint32) uint64 {
	return t.slot(uint64(left)<<32 | uint64(right)).merge
}

// maxShort is the longest word, in symbols, that is merged by looking at all pairs for each
// merge, which is faster than a heap for so few. Longer words take n log n steps with a heap;
// words above maxHeap take hardly more than n, see rows.
const (
	maxShort = 64
	maxHeap  = 4096
)

// merger is the working space of merging one word.
type merger struct {
	symbols []uint32 // the word's tokens so far
	pairs   []uint64 // what symbol i becomes with the next
	next    []int32  // only with the heap: the neighbours that are left
	prev    []int32
	heap    []mergeStep
	rows    *rows // of a very long word; nil: there was none yet
	steps   int   // pairs looked at and heap levels passed; what the tests count
}

// mergeStep is a merge that could be done: `rank<<32 | place`, and what it makes.
type mergeStep struct {
	order uint64
	token uint32
}

// run merges m.symbols and appends what is left to dst.
func (m *merger) run(dst []uint32, t *pairTable) []uint32 {
	n := len(m.symbols)
	if n < 2 {
		return append(dst, m.symbols...)
	}
	m.pairs = m.pairs[:0]
	for i := range n - 1 {
		m.pairs = append(m.pairs, t.merge(m.symbols[i], m.symbols[i+1]))
	}
	m.steps += n
	switch {
	case n > maxHeap:
		return m.endless(dst, t)
	case n > maxShort:
		return m.long(dst, t)
	}
	symbols, pairs := m.symbols, m.pairs
	for {
		best, at := noPair, 0
		for i, p := range pairs {
			if p < best { // of equal values, which mean the same pair, the leftmost
				best, at = p, i
			}
		}
		m.steps += len(pairs)
		if best == noPair {
			return append(dst, symbols...)
		}
		symbols[at] = uint32(best)
		symbols = append(symbols[:at+1], symbols[at+2:]...)
		pairs = append(pairs[:at], pairs[at+1:]...)
		if at < len(pairs) {
			pairs[at] = t.merge(symbols[at], symbols[at+1])
		}
		if at > 0 {
			pairs[at-1] = t.merge(symbols[at-1], symbols[at])
		}
	}
}

const gone = -2 // in next: the symbol has become part of one before it

// long merges with a heap.
func (m *merger) long(dst []uint32, t *pairTable) []uint32 {
	m.link()
	m.heap = m.heap[:0]
	for i, p := range m.pairs {
		if p != noPair {
			m.heap = append(m.heap, mergeStep{p>>32<<32 | uint64(i), uint32(p)})
		}
	}
	for i := len(m.heap)/4 + 1; i >= 0; i-- {
		m.down(i)
	}
	for len(m.heap) > 0 {
		top := m.heap[0]
		m.pop()
		at := int32(uint32(top.order))
		// A step whose symbols have changed since is out of date.
		if m.next[at] < 0 || m.pairs[at] == noPair || uint32(m.pairs[at]) != top.token {
			continue
		}
		m.join(at, top.token)
		m.consider(t, at)
		if m.prev[at] >= 0 {
			m.consider(t, m.prev[at])
		}
	}
	return m.left(dst)
}

// link makes each symbol the neighbour of the next.
func (m *merger) link() {
	n := len(m.symbols)
	m.next, m.prev = m.next[:0], m.prev[:0]
	for i := range n {
		m.next, m.prev = append(m.next, int32(i+1)), append(m.prev, int32(i-1))
	}
	m.next[n-1] = -1
	m.pairs = append(m.pairs, noPair)
}

// join makes one token of the symbol at a place and the next.
func (m *merger) join(at int32, token uint32) {
	m.symbols[at] = token
	next := m.next[at]
	behind := m.next[next]
	m.next[at], m.next[next] = behind, gone
	if behind >= 0 {
		m.prev[behind] = at
	}
}

// left appends the symbols that are left.
func (m *merger) left(dst []uint32) []uint32 {
	for i := int32(0); i >= 0; i = m.next[i] {
		dst = append(dst, m.symbols[i])
	}
	return dst
}

// consider looks at what the symbol at a place makes with the next.
func (m *merger) consider(t *pairTable, at int32) {
	m.pairs[at] = noPair
	if next := m.next[at]; next >= 0 {
		if p := t.merge(m.symbols[at], m.symbols[next]); p != noPair {
			m.pairs[at] = p
			m.push(mergeStep{p>>32<<32 | uint64(at), uint32(p)})
		}
	}
	m.steps++
}

// The heap has four children a node: half the levels of two.
func (m *merger) push(s mergeStep) {
	h := append(m.heap, s)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		m.steps++
		if h[up].order <= s.order {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = s
	m.heap = h
}

func (m *merger) pop() {
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	m.down(0)
}

func (m *merger) down(i int) {
	h := m.heap
	if i >= len(h) {
		return
	}
	s := h[i]
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		m.steps++
		least := first
		for c := first + 1; c < min(first+4, len(h)); c++ {
			if h[c].order < h[least].order {
				least = c
			}
		}
		if h[least].order >= s.order {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = s
}
