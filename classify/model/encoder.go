// The sentence encoder: convolutions of widths 2, 3 and 5 over the tokens' rows, their sum, dense
// layers. Universal Sentence Encoder multilingual v3, https://arxiv.org/abs/1907.04307.

package model

import (
	"fmt"
	"math"
	"slices"
)

const (
	branchDim  = 256                  // values of one branch
	branches   = 3                    // the convolutions of three widths
	mixDim     = branches * branchDim // what the branches work on
	featureDim = Dim + mixDim         // of a token: its row, and each branch
	denseDim   = 320                  // between the dense layers
)

// widths and lefts are the tokens that each branch sees at once, and how many of them lie before.
var widths, lefts = [branches]int{2, 3, 5}, [branches]int{0, 1, 2}

// sights are the values of each branch that its second layer reads of a token, the first ones: what the
// others say is in them, too (scripts/train/encoder.py).
var sights = [branches]int{256, 128, 224}

// MaxTokens is how many tokens of a text Embed reads.
const MaxTokens = 2048

// spanTokens is how many tokens share one sum of features, of which the embedding of any run of
// spans can be made.
const (
	spanTokens = 24
	maxSpans   = (MaxTokens + 2 + spanTokens - 1) / spanTokens
)

// batchRuns is how many runs of spans go through the dense layers at a time.
const batchRuns = 24

// blockSpans are encoded at a time, blockTokens tokens; halo are the tokens on each side that the two
// layers of the widest branch look at beyond them. Blocks lie on a grid, since activations are rounded
// by the largest of their block: a span comes out alike whatever else of the text is encoded.
const (
	blockSpans  = 4
	blockTokens = blockSpans * spanTokens
	maxBlocks   = (maxSpans + blockSpans - 1) / blockSpans
	reachTokens = 2
	halo        = 2 * reachTokens
)

// Convolutions take two tokens at a time: only a text's last one may have no neighbour in its block.
var _ [-(blockTokens % 2)]struct{}

// encoder holds the layers.
type encoder struct {
	project           linear // row -> the inputs of the branches
	gain, shift       []float32
	first             [branches][]linear // the taps of the first layers
	firstBias         []int32            // of all branches, in the fixed point of spreads
	second            [branches]conv
	sumGain, sumShift []float32
	sum               linear    // features, summed over tokens -> 512
	dense             [4]linear // 1 and 3 add to a half of what 0 and 2 give
	epsilon           float32
}

// encoderScratch is the memory of Embed. What vectors are read from and stored in begins at multiples of 64
// bytes, lest every vector touches two lines of the cache.
type encoderScratch struct {
	row [Dim]float32
	// After the first layer of the branches, with empty tokens at both ends.
	hidden [(reachTokens + blockTokens + 2*halo) * mixDim]float32
	mixed  [blockTokens * mixDim]float32   // the results of the branches
	sums   [maxSpans][featureDim]float32   // of the normalised features of each span
	vector [batchRuns * featureDim]float32 // the sums of the runs that finish works on
	text   [batchRuns * Dim]float32        // what goes into a pair of dense layers
	wide   [batchRuns * 2 * Dim]float32
	narrow [batchRuns * Dim]float32
	whole  [viewDim]float32 // the view of the gist asked for last
	spread spreadScratch

	scale    [max(blockTokens, rowBlock)]float32
	count    [batchRuns]float32 // tokens of the runs that finish works on
	ids      [MaxTokens + 2]int32
	n        int // of ids; 0: there is no text
	next     [MaxTokens + 2]int32
	have     [maxBlocks]bool // the blocks that are in sums
	all      [1]run
	wholeIDs [MaxTokens + 2]int32 // of the text that whole is of
	wholeN   int
}

func (e *encoder) open(t *Tensors) (err error) {
	layer := func(l *linear, name string, in, out int) {
		if err == nil {
			*l, err = t.linear(name, in, out)
		}
	}
	vector := func(v *[]float32, name string, n int) {
		if err == nil {
			*v, err = t.Float32s(name, n)
		}
	}
	layer(&e.project, "project", Dim, mixDim)
	vector(&e.gain, "project.gain", mixDim)
	vector(&e.shift, "project.shift", mixDim)
	for i, n := range widths {
		var first linear
		layer(&first, fmt.Sprintf("conv%d.first", n), n*branchDim, branchDim)
		if err == nil {
			e.openFirst(&first, i)
		}
		var second linear
		layer(&second, fmt.Sprintf("conv%d.second", n), blendsOf(i)*sights[i], branchDim)
		if err == nil {
			e.second[i] = newConv(second, i)
		}
	}
	vector(&e.sumGain, "sum.gain", featureDim)
	vector(&e.sumShift, "sum.shift", featureDim)
	layer(&e.sum, "sum", featureDim, Dim)
	layer(&e.dense[0], "dense0", Dim, 2*denseDim)
	layer(&e.dense[1], "dense1", denseDim, denseDim)
	layer(&e.dense[2], "dense2", denseDim, 2*Dim)
	layer(&e.dense[3], "dense3", Dim, Dim)
	way := []*linear{&e.second[0].all, &e.second[1].all, &e.second[2].all, &e.sum, &e.dense[0], &e.dense[1], &e.dense[2], &e.dense[3]}
	for i, l := range way[1:] {
		way[i].next = l.w
	}
	var epsilon []float32
	vector(&epsilon, "epsilon", 1)
	if err == nil {
		e.epsilon = epsilon[0]
	}
	return err
}

