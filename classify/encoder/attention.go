// Attention: what each token takes from the others.

package encoder

import (
	"math"

	"kvasir/classify/model"
)

// attend stores what the tokens take from each other by one head in its columns of s.context. The keys and the
// values of the head become dense layers, so that the products are those of all other layers.
func (n *net) attend(l *layer, head, tokens int, s *Scratch) {
	size, stride, full := n.headSize, 3*n.hidden, filled(tokens)
	query := model.Rows{Values: s.qkv[head*size:], Stride: stride}
	key := model.Rows{Values: s.qkv[n.hidden+head*size:], Stride: stride}
	s.keys.set(key, size, tokens, &s.sums)
	n.turnValues(head, tokens, s)
	s.mix.set(model.Rows{Values: s.turned, Stride: full}, full, size, &s.sums)
	if l.queriesAt != nil {
		s.ofPlace = sized(s.ofPlace, tokens*n.relative.places())
		l.queriesAt[head].apply(n.placeRows(s.ofPlace), key, model.Rows{}, tokens, &s.sums)
	}
	s.scores = sized(s.scores, model.RowBlock*full)
	context := model.Rows{Values: s.context[head*size:], Stride: n.hidden}
	for first := 0; first < tokens; first += model.RowBlock {
		rows := min(model.RowBlock, tokens-first)
		scores := model.Rows{Values: s.scores, Stride: full}
		s.keys.apply(scores, query.From(first), model.Rows{}, rows, &s.sums)
		n.addPlaces(l, head, query.From(first), first, rows, tokens, s)
		var sums [model.RowBlock]float32
		for r := range rows {
			row := s.scores[r*full:][:full]
			hide(row, first+r, tokens, l.window)
			sums[r] = n.arithmetic.softmax(row, n.factor)
		}
		// With 8 bits the many small shares of a long text would all be 0: of 300 tokens the cosine was 0.993.
		s.mix.applyFine(context.From(first), scores, 1, rows, &s.sums)
		for r, sum := range sums[:rows] {
			of := context.From(first + r).Values[:size]
			for i := range of {
				of[i] /= sum
			}
		}
	}
}

// turnBlock is how many tokens are turned at a time, so that what is read and written stays in the cache.
const turnBlock = 16

// turnValues stores the values of a head with their rows and columns exchanged, and zeros for the tokens
// that fill up.
func (n *net) turnValues(head, tokens int, s *Scratch) {
	size, stride, full := n.headSize, 3*n.hidden, filled(tokens)
	s.turned = sized(s.turned, size*full)
	of := s.qkv[2*n.hidden+head*size:]
	for first := 0; first < full; first += turnBlock {
		for i := range size {
			row := (*[turnBlock]float32)(s.turned[i*full+first:])
			for t := range row {
				if row[t] = 0; first+t < tokens {
					row[t] = of[(first+t)*stride+i]
				}
			}
		}
	}
}

// masked is the score of a token that is not seen.
const masked = -1e30

// hide hides what fills up, and the tokens that lie farther than window tokens from token at; 0: none do.
func hide(scores []float32, at, tokens, window int) {
	from, to := 0, tokens
	if window > 0 {
		from, to = max(at-window, 0), min(at+window+1, tokens)
	}
	for i := range scores[:from] {
		scores[i] = masked
	}
	for i := range scores[to:] {
		scores[to+i] = masked
	}
}

// relative says how DeBERTa's places are found: each distance between two tokens has one, and distances that are
// large and alike share one. Disentangled attention, https://arxiv.org/abs/2006.03654.
type relative struct {
	span  int     // places on each side
	place []int32 // by distance, from -(most-1) on
	most  int
}

func (r *relative) places() int { return 2 * r.span }

// from is the places of the distances at-0, at-1 and so on, backwards: that to token t is at [len-1-t].
func (r *relative) from(at, tokens int) []int32 {
	first := at - (tokens - 1) + r.most - 1
	return r.place[first : first+tokens]
}

// newRelative makes the places of up to most tokens. Buckets of 0 means that each distance up to reach has one.
func newRelative(most, buckets, reach int) *relative {
	r := &relative{span: reach, place: make([]int32, 2*most-1), most: most}
	if buckets > 0 {
		r.span = buckets
	}
	for i := range r.place {
		d := i - (most - 1)
		if buckets > 0 {
			d = bucket(d, buckets, reach)
		}
		r.place[i] = int32(min(max(d+r.span, 0), 2*r.span-1))
	}
	return r
}

// bucket is the bucket of a distance: itself up to half of them, then by its logarithm.
func bucket(d, buckets, reach int) int {
	middle := buckets / 2
	size := max(d, -d)
	if size <= middle {
		return d
	}
	// In float32 as the reference: at the edges of buckets the rounding decides.
	ratio := float32(math.Log(float64(float32(size)/float32(middle)))) / float32(math.Log(float64(float32(float64(reach-1)/float64(middle)))))
	at := int(math.Ceil(float64(ratio*float32(middle-1)))) + middle
	if d < 0 {
		return -at
	}
	return at
}

func (n *net) placeRows(x []float32) model.Rows {
	return model.Rows{Values: x, Stride: n.relative.places()}
}

// addPlaces adds what the places say to the scores of rows queries from token first on.
func (n *net) addPlaces(l *layer, head int, query model.Rows, first, rows, tokens int, s *Scratch) {
	if l.keysAt == nil && l.queriesAt == nil {
		return
	}
	places, full := n.relative.places(), filled(tokens)
	if l.keysAt != nil {
		s.byPlace = sized(s.byPlace, model.RowBlock*places)
		l.keysAt[head].apply(n.placeRows(s.byPlace), query, model.Rows{}, rows, &s.sums)
	}
	for r := range rows {
		at, scores := n.relative.from(first+r, tokens), s.scores[r*full:][:tokens]
		if l.keysAt != nil {
			own := s.byPlace[r*places:][:places]
			for t := range scores {
				scores[t] += own[at[tokens-1-t]]
			}
		}
		if l.queriesAt != nil {
			for t := range scores {
				scores[t] += s.ofPlace[t*places+int(at[tokens-1-t])]
			}
		}
	}
}
