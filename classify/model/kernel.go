// The forms of the inner loops, and the choice among them.

package model

// form is one way to compute the inner loops. All forms give the same bits: int32 sums are exact,
// float operations are the same and in the same order (16 partial sums where many are added, no
// fused multiply-add).
type form struct {
	name   string
	width  int   // bytes an activation takes
	offset int32 // added to each activation, so that it is unsigned
	rows   int   // rows of a block

	// blocks computes n blocks of rows from r on for the 64 outputs from tile on, single one row, few a
	// number between; nil: singles do.
	blocks func(l *linear, j *job, tile, r, n int)
	single func(l *linear, j *job, tile, r int)
	few    func(l *linear, j *job, tile, r, rows int)
	// conv computes pairs pairs of neighbours for the 64 outputs from tile on.
	conv func(c *conv, j *job, tile, pairs int, s *Scratch)
	// blend stores a blend of tokens.
	blend func(b *blending)
	// weigh adds up the weights of each output of a tile; nil if offset is 0.
	weigh func(sums *[tileOut]int32, w []int8)
	// maxAbs returns the largest absolute value of x, 0 if x is empty.
	maxAbs func(x []float32) float32
	// round stores round-half-even(x*inv) as activations.
	round func(dst []byte, x []float32, inv float32)
	// moments returns the sum and the sum of squares of x; len(x) is a multiple of 16.
	moments func(x []float32) (sum, squares float32)
	// addScaled adds (x-mean)*factor to dst, element by element; a multiple of 16 again.
	addScaled func(dst, x []float32, mean, factor float32)
	// normalise stores (x-mean)*factor*gain+bias in x; a multiple of 16 again.
	normalise func(x, gain, bias []float32, mean, factor float32)
	// gather stores what comes out of the first layer for a token: of are the spreads of the tokens
	// from two before to two after, bias the biases of all branches in the spreads' fixed point, step
	// what 1 of it is. Exact but for the last product. It returns the largest absolute value; next is
	// a spread that will soon be needed.
	gather func(dst []float32, bias []int32, of *[2*reachTokens + 1]*spread, next *spread, step float32) (top float32)
	// fix stores round-half-even(x*factor), cut off at +-32767.
	fix func(dst []int16, x []float32, factor float32)
	// tanh stores the hyperbolic tangents of x in x.
	tanh func(x []float32)
	// gelu stores x*(1+erf(x/sqrt 2))/2 in x; a multiple of 16 again.
	gelu func(x []float32)
	// exp stores exp((x-largest)*factor) in x, and returns their sum; a multiple of 16 again, not empty.
	exp func(x []float32, factor float32) (sum float32)
	// decode stores the values of a row: code[number], 32 numbers in 16 bytes, of which the low
	// halves are the first 16.
	decode func(dst []float32, row []byte, code *[16]float32)
	// bring has memory brought into the second cache; nil: the processor is left alone.
	bring func(b []byte)
	// widen stores byte*scale+low; a multiple of 16 again.
	widen func(dst []float32, row []byte, scale, low float32)
}

// kernel is the form in use, the fastest that the processor has. Only tests change it.
var kernel = pick(forms())

// pick returns the first form, the fastest.
func pick(all []*form) *form { return all[0] }