// Embed stores the embedding of a text in dst: of its tokens, with <s> and </s> around them. Its
// length is 1, so that the dot product of two is their cosine. Tokens after the first MaxTokens are
// not read. No tokens count as one unknown.
func (m *Model) Embed(dst *[Dim]float32, tokens []Token, s *Scratch) {
	n := spansOf(m.begin(tokens, s))
	if n <= wholeSpans {
		m.Gist(dst, tokens, s)
		return
	}
	var all [viewDim]float32
	s.encoder.all[0] = run{to: int32(n)}
	m.viewRuns(all[:], s.encoder.all[:], s)
	copy(dst[:], all[:])
}

// Dot returns the dot product of two vectors. Four sums do not wait for one another.
func Dot(a, b *[Dim]float32) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i < Dim; i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	return s0 + s1 + s2 + s3
}

// Gist is Embed of a text of up to 192 tokens, and of the first and the last 96 or so of a longer
// one, at the cost of these.
func (m *Model) Gist(dst *[Dim]float32, tokens []Token, s *Scratch) {
	copy(dst[:], m.view(tokens, s))
}

// view returns the view of the gist of a text; it is valid until the next call.
func (m *Model) view(tokens []Token, s *Scratch) []float32 {
	if es := s.encoder; es != nil && slices.Equal(frame(es.next[:], tokens), es.wholeIDs[:es.wholeN]) {
		return es.whole[:]
	}
	n := m.begin(tokens, s)
	es := s.encoder
	es.all[0] = gist(spansOf(n))
	m.viewRuns(es.whole[:], es.all[:], s)
	es.keepWhole(es.whole[:])
	return es.whole[:]
}

// keepWhole keeps the view of the gist of the text encoded last.
func (es *encoderScratch) keepWhole(view []float32) {
	copy(es.whole[:], view)
	es.wholeN = copy(es.wholeIDs[:], es.ids[:es.n])
}

// begin takes a text to be encoded, and returns the number of its ids with <s> and </s>. What is
// encoded of the text before stays if it is the same.
func (m *Model) begin(tokens []Token, s *Scratch) (n int) {
	es := s.forEncoder()
	es.take(frame(es.next[:], tokens))
	return es.n
}

// take is begin for ids with <s> and </s>.
func (es *encoderScratch) take(ids []int32) {
	if !slices.Equal(ids, es.ids[:es.n]) {
		es.n = copy(es.ids[:], ids)
		clear(es.have[:])
	}
}

// encode sums up the features of the blocks in which spans [from, to) lie, unless that is done.
func (m *Model) encode(from, to int32, s *Scratch) {
	es := s.encoder
	for b := int(from) / blockSpans; b*blockSpans < int(to); b++ {
		if !es.have[b] {
			first := b * blockSpans
			clear(es.sums[first:min(first+blockSpans, maxSpans)])
			m.addBlock(es.ids[:es.n], b*blockTokens, min((b+1)*blockTokens, es.n), s)
			es.have[b] = true
		}
	}
}

// Forget lets go of the text encoded last, which is encoded anew when it comes again.
func (s *Scratch) Forget() {
	if s.encoder != nil {
		s.encoder.n, s.encoder.wholeN = 0, 0
		clear(s.encoder.ids[:])
		clear(s.encoder.next[:])
	}
}

// spansOf returns how many spans n ids make.
func spansOf(n int) int { return (n + spanTokens - 1) / spanTokens }

// A run is the spans [from, to) of the text encoded last.
type run struct {
	from, to       int32
	gapFrom, gapTo int32 // spans within that are left out
}

// viewDim is the length of what the heads see of a run of spans: its embedding, and before the
// dense layers what these make it of. The dense layers were trained to tell meanings apart and drop
// the rest; with both, a head finds 8 more of 100 attacks than with the embedding alone.
const viewDim = 2 * Dim

