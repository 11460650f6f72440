// Package language says which language a text is in: by its script where only
// one language has it, else by byte n-grams and small words.
//
//	code, confidence := language.Detect([]byte("Wie geht es dir?")) // de
//
// The n-grams are those of langid.py (Lui and Baldwin 2012), naive Bayes over
// the languages of one script; scripts/train/language.py says what was added.
package language

import (
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxText is how many bytes of a text are read: a language shows soon.
const maxText = 1024

// What small words and the number of speakers add, in nats.
const (
	perWord = 5
	flatten = 4 // naive Bayes is far too sure of itself
)

// speakers are the odds of languages that neighbours are taken for.
var speakers = map[string]int32{
	"en": 4 * perNat, "id": 4 * perNat, "ru": perNat, "hi": 2 * perNat, "hr": 2 * perNat, "bg": perNat, "bn": perNat,
	"es": perNat, "fr": perNat, "de": perNat, "it": perNat, "pt": perNat, "ar": perNat, "cs": perNat / 2, "da": perNat / 2,
}

// Detect is the language as ISO 639-1 says it, and how sure that is, 0 to 1; ""
// where the text has no letters of a known script. It reads the first KiB.
func Detect(text []byte) (code string, confidence float64) {
	if len(text) > maxText {
		text = text[:maxText]
	}
	switch s := scriptOf(text); s {
	case none:
		return "", 0
	case latin, cyrillic, arabic, devanagari, bengali:
		return tables().detect(s, text)
	default:
		return alone[s], 1
	}
}

// Codes are the languages that Detect knows, sorted.
func Codes() []string {
	t := tables()
	codes := slices.Clone(alone[firstAlone:])
	for _, s := range t.scripts {
		codes = append(codes, s.codes...)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// detect compares the languages of one script.
func (t *table) detect(s script, text []byte) (string, float64) {
	var buf [maxText + 64]byte
	lower := buf[:0]
	for i := 0; i < len(text) && len(lower) < maxText; {
		r, n := utf8.DecodeRune(text[i:])
		if i += n; r == utf8.RuneError && n == 1 {
			continue
		}
		lower = utf8.AppendRune(lower, unicode.ToLower(r))
	}
	var scores [maxColumns]int32
	of := &t.scripts[s]
	sum := scores[:len(of.codes)]
	copy(sum, of.prior)
	of.addGrams(sum, lower)
	t.addWords(sum, of.first, lower)
	return of.best(sum)
}

// addGrams adds the log probabilities of all n-grams of 1 to 4 bytes.
func (c *columns) addGrams(sum []int32, text []byte) {
	for i := range text {
		key := uint32(0)
		for n := 0; n < 4 && i+n < len(text); n++ {
			key |= uint32(text[i+n]) << (8 * n)
			row := c.find(key)
			if row == nil {
				continue
			}
			for k, q := range row {
				sum[k] += int32(q)
			}
		}
	}
}

// addWords adds what small words speak for.
func (t *table) addWords(sum []int32, first int, text []byte) {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	hash, letters := uint64(offset), 0
	for i := 0; i <= len(text); {
		r, n := rune(' '), 1
		if i < len(text) {
			r, n = utf8.DecodeRune(text[i:])
		}
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			for _, b := range text[i : i+n] {
				hash = (hash ^ uint64(b)) * prime
			}
			letters++
		} else if letters > 0 {
			has := t.word(hash) >> first
			for k := range sum {
				sum[k] += int32(has>>k&1) * perWord * perNat
			}
			hash, letters = offset, 0
		}
		i += n
	}
}

// best is the language with the highest sum. Written forms of one language
// have a column each; their chances add up.
func (c *columns) best(sum []int32) (string, float64) {
	top := slices.Index(sum, slices.Max(sum))
	total, mine := 0.0, 0.0
	for k, x := range sum {
		p := math.Exp(float64(x-sum[top]) / (flatten * perNat))
		if total += p; c.codes[k] == c.codes[top] {
			mine += p
		}
	}
	return c.codes[top], mine / total
}
