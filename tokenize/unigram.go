// The Unigram model: the most likely way to cut a word into pieces.

package tokenize

import "unicode/utf8"

// unigram is SentencePiece's model: each piece has a score, the logarithm of how likely it is, and a
// word is cut where the sum of its pieces' scores is highest. Immutable.
//
// As in the reference library, scores are added from the left in float64, and of two ways with
// equal sums the first one found is kept: a run of one character can be cut in many ways whose
// sums differ by rounding alone.
type unigram struct {
	pieces       trie
	scores       []float64 // by token
	unknown      uint32
	unknownScore float64
	byteFallback *[256]uint32 // <0x00> and so on; none where there is none; nil: not asked for
	longest      int          // bytes of the longest piece
	// The ids in byteFallback lie between firstByte and lastByte, where other ids may lie too. If
	// there are none, firstByte is above lastByte.
	firstByte, lastByte uint32
}

// unknownPenalty is how far the score of an unknown character is below that of the least likely
// piece, as in SentencePiece.
const unknownPenalty = 10

// way is the best way found so far to a place of a word; it holds only the last piece on that way.
type way struct {
	score float64
	token uint32
	size  int32 // bytes of the piece that ends there; 0: no way was found yet
}

// lattice is the working space of one word: 16 bytes for each byte of the word.
type lattice struct {
	best   []way
	places []place // what each token took of the word; only filled where noted
	noted  bool
}

// place is a part of a word: w[from:to].
type place struct{ from, to int }

// word appends the tokens of a word.
func (u *unigram) word(dst []uint32, w []byte, l *lattice) []uint32 {
	l.places = l.places[:0]
	u.search(w, l)
	start := len(dst)
	for end := len(w); end > 0; {
		s := l.best[end]
		begin := end - int(s.size)
		if s.token != u.unknown {
			dst = l.add(dst, s.token, begin, end)
			end = begin
			continue
		}
		// Unknown characters that follow one another are one token.
		for begin > 0 && l.best[begin].token == u.unknown {
			begin -= int(l.best[begin].size)
		}
		dst = u.appendUnknown(dst, w, begin, end, l)
		end = begin
	}
	for i, j := start, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	for i, j := 0, len(l.places)-1; i < j; i, j = i+1, j-1 {
		l.places[i], l.places[j] = l.places[j], l.places[i]
	}
	return dst
}

func (l *lattice) add(dst []uint32, token uint32, from, to int) []uint32 {
	if l.noted {
		l.places = append(l.places, place{from, to})
	}
	return append(dst, token)
}

// search finds the best way to each place of a word.
func (u *unigram) search(w []byte, l *lattice) {
	n := len(w)
	if cap(l.best) <= n {
		l.best = make([]way, n+1+n/4)
	}
	best := l.best[:n+1]
	clear(best)
	root := u.pieces.root()
	for i := 0; i < n; {
		here, size := best[i].score, runeSize(w[i])
		base, known := root, false
		for j := i; j < n; j++ {
			c := uint32(w[j])
			unit := u.pieces[base^c]
			if unit.label() != c {
				break
			}
			base = unit.base()
			token := unit.token()
			if token == noPiece {
				continue
			}
			to := &best[j+1]
			if score := u.scores[token] + here; to.size == 0 || score > to.score {
				*to = way{score, token, int32(j + 1 - i)}
			}
			known = known || j+1-i == size
		}
		if !known {
			to := &best[i+size]
			if score := u.unknownScore + here; to.size == 0 || score > to.score {
				*to = way{score, u.unknown, int32(size)}
			}
		}
		i += size
	}
}

// appendUnknown appends the tokens of w[from:to], in which each character is unknown; the last token
// first.
func (u *unigram) appendUnknown(dst []uint32, w []byte, from, to int, l *lattice) []uint32 {
	run := w[from:to]
	if len(run) <= u.longest {
		// Rare: together the characters are a piece, such as the unknown token's own text.
		if token := u.pieces.find(run); token != noPiece {
			return l.add(dst, token, from, to)
		}
	}
	if u.byteFallback == nil {
		return l.add(dst, u.unknown, from, to)
	}
	for _, c := range run {
		if u.byteFallback[c] == none {
			return l.add(dst, u.unknown, from, to)
		}
	}
	for i := len(run) - 1; i >= 0; i-- {
		dst = l.add(dst, u.byteFallback[run[i]], from, to) // each stands for the whole run
	}
	return dst
}

// runeSize returns how many bytes a character of valid UTF-8 has, given its first byte.
func runeSize(c byte) int {
	switch {
	case c < utf8.RuneSelf:
		return 1
	case c < 0xe0:
		return 2
	case c < 0xf0:
		return 3
	}
	return 4
}
