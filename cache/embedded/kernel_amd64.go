// The forms of x86-64 processors: AVX-512 with VPOPCNTDQ, AVX2.

package embedded

import "golang.org/x/sys/cpu"

// forms returns what this processor can run, the fastest first.
func forms() []form {
	var all []form
	if x := &cpu.X86; x.HasAVX2 && x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VPOPCNTDQ {
		all = append(all, formAVX512)
	}
	if cpu.X86.HasAVX2 {
		all = append(all, formAVX2)
	}
	return append(all, formGo)
}

// scanBlocks is scanPlain in the form in use; it does not clear the hits from n
// on. It calls the assembly directly: through a variable, what is passed would be
// moved to the heap.
func scanBlocks(hits []byte, near, far []uint64, n int, query *sketch, b *bounds) {
	if len(hits) == 0 {
		return
	}
	near, far = near[:len(hits)*blockWords], far[:len(hits)*blockWords]
	switch kernel {
	case formAVX512:
		scanAVX512(&hits[0], &near[0], &far[0], len(hits), query, b.half, b.whole)
	case formAVX2:
		scanAVX2(&hits[0], &near[0], &far[0], len(hits), query, b.half, b.whole)
	default:
		scanPlain(hits, near, far, n, query, b)
	}
}

// dot is dotPlain in the form in use. 512-bit registers would gain nothing: it
// waits for memory.
func dot(a, b *vector) int32 {
	if kernel == formGo {
		return dotPlain(a, b)
	}
	return dotAVX2(a, b)
}

//go:noescape
func scanAVX512(hits *byte, near, far *uint64, blocks int, query *sketch, half, whole uint64)

//go:noescape
func scanAVX2(hits *byte, near, far *uint64, blocks int, query *sketch, half, whole uint64)

//go:noescape
func dotAVX2(a, b *vector) int32
