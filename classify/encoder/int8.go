// Sums in 8 bits: what serving computes with.

package encoder

import (
	"fmt"
	"math"

	"kvasir/classify/model"
)

// inInt8 computes with weights of 8 bits, a scale for each output, and activations of 8 bits, a scale for each
// token; sums are exact. All forms of the kernels give the same bits.
var inInt8 = rooms{
	dense:   func() dense { return new(int8Dense) },
	table:   func(rows, width int) table { return &int8Table{make([]int8, rows*width), make([]float32, rows), width} },
	norm:    model.Norm,
	gelu:    model.GELU,
	tanh:    model.Tanh,
	softmax: model.Exp,
}

type int8Dense struct{ layer model.Layer }

func (d *int8Dense) set(w model.Rows, bias []float32, in, out int, s *model.Scratch) {
	d.layer.Set(w, in, out, s)
	if bias != nil {
		d.layer.SetBias(bias)
	}
}

func (d *int8Dense) apply(dst, x, add model.Rows, rows int, s *model.Scratch) {
	d.layer.ApplyRows(dst, x, add, rows, s)
}

// A table holds the rows of tokens, places or types.
type table interface {
	set(row int, values []float32)
	row(dst []float32, row int) // stores a row
	add(dst []float32, row int) // adds it
}

// int8Table rounds each row by its largest value.
type int8Table struct {
	values []int8
	scale  []float32
	width  int
}

func (t *int8Table) set(row int, values []float32) {
	if len(values) != t.width {
		panic(fmt.Sprintf("BUG: a row of %d values for a table of %d", len(values), t.width))
	}
	var top float32
	for _, v := range values {
		top = max(top, v, -v)
	}
	t.scale[row] = top / 127
	if top == 0 {
		return
	}
	for i, v := range values {
		t.values[row*t.width+i] = int8(math.RoundToEven(float64(v) / float64(top) * 127))
	}
}

func (t *int8Table) row(dst []float32, row int) {
	scale := t.scale[row]
	for i, v := range t.values[row*t.width:][:t.width] {
		dst[i] = float32(v) * scale
	}
}

func (t *int8Table) add(dst []float32, row int) {
	scale := t.scale[row]
	for i, v := range t.values[row*t.width:][:t.width] {
		dst[i] += float32(float32(v) * scale)
	}
}
