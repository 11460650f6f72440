// The net: the way of one sequence of tokens through the layers.

package encoder

import (
	"fmt"
	"math"

	"kvasir/classify/model"
	"kvasir/tokenize"
)

// A net is a transformer encoder without its head, of any family. Read-only.
//
// In the families that follow BERT a layer's sums are normalised after each half (x = norm(x + attention(x)),
// then x = norm(x + inner(x))), in ModernBERT what each half reads is (x = x + attention(norm(x))).
type net struct {
	shape
	arithmetic arithmetic
	words      table
	// What is added to a token's row; nil: nothing is.
	places, types table
	project       dense // from the width of the rows to hidden; nil: they have it
	begin         *norm
	layers        []layer
	end           *norm // nil: there is none
	relative      *relative
}

// A layer is attention and the inner layers. A norm that is nil is not there.
type layer struct {
	qkv, out          dense // hidden -> queries, keys, values of all heads; and back
	up, down          dense
	gated             bool // the second half of what up gives multiplies the first
	before, beforeUp  *norm
	after, afterDown  *norm
	window            int // tokens on each side that are seen; 0: all
	turns             *rotation
	keysAt, queriesAt []dense // of each head, for each relative place; nil: no such term
}

// dense is a dense layer.
type dense interface {
	// load takes a trained layer's weights, [out][in], and a bias or nil. They are kept.
	load(w, bias []float32, in, out int)
	// set takes weights that are computed, a row of in values for each output.
	set(w model.Rows, in, out int, s *model.Scratch)
	// applyFine is apply with more digits of x, of which none is larger than top, and without add.
	applyFine(dst, x model.Rows, top float32, rows int, s *model.Scratch)
	// apply computes dst = x W^T + b + add for rows rows; add may be without values.
	apply(dst, x, add model.Rows, rows int, s *model.Scratch)
}

// arithmetic makes what computes: of 8 bits, or for tests of floats.
type arithmetic struct {
	name  string
	dense func() dense
	table func(rows, width int) table
	norm  func(x, gain, bias []float32, epsilon float32)
	gelu  func(x []float32)
	tanh  func(x []float32)
	// softmax stores what a softmax of x*factor is before it is divided by its sum, and returns that.
	softmax func(x []float32, factor float32) (sum float32)
}

// norm is a layer's normalisation.
type norm struct{ gain, bias []float32 }

func (n *net) normalise(x []float32, by *norm) {
	if by == nil {
		return
	}
	for ; len(x) > 0; x = x[n.hidden:] {
		n.arithmetic.norm(x[:n.hidden], by.gain, by.bias, n.epsilon)
	}
}

// A Scratch is the memory that one call at a time works in. It grows with the longest sequence and the widest
// net that it was used for: 14 MB for 512 tokens of a net of 768 values. The zero value is ready.
type Scratch struct {
	sums model.Scratch

	x, y, read []float32 // [tokens][hidden]
	qkv        []float32 // [tokens][3*hidden]
	context    []float32 // [tokens][hidden]
	inner      []float32 // [RowBlock][up's outputs]
	turned     []float32 // values of a head, [head size][tokens, filled up]
	scores     []float32 // [RowBlock][tokens, filled up]
	byPlace    []float32 // [RowBlock][places]
	ofPlace    []float32 // [tokens][places]
	keys, mix  dense     // made of the keys and the values of a head
	by         string    // the arithmetic of keys and mix

	ids    []uint32
	kinds  []uint8
	tokens tokenScratch
	head   []float32
}

// sized returns n elements, those of s if it has as many.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// filled is the number of tokens filled up so that loops over vectors take it.
func filled(tokens int) int { return (tokens + 15) &^ 15 }

// run leaves the last hidden states of a sequence in s.x, [tokens][hidden]. The sequence is not empty and at most
// n.most tokens long, each id below n.vocabulary. stop is asked between layers and may be nil; its error ends
// the run.
func (n *net) run(ids []uint32, kinds []uint8, s *Scratch, stop func() error) error {
	n.start(ids, kinds, s)
	for i := range n.layers {
		if stop != nil {
			if err := stop(); err != nil {
				return err
			}
		}
		n.pass(&n.layers[i], len(ids), s)
	}
	n.normalise(s.x, n.end)
	return nil
}

// start brings the tokens of a sequence to the first layer.
func (n *net) start(ids []uint32, kinds []uint8, s *Scratch) {
	if s.by != n.arithmetic.name {
		s.keys, s.mix, s.by = n.arithmetic.dense(), n.arithmetic.dense(), n.arithmetic.name
	}
	size := len(ids) * n.hidden
	s.x, s.y, s.read = sized(s.x, size), sized(s.y, size), sized(s.read, size)
	s.qkv, s.context = sized(s.qkv, 3*size), sized(s.context, size)
	n.embed(ids, kinds, s)
}

// framed puts around tokens what stands around a text, in the memory of s.
func (n *net) framed(t *tokenize.Tokenizer, text []uint32, s *Scratch) (ids []uint32, kinds []uint8) {
	ids, kinds = t.Frame(s.ids[:0], s.kinds[:0], text)
	for i, id := range ids {
		if int(id) >= n.vocabulary {
			panic(fmt.Sprintf("BUG: token %d of %d", id, n.vocabulary))
		}
		if int(kinds[i]) >= n.typeCount {
			kinds[i] = 0
		}
	}
	return ids, kinds
}

