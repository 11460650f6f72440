// Known words: how the words that came of late are cut into pieces.

package model

import "encoding/binary"

// Of the words of questions in English that are all different, 81 of 100 are found among 16,384 in sets
// of two; 73 were among 8,192, each in the one place where it could be.
const (
	knownSets   = 1 << 13
	knownWays   = 2  // 16,384 words in 1 MB
	maxKnown    = 24 // bytes of such a word, with the space before it
	knownPieces = 6
)

// A wordKey is a word and its length.
type wordKey struct {
	text [maxKnown / 8]uint64
	size uint8
}

// A knownWord is how a word is cut. The zero value is none: no word has length 0.
type knownWord struct {
	key  wordKey
	n    uint8
	ends [knownPieces]uint8 // of its pieces, in bytes from its beginning
	ids  [knownPieces]int32
}

// A wordSet is the words of one remainder.
type wordSet struct {
	words [knownWays]knownWord
	last  uint8 // the one asked for last; the other gives way
}

// lookUp returns where a word of up to maxKnown bytes stands if it is known, else where it may stand,
// and its key. Looking up a word takes one step into memory that may be far; a walk through the
// pieces takes one a letter and two a piece.
func (w *window) lookUp(word []byte) (*knownWord, wordKey) {
	var text [maxKnown]byte
	key := wordKey{size: uint8(copy(text[:], word))}
	hash := uint64(len(word))
	for i := range key.text {
		key.text[i] = binary.LittleEndian.Uint64(text[8*i:])
		hash = (hash ^ key.text[i]) * 0x9FB21C651E98DF25
		hash ^= hash >> 29
	}
	set := &w.words[hash%knownSets]
	if set.words[set.last].key != key {
		set.last ^= 1
	}
	return &set.words[set.last], key
}

// learn puts the best way from one place to the other in the place of an older word.
func (k *knownWord) learn(key wordKey, w *window, from, to int) {
	n := w.trace(from, to)
	if n > knownPieces {
		return
	}
	k.key, k.n = key, uint8(n)
	for i := range n {
		end := w.path[n-1-i]
		k.ends[i], k.ids[i] = uint8(int(end)-from), w.best[end].id
	}
}
