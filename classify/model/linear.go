// Dense layers in int8: float32 in, float32 out, exact int32 sums between. Convolutions are dense layers over
// rows that overlap.

package model

import (
	"fmt"
	"math"
)

// tileOut is the number of outputs whose weights lie together.
const tileOut = 64

// rowBlock is the number of rows that apply quantises at a time, which bounds its memory.
const rowBlock = 48

// linear is an int8 dense layer, y = x W^T + b with W = scale * w. Read-only after newLinear.
//
// The weights lie in tiles of 64 outputs, in the order [out/64][in/4][64][4]: one step of the
// inner loop reads 256 bytes in a row, 4 inputs for each of 64 outputs. Outputs are filled up
// with zeros to a whole tile. The file holds them so; nothing is moved at start.
type linear struct {
	in, out int
	pitch   int // inputs whose weights lie in a tile: in, or more if the layer is a part of another
	w       []int8
	scale   []float32 // filled up to whole tiles
	bias    []float32 // filled up to whole tiles
	zero    []int32   // where the sums start: takes back what the kernel's offset of x adds
	next    []int8    // the weights that are multiplied after w; nil: not known
}

// tilesOf returns the number of tiles of out outputs.
func tilesOf(out int) int { return (out + tileOut - 1) / tileOut }

// newLinear makes a layer from weights in tiles (container.tiles of scripts/train makes them), used in
// place, and one scale and bias an output. in must be a multiple of 4.
func newLinear(w []int8, scale, bias []float32, in, out int) linear {
	tiles := tilesOf(out)
	if in%4 != 0 || len(w) != tiles*tileOut*in || len(scale) != out || len(bias) != out {
		panic(fmt.Sprintf("BUG: linear %dx%d with %d weights, %d scales, %d biases", in, out, len(w), len(scale), len(bias)))
	}
	l := linear{in: in, out: out, pitch: in, w: w, zero: make([]int32, tiles*tileOut)}
	l.scale = append(make([]float32, 0, tiles*tileOut), scale...)[:tiles*tileOut]
	l.bias = append(make([]float32, 0, tiles*tileOut), bias...)[:tiles*tileOut]
	if kernel.offset != 0 {
		l.setZero()
	}
	return l
}

// part returns the layer of inputs [from, from+n) alone, without bias: the parts of a layer add up
// to it. The weights are shared.
func (l *linear) part(from, n int) linear {
	p := *l
	p.in, p.w = n, l.w[from*tileOut:]
	p.bias, p.zero = make([]float32, len(l.bias)), make([]int32, len(l.zero))
	if kernel.offset != 0 {
		p.setZero()
	}
	return p
}

// setZero fills l.zero for kernels whose activations carry an offset: minus the offset times the
// sum of each output's weights.
func (l *linear) setZero() {
	for tile := 0; tile < len(l.zero); tile += tileOut {
		zero := (*[tileOut]int32)(l.zero[tile:])
		kernel.weigh(zero, l.w[tile*l.pitch:][:tileOut*l.in])
		for o := range zero {
			zero[o] *= -kernel.offset
		}
	}
}

// apply computes dst = x W^T + b for rows rows; x is [rows][in], dst [rows][out]. Each row of x is
// rounded to 8 bits by its own largest value. The sums are exact, so that every kernel form and
// every machine gives the same bits.
func (l *linear) apply(dst, x []float32, rows int, s *Scratch) { l.applyReLU(dst, x, rows, 0, s) }

// applyReLU is apply with a ReLU on the first so many outputs, a multiple of tileOut or all.
func (l *linear) applyReLU(dst, x []float32, rows, relu int, s *Scratch) {
	for rows > 0 {
		n := min(rows, rowBlock)
		q := s.activations(n * l.in)
		for r := range n {
			s.rowScale[r] = q.fill(r*l.in, x[r*l.in:][:l.in])
		}
		s.job = job{
			x: q, scale: s.rowScale[:n], taps: 1, seg: l.in, rowStride: l.in,
			dst: dst, dstStride: l.out, relu: relu,
		}
		l.run(&s.job, n, s)
		dst, x, rows = dst[n*l.out:], x[n*l.in:], rows-n
	}
}

// job says what a layer is applied to: where the inputs of each row lie, and where results go.
// Strides count elements. The inputs of row r are taps runs of seg elements, run t at
// r*rowStride + t*tapStride; a convolution over tokens is such a job with overlapping rows, so
// that no window is ever copied.
type job struct {
	x                    quantised
	scale                []float32 // of each row of x
	taps, seg            int       // taps*seg is the layer's in; seg a multiple of 4
	rowStride, tapStride int
	dst                  []float32
	dstStride            int
	first                int       // output that dst begins with
	res                  []float32 // when set, added after the ReLU; must not be dst
	resStride            int
	relu                 int // outputs that get a ReLU, the first ones, in whole tiles
}

