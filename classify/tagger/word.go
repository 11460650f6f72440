// Words of a text, as the tagger counts them, and what they look like.

package tagger

import (
	"unicode"
	"unicode/utf8"
)

// word is one unit that gets a tag: a run of letters, a run of digits, or one other character.
// Scripts that put no spaces between words give one unit a character.
type word struct {
	start, end int32 // bytes of the text
	hash       uint64
	shape      shape
	lists      uint16 // that have it
	pair       uint16 // that have the word before and it
}

// shape holds what a word looks like, one bit each.
type shape uint64

// The bits of a shape. Training sees them by number: add at the end, and train anew.
const (
	shapeCapital  shape = 1 << iota // begins with a capital letter
	shapeCapitals                   // two or more letters, all capital
	shapeInitial                    // a single capital letter
	shapeLower                      // no capital letter
	shapeMixed                      // a capital letter after a small one
	shapeLetters
	shapeDigits
	shapeSymbol
	shapeLatin
	shapeIdeograph
	shapeHiragana
	shapeKatakana
	shapeHangul
	shapeCyrillic
	shapeOtherScript
	shapeSpace   // white space before it
	shapeNewline // a line break before it
	shapeFirst   // the first of the text
	shapeSentence
	shapeOne // one letter or digit
	shapeTwo
	shapeThree
	shapeFew  // four to six
	shapeMany // seven to ten
	shapeLong
	shapeAccent // a Latin letter beyond ASCII
	shapePeriod // symbols, from here on
	shapeComma
	shapeColon
	shapeSemicolon
	shapeApostrophe
	shapeQuote
	shapeOpen
	shapeClose
	shapeHyphen
	shapeSlash
	shapeAmpersand
	shapeAt
	shapeHash
	shapeUnderline
	shapeEndMark // ! or ?
	shapeLess
	shapeGreater
	shapeMoney
	shapeEqual
	shapeStar
	shapeEmoji
	shapeOtherSymbol
	shapeHandle // follows an @ at once
	shapeTag    // follows a # at once
	shapeDot    // the next character is a full stop
	shapeGlued  // the next word follows at once
)

// wordEnd returns where the word that begins at text[i] ends, its kind, and its first rune.
func wordEnd(text []byte, i int) (end int, kind shape, first rune) {
	first, size := utf8.DecodeRune(text[i:])
	kind = kindOf(first)
	end = i + size
	if kind&(shapeIdeograph|shapeHiragana|shapeHangul|shapeSymbol) != 0 {
		return end, kind, first
	}
	for end < len(text) {
		r, size := utf8.DecodeRune(text[end:])
		k := kindOf(r)
		if k != kind && (k&shapeLetters == 0 || kind&shapeLetters == 0 || (k^kind)&(shapeKatakana|shapeIdeograph|shapeHiragana|shapeHangul) != 0) {
			break
		}
		end += size
	}
	return end, kind, first
}

// kindOf returns the bits that a character gives to its word: letters, digits or symbol, and the
// script.
func kindOf(r rune) shape {
	if r < utf8.RuneSelf {
		switch {
		case r|0x20 >= 'a' && r|0x20 <= 'z':
			return shapeLetters | shapeLatin
		case r >= '0' && r <= '9':
			return shapeDigits
		}
		return shapeSymbol
	}
	switch {
	case r < 0x250, r >= 0x1e00 && r < 0x1f00, r >= 0xff21 && r <= 0xff5a:
		if unicode.IsLetter(r) {
			return shapeLetters | shapeLatin
		}
	case r >= 0x400 && r < 0x530:
		return shapeLetters | shapeCyrillic
	case r >= 0x3041 && r <= 0x309f:
		return shapeLetters | shapeHiragana
	case r >= 0x30a1 && r <= 0x30ff && r != 0x30fb:
		return shapeLetters | shapeKatakana
	case r >= 0xac00 && r <= 0xd7a3:
		return shapeLetters | shapeHangul
	case r >= 0x3400 && r <= 0x9fff, r == 0x3005, r >= 0x20000 && r <= 0x3ffff:
		return shapeLetters | shapeIdeograph
	case r >= 0x300 && r < 0x370:
		return shapeLetters | shapeLatin // combining marks
	}
	switch {
	case unicode.IsLetter(r), unicode.IsMark(r):
		return shapeLetters | shapeOtherScript
	case unicode.IsDigit(r):
		return shapeDigits
	}
	return shapeSymbol
}

// symbols are the bits of symbols below 128.
var symbols = func() (table [128]shape) {
	for bit, list := range map[shape]string{
		shapePeriod: ".", shapeComma: ",", shapeColon: ":", shapeSemicolon: ";", shapeApostrophe: "'`", shapeQuote: `"`,
		shapeOpen: "([{", shapeClose: ")]}", shapeHyphen: "-", shapeSlash: `/\|`, shapeAmpersand: "&", shapeAt: "@",
		shapeHash: "#", shapeUnderline: "_", shapeEndMark: "!?", shapeLess: "<", shapeGreater: ">", shapeMoney: "$",
		shapeEqual: "=+%~^", shapeStar: "*",
	} {
		for _, c := range list {
			table[c] = bit
		}
	}
	return table
}()

