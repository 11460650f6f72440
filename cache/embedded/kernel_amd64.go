// The forms of x86-64 processors: AVX-512 with VPOPCNTDQ, AVX2.

package embedded

import (
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// forms returns the forms that this processor can run, the fastest first.
func forms() []form {
	var all []form
	x := &cpu.X86
	avx2 := x.HasAVX2 && x.HasBMI1
	if avx2 && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VPOPCNTDQ {
		all = append(all, formAVX512)
	}
	if avx2 {
		all = append(all, formAVX2)
	}
	return append(all, formGo)
}

// scanBlocks is scanPlain in the form in use; it does not clear the hits from n on. It calls the
// assembly directly: a call through a function variable would move the arguments to the heap.
func (s *scanned) scanBlocks(c *chunk, n int, e *estimate, bound int) {
	blocks := (n + lanes - 1) / lanes
	switch kernel {
	case formAVX512:
		scanAVX512(s, &c.heads[0], &c.tails[0], blocks, &e.tables, bound)
	case formAVX2:
		scanAVX2(s, &c.heads[0], &c.tails[0], blocks, &e.tables, bound)
	default:
		s.scanPlain(c, n, e, bound)
	}
}

// refineBlocks is refinePlain in the form in use.
func (s *scanned) refineBlocks(blocks int, c *chunk, e *estimate, bound int) {
	switch kernel {
	case formAVX512:
		refineAVX512(s, &c.tails[0], &c.items[0], blocks, &e.planes, bound)
	case formAVX2:
		refineAVX2(s, &c.tails[0], &c.items[0], blocks, &e.planes, bound)
	default:
		s.refinePlain(blocks, c, e, bound)
	}
}

// dot is dotPlain in the form in use. 512-bit registers would not make it faster: it waits for
// memory.
func dot(a, b *vector) int32 {
	if kernel == formGo {
		return dotPlain(a, b)
	}
	return dotAVX2(a, b)
}

// The scans prefetch the tails of their hits; the refinements prefetch the item pointers of the
// hits that remain.

//go:noescape
func scanAVX512(s *scanned, heads *byte, tails *tail, blocks int, tables *[headNibbles]table, bound int)

//go:noescape
func scanAVX2(s *scanned, heads *byte, tails *tail, blocks int, tables *[headNibbles]table, bound int)

//go:noescape
func refineAVX512(s *scanned, tails *tail, items *atomic.Pointer[item], blocks int, planes *[valueBits]tail, bound int)

//go:noescape
func refineAVX2(s *scanned, tails *tail, items *atomic.Pointer[item], blocks int, planes *[valueBits]tail, bound int)

//go:noescape
func dotAVX2(a, b *vector) int32

// prefetch loads the memory of an item with a vector in the background.
//
//go:noescape
func prefetch(it *item)
