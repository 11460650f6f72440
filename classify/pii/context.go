// Words that say what the next value is, and how the pass looks them up.

package pii

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// label is the kind of value that a word announces.
type label uint8

const (
	lNone label = iota
	lPhone
	lCard
	lSSN
	lLicence
	lPassport
	lBank
	lRouting
	lMRN
	lZip
	lAge
	lAadhaar
	lNHS
	lNINO
	lVAT
	lKey
	lPassword
	lResident
	lIBAN
	lDate
	lAddress
	lOther // a number of another kind: an order, a ticket, an ISBN
)

// Other uses of a word, besides announcing a value.
const (
	wSecond  = 1 << iota // ends a phrase of two words, whose first is the word before
	wFiller              // may stand between an announcing word and its value
	wIs                  // a filler that asserts: "is", "lautet", "="
	wWeekday             // a day of the week
	wYear                // a year may follow: "in", "since"
	wUnit                // after a number it says that the number counts things
	wOld                 // after a number it says that the number is an age
	wWeak                // announces an age only before the end of a clause
	wCapital             // counts only in capitals: "DL", not "dl"
	wJoin                // stands between the words of a phrase: "of", "de"
)

// word is an entry of the vocabulary.
type word struct {
	hash  uint64
	label label
	month uint8 // 1 to 12: the name of a month
	use   uint16
}

// reach is how many bytes after its label a value may begin.
const reach = 48

const (
	hashStart = 0xcbf29ce484222325
	hashPrime = 0x100000001b3
	// vocabularySize is a power of two of at least twice the entries.
	vocabularySize = 8192
)

// vocabulary is a hash table with open addressing over the words of words.go.
// filter keeps almost every ordinary word from touching the table: 8 KB that
// stay in the first-level cache, against 192 KB.
type vocabulary struct {
	slots  [vocabularySize]word
	filter [1 << 10]uint64
}

var words = newVocabulary()

func newVocabulary() *vocabulary {
	v := new(vocabulary)
	for _, e := range entries {
		for _, text := range strings.Fields(e.words) {
			for _, form := range forms(text) {
				v.addPhrase(form, word{label: e.label, use: e.use})
			}
		}
	}
	for _, names := range monthNames {
		for i, text := range strings.Fields(names) {
			for _, name := range strings.Split(text, "/") {
				for _, form := range forms(name) {
					v.addPhrase(form, word{month: uint8(i + 1)})
				}
			}
		}
	}
	return v
}

// forms returns the spellings of a word that hashing does not fold: it lower-cases only ASCII.
func forms(text string) []string {
	ascii := true
	for i := range len(text) {
		ascii = ascii && text[i] < utf8.RuneSelf
	}
	if ascii {
		return []string{text}
	}
	_, size := utf8.DecodeRuneInString(text)
	return []string{text, strings.ToUpper(text[:size]) + text[size:], strings.ToUpper(text)}
}

func (v *vocabulary) addPhrase(text string, w word) {
	first, second, isPhrase := strings.Cut(text, "+")
	w.hash = hashWord(first)
	if isPhrase {
		v.add(word{hash: hashWord(second), use: wSecond})
		w.hash = hashPhrase(w.hash, hashWord(second))
	}
	v.add(w)
}

// add adds w to the table, or merges it into an existing entry.
func (v *vocabulary) add(w word) {
	v.filter[w.hash>>54] |= 1 << (w.hash >> 48 & 63)
	for i := w.hash % vocabularySize; ; i = (i + 1) % vocabularySize {
		e := &v.slots[i]
		if e.hash == 0 {
			*e = w
			return
		}
		if e.hash == w.hash {
			e.use |= w.use
			e.label = max(e.label, w.label)
			e.month = max(e.month, w.month)
			return
		}
	}
}

// find returns the entry for a hash; the zero word if there is none.
func (v *vocabulary) find(hash uint64) word {
	if v.filter[hash>>54]>>(hash>>48&63)&1 == 0 {
		return word{}
	}
	for i := hash % vocabularySize; ; i = (i + 1) % vocabularySize {
		switch e := v.slots[i]; e.hash {
		case hash:
			return e
		case 0:
			return word{}
		}
	}
}

