// What kind of character each code point is, as the reference library sees it: unicode.bin.

package tokenize

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"sync"
)

// unicodeBin is written by scripts/tokenizers/tables.py, which asks the reference library; its format
// stands there. The library's tables are of several versions of Unicode, Go's of yet another.
//
//go:embed unicode.bin
var unicodeBin []byte

// Classes of code points, as the split patterns tell them apart; the low bits of a table's byte.
const (
	classOther  = iota
	classSpace  // \s
	classUpper  // \p{Lu} \p{Lt}
	classLower  // \p{Ll}
	classLetter // \p{Lm} \p{Lo}
	classMark   // \p{M}
	classNumber // \p{N}
	classPunctuation
	classSymbol
)

const (
	classBits = 0x0f

	flagCombining = 0x10 // its combining class is not 0
	flagNFD       = 0x20 // NFD changes it
	flagNFC       = 0x40 // NFC changes it, or composes it with what stands before
)

// Sets of classes: set>>class&1.
const (
	setLetters    = 1<<classUpper | 1<<classLower | 1<<classLetter
	setMarks      = 1 << classMark
	setNumbers    = 1 << classNumber
	setSpaces     = 1 << classSpace
	setPunctuated = 1<<classPunctuation | 1<<classSymbol
	setUpperLike  = 1<<classUpper | 1<<classLetter | 1<<classMark // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	setLowerLike  = 1<<classLower | 1<<classLetter | 1<<classMark // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
)

// What BertNormalizer and BertPreTokenizer do with a code point, and what it means next to an
// added token.
const (
	bertDropped     = 1 << iota // clean_text removes it
	bertBlank                   // clean_text makes it a space
	bertNonspacing              // strip_accents removes it
	bertPunctuation             // a word of its own
	bertWhite                   // between words; what lstrip and rstrip take
	runeWord                    // \w: part of a word, for single_word
	runeNumeric                 // a digit to Digits
	runeAccent                  // StripAccents removes it
)

// codePoints is a byte for each code point.
type codePoints struct {
	page  [0x1100]uint16 // of c>>8
	bytes [][256]uint8
}

func (p *codePoints) of(r rune) uint8 { return p.bytes[p.page[r>>8]][uint8(r)] }

// step is one step of a canonical decomposition; second is 0 where there is one code point only.
type step struct{ first, second rune }

// unicodeTables is all of unicode.bin. Immutable.
type unicodeTables struct {
	codePoints
	ascii     [128]uint8 // the same for ASCII
	bert      codePoints
	combining map[rune]uint8 // those that are not 0
	decompose map[rune]step
	compose   map[step]rune
	lower     map[rune]string
	compat    map[rune]string // full compatibility decompositions, where they differ from the canonical
	clusters  codePoints      // see grapheme.go
}

// unicodes reads the table once, which takes some milliseconds.
var unicodes = sync.OnceValue(func() *unicodeTables {
	u, err := readUnicode(unicodeBin)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return u
})

// tableReader reads unicode.bin.
type tableReader struct {
	data []byte
	bad  bool
}

