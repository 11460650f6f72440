// Estimates: how similar a vector is to a sketch.

package embedded

import (
	"encoding/binary"
	"math"

	"kvasir/cache"
)

// An estimate knows the values of a query in 4 bits each, so that its dot
// product with the signs of a vector is a sum of small numbers: from tables for
// four signs at a time (Andre et al., Quick ADC, ICMR 2017), or by counting bits.
// It deviates half as much from the similarity as what two sketches tell (Gao
// and Long, RaBitQ, SIGMOD 2024), so that far less memory need be touched.
type estimate struct {
	planes [valueBits]tail    // bit p of each value of a tail, in two's complement
	tables [headNibbles]table // for each four bits of a head
	head   int                // the sum of all values of a head
	whole  int                // of all
	step   float64            // what a value of 1 is worth in a vector of length 1
}

// A table has, for each way in which four bits can be set, the sum of the values
// at those that are, + nibbleOffset.
type table [16]uint8

const (
	valueBits    = 4
	top          = 1<<(valueBits-1) - 1 // values are from -top to top
	nibbleOffset = 4 * top
	headOffset   = headNibbles * nibbleOffset
)

// of reads the query.
func (e *estimate) of(query *vector) {
	values, scale := valuesOf(query)
	e.step = 1 << 16 / (float64(scale) * unit)
	e.head = 0
	for _, value := range values[:headBits] {
		e.head += int(int8(value))
	}
	e.whole = e.head
	for _, value := range values[headBits:] {
		e.whole += int(int8(value))
	}
	for w := range len(tail{}) {
		part := (*[64]byte)(values[headBits+64*w:])
		for p := range e.planes {
			e.planes[p][w] = bitsOf(part, p)
		}
	}
	for i := range e.tables {
		e.tables[i].fill((*[4]byte)(values[4*i:]))
	}
}

// fill stores the sums that four values have, 8 at a time: no byte of the result
// is negative or carries, whatever the products do on the way.
func (t *table) fill(values *[4]byte) {
	const each = 0x0101010101010101
	value := func(i int) uint64 { return uint64(int8(values[i])) }
	low := nibbleOffset*each + value(0)*0x0100010001000100 + value(1)*0x0101000001010000 + value(2)*0x0101010100000000
	binary.LittleEndian.PutUint64(t[:], low)
	binary.LittleEndian.PutUint64(t[8:], low+value(3)*each)
}

// bitsOf returns bit p of each byte.
func bitsOf(bytes *[64]byte, p int) (word uint64) {
	for i := 0; i < len(bytes); i += 8 {
		eight := binary.LittleEndian.Uint64(bytes[i:]) >> p & 0x0101010101010101
		word |= eight * 0x0102040810204080 >> 56 << i
	}
	return word
}

// valuesOf returns the values, in two's complement: those of the query by scale,
// which has 16 bits behind the point.
func valuesOf(query *vector) (values [cache.Dim]byte, scale int32) {
	var largest int32 // not 0: the length is 1
	for _, x := range query {
		largest = max(largest, int32(x), -int32(x))
	}
	scale = top << 16 / largest
	for i, x := range query {
		values[i] = byte((int32(x)*scale + 1<<15) >> 16)
	}
	return values, scale
}

// signShare is the dot product of a vector of length 1 with its own signs, taken
// as a vector of length 1, on average.
var signShare = math.Sqrt(2 / math.Pi)

// margin is how many standard deviations less than expected an estimate may be
// until an entry is passed over. Of the entries whose similarity is just the
// floor of the search, each of two bounds misses 1 of 1,030 (the tail of the
// normal distribution); of those above it far fewer: at a floor of 0.55, an entry
// of similarity 0.7 is 5 deviations and more within.
const margin = 3.1

// bounds returns the sums of values above which, over a head and over a whole
// sketch, hardly any vector is so similar to the query.
func (e *estimate) bounds(similarity float64) (head, whole int) {
	const dim = cache.Dim
	s := max(-1, min(similarity, 1))
	share := s * signShare
	rounded := e.step * e.step / 12

	// A head has a part of the values: each adds its own share of the similarity, and of the error.
	least := headBits*share/math.Sqrt(dim) - margin*math.Sqrt(headBits*((1-share*share)/dim+rounded))
	head = e.bound(e.head, least)

	// All values together are the similarity, but for what their signs leave out.
	least = share*math.Sqrt(dim) - margin*math.Sqrt(1-signShare*signShare+dim*rounded)
	return head, e.bound(e.whole, least)
}

// bound returns the most that the values at the set bits may sum up to. In the estimate these count
// with a minus, all others with a plus.
func (e *estimate) bound(all int, least float64) int {
	return int(math.Floor((float64(all) - least/e.step) / 2))
}
