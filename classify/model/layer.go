// Layer: the dense layers and convolutions of nets outside of this package, as the tagger's.

package model

// Layer is an int8 dense layer, or a convolution over rows that follow each other. Read-only.
type Layer struct{ linear linear }

// Apply computes dst = x W^T + b for rows rows, with a ReLU on the first so many outputs, a multiple
// of 64 or all. x is [rows][in], dst [rows][out]; at most RowBlock rows are quantised at a time.
func (l *Layer) Apply(dst, x []float32, rows, relu int, s *Scratch) {
	l.linear.applyReLU(dst, x, rows, relu, s)
}

// RowBlock is the number of rows that Apply quantises at a time: more at once gain nothing.
const RowBlock = rowBlock

// Convolve computes dst = x + ReLU(l over x) for rows rows of as many values as l has outputs. l sees
// width rows, the same number on both sides, each dilation rows from the next; beyond the first and the
// last lie zeros. scale is memory of a value for each row.
func (l *Layer) Convolve(dst, x []float32, rows, width, dilation int, scale []float32, s *Scratch) {
	size := l.linear.out
	pad := width / 2 * dilation
	q := s.activations((rows + 2*pad) * size)
	q.clear(0, pad*size)
	q.clear((pad+rows)*size, pad*size)
	step := q.fill(pad*size, x[:rows*size])
	scale = scale[:rows]
	for i := range scale {
		scale[i] = step
	}
	s.job = job{
		x: q, scale: scale, taps: width, seg: size, rowStride: size, tapStride: dilation * size,
		dst: dst, dstStride: size, res: x, resStride: size, relu: size,
	}
	l.linear.run(&s.job, rows, s)
}
