// What the dense layers in assembly are called with.

package model

import "math"

// args is a job for one block of outputs, as the assembly reads it. Strides are in bytes. The
// pointers go into slices that run has checked.
type args struct {
	x         *byte    // activations of the first row
	w         *int8    // weights of the first output
	dst       *float32 // of the first row and output
	res       *float32 // likewise; noResidual if nothing is added
	scale     *float32 // of the outputs
	bias      *float32
	zero      *int32
	rowScale  *float32
	taps      int
	steps     int // of 4 inputs, in each tap
	tapStride int
	rowStride int
	dstStride int
	resStride int
	lowest    float32 // 0 for a ReLU, else minus infinity
	ahead     *int8   // weights that blockVNNI brings nearer, a line a step
	blocks    int     // of rows that blockVNNI computes
}

// newArgs describes the rows from r on and the outputs from tile+shift on.
func newArgs(l *linear, j *job, tile, shift, r int) (a args) {
	first := tile + shift
	a = args{
		x: &j.x.data[r*j.rowStride*j.x.width], w: &l.w[tile*l.pitch+4*shift],
		dst: &j.dst[r*j.dstStride+first-j.first], res: &noResidual[0],
		scale: &l.scale[first], bias: &l.bias[first], zero: &l.zero[first], rowScale: &j.scale[r],
		taps: j.taps, steps: j.seg / 4, tapStride: j.tapStride * j.x.width, rowStride: j.rowStride * j.x.width,
		dstStride: j.dstStride * 4, lowest: float32(math.Inf(-1)),
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
	for ; n > 0; n -= quarters {
		a := newArgs(l, j, tile, 0, r)
		a.ahead, a.blocks = &l.after(tile)[0], min(n, quarters)
		blockVNNI(&a)
		r += quarters * vnniRows
	}
}

// after returns the weights that are multiplied after the tile's, as many as that has; its own if those
// are not known.
func (l *linear) after(tile int) []int8 {
	whole := tileOut * l.in
	if at := (tile + tileOut) * l.pitch; at+whole <= len(l.w) {
		return l.w[at:][:whole]
	}
	if len(l.next) >= whole {
		return l.next[:whole]
	}
	return l.w[tile*l.pitch:][:whole]
}

// convArgs is a job for a block of pairs and 64 outputs.
type convArgs struct {
	x         *byte // blends of the first pair
	w         *int8
	dst       *float32 // of the first token
	res       *float32
	scale     *float32 // of the outputs
	bias      *float32
	rowScale  *float32   // of all
	zero      [2]*int32  // what is added to the sums of the first and the second tokens
	steps     [kinds]int // of 4 blends, of each kind
	rowStride int
	dstStride int // of pairs
	resStride int
	ahead     *int8   // weights that are brought nearer, a line a step
	lowest    float32 // 0 for a ReLU, else minus infinity
}

// newConvArgs describes the outputs from tile on.
func newConvArgs(c *conv, j *job, tile int) convArgs {
	a := convArgs{
		w: &c.all.w[tile*c.all.in], scale: &c.all.scale[tile], bias: &c.all.bias[tile], rowScale: &j.scale[0],
		zero:      [2]*int32{&c.zero[0][tile], &c.zero[1][tile]},
		rowStride: c.all.in * j.x.width, dstStride: j.dstStride * 8, resStride: j.resStride * 8, lowest: float32(math.Inf(-1)),
	}
	if tile < j.relu {
		a.lowest = 0
	}
	for k := range a.steps {
		a.steps[k] = c.kinds[k].in / 4
	}
	return a
}

// sumArgs is a job for 4 rows and 8 outputs.
type sumArgs struct {
	x         *byte
	w         *int8
	out       *int32 // rows of 64
	steps     int    // of 4 inputs
	rowStride int
}
