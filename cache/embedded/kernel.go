// The inner loops: finding near sketches, and dot products of vectors.

package embedded

import "kvasir/cache"

// A head is the first half of a sketch. Of most entries a search reads only the head; it reads
// the tail of the one in 20 that it does not skip.
//
// Heads lie in blocks of 64, transposed: first the first bytes of all 64, then the second bytes,
// so that one vector register holds a byte of each.
const (
	headWords   = cache.Dim / 64 / 2
	headBytes   = 8 * headWords
	headBits    = 8 * headBytes
	headNibbles = 2 * headBytes
	lanes       = 64
	blockBytes  = lanes * headBytes
)

// A tail is the second half of a sketch.
type tail [len(sketch{}) - headWords]uint64

// A scanned holds the results of scanning one chunk.
type scanned struct {
	hits [chunkSlots / lanes]uint64     // a bit for each entry that may be near
	sums [chunkSlots / lanes][64]uint16 // of the heads, with headOffset, indexed by sumAt
}

// sumAt returns the index of a lane's sum: even lanes first, then odd ones, in the order in which
// they come out of a register of bytes.
func sumAt(lane int) int { return lane/2 + lane%2*(lanes/2) }

// A form is one way to compute the inner loops. All give the same results.
type form int

const (
	formGo     form = iota
	formAVX2        // 32 heads at a time
	formAVX512      // 64 at a time, and VPOPCNTDQ for the tails
	formNEON        // 64 at a time, in four registers
)

var formNames = [...]string{"go", "avx2", "avx512", "neon"}

func (f form) String() string { return formNames[f] }

// kernel is the form in use: the fastest that the processor supports. Only tests change it.
var kernel = forms()[0]

// scan sets the hit bits of those of the first n entries whose head sum is at most bound, clears
// the others, and returns the words of hits that cover the n entries.
func (s *scanned) scan(c *chunk, n int, e *estimate, bound int) []uint64 {
	blocks := (n + lanes - 1) / lanes
	hits := s.hits[:blocks]
	if bound += headOffset; bound < 0 {
		clear(hits)
		return hits
	}
	if blocks > 0 {
		s.scanBlocks(c, n, e, min(bound, 1<<15))
		if rest := n % lanes; rest != 0 {
			hits[blocks-1] &= 1<<rest - 1 // may be a slot that is being written now
		}
	}
	return hits
}

// refine clears the hit bits of entries whose whole sketch has a sum above bound. hits is what
// scan returned.
func (s *scanned) refine(hits []uint64, c *chunk, e *estimate, bound int) {
	if len(hits) > 0 {
		s.refineBlocks(len(hits), c, e, bound+headOffset)
	}
}
