// The inner loops in plain Go: the form that every machine has, and the one the others are held to.

package model

import "math"

var plainForm = form{
	name: "go", width: 1, rows: 4,
	blocks: func(l *linear, j *job, tile, r, n int) {
		for i := r; i < r+4*n; i++ {
			singlePlain(l, j, tile, i)
		}
	},
	single:    singlePlain,
	conv:      convBySums(1, sumPlain),
	blend:     blendPlain,
	maxAbs:    maxAbsPlain,
	round:     roundPlain,
	moments:   momentsPlain,
	addScaled: addScaledPlain,
	normalise: normalisePlain,
	gather:    gatherPlain,
	fix:       fixPlain,
	tanh:      tanhPlain,
	gelu:      geluPlain,
	exp:       expPlain,
	decode:    decodePlain,
	widen:     widenPlain,
}

func singlePlain(l *linear, j *job, tile, r int) {
	acc := *(*[tileOut]int32)(l.zero[tile:])
	w := l.w[tile*l.pitch:]
	for t := range j.taps {
		addPlain(&acc, j.x.data[r*j.rowStride+t*j.tapStride:][:j.seg], w)
		w = w[j.seg*tileOut:]
	}
	finishPlain(&acc, l, j, tile, r)
}

// addPlain adds the products of x with the weights of a tile.
func addPlain(acc *[tileOut]int32, x []byte, w []int8) {
	for ; len(x) >= 4; x = x[4:] {
		x0, x1, x2, x3 := int32(int8(x[0])), int32(int8(x[1])), int32(int8(x[2])), int32(int8(x[3]))
		step := (*[4 * tileOut]int8)(w)
		for o := range acc {
			acc[o] += x0*int32(step[4*o]) + x1*int32(step[4*o+1]) + x2*int32(step[4*o+2]) + x3*int32(step[4*o+3])
		}
		w = w[4*tileOut:]
	}
}

func sumPlain(acc *accumulators, l *linear, x quantised, _, tile int) {
	acc[0] = [tileOut]int32{}
	addPlain(&acc[0], x.data[:l.in], l.w[tile*l.pitch:])
}

// finishPlain turns 64 sums into floats: bias, ReLU and what is added.
func finishPlain(acc *[tileOut]int32, l *linear, j *job, tile, r int) {
	dst := (*[tileOut]float32)(j.dst[r*j.dstStride+tile-j.first:])
	scale, bias := (*[tileOut]float32)(l.scale[tile:]), (*[tileOut]float32)(l.bias[tile:])
	res := &noResidual
	if j.res != nil {
		res = (*[tileOut]float32)(j.res[r*j.resStride+tile:])
	}
	sx := j.scale[r]
	for o, sum := range acc {
		v := float32(float32(float32(sum)*sx)*scale[o]) + bias[o]
		if tile < j.relu {
			v = max(v, 0)
		}
		dst[o] = v + res[o]
	}
}

// noResidual is added where nothing is: one way for both cases, and both give the same zeros.
var noResidual [tileOut]float32

func maxAbsPlain(x []float32) float32 {
	var top uint32 // absolute floats order as their bits do
	for _, v := range x {
		top = max(top, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(top)
}

// roundMagic brings a float's integer part into its low bits, rounded half to even, for values
// within +-2^22.
const roundMagic = 3 << 22

func roundPlain(dst []byte, x []float32, inv float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = byte(math.Float32bits(float32(v*inv) + roundMagic))
	}
}

func blendPlain(b *blending) {
	for r := range b.rows {
		dst := b.dst.from(r * b.dstStride).data[:b.seg]
		of, with := b.of[r*b.stride:][:len(dst)], b.with[r*b.stride:][:len(dst)]
		for i := range dst {
			v := float32((of[i] + float32(b.sign*with[i])) * b.inv)
			n := int32(math.Float32bits(v+roundMagic) - math.Float32bits(roundMagic))
			dst[i] = byte(min(max(n, math.MinInt8), math.MaxInt8))
		}
	}
}

func momentsPlain(x []float32) (sum, squares float32) {
	var a, b [16]float32
	for ; len(x) >= 16; x = x[16:] {
		for i, v := range (*[16]float32)(x) {
			a[i] += v
			b[i] += float32(v * v)
		}
	}
	return fold(&a), fold(&b)
}

// fold adds 16 partial sums pairwise, halves first.
func fold(a *[16]float32) float32 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			a[i] += a[i+n]
		}
	}
	return a[0]
}

