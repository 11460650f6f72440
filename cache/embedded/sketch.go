// Sketches: embeddings in a few bits, so that a scan touches little memory.

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

// quantise stores the rotated embedding in v. It returns false for an embedding of length 0,
// infinity or NaN. The file's format depends on what it does.
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
	if !(norm > 1e-20 && norm < 1e20) { // also false for NaN
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

// signs are the signs of the rotation: three rounds of flipped signs and a Hadamard transform act
// like a random rotation (Andoni et al., Practical and Optimal LSH for Angular Distance, 2015).
// Without it the bits of a sketch are correlated, and the distance of two sketches says less. The
// signs come from splitmix64 with seed 1.
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

// transform is the Walsh-Hadamard transform, without scaling: it multiplies the length of x by
// sqrt(len(x)). It does three of the nine steps at a time, in registers: that takes a third of
// the time of single steps, with the same additions.
func transform(x *[cache.Dim]float32) {
	for at := 0; at < len(x); at += 8 {
		transform8(x, at, 1)
	}
	for at := 0; at < len(x); at += 64 {
		for k := range 8 {
			transform8(x, at+k, 8)
		}
	}
	for k := range 64 {
		transform8(x, k, 64)
	}
}

// transform8 transforms the 8 values from at on that lie a stride apart.
func transform8(x *[cache.Dim]float32, at, stride int) {
	const mask = cache.Dim - 1 // tells the compiler that no index is out of range
	i0, i1, i2, i3 := at&mask, (at+stride)&mask, (at+2*stride)&mask, (at+3*stride)&mask
	i4, i5, i6, i7 := (at+4*stride)&mask, (at+5*stride)&mask, (at+6*stride)&mask, (at+7*stride)&mask
	a0, a1, a2, a3 := x[i0]+x[i1], x[i0]-x[i1], x[i2]+x[i3], x[i2]-x[i3]
	a4, a5, a6, a7 := x[i4]+x[i5], x[i4]-x[i5], x[i6]+x[i7], x[i6]-x[i7]
	b0, b1, b2, b3 := a0+a2, a1+a3, a0-a2, a1-a3
	b4, b5, b6, b7 := a4+a6, a5+a7, a4-a6, a5-a7
	x[i0], x[i1], x[i2], x[i3] = b0+b4, b1+b5, b2+b6, b3+b7
	x[i4], x[i5], x[i6], x[i7] = b0-b4, b1-b5, b2-b6, b3-b7
}
