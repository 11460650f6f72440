// Estimates: the similarity between a query's vector and the sketch of an entry.

package embedded

import (
	"encoding/binary"
	"math"

	"kvasir/cache"
)

// An estimate holds the values of a query in 4 bits each. So the query's dot product with the
// signs of a vector is a sum of small numbers, computed from tables for four signs at a time
// (Andre et al., Quick ADC, ICMR 2017) or by counting bits. Its error is half that of comparing
// two sketches (Gao and Long, RaBitQ, SIGMOD 2024), so that a search touches far less memory.
type estimate struct {
	planes [valueBits]tail    // bit p of each value of the tail, in two's complement
	tables [headNibbles]table // one for every four bits of the head
	head   int                // the sum of the head's values
	whole  int                // the sum of all values
	step   float64            // the size of one unit, in a vector of length 1
}

// A table holds, for each of the 16 patterns of four bits, the sum of the values at the set bits,
// plus nibbleOffset.
type table [16]uint8

const (
	valueBits    = 4
	top          = 1<<(valueBits-1) - 1 // values range from -top to top
	nibbleOffset = 4 * top
	headOffset   = headNibbles * nibbleOffset
)

// of computes the estimate of a query.
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

// fill stores the sums of four values, 8 sums at a time. No byte of the result is negative or
// carries into the next, whatever the intermediate products do.
func (t *table) fill(values *[4]byte) {
	const each = 0x0101010101010101
	value := func(i int) uint64 { return uint64(int8(values[i])) }
	low := nibbleOffset*each + value(0)*0x0100010001000100 + value(1)*0x0101000001010000 + value(2)*0x0101010100000000
	binary.LittleEndian.PutUint64(t[:], low)
	binary.LittleEndian.PutUint64(t[8:], low+value(3)*each)
}

// bitsOf gathers bit p of each byte.
func bitsOf(bytes *[64]byte, p int) (word uint64) {
	for i := 0; i < len(bytes); i += 8 {
		eight := binary.LittleEndian.Uint64(bytes[i:]) >> p & 0x0101010101010101
		word |= eight * 0x0102040810204080 >> 56 << i
	}
	return word
}

// valuesOf returns the 4-bit values, in two's complement: the query's values times scale, a
// fixed-point number with 16 fractional bits.
func valuesOf(query *vector) (values [cache.Dim]byte, scale int32) {
	var largest int32 // not 0, because the length is 1
	for _, x := range query {
		largest = max(largest, int32(x), -int32(x))
	}
	scale = top << 16 / largest
	for i, x := range query {
		values[i] = byte((int32(x)*scale + 1<<15) >> 16)
	}
	return values, scale
}

// signShare is the mean dot product of a vector of length 1 with the vector of its signs, scaled
// to length 1.
var signShare = math.Sqrt(2 / math.Pi)

// margin: an entry is skipped when its estimate is more than this many standard deviations below
// the expected value. Each of the two bounds misses 1 in 1,030 of the entries whose similarity
// equals the floor of the search (the tail of the normal distribution), and far fewer above it:
// at a floor of 0.55, an entry of similarity 0.7 clears the bound by 5 deviations and more.
const margin = 3.1

// bounds returns, for a head and for a whole sketch, the largest sum of values that a vector of
// this similarity to the query reaches, except for the few that margin allows.
func (e *estimate) bounds(similarity float64) (head, whole int) {
	const dim = cache.Dim
	s := max(-1, min(similarity, 1))
	share := s * signShare
	rounded := e.step * e.step / 12

	// A head has some of the values. Each adds its share of the similarity, and of the error.
	least := headBits*share/math.Sqrt(dim) - margin*math.Sqrt(headBits*((1-share*share)/dim+rounded))
	head = e.bound(e.head, least)

	// All values together give the similarity, except for the part that their signs do not keep.
	least = share*math.Sqrt(dim) - margin*math.Sqrt(1-signShare*signShare+dim*rounded)
	return head, e.bound(e.whole, least)
}

// bound returns the largest allowed sum of the values at the set bits. In the estimate those
// values count as negative, all others as positive.
func (e *estimate) bound(all int, least float64) int {
	return int(math.Floor((float64(all) - least/e.step) / 2))
}
