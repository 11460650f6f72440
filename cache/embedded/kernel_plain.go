// The inner loops in plain Go: the form that every machine has, and the one the
// others are held to.

package embedded

import "math/bits"

func scanPlain(hits []byte, near, far []uint64, n int, query *sketch, b *bounds) {
	for i := range hits {
		first, second := (*[blockWords]uint64)(near[i*blockWords:]), (*[blockWords]uint64)(far[i*blockWords:])
		hits[i] = 0
		for lane := range min(lanes, n-i*lanes) {
			d := distance(first, lane, query[:halfWords])
			if d > b.half {
				continue
			}
			if d+distance(second, lane, query[halfWords:]) <= b.whole {
				hits[i] |= 1 << lane
			}
		}
	}
}

// dotPlain returns the dot product.
func dotPlain(a, b *vector) (sum int32) {
	for i, x := range a {
		sum += int32(x) * int32(b[i])
	}
	return sum
}

// distance returns in how many bits a sketch of the block differs from a half
// of the query.
func distance(block *[blockWords]uint64, lane int, query []uint64) (n uint64) {
	for w, q := range query {
		n += uint64(bits.OnesCount64(block[w*lanes+lane] ^ q))
	}
	return n
}
