// The forms of arm64 processors: NEON, which all have.

package embedded

import "sync/atomic"

func forms() []form { return []form{formNEON, formGo} }

// scanBlocks is scanPlain in the form in use; it does not clear the hits from n
// on. It calls the assembly directly: through a variable, what is passed would be
// moved to the heap.
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

// The scan lets the tails of hits come while it goes on, and the refinement the
// places where the items of those that stay are.

//go:noescape
func scanNEON(s *scanned, heads *byte, tails *tail, blocks int, tables *[headNibbles]table, bound int)

//go:noescape
func refineNEON(s *scanned, tails *tail, items *atomic.Pointer[item], blocks int, planes *[valueBits]tail, bound int)

//go:noescape
func dotNEON(a, b *vector) int32

// prefetch lets the memory of an item that has a vector come while other things
// are done.
//
//go:noescape
func prefetch(it *item)
