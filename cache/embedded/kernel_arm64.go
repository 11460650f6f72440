// The forms of arm64 processors: NEON, which all have.

package embedded

import "sync/atomic"

func forms() []form { return []form{formNEON, formGo} }

// scanBlocks is scanPlain in the form in use; it does not clear the hits from n on. It calls the
// assembly directly: a call through a function variable would move the arguments to the heap.
func (s *scanned) scanBlocks(c *chunk, n int, e *estimate, bound int) {
	if kernel == formGo {
		s.scanPlain(c, n, e, bound)
		return
	}
	scanNEON(s, &c.heads[0], &c.tails[0], (n+lanes-1)/lanes, &e.tables, bound)
}

// refineBlocks is refinePlain in the form in use.
func (s *scanned) refineBlocks(blocks int, c *chunk, e *estimate, bound int) {
	if kernel == formGo {
		s.refinePlain(blocks, c, e, bound)
		return
	}
	refineNEON(s, &c.tails[0], &c.items[0], blocks, &e.planes, bound)
}

// dot is dotPlain in the form in use.
func dot(a, b *vector) int32 {
	if kernel == formGo {
		return dotPlain(a, b)
	}
	return dotNEON(a, b)
}

// The scan prefetches the tails of its hits; the refinement prefetches the item pointers of the
// hits that remain.

//go:noescape
func scanNEON(s *scanned, heads *byte, tails *tail, blocks int, tables *[headNibbles]table, bound int)

//go:noescape
func refineNEON(s *scanned, tails *tail, items *atomic.Pointer[item], blocks int, planes *[valueBits]tail, bound int)

//go:noescape
func dotNEON(a, b *vector) int32

// prefetch loads the memory of an item with a vector in the background.
//
//go:noescape
func prefetch(it *item)
