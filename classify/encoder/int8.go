// Sums in 8 bits: what serving computes with.

package encoder

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kvasir/classify/model"
)

// inInt8 computes with weights of 8 bits, a scale for each output, and activations of 8 bits, a scale for each
// token; sums are exact. All forms of the kernels give the same bits.
var inInt8 = arithmetic{
	name:    "int8",
	dense:   func() dense { return new(int8Dense) },
	table:   newInt8Table,
	norm:    model.Norm,
	gelu:    model.GELU,
	tanh:    model.Tanh,
	softmax: model.Exp,
}

// int8Dense rounds the weights that it has loaded when it is first applied, by what goes in then: Open applies each
// layer to the tokens of sample, so that it is known which inputs are far larger than the others.
type int8Dense struct {
	layer   model.Layer
	w, bias []float32 // until then
	in, out int
}

func (d *int8Dense) load(w, bias []float32, in, out int) {
	d.w, d.bias, d.in, d.out = w, bias, in, out
}

func (d *int8Dense) set(w model.Rows, in, out int, s *model.Scratch) { d.layer.Set(w, in, out, s) }

func (d *int8Dense) apply(dst, x, add model.Rows, rows int, s *model.Scratch) {
	if d.w != nil {
		d.round(x, rows, s)
	}
	d.layer.ApplyRows(dst, x, add, rows, s)
}

func (d *int8Dense) applyFine(dst, x model.Rows, top float32, rows int, s *model.Scratch) {
	d.layer.ApplyFine(dst, x, top, rows, s)
}

func (d *int8Dense) round(x model.Rows, rows int, s *model.Scratch) {
	w := model.Rows{Values: d.w, Stride: d.in}
	if far := farInputs(x, d.in, rows); far != nil {
		d.layer.SetApart(w, d.in, d.out, far, s)
	} else {
		d.layer.Set(w, d.in, d.out, s)
	}
	if d.bias != nil {
		d.layer.SetBias(d.bias)
	}
	d.w, d.bias = nil, nil
}

// farAbove is how many times as large as all others the largest input must be for some to be rounded apart.
const farAbove = 2

// farInputs are the largest inputs; nil: they are not that much larger than the others.
//
// In MiniLM-L6 some are thirty times as large. With 8 of them apart the embeddings of ordinary sentences have a cosine
// of 0.9991 to 0.9995 with those of floats, and 0.991 to 0.998 without; 16 to 64 gain no more.
func farInputs(x model.Rows, in, rows int) (far []int32) {
	tops := make([]float32, in)
	for r := range rows {
		for i, v := range x.From(r).Values[:in] {
			tops[i] = max(tops[i], v, -v)
		}
	}
	order := make([]int32, in)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(tops[b], tops[a]) })
	if in <= 2*model.Apart || tops[order[0]] < farAbove*tops[order[model.Apart]] {
		return nil
	}
	return order[:model.Apart]
}

// A table holds the rows of tokens, places or types.
type table interface {
	set(row int, values []float32)
	row(dst []float32, row int) // stores a row
	add(dst []float32, row int) // adds it
}

// int8Table rounds each tableBlock values of a row by their largest.
type int8Table struct {
	values []int8
	scale  []float32
	width  int
}

const tableBlock = 32

func newInt8Table(rows, width int) table {
	return &int8Table{make([]int8, rows*width), make([]float32, rows*blocksOf(width)), width}
}

func blocksOf(width int) int { return (width + tableBlock - 1) / tableBlock }

func (t *int8Table) set(row int, values []float32) {
	if len(values) != t.width {
		panic(fmt.Sprintf("BUG: a row of %d values for a table of %d", len(values), t.width))
	}
	for i := 0; i < t.width; i += tableBlock {
		block := values[i:min(i+tableBlock, t.width)]
		var top float32
		for _, v := range block {
			top = max(top, v, -v)
		}
		t.scale[row*blocksOf(t.width)+i/tableBlock] = top / 127
		if top == 0 {
			continue
		}
		for k, v := range block {
			t.values[row*t.width+i+k] = int8(math.RoundToEven(float64(v) / float64(top) * 127))
		}
	}
}

func (t *int8Table) row(dst []float32, row int) {
	clear(dst[:t.width])
	t.add(dst, row)
}

func (t *int8Table) add(dst []float32, row int) {
	values := t.values[row*t.width:][:t.width]
	for i := 0; i < t.width; i += tableBlock {
		scale := t.scale[row*blocksOf(t.width)+i/tableBlock]
		to := dst[i:min(i+tableBlock, t.width)]
		for k := range to {
			to[k] += float32(float32(values[i+k]) * scale)
		}
	}
}

// packedTable reads rows of four bits where they lie in the file (model.Packed4), which takes no memory.
type packedTable struct {
	bytes, scales []byte
	width         int
}

func (t *packedTable) set(int, []float32) { panic("BUG: a packed table is read where it lies") }

func (t *packedTable) row(dst []float32, row int) {
	clear(dst[:t.width])
	t.add(dst, row)
}

func (t *packedTable) add(dst []float32, row int) {
	var block [model.PackedBlock]float32
	for i := 0; i < t.width; i += model.PackedBlock {
		at := (row*t.width + i) / model.PackedBlock
		model.Unpack4(&block, (*[model.PackedBlock / 2]byte)(t.bytes[at*model.PackedBlock/2:]), [2]byte(t.scales[2*at:]))
		for k, v := range block {
			dst[i+k] += v
		}
	}
}
