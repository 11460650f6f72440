// Sketches: embeddings in few bits, so that a scan touches little memory.

package embedded

import (
	"encoding/binary"
	"math"

	"kvasir/cache"
)

// A vector is an embedding of length 1, rotated, in 16-bit fixed point: value *
// unit. A dot product of two of them, and each part of its sum, stays within an
// int32, because none is larger than the product of the lengths.
type vector [cache.Dim]int16

const (
	unit   = 32767
	square = unit * unit // the dot product of a vector with itself
)

// A sketch has one bit for each value of a vector: whether it is negative. Two
// sketches differ in angle/pi of their bits on average.
type sketch [cache.Dim / 64]uint64

// quantise stores the rotated embedding in v, and says whether there is one:
// false for a vector without a length. What it does belongs to the format of
// the file.
func (v *vector) quantise(embedding *[cache.Dim]float32) bool {
	x := *embedding
	for i := range signs {
		flip(&x, &signs[i])
		transform(&x)
	}
	var norm float64
	for _, f := range x {
		norm += float64(f) * float64(f)
	}
	scale := unit / math.Sqrt(norm)
	if !(norm > 1e-20 && norm < 1e20) { // a NaN is neither
		return false
	}
	for i, f := range x {
		v[i] = int16(math.RoundToEven(float64(f) * scale))
	}
	return true
}

// sketch returns the signs of v.
func (v *vector) sketch() (s sketch) {
	for i := range s {
		var word uint64
		for k, x := range (*[64]int16)(v[64*i:]) {
			word |= uint64(uint16(x)>>15) << k
		}
		s[i] = word
	}
	return s
}

// append writes the values, little endian.
func (v *vector) append(dst []byte) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(x))
	}
	return dst
}

// read is the reverse of append. len(data) is vectorBytes.
func (v *vector) read(data []byte) {
	for i := range v {
		v[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
}

const vectorBytes = 2 * cache.Dim

// signs of the rotation: three rounds of flipped signs and a Hadamard transform
// act like a random rotation (Andoni et al., Practical and Optimal LSH for
// Angular Distance, 2015). Without it the bits of a sketch hang together, and
// the distance of two says less. They are those of splitmix64 from 1 on.
var signs = func() (s [3]sketch) {
	state := uint64(1)
	for i := range s {
		for k := range s[i] {
			state += 0x9e3779b97f4a7c15
			z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			s[i][k] = z ^ z>>31
		}
	}
	return s
}()

func flip(x *[cache.Dim]float32, s *sketch) {
	for i, word := range s {
		part := (*[64]float32)(x[64*i:])
		for k := range part {
			bits := math.Float32bits(part[k]) ^ uint32(word>>k)<<31
			part[k] = math.Float32frombits(bits)
		}
	}
}

// transform is the Walsh-Hadamard transform; it makes x longer by sqrt(len(x)).
func transform(x *[cache.Dim]float32) {
	for half := 1; half < len(x); half *= 2 {
		for i := 0; i < len(x); i += 2 * half {
			a, b := x[i:i+half], x[i+half:i+2*half]
			for k := range a {
				a[k], b[k] = a[k]+b[k], a[k]-b[k]
			}
		}
	}
}

// margin is how many standard deviations more than expected an entry may seem to
// be away until it is passed over. Of the entries whose similarity is just the
// floor of the search, each of three bounds misses 1 of 740 (the tail of the
// normal distribution); of those above it far fewer: at a floor of 0.55, an entry
// of similarity 0.7 is 6 deviations and more within.
const margin = 3

// A bounds says how many bits of a sketch, and of its first half, may differ.
type bounds struct{ half, whole uint64 }

// boundsOf returns the bounds for entries that are at least so similar.
func boundsOf(similarity float64) bounds {
	p := math.Acos(max(-1, min(similarity, 1))) / math.Pi
	bound := func(bits float64) uint64 {
		return uint64(bits*p + margin*math.Sqrt(bits*p*(1-p)) + slack)
	}
	return bounds{bound(cache.Dim / 2), bound(cache.Dim)}
}

// slack bits more, because near similarity 1 the deviation goes to 0, but values
// around 0 that were rounded change their sign nevertheless.
const slack = 4
