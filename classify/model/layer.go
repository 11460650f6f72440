// Layer: the dense layers and convolutions of nets outside of this package, as the tagger's and those of
// classify/encoder.

package model

import (
	"fmt"
	"slices"
)

// Layer is an int8 dense layer, or a convolution over rows that follow each other. Read-only.
type Layer struct {
	linear linear
	// The inputs that are rounded apart from the others, with a scale of their own, and their weights. Where a few
	// inputs are far larger than the rest, as always the same ones are in trained transformers
	// (https://arxiv.org/abs/2208.07339), one scale for all leaves the rest too few steps.
	far   []int32
	apart linear
}

// Apply computes dst = x W^T + b for rows rows, with a ReLU on the first so many outputs, a multiple
// of 64 or all. x is [rows][in], dst [rows][out]; at most RowBlock rows are quantised at a time.
func (l *Layer) Apply(dst, x []float32, rows, relu int, s *Scratch) {
	l.linear.applyReLU(dst, x, rows, relu, s)
}

// A Rows is rows of values that lie Stride apart, as a head's in a matrix of all heads have it.
type Rows struct {
	Values []float32
	Stride int
}

// From returns the rows from row on.
func (r Rows) From(row int) Rows { return Rows{r.Values[row*r.Stride:], r.Stride} }

// ApplyRows computes dst = x W^T + b + add for rows rows. add may be without values, and must not overlap
// dst; at most RowBlock rows are quantised at a time.
func (l *Layer) ApplyRows(dst, x, add Rows, rows int, s *Scratch) {
	in := l.linear.in
	for rows > 0 {
		n, from := min(rows, rowBlock), add
		if l.far != nil {
			from = l.applyFar(x, add, n, s)
		}
		q := s.activations(n * in)
		for r := range n {
			s.rowScale[r] = q.fill(r*in, l.near(x.Values[r*x.Stride:][:in], s))
		}
		s.job = job{
			x: q, scale: s.rowScale[:n], taps: 1, seg: in, rowStride: in,
			dst: dst.Values, dstStride: dst.Stride, res: from.Values, resStride: from.Stride,
		}
		l.linear.run(&s.job, n, s)
		if rows -= n; rows == 0 {
			return
		}
		dst, x = dst.From(n), x.From(n)
		if add.Values != nil {
			add = add.From(n)
		}
	}
}

// Set makes l the layer of the weights w, a row of in values for each of out outputs, without bias. Each row
// is rounded to 8 bits by its largest value. in must be a multiple of 4. The memory of l is used again.
func (l *Layer) Set(w Rows, in, out int, s *Scratch) {
	l.far = nil
	l.linear.set(w, in, out, s)
}

// SetApart is Set with some inputs, at most Apart of them, rounded apart from the others.
func (l *Layer) SetApart(w Rows, in, out int, far []int32, s *Scratch) {
	var few [Apart]float32
	columns, rest := make([]float32, 0, out*Apart), make([]float32, 0, out*in)
	for o := range out {
		row := w.Values[o*w.Stride:][:in]
		rest = append(rest, row...)
		clear(few[:])
		for i, at := range far {
			few[i], rest[o*in+int(at)] = row[at], 0
		}
		columns = append(columns, few[:]...)
	}
	l.far = slices.Clone(far)
	l.linear.set(Rows{rest, in}, in, out, s)
	l.apart.set(Rows{columns, Apart}, Apart, out, s)
}

// Apart is how many inputs of a layer can be rounded apart.
const Apart = 8

