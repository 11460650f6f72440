// The words that the tagger works on at a time.

package tagger

import "kvasir/classify/model"

// blockSize is how many words are held at a time: those to be tagged, and those that these see on
// both sides.
const blockSize = 192

// A Scratch is the memory that one Tag at a time works in, about 250 KB once it has been used. The zero
// value is ready.
type Scratch struct{ block *block }

// block is the words under way and what is computed of them.
type block struct {
	scan  wordScan
	done  bool // the text has no more words
	words [blockSize]word
	size  int // of words
	first int // the first that has no tag yet
	token int // where to look for the pieces of words[0]

	row    [model.Dim]float32
	input  [model.RowBlock * inputSize]float32
	hidden [2][blockSize * hiddenSize]float32
	score  [blockSize * tags]float32 // of each tag for each word
	best   [blockSize][tags]uint8    // the tag before, on the best way to each tag
	tag    [blockSize]uint8
	scale  [blockSize]float32
}

func (b *block) begin(text []byte) {
	b.scan = wordScan{text: text}
	b.done, b.size, b.first, b.token = false, 0, 0, 0
}

// fill reads words until the block is full or the text ends, and says whether there are any to tag.
func (b *block) fill(lists *lexicon) bool {
	for b.size < blockSize && !b.done {
		w, ok := b.scan.next()
		if !ok {
			b.done = true
			break
		}
		lists.look(&w, b.words[:b.size])
		b.words[b.size] = w
		b.size++
	}
	return b.first < b.size
}

// candidates returns the first range of words before limit that may hold a name: from a word that
// may be part of one to the last such word, as long as they lie near each other. It is empty if
// there is none.
func (b *block) candidates(limit int) (from, to int) {
	from = b.first
	for from < limit && !b.words[from].candidate() {
		from++
	}
	if from == limit {
		return limit, limit
	}
	to = from + 1
	for i := to; i < limit && i-to < gateGap; i++ {
		if b.words[i].candidate() {
			to = i + 1
		}
	}
	// A name may go on in words that are no candidates alone.
	return max(from-gateRoom, b.first), min(to+gateRoom, limit)
}

// gateGap is how many words without a candidate part two ranges: less would cost more than it
// saves, for each range is computed with reach words on both sides.
const gateGap = 2*reach + gateRoom

// gateRoom is how many words on both sides of a candidate are tagged along.
const gateRoom = 4

// The lists that speak for a name.
const (
	nameLists   = 1<<listFirst | 1<<listLast | 1<<listCity | 1<<listCountry | 1<<listPeople | 1<<listOrg | 1<<listHonorific
	commonLists = 1<<listCommon | 1<<listPlain
)

// candidate says whether a word may be part of a name: it has a capital letter and is no common
// word at the beginning of a sentence, or it is in a list of names and no common word, or its
// script has no capital letters.
func (w *word) candidate() bool {
	if w.shape&shapeLetters == 0 {
		return false
	}
	frequent := w.lists&(1<<listFrequent) != 0
	if w.shape&(shapeCapital|shapeMixed) != 0 {
		return w.shape&shapeSentence == 0 || w.lists&commonLists == 0 || frequent
	}
	if w.shape&(shapeIdeograph|shapeHiragana|shapeKatakana|shapeHangul|shapeOtherScript) != 0 || w.pair&nameLists != 0 {
		return true
	}
	return w.lists&nameLists != 0 && w.lists&commonLists == 0 && (w.lists&(1<<listMixed) == 0 || frequent) && w.shape&shapeOne == 0
}

// cut returns where to go on after words [from, to) of those before limit have been tagged: at
// to, or behind the last word without a name if a name may go on there.
func (b *block) cut(from, to, limit int) int {
	if b.done || to < limit {
		return to
	}
	for i := to; i > (from+to)/2; i-- {
		if b.tag[i-1] == 0 {
			return i
		}
	}
	return to
}

// drop forgets the words before cut but for those that the next ones see.
func (b *block) drop(cut int, tokens []model.Token) {
	n := max(cut-reach, 0)
	b.size = copy(b.words[:], b.words[n:b.size])
	b.first = cut - n
	if b.size == 0 {
		return
	}
	for b.token < len(tokens) && tokens[b.token].End <= b.words[0].start {
		b.token++
	}
}