func (r *tableReader) number() int {
	n, size := binary.Uvarint(r.data)
	if size <= 0 || n > 0x10ffff {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return int(n)
}

func (r *tableReader) byte() uint8 {
	if len(r.data) == 0 {
		r.bad = true
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

// list reads the next list, and calls one with the code point of each entry.
func (r *tableReader) list(one func(c rune)) {
	c := 0
	for n := r.number(); n > 0 && !r.bad; n-- {
		c += r.number()
		if c > 0x10ffff {
			r.bad = true
			return
		}
		one(rune(c))
	}
}

// runs reads a list of runs into a byte for each code point.
func (r *tableReader) runs() []uint8 {
	all := make([]uint8, 0x110000)
	from, value := 0, uint8(0)
	fill := func(to int) {
		for i := from; i < to; i++ {
			all[i] = value
		}
	}
	r.list(func(c rune) {
		fill(int(c))
		from, value = int(c), r.byte()
	})
	fill(len(all))
	return all
}

// paged stores equal pages of 256 code points only once.
func paged(all []uint8) codePoints {
	var p codePoints
	known := map[[256]uint8]uint16{}
	for i := range p.page {
		page := [256]uint8(all[i<<8:])
		n, ok := known[page]
		if !ok {
			n = uint16(len(p.bytes))
			known[page] = n
			p.bytes = append(p.bytes, page)
		}
		p.page[i] = n
	}
	return p
}

func readUnicode(data []byte) (*unicodeTables, error) {
	r := &tableReader{data: data}
	u := &unicodeTables{
		combining: map[rune]uint8{},
		decompose: map[rune]step{},
		compose:   map[step]rune{},
		lower:     map[rune]string{},
		compat:    map[rune]string{},
	}
	classes := r.runs()
	u.bert = paged(r.runs())
	r.list(func(c rune) {
		u.combining[c] = r.byte()
		classes[c] |= flagCombining
	})
	r.list(func(c rune) {
		flags, s := r.byte(), step{rune(r.number()), rune(r.number())}
		u.decompose[c] = s
		classes[c] |= flagNFD
		if flags&1 == 0 {
			classes[c] |= flagNFC
			return
		}
		u.compose[s] = c
		classes[s.second] |= flagNFC
	})
	for _, table := range []map[rune]string{u.lower, u.compat} {
		r.list(func(c rune) {
			to := make([]rune, r.byte())
			for i := range to {
				to[i] = rune(r.number())
			}
			table[c] = string(to)
		})
	}
	u.clusters = paged(r.runs())
	if r.bad || len(r.data) > 0 {
		return nil, fmt.Errorf("unicode.bin is broken, %d bytes before its end", len(r.data))
	}
	for c := rune(hangulBase); c < hangulEnd; c++ {
		classes[c] |= flagNFD
	}
	for c := rune(jamoV); c < jamoV+jamoVowels; c++ {
		classes[c] |= flagNFC
	}
	for c := rune(jamoT + 1); c < jamoT+jamoTails; c++ {
		classes[c] |= flagNFC
	}
	u.codePoints = paged(classes)
	copy(u.ascii[:], classes)
	return u, nil
}

// at is the class byte of the character at s[i], and its size in bytes. s is valid UTF-8, longer
// than i.
func (u *unicodeTables) at(s []byte, i int) (class uint8, size int) {
	if c := s[i]; c < 0x80 {
		return u.ascii[c], 1
	}
	return u.wide(s, i)
}

func (u *unicodeTables) wide(s []byte, i int) (class uint8, size int) {
	r, n := decode(s, i)
	return u.of(r), n
}

// decode is the code point of the character at s[i], and its size in bytes. s is valid UTF-8.
func decode(s []byte, i int) (rune, int) {
	switch c := s[i]; {
	case c < 0x80:
		return rune(c), 1
	case c < 0xe0:
		return rune(c&0x1f)<<6 | rune(s[i+1]&0x3f), 2
	case c < 0xf0:
		return rune(c&0x0f)<<12 | rune(s[i+1]&0x3f)<<6 | rune(s[i+2]&0x3f), 3
	default:
		return rune(c&0x07)<<18 | rune(s[i+1]&0x3f)<<12 | rune(s[i+2]&0x3f)<<6 | rune(s[i+3]&0x3f), 4
	}
}

// run is the end of the characters of a set from s[i] on.
func (u *unicodeTables) run(s []byte, i int, set uint32) int {
	for i < len(s) {
		if c := s[i]; c < 0x80 {
			if set>>(u.ascii[c]&classBits)&1 == 0 {
				return i
			}
			i++
			continue
		}
		class, n := u.wide(s, i)
		if set>>(class&classBits)&1 == 0 {
			return i
		}
		i += n
	}
	return i
}
