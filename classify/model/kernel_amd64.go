// The forms of x86-64 processors: AVX-512 with VNNI, AVX2.

package model

import "golang.org/x/sys/cpu"

// forms returns what this processor can run, the fastest first.
func forms() []*form {
	var all []*form
	if x := &cpu.X86; x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI {
		all = append(all, &vnniForm)
	}
	if cpu.X86.HasAVX2 {
		all = append(all, &avx2Form)
	}
	return append(all, &plainForm)
}

const (
	vnniRows = 6
	avx2Rows = 4
)

// vnniForm multiplies unsigned activations with signed weights, 64 products an instruction; the
// sums start where the offset of 128 comes out even.
var vnniForm = form{
	name: "avx512vnni", width: 1, offset: 128, rows: vnniRows,
	blocks:    blocksVNNI,
	single:    func(l *linear, j *job, tile, r int) { a := newArgs(l, j, tile, 0, r); singleVNNI(&a) },
	few:       fewVNNI,
	conv:      convVNNI,
	blend:     blendAVX512,
	weigh:     weighVNNI,
	maxAbs:    maxAbsVector,
	round:     roundVNNI,
	moments:   momentsAVX512,
	addScaled: addScaledAVX512,
	normalise: normaliseAVX512,
	gather:    gatherAVX512,
	fix:       fixAVX2,
	tanh:      func(x []float32) { tanhAVX512(x, &tanhTerms) },
	gelu:      func(x []float32) { geluAVX512(x, &geluTerms) },
	exp: func(x []float32, factor float32) float32 {
		return expAVX512(x, largestAVX2(x), factor, &expTerms)
	},
	decode: decodeAVX512,
	widen:  widenAVX2,
	bring:  bringLines,
}

// avx2Form widens both sides to 16 bits: VPMADDUBSW would saturate.
var avx2Form = form{
	name: "avx2", width: 2, rows: avx2Rows,
	blocks:    blocksAVX2,
	single:    singlesAVX2,
	conv:      convBySums(avx2Rows, sumAVX2),
	blend:     blendAVX2,
	maxAbs:    maxAbsVector,
	round:     roundAVX2,
	moments:   momentsAVX2,
	addScaled: addScaledAVX2,
	normalise: normaliseAVX2,
	gather:    gatherAVX2,
	fix:       fixAVX2,
	tanh:      func(x []float32) { tanhAVX2(x, &tanhTerms) },
	gelu:      func(x []float32) { geluAVX2(x, &geluTerms) },
	exp: func(x []float32, factor float32) float32 {
		return expAVX2(x, largestAVX2(x), factor, &expTerms)
	},
	decode: decodeAVX2,
	widen:  widenAVX2,
	bring:  bringLines,
}

// fewVNNI computes 2 to 5 rows.
func fewVNNI(l *linear, j *job, tile, r, rows int) {
	a := newArgs(l, j, tile, 0, r)
	switch rows {
	case 2:
		pairVNNI(&a)
	case 3:
		tripleVNNI(&a)
	case 4:
		quadVNNI(&a)
	case 5:
		quintVNNI(&a)
	}
}

// blockVNNI computes blocks of 6 rows x 64 outputs, the others 5, 4, 3, 2 and 1 row.
//
//go:noescape
func blockVNNI(a *args)

//go:noescape
func quintVNNI(a *args)

//go:noescape
func quadVNNI(a *args)

//go:noescape
func tripleVNNI(a *args)

//go:noescape
func pairVNNI(a *args)

//go:noescape
func singleVNNI(a *args)

//go:noescape
func weighVNNI(sums *[tileOut]int32, w []int8)

// blockAVX2 computes 4 rows x 8 outputs, singleAVX2 one row.
//
//go:noescape
func blockAVX2(a *args)

//go:noescape
func singleAVX2(a *args)

// The loops over vectors take multiples of 16 values.

//go:noescape
func maxAbsAVX2(x []float32) float32

//go:noescape
func roundAVX512(dst []byte, x []float32, inv float32)

//go:noescape
func roundWideAVX2(dst []byte, x []float32, inv float32)

//go:noescape
func momentsAVX2(x []float32) (sum, squares float32)

//go:noescape
func addScaledAVX2(dst, x []float32, mean, factor float32)

//go:noescape
func normaliseAVX2(x, gain, bias []float32, mean, factor float32)

//go:noescape
func gatherAVX2(dst []float32, bias []int32, of *[2*reachTokens + 1]*spread, next *spread, step float32) (top float32)

//go:noescape
func gatherAVX512(dst []float32, bias []int32, of *[2*reachTokens + 1]*spread, next *spread, step float32) (top float32)

//go:noescape
func fixAVX2(dst []int16, x []float32, factor float32)

