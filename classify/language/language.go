// Package language says which language a text is in: by its script where only
// one language has it, else by byte n-grams and small words.
//
//	code, confidence := language.Detect([]byte("Wie geht es dir?")) // de
//
// The n-grams are those of langid.py (Lui and Baldwin 2012), naive Bayes over
// the languages of one script; scripts/train/language.py says what was added.
package language

import (
	"encoding/binary"
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
	// A sum so far below the highest is as good as none: together they are less than 1e-6.
	negligible = 18 * flatten * perNat
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
	lower := appendLower(buf[:0], text)
	var scores [maxColumns]int32
	of := &t.scripts[s]
	sum := scores[:len(of.codes)]
	copy(sum, of.prior)
	of.addGrams(sum, lower)
	t.addWords(sum, of.first, lower)
	return of.best(sum)
}

// appendLower appends about maxText bytes of a text in small letters, without bytes that are no UTF-8.
func appendLower(lower, text []byte) []byte {
	for i := 0; i < len(text) && len(lower) < maxText; {
		if b := text[i]; b < utf8.RuneSelf {
			if 'A' <= b && b <= 'Z' {
				b += 'a' - 'A'
			}
			lower = append(lower, b)
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if i += n; r == utf8.RuneError && n == 1 {
			continue
		}
		lower = utf8.AppendRune(lower, unicode.ToLower(r))
	}
	return lower
}

// addGrams adds the log probabilities of all n-grams of 1 to 4 bytes. Of 350 in a question 50 count:
// the others are seen to be none of them in 8 KB.
func (c *columns) addGrams(sum []int32, text []byte) {
	var l lanes
	for i := range text {
		key := uint32(0)
		for n := 0; n < 4 && i+n < len(text); n++ {
			key |= uint32(text[i+n]) << (8 * n)
			if !c.mayHave(key) {
				continue
			}
			at, ok := c.find(key)
			if !ok {
				continue
			}
			l.add(c.rows[at:], len(sum))
			if l.n == maxInLane {
				l.moveTo(sum)
			}
		}
	}
	l.moveTo(sum)
}

// lanes are sums of up to maxInLane rows, eight columns at a time: the even ones of them in the lanes of
// one number, the odd ones in those of another.
type lanes struct {
	sums [maxColumns / 8][2]uint64
	n    int // rows
}

const (
	maxInLane = 256
	laneMask  = 0x00ff00ff00ff00ff
)

// add adds a row of so many columns, and reads up to seven bytes after it.
func (l *lanes) add(row []byte, columns int) {
	l.n++
	for k := 0; k < columns; k += 8 {
		x := binary.LittleEndian.Uint64(row[k:])
		sums := &l.sums[k/8]
		sums[0] += x & laneMask
		sums[1] += x >> 8 & laneMask
	}
}

// moveTo adds the sums to sum, and begins anew.
func (l *lanes) moveTo(sum []int32) {
	for k := range sum {
		sum[k] += int32(l.sums[k/8][k%2] >> (16 * (k % 8 / 2)) & 0xffff)
	}
	*l = lanes{}
}

// addWords adds what small words speak for.
func (t *table) addWords(sum []int32, first int, text []byte) {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	hash, letters := uint64(offset), 0
	for i := 0; i <= len(text); {
		r, n := rune(' '), 1
		if i < len(text) {
			if r = rune(text[i]); r >= utf8.RuneSelf {
				r, n = utf8.DecodeRune(text[i:])
			}
		}
		if 'a' <= r && r <= 'z' || r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsMark(r)) {
			for _, b := range text[i : i+n] {
				hash = (hash ^ uint64(b)) * prime
			}
			letters++
		} else if letters > 0 {
			if has := t.place(hash).columns >> first; has != 0 {
				for k := range sum {
					sum[k] += int32(has>>k&1) * perWord * perNat
				}
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
		if x < sum[top]-negligible {
			continue
		}
		p := math.Exp(float64(x-sum[top]) / (flatten * perNat))
		if total += p; c.codes[k] == c.codes[top] {
			mine += p
		}
	}
	return c.codes[top], mine / total
}
