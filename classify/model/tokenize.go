// The tokenizer: a unigram model, the most likely way to cut the normalised text into pieces.

package model

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// Token is one piece of a text: its row in the token table, and the bytes of the text that it
// stands for. White space before a piece is not part of it; a piece of only white space is empty
// and lies before the next character.
type Token struct{ ID, Start, End int32 }

// IDs of the pieces that are no text.
const (
	unknownID = 0 // a character that no piece covers
	beginID   = 1 // <s>
	endID     = 2 // </s>
)

// unigram is the tokenizer's model.
type unigram struct {
	normal  *normaliser
	pieces  trie    // -> ID
	scores  []byte  // [IDs] float32, little-endian: the log-probability of each
	unknown float64 // the score of a character that no piece covers
}

// windowSize is how many bytes of normalised text are cut at a time. A cut is made only where no
// piece reaches across, which real text has at every word; text that has none in a whole window
// is cut at the window's end.
const windowSize = 4096

// longestPiece bounds a piece's bytes; the walk through the pieces ends there.
const longestPiece = 64

// maxGrowth is the most bytes of normalised text that may come at once: the longest text in the
// table, or one character with the space before it.
const maxGrowth = 256

// window is normalised text, and the best way to each place in it.
type window struct {
	size  int // bytes of text in use
	text  [windowSize + maxGrowth]byte
	start [windowSize + maxGrowth]int32 // first byte of the text behind each normalised byte
	end   [windowSize + maxGrowth]int32 // behind its last byte
	best  [windowSize + maxGrowth + 1]reach
	path  [windowSize + maxGrowth]int32 // where the pieces of the best way end, last first
	words [knownSets]wordSet
}

// reach is the best way to a place: its score, where its last piece begins, and which it is.
type reach struct {
	score    float64
	from, id int32
}

// space is how the pieces spell white space, U+2581.
var space = []byte("\u2581")

// source is what is left of a text, normalised piece by piece into a window.
type source struct {
	text    []byte
	at      int
	pending bool // white space has been read that belongs before the next character
}

// Tokenize appends the tokens of text to dst, without <s> and </s>; none if nothing is left of text
// after normalising. Bytes that are no UTF-8 count as an
// unknown character each. Time is linear in the text, memory
// beside dst is s alone. Texts of 2 GiB and more are cut there.
func (m *Model) Tokenize(dst []Token, text []byte, s *Scratch) []Token {
	text = text[:min(len(text), math.MaxInt32)]
	if s.window == nil {
		s.window = new(window)
	}
	w, src := s.window, source{text: text, pending: true}
	w.size = 0
	for {
		m.words.fill(w, &src)
		if w.size == 0 {
			return dst
		}
		var cut int
		dst, cut = m.words.cut(dst, w, src.at >= len(text))
		w.drop(cut)
	}
}

// fill normalises text into w until w is full or the text ends.
func (u *unigram) fill(w *window, src *source) {
	text := src.text
	for src.at < len(text) && w.size < windowSize {
		at := src.at
		if b := text[at]; b < utf8.RuneSelf && (at+1 == len(text) || text[at+1] < utf8.RuneSelf) {
			if c := u.normal.ascii[b]; c != 0 {
				src.at++
				if c == ' ' {
					src.pending = true
					continue
				}
				if src.pending {
					w.add(space, int32(at), int32(at))
					src.pending = false
				}
				w.text[w.size], w.start[w.size], w.end[w.size] = c, int32(at), int32(at+1)
				w.size++
				continue
			}
		}
		normal, taken := u.normal.next(text[at:])
		src.at += taken
		u.addNormal(w, src, normal[:min(len(normal), maxGrowth/2)], at)
	}
}

// addNormal adds normalised text that stands for the bytes from at to src.at, white space collapsed.
func (u *unigram) addNormal(w *window, src *source, normal []byte, at int) {
	for len(normal) > 0 {
		if normal[0] == ' ' {
			src.pending = true
			normal = normal[1:]
			continue
		}
		if src.pending {
			w.add(space, int32(at), int32(at))
			src.pending = false
		}
		run := normal
		if i := bytes.IndexByte(normal, ' '); i >= 0 {
			run = normal[:i]
		}
		w.add(run, int32(at), int32(src.at))
		normal = normal[len(run):]
	}
}

// add appends normalised bytes that stand for [start, end) of the text.
func (w *window) add(normal []byte, start, end int32) {
	at := w.size
	w.size += copy(w.text[at:], normal)
	for i := at; i < w.size; i++ {
		w.start[i], w.end[i] = start, end
	}
}