// hashWord is FNV-1a over a word, A to Z lower-cased, mixed so that the
// filter may use the high bits.
func hashWord(text string) uint64 {
	h := uint64(hashStart)
	for i := range len(text) {
		h = (h ^ uint64(lower(text[i]))) * hashPrime
	}
	return mix(h)
}

func hashPhrase(first, second uint64) uint64 { return mix(first*3 ^ second) }

func mix(h uint64) uint64 {
	h ^= h >> 32
	h *= 0x9E3779B97F4A7C15
	return h ^ h>>29
}

func lower(c byte) byte {
	if isUpper(c) {
		return c | 0x20
	}
	return c
}

// wordAt reads the word that begins at text[i]: ASCII letters and the letters
// of scripts that are written with spaces. It returns the hash and the end;
// end == i if there is no word.
func wordAt(text []byte, i int) (hash uint64, end int) {
	h := uint64(hashStart)
	for i < len(text) {
		c := text[i]
		if c < utf8.RuneSelf {
			if !isLetter(c) {
				break
			}
			h = (h ^ uint64(c|0x20)) * hashPrime
			i++
			continue
		}
		size := letterSize(text[i:])
		if size == 0 {
			break
		}
		for _, c := range text[i : i+size] {
			h = (h ^ uint64(c)) * hashPrime
		}
		i += size
	}
	return mix(h), i
}

// letterSize returns how many bytes the letter or mark at the start of text
// takes, 0 if there is none or its script is written without spaces. text
// begins with a byte that is not ASCII.
func letterSize(text []byte) int {
	switch c := text[0]; {
	case c >= 0xC3 && c <= 0xDF && len(text) > 1 && text[1]&0xC0 == 0x80:
		// Latin with accents, Greek, Cyrillic, Hebrew, Arabic and more. Their digits and signs
		// are not part of a word.
		if c == 0xD9 && text[1] >= 0xA0 && text[1] <= 0xAD || c == 0xDB && text[1] >= 0xB0 && text[1] <= 0xB9 || c == 0xD8 && text[1] <= 0x9F {
			return 0
		}
		return 2
	case c == 0xE0 || c == 0xE1:
		if r, size := utf8.DecodeRune(text); size == 3 && foldRune(r) == foreign {
			return 3
		}
	}
	return 0
}

// glyphs are the announcing words of scripts without spaces, by a hash of
// their first three bytes.
type glyph struct {
	text string
	word word
}

const glyphSlots = 1 << 11

var glyphs = newGlyphs()

func newGlyphs() *[glyphSlots][]glyph {
	g := new([glyphSlots][]glyph)
	for _, e := range glyphEntries {
		for _, text := range strings.Fields(e.words) {
			i := glyphSlot(text[0], text[1], text[2])
			g[i] = append(g[i], glyph{text, word{label: e.label, use: e.use}})
		}
	}
	return g
}

func glyphSlot(a, b, c byte) int {
	return (int(a)<<7 ^ int(b&63)<<6 ^ int(c&63)) % glyphSlots
}

// glyphAt returns the longest entry at text[i] and its length in bytes; 0: none.
func glyphAt(text []byte, i int) (w word, size int) {
	if i+3 > len(text) {
		return word{}, 0
	}
	for _, g := range glyphs[glyphSlot(text[i], text[i+1], text[i+2])] {
		if len(g.text) > size && bytes.HasPrefix(text[i:], []byte(g.text)) {
			w, size = g.word, len(g.text)
		}
	}
	return w, size
}

// near reports whether a word of label l announces a value that begins at i.
func (s *scan) near(l label, i int) bool {
	return l != lNone && (s.label == l || l == lBank && s.label == lRouting) && i-s.labelEnd <= reach
}

// foreign reports whether a word announces the value that begins at i as an identity number or
// another number that is not of kind l.
func (s *scan) foreign(l label, i int) bool {
	return s.label != lNone && s.label != l && i-s.labelEnd <= reach
}