// embed stores the rows of the tokens in s.x.
func (n *net) embed(ids []uint32, kinds []uint8, s *Scratch) {
	rows := s.x
	if n.project != nil {
		s.read = sized(s.read, len(ids)*n.width)
		rows = s.read[:len(ids)*n.width]
	}
	place := n.firstPlace
	for i, id := range ids {
		row := rows[i*n.width:][:n.width]
		n.words.row(row, int(id))
		if n.places != nil {
			at := place
			if n.padSkips && int(id) == n.pad {
				at = n.pad
			} else {
				place++
			}
			n.places.add(row, at)
		}
		if n.types != nil {
			n.types.add(row, int(kinds[i]))
		}
	}
	if n.project != nil {
		n.project.apply(n.hiddenRows(s.x), model.Rows{Values: rows, Stride: n.width}, model.Rows{}, len(ids), &s.sums)
		s.read = sized(s.read, len(s.x))
	}
	n.normalise(s.x, n.begin)
}

func (n *net) hiddenRows(x []float32) model.Rows { return model.Rows{Values: x, Stride: n.hidden} }

// pass takes s.x through a layer.
func (n *net) pass(l *layer, tokens int, s *Scratch) {
	read := n.readBy(l.before, s.x, s)
	n.wide(l.qkv, s.qkv, 3*n.hidden, read, tokens, s)
	if l.turns != nil {
		l.turns.turn(s.qkv, tokens, n.heads, n.headSize)
	}
	for head := range n.heads {
		n.attend(l, head, tokens, s)
	}
	l.out.apply(n.hiddenRows(s.y), n.hiddenRows(s.context), n.hiddenRows(s.x), tokens, &s.sums)
	n.normalise(s.y, l.after)
	n.innerLayers(l, n.readBy(l.beforeUp, s.y, s), tokens, s)
	n.normalise(s.x, l.afterDown)
}

// readBy is what a half of a layer reads of x: x, or x normalised.
func (n *net) readBy(by *norm, x []float32, s *Scratch) []float32 {
	if by == nil {
		return x
	}
	copy(s.read, x)
	n.normalise(s.read, by)
	return s.read
}

// wide applies d to rows of hidden values.
func (n *net) wide(d dense, dst []float32, out int, x []float32, tokens int, s *Scratch) {
	d.apply(model.Rows{Values: dst, Stride: out}, n.hiddenRows(x), model.Rows{}, tokens, &s.sums)
}

// innerLayers stores s.y + down(act(up(read))) in s.x, a block of tokens at a time: so what lies between them stays
// in the cache.
func (n *net) innerLayers(l *layer, read []float32, tokens int, s *Scratch) {
	out := n.inner
	if l.gated {
		out *= 2
	}
	s.inner = sized(s.inner, model.RowBlock*out)
	for first := 0; first < tokens; first += model.RowBlock {
		rows := min(model.RowBlock, tokens-first)
		n.wide(l.up, s.inner, out, read[first*n.hidden:], rows, s)
		for r := range rows {
			row := s.inner[r*out:][:out]
			n.arithmetic.gelu(row[:n.inner])
			if l.gated {
				for i, by := range row[n.inner:] {
					row[i] *= by
				}
			}
		}
		at := first * n.hidden
		l.down.apply(n.hiddenRows(s.x[at:]), model.Rows{Values: s.inner, Stride: out}, n.hiddenRows(s.y[at:]), rows, &s.sums)
	}
}

// A rotation turns pairs of a head's values by angles that grow with the place: RoPE, https://arxiv.org/abs/2104.09864,
// where value i goes with the value half a head later.
type rotation struct{ sin, cos []float32 } // [tokens][head size / 2]

func newRotation(base float64, tokens, headSize int) *rotation {
	half := headSize / 2
	r := &rotation{make([]float32, tokens*half), make([]float32, tokens*half)}
	for i := range half {
		// Rounded as the reference rounds: the angle of a far token is the product of a float32.
		step := float32(1 / math.Pow(base, float64(2*i)/float64(headSize)))
		for t := range tokens {
			sin, cos := math.Sincos(float64(float32(t) * step))
			r.sin[t*half+i], r.cos[t*half+i] = float32(sin), float32(cos)
		}
	}
	return r
}

// turn turns the queries and the keys of all heads.
func (r *rotation) turn(qkv []float32, tokens, heads, headSize int) {
	half := headSize / 2
	for t := range tokens {
		sin, cos := r.sin[t*half:][:half], r.cos[t*half:][:half]
		for head := range 2 * heads { // those of the keys follow those of the queries
			row := qkv[(3*heads*t+head)*headSize:][:headSize]
			a, b := row[:half], row[half:]
			for i, c := range cos {
				x, y := a[i], b[i]
				a[i] = float32(x*c) - float32(y*sin[i])
				b[i] = float32(y*c) + float32(x*sin[i])
			}
		}
	}
}
