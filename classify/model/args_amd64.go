// What the dense layers in assembly are called with.

package model

import "math"

// args is a job for one block of outputs, as the assembly reads it. Strides are in bytes. The
// pointers go into slices that run has checked.
type args struct {
	x          *byte    // activations of the first row
	w          *int8    // weights of the first output
	dst        *float32 // of the first row and output
	res        *float32 // likewise; noResidual if nothing is added
	scale      *float32 // of the outputs
	bias       *float32
	zero       *int32
	rowScale   *float32
	taps       int
	steps      int // of 4 inputs, in each tap
	tapStride  int
	rowStride  int
	dstStride  int
	resStride  int
	lowest     float32 // 0 for a ReLU, else minus infinity
	stepStride int     // bytes from one step's weights to the next
	ahead      *int8   // weights that blockVNNI brings nearer, a line a step
	blocks     int     // of rows that blockVNNI computes
}

// newArgs describes the rows from r on and the outputs from tile+shift on.
func newArgs(l *linear, j *job, tile, shift, r int) (a args) {
	first := tile + shift
	a = args{
		x: &j.x.data[r*j.rowStride*j.x.width], w: &l.w[tile*l.pitch+4*shift],
		dst: &j.dst[r*j.dstStride+first-j.first], res: &noResidual[0],
		scale: &l.scale[first], bias: &l.bias[first], zero: &l.zero[first], rowScale: &j.scale[r],
		taps: j.taps, steps: j.seg / 4, tapStride: j.tapStride * j.x.width, rowStride: j.rowStride * j.x.width,
		dstStride: j.dstStride * 4, lowest: float32(math.Inf(-1)), stepStride: 4 * tileOut,
	}
	if j.res != nil {
		a.res, a.resStride = &j.res[r*j.resStride+first], j.resStride*4
	}
	if tile < j.relu {
		a.lowest = 0
	}
	return a
}

// blocksVNNI computes n blocks of rows. The blocks of a tile bring the next one into the second cache, a
// quarter each: a step that multiplies for 12 cycles reads 256 bytes of weights.
func blocksVNNI(l *linear, j *job, tile, r, n int) {
	const quarters = 4
	next, whole := l.next, tileOut*l.in
	if at := (tile + tileOut) * l.pitch; at+whole <= len(l.w) {
		next = l.w[at:]
	}
	for ; n > 0; n -= quarters {
		a := newArgs(l, j, tile, 0, r)
		if a.ahead, a.blocks = a.w, min(n, quarters); len(next) >= whole {
			a.ahead = &next[0]
		}
		blockVNNI(&a)
		r += quarters * vnniRows
	}
}
