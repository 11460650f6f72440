package encoder

import (
	"math"
	"slices"

	"kvasir/classify/model"
)

// inFloats is the slow, obvious twin of inInt8.
var inFloats = arithmetic{
	name:  "floats",
	dense: func() dense { return new(floatDense) },
	table: func(rows, width int) table { return &floatTable{make([]float32, rows*width), width} },
	norm: func(x, gain, bias []float32, epsilon float32) {
		var mean, variance float64
		for _, v := range x {
			mean += float64(v) / float64(len(x))
		}
		for _, v := range x {
			variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
		}
		for i, v := range x {
			x[i] = float32((float64(v)-mean)/math.Sqrt(variance+float64(epsilon)))*gain[i] + bias[i]
		}
	},
	gelu: func(x []float32) {
		for i, v := range x {
			x[i] = float32(float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)) / 2)
		}
	},
	tanh: func(x []float32) {
		for i, v := range x {
			x[i] = float32(math.Tanh(float64(v)))
		}
	},
	softmax: func(x []float32, factor float32) (sum float32) {
		top := slices.Max(x)
		for i, v := range x {
			x[i] = float32(math.Exp(float64((v - top) * factor)))
			sum += x[i]
		}
		return sum
	},
}

type floatDense struct {
	w, bias []float32
	in, out int
}

func (d *floatDense) load(w, bias []float32, in, out int) {
	d.w, d.bias, d.in, d.out = w, bias, in, out
}

func (d *floatDense) set(w model.Rows, in, out int, _ *model.Scratch) {
	d.w, d.bias, d.in, d.out = nil, nil, in, out
	for o := range out {
		d.w = append(d.w, w.From(o).Values[:in]...)
	}
}

func (d *floatDense) apply(dst, x, add model.Rows, rows int, _ *model.Scratch) {
	for r := range rows {
		for o := range d.out {
			sum := 0.0
			for i, v := range x.From(r).Values[:d.in] {
				sum += float64(v) * float64(d.w[o*d.in+i])
			}
			if d.bias != nil {
				sum += float64(d.bias[o])
			}
			if add.Values != nil {
				sum += float64(add.From(r).Values[o])
			}
			dst.From(r).Values[o] = float32(sum)
		}
	}
}

func (d *floatDense) applyFine(dst, x model.Rows, _ float32, rows int, s *model.Scratch) {
	d.apply(dst, x, model.Rows{}, rows, s)
}

type floatTable struct {
	values []float32
	width  int
}

func (t *floatTable) set(row int, values []float32) { copy(t.values[row*t.width:], values) }
func (t *floatTable) row(dst []float32, row int)    { copy(dst, t.values[row*t.width:][:t.width]) }
func (t *floatTable) add(dst []float32, row int) {
	for i, v := range t.values[row*t.width:][:t.width] {
		dst[i] += v
	}
}