// symbolOf returns the bit of a symbol.
func symbolOf(r rune) shape {
	if r < 128 {
		if b := symbols[r]; b != 0 {
			return b
		}
		return shapeOtherSymbol
	}
	switch r {
	case '’', '‘':
		return shapeApostrophe
	case '“', '”', '«', '»', '„', '「', '」', '『', '』':
		return shapeQuote
	case '–', '—', '‐', '‑', '−':
		return shapeHyphen
	case '。', '．':
		return shapePeriod
	case '，', '、', '،':
		return shapeComma
	case '：':
		return shapeColon
	case '；':
		return shapeSemicolon
	case '！', '？', '؟', '¿', '¡':
		return shapeEndMark
	case '（', '【', '《':
		return shapeOpen
	case '）', '】', '》':
		return shapeClose
	case '＠':
		return shapeAt
	case '€', '£', '¥':
		return shapeMoney
	}
	if r >= 0x1f000 || r >= 0x2600 && r < 0x27c0 {
		return shapeEmoji
	}
	return shapeOtherSymbol
}

// wordScan goes over the words of a text.
type wordScan struct {
	text []byte
	at   int
	prev word // the word before, with its shape; zero at the beginning
}

// next returns the next word; ok is false at the end of the text.
func (s *wordScan) next() (w word, ok bool) {
	space, newline := false, false
	for s.at < len(s.text) {
		r, size := utf8.DecodeRune(s.text[s.at:])
		if !unicode.IsSpace(r) && !isInvisible(r) {
			break
		}
		space = space || r != 0x200b
		newline = newline || r == '\n' || r == '\r'
		s.at += size
	}
	if s.at >= len(s.text) {
		return word{}, false
	}
	end, kind, first := wordEnd(s.text, s.at)
	w = word{start: int32(s.at), end: int32(end), shape: kind}
	w.look(s.text[s.at:end], first)
	s.place(&w, space, newline)
	if end < len(s.text) {
		r, _ := utf8.DecodeRune(s.text[end:])
		if r == '.' {
			w.shape |= shapeDot
		}
		if !unicode.IsSpace(r) {
			w.shape |= shapeGlued
		}
	}
	s.at, s.prev = end, w
	return w, true
}

func isInvisible(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r == 0xfeff || r == 0xfe0f || r == 0x2060
}

// place sets the bits that depend on what stands before w.
func (s *wordScan) place(w *word, space, newline bool) {
	if space {
		w.shape |= shapeSpace
	}
	if newline {
		w.shape |= shapeNewline
	}
	p := s.prev.shape
	switch {
	case p == 0:
		w.shape |= shapeFirst | shapeSentence
	case newline, p&(shapePeriod|shapeEndMark|shapeColon|shapeQuote|shapeStar|shapeGreater) != 0:
		w.shape |= shapeSentence
	}
	if w.shape&shapeSymbol == 0 {
		switch {
		case p&shapeAt != 0 && !space:
			w.shape |= shapeHandle
		case p&shapeHash != 0 && !space:
			w.shape |= shapeTag
		case !space && p&(shapeHandle|shapeTag) != 0 && p&(shapeSymbol) == 0:
			w.shape |= p & (shapeHandle | shapeTag) // letters and digits of one handle
		}
	}
}

// look sets the bits that the word's own characters give, and its hash.
func (w *word) look(text []byte, first rune) {
	if w.shape&shapeSymbol != 0 {
		w.shape |= symbolOf(first)
		w.hash = hashRune(hashSeed, first)
		return
	}
	n, upper, inner := 0, 0, false
	small := false
	h := uint64(hashSeed)
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
			if w.shape&shapeLatin != 0 {
				w.shape |= shapeAccent
			}
		}
		i += size
		lower := r
		if r < utf8.RuneSelf {
			if r >= 'A' && r <= 'Z' {
				lower = r + 0x20
			}
		} else {
			lower = unicode.ToLower(r)
		}
		if lower != r {
			upper++
			inner = inner || small
		} else {
			small = true
		}
		h = hashRune(h, lower)
		n++
	}
	w.hash = h
	w.shape |= lengthOf(n)
	if w.shape&shapeLetters == 0 {
		return
	}
	capital := first != unicode.ToLower(first)
	switch {
	case upper == 0:
		w.shape |= shapeLower
	case upper == n && n > 1:
		w.shape |= shapeCapital | shapeCapitals
	case n == 1:
		w.shape |= shapeCapital | shapeInitial
	case inner:
		w.shape |= shapeMixed
	}
	if capital {
		w.shape |= shapeCapital
	}
}

// lengthOf returns the bit of a word of n characters.
func lengthOf(n int) shape {
	switch {
	case n <= 1:
		return shapeOne
	case n == 2:
		return shapeTwo
	case n == 3:
		return shapeThree
	case n <= 6:
		return shapeFew
	case n <= 10:
		return shapeMany
	}
	return shapeLong
}