// cut appends the tokens of w, up to the place it returns. No piece reaches from one word into the
// next, so each is looked for among those that are known, or cut for itself.
func (u *unigram) cut(dst []Token, w *window, last bool) ([]Token, int) {
	from := 0
	for from < w.size {
		to := w.size
		if i := bytes.Index(w.text[from+1:w.size], space); i >= 0 {
			to = from + 1 + i
		} else if !last && from > 0 {
			break
		} else if !last {
			cut := u.search(w, 0, w.size, false)
			return w.emit(dst, 0, cut), cut
		}
		dst = u.cutWord(dst, w, from, to)
		from = to
	}
	return dst, from
}

// cutWord appends the tokens of the word at [from, to).
func (u *unigram) cutWord(dst []Token, w *window, from, to int) []Token {
	if to-from > maxKnown {
		u.search(w, from, to, true)
		return w.emit(dst, from, to)
	}
	known, key := w.lookUp(w.text[from:to])
	if known.key != key {
		u.search(w, from, to, true)
		dst = w.emit(dst, from, to)
		known.learn(key, w, from, to)
		return dst
	}
	at := from
	for i, id := range known.ids[:known.n] {
		end := from + int(known.ends[i])
		dst = append(dst, w.token(id, at, end))
		at = end
	}
	return dst
}

// search finds the best way through [from, to) of w and returns where to cut: the last place that no
// piece reaches across, the end if nothing follows.
//
// Every place keeps the best way to it (Viterbi); of equal ones the one found first, whose last
// piece is the longest.
func (u *unigram) search(w *window, from, to int, last bool) (cut int) {
	limit := to
	if !last {
		// Pieces that begin later might go on in text that is not there yet.
		limit -= longestPiece
	}
	for i := range w.best[from : to+1] {
		w.best[from+i].score = math.Inf(-1)
	}
	w.best[from].score = 0
	far := from // the farthest place that a piece reaches
	i := from
	for i < limit {
		if i == far {
			cut = i
		}
		far = max(far, u.extend(w, i, to))
		i += width(w.text[i:to])
	}
	if last || cut == 0 {
		return i
	}
	if i == far {
		cut = i
	}
	return cut
}

// extend tries every piece that begins at place i and ends by end, and returns the farthest place
// reached.
func (u *unigram) extend(w *window, i, end int) (far int) {
	from := w.best[i].score
	text := w.text[i:min(end, i+longestPiece)]
	one := width(text)
	single := false
	base := u.pieces.root()
	for k, c := range text {
		next, ends, ok := u.pieces.step(base, c)
		if !ok {
			break
		}
		base = next
		if !ends {
			continue
		}
		far = k + 1
		single = single || far == one
		id := u.pieces.value(base)
		w.reach(i, i+far, from+u.score(id), id)
	}
	if !single {
		far = max(far, one)
		w.reach(i, i+one, from+u.unknown, unknownID)
	}
	return i + far
}

// score returns the log-probability of a piece.
func (u *unigram) score(id uint32) float64 {
	if at := uint64(id) * 4; at+4 <= uint64(len(u.scores)) {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(u.scores[at:])))
	}
	return u.unknown
}

// reach notes a way to place to.
func (w *window) reach(from, to int, score float64, id uint32) {
	if b := &w.best[to]; score > b.score {
		*b = reach{score, int32(from), int32(id)}
	}
}

// width returns the bytes of the first character of normalised text, which is valid UTF-8.
func width(text []byte) int {
	switch c := text[0]; {
	case c < 0xc0:
		return 1
	case c < 0xe0:
		return min(2, len(text))
	case c < 0xf0:
		return min(3, len(text))
	default:
		return min(4, len(text))
	}
}

// emit appends the tokens of the best way from one place to another.
func (w *window) emit(dst []Token, from, to int) []Token {
	n := w.trace(from, to)
	for n--; n >= 0; n-- {
		end := int(w.path[n])
		dst = append(dst, w.token(w.best[end].id, from, end))
		from = end
	}
	return dst
}

// trace stores the best way in path, and returns how many pieces it has.
func (w *window) trace(from, to int) (n int) {
	for at := int32(to); int(at) > from; at = w.best[at].from {
		w.path[n] = at
		n++
	}
	return n
}

// token is the piece id at [from, to).
func (w *window) token(id int32, from, to int) Token {
	first := from
	if to-from > len(space) && bytes.HasPrefix(w.text[from:to], space) {
		first += len(space)
	}
	return Token{id, w.start[first], w.end[to-1]}
}

// drop removes the first n bytes.
func (w *window) drop(n int) {
	copy(w.start[:], w.start[n:w.size])
	copy(w.end[:], w.end[n:w.size])
	w.size = copy(w.text[:], w.text[n:w.size])
}