// viewRuns stores the view of each run in dst, [len(runs)][viewDim], as if it were a text (but for
// what its tokens see beyond its ends). Both halves have the length 1.
func (m *Model) viewRuns(dst []float32, runs []run, s *Scratch) {
	for batches := (len(runs) + batchRuns - 1) / batchRuns; batches > 0; batches-- {
		n := (len(runs) + batches - 1) / batches
		for i, r := range runs[:n] {
			m.sumRun(i, r, s)
		}
		m.encoder.finish(dst, n, s)
		dst, runs = dst[n*viewDim:], runs[n:]
	}
}

// sumRun sums up the features of a run as row i of what finish works on.
func (m *Model) sumRun(i int, r run, s *Scratch) {
	es := s.encoder
	sum, count := es.vector[i*featureDim:][:featureDim], &es.count[i]
	clear(sum)
	*count = 0
	if r.gapTo > r.gapFrom {
		m.addSpans(sum, count, r.from, r.gapFrom, s)
		r.from = r.gapTo
	}
	m.addSpans(sum, count, r.from, r.to, s)
}

// addSpans adds the features of spans [from, to) and the number of their tokens.
func (m *Model) addSpans(sum []float32, count *float32, from, to int32, s *Scratch) {
	m.encode(from, to, s)
	es := s.encoder
	for i := from; i < to; i++ {
		kernel.addScaled(sum, es.sums[i][:], 0, 1)
	}
	*count += float32(min(int(to)*spanTokens, es.n) - int(from)*spanTokens)
}

// frame stores the ids of tokens with their borders in ids.
func frame(ids []int32, tokens []Token) []int32 {
	ids[0] = beginID
	n := 1
	for _, t := range tokens[:min(len(tokens), MaxTokens)] {
		ids[n] = t.ID
		n++
	}
	if n == 1 {
		ids[n] = unknownID
		n++
	}
	ids[n] = endID
	return ids[:n+1]
}

// addBlock adds the normalised features of tokens [from, to) to the sums of their spans. Tokens on both sides are
// encoded along as far as these see; beyond the ends of the text lie zeros.
func (m *Model) addBlock(ids []int32, from, to int, s *Scratch) {
	e, es := &m.encoder, s.encoder
	// Rows of the buffers are tokens lo, lo+1 ...; the hidden ones begin reachTokens earlier.
	lo, hi := max(from-halo, 0), min(to+halo, len(ids))
	rows := hi - lo
	// The first layer is needed as far as the second one sees.
	first, last := max(from-lo-reachTokens, 0), min(to-lo+reachTokens, rows)
	top := m.firstLayer(ids[lo:hi], first, last, s)

	m.table.bring(ids[from:to]) // while others are multiplied

	clear(es.hidden[(from-lo)*mixDim : (reachTokens+first)*mixDim])
	clear(es.hidden[(reachTokens+last)*mixDim : (2*reachTokens+to-lo)*mixDim])
	scale, inv := scaleOf(top * blendRange)
	for i := range es.scale {
		es.scale[i] = scale
	}
	for i := range e.second {
		e.convolve(i, from-lo, to-lo, inv, s)
	}
	for i := from; i < to; i++ {
		// The row is decoded a second time: keeping it cost more, in cache.
		m.Row(es.row[:], ids[i])
		es.add(&es.sums[i/spanTokens], es.mixed[(i-from)*mixDim:][:mixDim], e.epsilon)
	}
}

// add adds a token's features, its row and mixed, to the sum, normalised.
func (es *encoderScratch) add(dst *[featureDim]float32, mixed []float32, epsilon float32) {
	sum, squares := kernel.moments(es.row[:])
	sum2, squares2 := kernel.moments(mixed)
	mean, factor := deviation(sum+sum2, squares+squares2, featureDim, epsilon)
	kernel.addScaled(dst[:Dim], es.row[:], mean, factor)
	kernel.addScaled(dst[Dim:], mixed, mean, factor)
}

// mix projects the rows of up to rowBlock pieces to the inputs of the branches, normalised.
func (m *Model) mix(dst []float32, ids []int32, s *Scratch) {
	e, es := &m.encoder, s.encoder
	q := s.activations(len(ids) * Dim)
	for i, id := range ids {
		m.Row(es.row[:], id)
		es.scale[i] = q.fill(i*Dim, es.row[:])
	}
	s.job = job{
		x: q, scale: es.scale[:len(ids)], taps: 1, seg: Dim, rowStride: Dim,
		dst: dst, dstStride: mixDim,
	}
	e.project.run(&s.job, len(ids), s)
	for i := range ids {
		x := dst[i*mixDim:][:mixDim]
		sum, squares := kernel.moments(x)
		mean, factor := deviation(sum, squares, mixDim, e.epsilon)
		kernel.normalise(x, e.gain, e.shift, mean, factor)
	}
}

