// The forms of arm64 processors: NEON, which all have.

package embedded

func forms() []form { return []form{formNEON, formGo} }

// scanBlocks is scanPlain in the form in use; it does not clear the hits from n
// on. It calls the assembly directly: through a variable, what is passed would be
// moved to the heap.
func scanBlocks(hits []byte, near, far []uint64, n int, query *sketch, b *bounds) {
	if len(hits) == 0 {
		return
	}
	if kernel == formGo {
		scanPlain(hits, near, far, n, query, b)
		return
	}
	near, far = near[:len(hits)*blockWords], far[:len(hits)*blockWords]
	scanNEON(&hits[0], &near[0], &far[0], len(hits), query, b.half, b.whole)
}

// dot is dotPlain in the form in use.
func dot(a, b *vector) int32 {
	if kernel == formGo {
		return dotPlain(a, b)
	}
	return dotNEON(a, b)
}

//go:noescape
func scanNEON(hits *byte, near, far *uint64, blocks int, query *sketch, half, whole uint64)

//go:noescape
func dotNEON(a, b *vector) int32
