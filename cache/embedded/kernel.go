// The inner loops: which sketches are near, and dot products of vectors.

package embedded

// Sketches lie in blocks of 8, word by word: first the first words of all 8,
// then the second words, so that a vector register holds a word of each. The
// first 4 words and the last 4 lie apart: most entries are passed over after
// the first half, and the other half is never read.
const (
	lanes      = 8
	halfWords  = len(sketch{}) / 2
	blockWords = lanes * halfWords // of one half
)

// A form is one way to compute the inner loops. All give the same results.
type form int

const (
	formGo     form = iota
	formAVX2        // 4 sketches at a time, bits counted by a table of nibbles
	formAVX512      // 8 at a time, with VPOPCNTDQ
	formNEON        // 2 at a time
)

var formNames = [...]string{"go", "avx2", "avx512", "neon"}

func (f form) String() string { return formNames[f] }

// kernel is the form in use, the fastest that the processor has. Only tests
// change it.
var kernel = forms()[0]

// scan sets bit i%8 of hits[i/8] for each of the n sketches that differs from
// the query in at most b.half bits of the first half and b.whole of all, clears
// it for the others, and returns the hits' bytes. near and far have blockWords
// for each block that n begins.
func scan(hits []byte, near, far []uint64, n int, query *sketch, b *bounds) []byte {
	hits = hits[:(n+lanes-1)/lanes]
	scanBlocks(hits, near, far, n, query, b)
	if rest := n % lanes; rest != 0 {
		hits[len(hits)-1] &= 1<<rest - 1 // a sketch that is just being written
	}
	return hits
}