// firstLayer computes rows [first, last) of the first layer, and returns their largest absolute value.
func (m *Model) firstLayer(ids []int32, first, last int, s *Scratch) (top float32) {
	defer s.encoder.spread.giveBack() // also after a panic: what stays lent is never replaced
	m.spread(ids, s)
	return s.encoder.gather(first, last, m.encoder.firstBias)
}

// gather adds up what goes into the first layer's ReLU for rows [first, last), ends the layer, its
// inputs added, and returns the largest absolute value.
func (es *encoderScratch) gather(first, last int, bias []int32) (top float32) {
	near := &es.spread.near
	for i := first; i < last; i++ {
		next := near[min(i+2*reachTokens+1, last+reachTokens)]
		top = max(top, kernel.gather(es.hidden[(reachTokens+i)*mixDim:][:mixDim], bias, (*[2*reachTokens + 1]*spread)(near[i:]), next, 1.0/spreadOne))
	}
	return top
}

// convolve applies the second layer of branch i to rows [first, last) of the hidden values: ReLU, and
// its input added. Row 0 of mixed is row first.
func (e *encoder) convolve(i, first, last int, inv float32, s *Scratch) {
	es, at, pairs := s.encoder, (reachTokens+first)*mixDim+i*branchDim, (last-first+1)/2
	s.job = job{
		x: e.second[i].blend(es.hidden[:], at, mixDim, pairs, inv, s), scale: es.scale[:],
		dst: es.mixed[i*branchDim:], dstStride: mixDim, res: es.hidden[at:], resStride: mixDim, relu: branchDim,
	}
	e.second[i].run(&s.job, pairs, s)
}

// deviation returns the mean of n values and one over their deviation.
func deviation(sum, squares, n, epsilon float32) (mean, factor float32) {
	mean = sum / n
	variance := max(squares/n-float32(mean*mean), 0)
	return mean, float32(1 / math.Sqrt(float64(variance+epsilon)))
}

// finish turns the sums over count tokens, rows rows in vector, into views.
func (e *encoder) finish(dst []float32, rows int, s *Scratch) {
	es := s.encoder
	for r, count := range es.count[:rows] {
		kernel.normalise(es.vector[r*featureDim:][:featureDim], e.sumGain, e.sumShift, 0, 1/count)
	}
	narrow, text := es.narrow[:rows*Dim], es.text[:rows*Dim]
	e.sum.apply(narrow, es.vector[:], rows, s)
	clear(text)
	for r, count := range es.count[:rows] {
		x := text[r*Dim:][:Dim]
		kernel.addScaled(x, narrow[r*Dim:][:Dim], 0, float32(math.Sqrt(float64(count))))
		view := narrow[r*Dim:][:Dim]
		copy(view, x)
		e.unit(view)
		copy(dst[r*viewDim+Dim:], view)
	}
	middle := es.residual(e.dense[0:2], text, denseDim, rows, s)
	for i, v := range middle {
		middle[i] = max(v, 0)
	}
	in := es.text[:rows*denseDim]
	copy(in, middle)
	out := es.residual(e.dense[2:4], in, Dim, rows, s)
	for r := range rows {
		view := out[r*Dim:][:Dim]
		kernel.tanh(view)
		e.unit(view)
		copy(dst[r*viewDim:], view)
	}
}

// unit scales x to length 1.
func (e *encoder) unit(x []float32) {
	_, squares := kernel.moments(x)
	scale := float32(1 / math.Sqrt(float64(max(squares, e.epsilon))))
	for i := range x {
		x[i] *= scale
	}
}

// residual applies a pair of layers to rows of x: the first gives two halves, the second takes the
// first half after a ReLU, and the other half is added.
func (es *encoderScratch) residual(pair []linear, x []float32, half, rows int, s *Scratch) []float32 {
	wide, out := es.wide[:rows*2*half], es.narrow[:rows*pair[1].out]
	pair[0].applyReLU(wide, x, rows, half, s)
	q := s.activations(rows * half)
	for r := range rows {
		s.rowScale[r] = q.fill(r*half, wide[r*2*half:][:half])
	}
	s.job = job{
		x: q, scale: s.rowScale[:rows], taps: 1, seg: half, rowStride: half,
		dst: out, dstStride: pair[1].out, res: wide[half:], resStride: 2 * half,
	}
	pair[1].run(&s.job, rows, s)
	return out
}