//go:noescape
func tanhAVX2(x []float32, terms *[13]float32)

//go:noescape
func tanhAVX512(x []float32, terms *[13]float32)

//go:noescape
func geluAVX2(x []float32, terms *[13]float32)

//go:noescape
func geluAVX512(x []float32, terms *[13]float32)

// largestAVX2 returns the largest value; x is not empty.
//
//go:noescape
func largestAVX2(x []float32) float32

//go:noescape
func expAVX2(x []float32, top, factor float32, terms *[12]float32) float32

//go:noescape
func expAVX512(x []float32, top, factor float32, terms *[12]float32) float32

//go:noescape
func decodeAVX2(dst []float32, row []byte, code *[16]float32)

//go:noescape
func widenAVX2(dst []float32, row []byte, scale, low float32)

//go:noescape
func bringLines(b []byte)

//go:noescape
func momentsAVX512(x []float32) (sum, squares float32)

//go:noescape
func addScaledAVX512(dst, x []float32, mean, factor float32)

//go:noescape
func normaliseAVX512(x, gain, bias []float32, mean, factor float32)

//go:noescape
func decodeAVX512(dst []float32, row []byte, code *[16]float32)

// convVNNI computes blocks of 6, 5 and 4 pairs: fewer do not keep both multipliers busy. A rest of 3 is
// computed with the pair before, whose results are the same again, or with spare rows. The blocks of a
// tile bring the next one into the second cache, a quarter each.
func convVNNI(c *conv, j *job, tile, pairs int, _ *Scratch) {
	const quarters = 4
	a, next := newConvArgs(c, j, tile), c.all.after(tile)
	for r, block := 0, 0; r < pairs; block++ {
		n := min(pairs-r, 6)
		switch rest := pairs - r - n; {
		case n < 4 && r > 0: // 3 that are left of 7
			r, n = pairs-4, 4
		case rest == 1 || rest == 2: // of 7 or 8
			n = 4
		case rest == 3: // of 9
			n = 5
		}
		a.x, a.ahead = &j.x.data[r*a.rowStride], &next[min(block, quarters-1)*len(next)/quarters]
		a.dst, a.res = &j.dst[2*r*j.dstStride+tile], &j.res[2*r*j.resStride+tile]
		switch n {
		case 6:
			conv6VNNI(&a)
		case 5:
			conv5VNNI(&a)
		default:
			conv4VNNI(&a)
		}
		r += n
	}
}

// sumAVX2 sums up 4 rows, 8 outputs at a time.
func sumAVX2(acc *accumulators, l *linear, x quantised, stride, tile int) {
	for shift := 0; shift < tileOut; shift += 8 {
		rowsAVX2(&sumArgs{
			x: &x.data[0], w: &l.w[tile*l.pitch+4*shift], out: &acc[0][shift],
			steps: l.in / 4, rowStride: stride * x.width,
		})
	}
}

// conv6VNNI computes 6 pairs x 64 outputs, the others 5 and 4.
//
//go:noescape
func conv6VNNI(a *convArgs)

//go:noescape
func conv5VNNI(a *convArgs)

//go:noescape
func conv4VNNI(a *convArgs)

//go:noescape
func rowsAVX2(a *sumArgs)

//go:noescape
func blendAVX512(b *blending)

//go:noescape
func blendAVX2(b *blending)

// blocksAVX2 computes 64 outputs, 8 at a time.
func blocksAVX2(l *linear, j *job, tile, r, n int) {
	for ; n > 0; n-- {
		for shift := 0; shift < tileOut; shift += 8 {
			a := newArgs(l, j, tile, shift, r)
			blockAVX2(&a)
		}
		r += avx2Rows
	}
}

func singlesAVX2(l *linear, j *job, tile, r int) {
	for shift := 0; shift < tileOut; shift += 8 {
		a := newArgs(l, j, tile, shift, r)
		singleAVX2(&a)
	}
}

func maxAbsVector(x []float32) float32 {
	n := len(x) &^ 15
	return max(maxAbsAVX2(x[:n]), maxAbsPlain(x[n:]))
}

func roundVNNI(dst []byte, x []float32, inv float32) {
	n := len(x) &^ 15
	roundAVX512(dst[:n], x[:n], inv)
	rest := dst[n:len(x)]
	roundPlain(rest, x[n:], inv)
	for i := range rest {
		rest[i] ^= 0x80
	}
}

func roundAVX2(dst []byte, x []float32, inv float32) {
	n := len(x) &^ 15
	roundWideAVX2(dst[:2*n], x[:n], inv)
	var rest [16]byte
	roundPlain(rest[:], x[n:], inv)
	for i := range x[n:] {
		v := int8(rest[i])
		dst[2*(n+i)], dst[2*(n+i)+1] = byte(v), byte(v>>7)
	}
}
