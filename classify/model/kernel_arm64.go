// The forms of arm64 processors: dot products of bytes (ARMv8.2), plain NEON.

package model

import "golang.org/x/sys/cpu"

// forms returns what this processor can run, the fastest first.
func forms() []*form {
	all := []*form{&neonForm, &plainForm}
	if cpu.ARM64.HasASIMDDP {
		return append([]*form{&sdotForm}, all...)
	}
	return all
}

// sdotForm and neonForm leave the loops over floats to the compiler: they are a small part there.
var (
	sdotForm = neon("sdot", 4, blocksSDOT, singlesSDOT, sumSDOT)
	neonForm = neon("neon", 2, blocksNEON, singlesNEON, sumNEON)
)

// neon is the plain form with dense layers of its own.
func neon(name string, rows int, blocks func(l *linear, j *job, tile, r, n int), single func(l *linear, j *job, tile, r int), sum func(acc *accumulators, l *linear, x quantised, stride, tile int)) form {
	f := plainForm
	f.name, f.rows, f.blocks, f.single, f.conv = name, rows, blocks, single, convBySums(rows, sum)
	return f
}

// sums is what the assembly is called with, and what it gives.
type sums struct {
	x         *byte // activations of the first row
	w         *int8 // weights of the first of 16 outputs
	out       *int32
	taps      int
	steps     int // of 4 inputs, in each tap
	tapStride int // bytes
	rowStride int // bytes
}

// newSums describes the rows from r on and the 16 outputs from tile+first on.
func newSums(l *linear, j *job, tile, first, r int) sums {
	return sums{
		x: &j.x.data[r*j.rowStride], w: &l.w[tile*l.pitch+4*first],
		taps: j.taps, steps: j.seg / 4, tapStride: j.tapStride, rowStride: j.rowStride,
	}
}

// finish stores the outputs of rows rows from r on.
func (acc *accumulators) finish(l *linear, j *job, tile, r, rows int) {
	for i := range rows {
		finishPlain(&acc[i], l, j, tile, r+i)
	}
}

// rowsOf describes the first rows of x, stride apart, and the 16 outputs from tile+first on.
func rowsOf(acc *accumulators, l *linear, x quantised, stride, tile, first int) sums {
	return sums{
		x: &x.data[0], w: &l.w[tile*l.pitch+4*first], out: &acc[0][first],
		taps: 1, steps: l.in / 4, rowStride: stride,
	}
}

func sumSDOT(acc *accumulators, l *linear, x quantised, stride, tile int) {
	for first := 0; first < tileOut; first += 16 {
		a := rowsOf(acc, l, x, stride, tile, first)
		blockSDOT(&a)
	}
}

func sumNEON(acc *accumulators, l *linear, x quantised, stride, tile int) {
	for first := 0; first < tileOut; first += 16 {
		a := rowsOf(acc, l, x, stride, tile, first)
		blockNEON(&a)
	}
}

// These functions call the assembly directly: through a variable, what they pass would be moved
// to the heap.

func blocksSDOT(l *linear, j *job, tile, r, n int) {
	var acc accumulators
	for ; n > 0; n-- {
		for first := 0; first < tileOut; first += 16 {
			a := newSums(l, j, tile, first, r)
			a.out = &acc[0][first]
			blockSDOT(&a)
		}
		acc.finish(l, j, tile, r, 4)
		r += 4
	}
}

func singlesSDOT(l *linear, j *job, tile, r int) {
	var acc accumulators
	for first := 0; first < tileOut; first += 16 {
		a := newSums(l, j, tile, first, r)
		a.out = &acc[0][first]
		singleSDOT(&a)
	}
	acc.finish(l, j, tile, r, 1)
}

func blocksNEON(l *linear, j *job, tile, r, n int) {
	var acc accumulators
	for ; n > 0; n-- {
		for first := 0; first < tileOut; first += 16 {
			a := newSums(l, j, tile, first, r)
			a.out = &acc[0][first]
			blockNEON(&a)
		}
		acc.finish(l, j, tile, r, 2)
		r += 2
	}
}

func singlesNEON(l *linear, j *job, tile, r int) {
	var acc accumulators
	for first := 0; first < tileOut; first += 16 {
		a := newSums(l, j, tile, first, r)
		a.out = &acc[0][first]
		singleNEON(&a)
	}
	acc.finish(l, j, tile, r, 1)
}

// The block functions sum up 4 (SDOT) or 2 (NEON) rows, a row of sums each 256 bytes.

//go:noescape
func blockSDOT(a *sums)

//go:noescape
func singleSDOT(a *sums)

//go:noescape
func blockNEON(a *sums)

//go:noescape
func singleNEON(a *sums)