// applyFar computes what the far inputs of some rows give, and adds add. The result is valid until the next call.
func (l *Layer) applyFar(x, add Rows, rows int, s *Scratch) Rows {
	q, out := s.activations(rows*Apart), l.linear.out
	for r := range rows {
		for i, at := range l.far {
			s.farRow[i] = x.Values[r*x.Stride+int(at)]
		}
		s.rowScale[r] = q.fill(r*Apart, s.farRow[:])
	}
	s.farSums = sized(s.farSums, rowBlock*out)
	s.job = job{
		x: q, scale: s.rowScale[:rows], taps: 1, seg: Apart, rowStride: Apart,
		dst: s.farSums, dstStride: out, res: add.Values, resStride: add.Stride,
	}
	l.apart.run(&s.job, rows, s)
	return Rows{s.farSums, out}
}

// ApplyFine computes dst = x W^T + b for rows rows with inputs of 15 bits, none larger than top: what is left of them
// after rounding to 8 bits goes through the layer once more. The number of inputs is a multiple of 16.
func (l *Layer) ApplyFine(dst, x Rows, top float32, rows int, s *Scratch) {
	in, out := l.linear.in, l.linear.out
	s.farSums, s.nearRow = sized(s.farSums, rowBlock*out), sized(s.nearRow, in)
	scale, inv := scaleOf(top)
	fine, fineInv := scaleOf(scale / 2) // rounding leaves no more
	for first := 0; first < rows; first += rowBlock {
		n := min(rowBlock, rows-first)
		q := s.activations(2 * n * in)
		for r := range n {
			row := x.From(first + r).Values[:in]
			q.store(r*in, row, inv)
			q.rest(s.nearRow, row, r*in, scale)
			q.store((n+r)*in, s.nearRow, fineInv)
			s.rowScale[r] = scale
		}
		s.job = job{x: q, scale: s.rowScale[:n], taps: 1, seg: in, rowStride: in, dst: s.farSums, dstStride: out}
		l.linear.run(&s.job, n, s)
		for r := range n {
			s.rowScale[r] = fine
		}
		to := dst.From(first)
		s.job = job{
			x: q.from(n * in), scale: s.rowScale[:n], taps: 1, seg: in, rowStride: in,
			dst: to.Values, dstStride: to.Stride, res: s.farSums, resStride: out,
		}
		l.linear.run(&s.job, n, s)
	}
}

// near is a row without its far inputs.
func (l *Layer) near(x []float32, s *Scratch) []float32 {
	if l.far == nil {
		return x
	}
	s.nearRow = append(s.nearRow[:0], x...)
	for _, at := range l.far {
		s.nearRow[at] = 0
	}
	return s.nearRow
}

// set takes weights, a row of in values for each output, without bias.
func (l *linear) set(w Rows, in, out int, s *Scratch) {
	if in < 4 || in%4 != 0 || out < 1 {
		panic(fmt.Sprintf("BUG: a layer of %d inputs, which must be a multiple of 4, and %d outputs", in, out))
	}
	filled := tilesOf(out) * tileOut
	l.in, l.out, l.pitch = in, out, in
	l.w = sized(l.w, filled*in)
	l.scale, l.bias, l.zero = sized(l.scale, filled), sized(l.bias, filled), sized(l.zero, filled)
	clear(l.bias)
	q := s.activations(in)
	for o := range out {
		l.scale[o] = q.fill(0, w.Values[o*w.Stride:][:in])
		l.put(o, q)
	}
	if kernel.offset != 0 {
		l.setZero()
	}
}

// SetBias adds a bias to a layer that Set has made; there is one value for each output.
func (l *Layer) SetBias(bias []float32) { copy(l.linear.bias[:l.linear.out], bias) }

// put stores activations as the weights of output o.
func (l *linear) put(o int, q quantised) {
	w := l.w[o/tileOut*tileOut*l.pitch+o%tileOut*4:]
	for i := 0; i < l.in; i += 4 {
		step, x := (*[4]int8)(w[i*tileOut:]), q.data[i*q.width:][:4*q.width]
		for k := range step {
			step[k] = int8(x[k*q.width] - byte(kernel.offset))
		}
	}
}

// sized returns n elements, those of s if it has as many. What they hold is not said.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
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
