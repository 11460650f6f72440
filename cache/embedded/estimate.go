// Estimates: how similar a vector is to a sketch.

package embedded

import (
	"math"
	"math/bits"

	"kvasir/cache"
)

// An estimate knows the values of a query in 4 bits each, so that its dot
// product with the signs of a vector takes some counting of bits. It deviates
// half as much from the similarity as what two sketches tell, so that half of a
// kilobyte of memory need not be touched for most that two sketches let pass
// (Gao and Long, RaBitQ, SIGMOD 2024).
type estimate struct {
	planes [planes]sketch // bit p of each value
	low    float64        // of the value 0
	step   float64
	sum    float64 // of all values
}

const planes = 4

// of reads the query.
func (e *estimate) of(query *vector) {
	low, high := int32(query[0]), int32(query[0])
	for _, x := range query {
		low, high = min(low, int32(x)), max(high, int32(x))
	}
	const top = 1<<planes - 1
	step := max(1, (high-low+top-1)/top)
	*e = estimate{}
	total := 0
	for i, x := range query {
		value := (int32(x) - low + step/2) / step
		total += int(value)
		for p := range e.planes {
			e.planes[p][i/64] |= uint64(value>>p&1) << (i % 64)
		}
	}
	const scale = unit * signLength
	e.low, e.step = float64(low)/scale, float64(step)/scale
	e.sum = cache.Dim*e.low + float64(total)*e.step
}

// signLength is the length of a vector of signs; the dot product of a vector
// with its own signs is signShare of that on average, and deviates from it by
// signSpread (those of a random vector of length 1).
var (
	signShare  = math.Sqrt(2 / math.Pi)
	signSpread = math.Sqrt((1 - 2/math.Pi) / cache.Dim)
)

const signLength = 22.627416997969522 // sqrt(cache.Dim)

// similarity returns the dot product with the signs of a slot's vector, as if
// they were a vector of length 1.
func (e *estimate) similarity(c *chunk, slot int) float64 {
	at := slot/lanes*blockWords + slot%lanes
	negative, sum := 0, 0
	for w := range len(sketch{}) {
		half := c.near
		if w >= halfWords {
			half = c.far
		}
		word := half[at+w%halfWords*lanes]
		negative += bits.OnesCount64(word)
		sum += bits.OnesCount64(word&e.planes[0][w]) + 2*bits.OnesCount64(word&e.planes[1][w]) +
			4*bits.OnesCount64(word&e.planes[2][w]) + 8*bits.OnesCount64(word&e.planes[3][w])
	}
	return e.sum - 2*(e.low*float64(negative)+e.step*float64(sum))
}

// leastOf returns the estimate below which hardly any vector is so similar: what
// it is on average less margin deviations, of the signs' share and of what the
// query has besides the vector.
func leastOf(similarity float64) float64 {
	rest := (1 - similarity*similarity) * (1 - signShare*signShare) / (cache.Dim - 1)
	return similarity*signShare - margin*math.Sqrt(rest+similarity*similarity*signSpread*signSpread)
}