func addScaledPlain(dst, x []float32, mean, factor float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] += float32((v - mean) * factor)
	}
}

func normalisePlain(x, gain, bias []float32, mean, factor float32) {
	gain, bias = gain[:len(x)], bias[:len(x)]
	for i, v := range x {
		x[i] = float32(float32((v-mean)*factor)*gain[i]) + bias[i]
	}
}

func gatherPlain(dst []float32, bias []int32, of *[2*reachTokens + 1]*spread, _ *spread, step float32) (top float32) {
	own := of[reachTokens][spreadSums:]
	dst, bias, own = dst[:mixDim], bias[:mixDim], own[:mixDim]
	var sums [mixDim]int32
	copy(sums[:], bias)
	for at, segment := range segments {
		add := of[reachTokens-segment.row][at*branchDim:][:branchDim]
		for i, v := range add {
			sums[segment.branch*branchDim+i] += int32(v)
		}
	}
	for i, v := range sums {
		dst[i] = float32(max(v, 0)+int32(own[i])) * step
	}
	return maxAbsPlain(dst)
}

func fixPlain(dst []int16, x []float32, factor float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		v = min(max(float32(v*factor), -math.MaxInt16), math.MaxInt16)
		dst[i] = int16(math.Float32bits(v+roundMagic) - math.Float32bits(roundMagic))
	}
}

// tanhTerms are the range, the numerator's terms, highest first, and the denominator's: the hyperbolic
// tangent to within 5e-7, as a quotient of polynomials fitted on [-7.9, 7.9] (Eigen's ptanh).
var tanhTerms = [...]float32{
	-7.90531110763549805, 7.90531110763549805,
	-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
	1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
	1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03,
}

func tanhPlain(x []float32) {
	for i, v := range x {
		x[i] = rational(v, &tanhTerms)
	}
}

// rational is a quotient of polynomials: v times one of v*v over another, whose terms follow v's range.
func rational(v float32, c *[13]float32) float32 {
	v = min(max(v, c[0]), c[1])
	y := float32(v * v)
	p, q := c[2], c[9]
	for _, term := range c[3:9] {
		p = float32(p*y) + term
	}
	for _, term := range c[10:] {
		q = float32(q*y) + term
	}
	return float32(v*p) / q
}

// geluTerms are the range of x, the numerator's terms, highest first, and the denominator's, of erf(x/sqrt 2)
// to within 6e-7, in the form of tanhTerms and fitted as they are.
var geluTerms = [...]float32{
	-5.4, 5.4,
	2.64892561e-10, -3.74219181e-08, 2.14146728e-06, -2.25935846e-05,
	0.00674682782, 0.0377462385, 0.797886338,
	0.000794663002, 0.0191021283, 0.21398644, 1,
}

func geluPlain(x []float32) {
	for i, v := range x {
		x[i] = float32(float32(rational(v, &geluTerms)+1) * float32(v*0.5))
	}
}

// expTerms are what is left of the smallest exponent, 1/ln 2, ln 2 in two parts of which the first has few
// digits, and the terms of exp on [-ln 2/2, ln 2/2], highest first (Cephes' expf, to within 2e-7 of the value).
var expTerms = [...]float32{
	-87, 1.44269504088896341, 0.693359375, -2.12194440e-4,
	1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1,
}

func expPlain(x []float32, factor float32) (sum float32) {
	c, top := &expTerms, x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sums [16]float32
	for i, v := range x {
		v = max(float32((v-top)*factor), c[0])
		whole := float32(float32(v*c[1])+roundMagic) - roundMagic
		v = v - float32(whole*c[2])
		v = v - float32(whole*c[3])
		p := c[4]
		for _, term := range c[5:] {
			p = float32(p*v) + term
		}
		// 2^whole, by adding to the exponent.
		x[i] = math.Float32frombits(uint32(int32(math.Float32bits(p)) + int32(whole)<<23))
		sums[i%16] += x[i]
	}
	return fold(&sums)
}

func decodePlain(dst []float32, row []byte, code *[16]float32) {
	for ; len(row) >= 16; row = row[16:] {
		low, high := (*[16]float32)(dst), (*[16]float32)(dst[16:])
		for i, c := range (*[16]byte)(row) {
			low[i] = code[c&15]
			high[i] = code[c>>4]
		}
		dst = dst[32:]
	}
}

func widenPlain(dst []float32, row []byte, scale, low float32) {
	dst = dst[:len(row)]
	for i, v := range row {
		dst[i] = float32(float32(v)*scale) + low
	}
}