// run applies l to rows rows of j. j lies in memory that outlives the call, such as s.job: a job on
// the stack would be moved to the heap.
func (l *linear) run(j *job, rows int, s *Scratch) {
	if j.taps*j.seg != l.in || j.seg%4 != 0 {
		panic(fmt.Sprintf("BUG: %d runs of %d inputs for a layer of %d", j.taps, j.seg, l.in))
	}
	if rows == 0 {
		return
	}
	// The kernels do not check: look once at the far end of everything they touch.
	_ = j.x.data[((rows-1)*j.rowStride+(j.taps-1)*j.tapStride+j.seg)*j.x.width-1]
	_ = j.scale[rows-1]
	_ = j.dst[(rows-1)*j.dstStride+l.out-1]
	if j.res != nil {
		_ = j.res[(rows-1)*j.resStride+l.out-1]
	}
	for tile := 0; tile < l.out; tile += tileOut {
		if l.out-tile < tileOut {
			l.runTail(j, tile, rows, s)
			return
		}
		l.runTile(j, tile, rows)
	}
}

// runTile computes one whole tile of outputs. Where a form has no kernel for a rest of rows, one of more
// than half a block is computed as part of a full block that ends with the last row: its first rows are
// written twice, with the same values.
func (l *linear) runTile(j *job, tile, rows int) {
	block := kernel.rows
	r := rows / block * block
	if r > 0 {
		kernel.blocks(l, j, tile, 0, rows/block)
	}
	switch rest := rows - r; {
	case rest == 0:
	case rest > 1 && kernel.few != nil:
		kernel.few(l, j, tile, r, rest)
	case r > 0 && 2*rest > block:
		kernel.blocks(l, j, tile, rows-block, 1)
	default:
		for ; r < rows; r++ {
			kernel.single(l, j, tile, r)
		}
	}
}

// runTail computes the last tile of a layer whose outputs do not fill it, through a buffer.
func (l *linear) runTail(j *job, tile, rows int, s *Scratch) {
	for first := 0; first < rows; first += rowBlock {
		n := min(rows-first, rowBlock)
		s.tailJob = *j
		s.tailJob.x, s.tailJob.scale = j.x.from(first*j.rowStride), j.scale[first:]
		s.tailJob.dst, s.tailJob.dstStride, s.tailJob.first, s.tailJob.res = s.tail[:], tileOut, tile, nil
		l.runTile(&s.tailJob, tile, n)
		for r := range n {
			dst := j.dst[(first+r)*j.dstStride+tile:][:l.out-tile]
			copy(dst, s.tail[r*tileOut:])
			if j.res != nil {
				for i, v := range j.res[(first+r)*j.resStride+tile:][:len(dst)] {
					dst[i] += v
				}
			}
		}
	}
}

// quantised is a run of activations as the kernel wants them, width bytes each.
type quantised struct {
	data  []byte
	width int
}

// from returns the run that begins at element at.
func (q quantised) from(at int) quantised { return quantised{q.data[at*q.width:], q.width} }

// fill rounds x to 8 bits by its largest value, stores it from element at on, and returns the
// scale that turns the integers back.
func (q quantised) fill(at int, x []float32) (scale float32) {
	top := kernel.maxAbs(x)
	scale, inv := scaleOf(top)
	q.store(at, x, inv)
	return scale
}

// store rounds x*inv to integers in [-127, 127] from element at on. The caller's inv keeps them
// within.
func (q quantised) store(at int, x []float32, inv float32) {
	if len(x) == 0 {
		return
	}
	kernel.round(q.data[at*q.width:(at+len(x))*q.width], x, inv)
}

// rest stores what is left of x after rounding by scale, which is stored from element at on. The numbers are taken as
// those from 0 to 255, so that all forms give the same bits.
func (q quantised) rest(dst, x []float32, at int, scale float32) {
	numbers := q.data[at*q.width:][:len(x)*q.width]
	if kernel.offset == 128 {
		kernel.widen(dst, numbers, -scale, 128*scale)
	} else {
		for i := range dst[:len(x)] {
			dst[i] = float32(float32(int(int8(numbers[i*q.width]))+128)*-scale) + 128*scale
		}
	}
	kernel.addScaled(dst, x, 0, 1)
}

// clear stores n zeros from element at on.
func (q quantised) clear(at, n int) {
	b := q.data[at*q.width : (at+n)*q.width]
	if kernel.offset == 0 {
		clear(b)
		return
	}
	for done := copy(b, []byte{byte(kernel.offset)}); done < len(b); { // byte by byte it was 1 % of a short text
		done += copy(b[done:], b[:done])
	}
}

// scaleOf returns the scale of integers that reach 127 at top, and its inverse.
func scaleOf(top float32) (scale, inv float32) {
	if top < math.SmallestNonzeroFloat32*(1<<40) {
		return 0, 0 // all zeros, or so small that the inverse would overflow
	}
	return top / 127, 127 / top
}
