// Weight: how much meaning a word carries.

package verify

import "math/bits"

// Weights of words. The weight of other words is their rarity, read from the tokenizer, whose
// pieces are numbered by how often they occur.
const (
	smallWeight = 0.1
	askWeight   = 0.15
	lightWeight = 0.3
	fullWeight  = 1
)

// weigh looks up a word's tokens and sets its weight.
func (r *reader) weigh(w *word) {
	switch {
	case w.class&(closed|unit|name) != 0:
		w.weight = 1.2
	case w.class&(number|isCode|operator|negator) != 0:
		w.weight = fullWeight
		return
	case w.class&asks != 0:
		w.weight = askWeight
		return
	case w.class&small != 0:
		w.weight = smallWeight
		return
	case w.class&light != 0:
		w.weight = lightWeight
	}
	if len(r.p.ids) > maxIDs {
		w.weight = max(w.weight, fullWeight)
		return
	}
	r.p.tokens = r.v.tokens.Tokenize(r.p.tokens[:0], r.text[w.start:w.end], &r.p.model)
	w.token = int32(len(r.p.ids))
	rarest := int32(0)
	for _, t := range r.p.tokens {
		if t.Start < t.End {
			r.p.ids = append(r.p.ids, t.ID)
			rarest = max(rarest, t.ID)
		}
	}
	w.tokens = int32(len(r.p.ids)) - w.token
	if w.weight == 0 {
		w.weight = min(rarity(rarest)+0.15*float32(max(w.tokens-1, 0)), 1.6)
	}
}

// maxIDs bounds the tokens of a pair that are looked up.
const maxIDs = 1024

// rarity returns the rarity of a token, from 0.35 to 1.2: its number is how many tokens occur
// more often.
func rarity(id int32) float32 {
	const first, last = 8, 17 // powers of two
	n := float32(bits.Len32(uint32(id)))
	if id > 0 {
		n += float32(id)/float32(uint32(1)<<bits.Len32(uint32(id))) - 1
	}
	return 0.35 + 0.85*min(max((n-first)/(last-first), 0), 1)
}
