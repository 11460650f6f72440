// Literal questions: only an entry with exactly the same bytes may answer them.

package cache

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"kvasir/unseen"
)

// Reasons why only the same bytes answer a question: values of Result.Why.
const (
	WhyHidden = "hidden" // it has characters that a model reads and the verifier does not
	WhyShort  = "short"  // it has no words, or one: emoji, marks, numbers, "ok"
	WhyNoise  = "noise"  // its letters look random
)

// Literal returns why a question may be answered only by equal bytes, and may answer only equal
// bytes; "": similar questions may answer it. An embedding does not see hidden characters, so a
// question that has some would lie right beside the plain question, and its hidden words would
// influence the answer to that. And questions that say next to nothing all lie close together: a
// pizza emoji beside an angry face.
func Literal(text []byte) (why string) {
	switch w := readWords(text); {
	case unseen.Count(text) > 0 || oddlySpaced(text) || oddlyDrawn(text):
		return WhyHidden
	case w.words < 2 || !w.said:
		return WhyShort
	case w.isNoise():
		return WhyNoise
	}
	return ""
}

// How much meaningless white space a text may have: in bytes, and in changes from one kind to
// another between words; a longer text may have more changes.
const (
	mostSpace    = 32
	mostChanges  = 8
	bytesAChange = 512
	shortestWrap = 40 // shortest longest line, in bytes, of a paragraph that was wrapped to a width
)

// oddlySpaced reports white space around or in the text that could carry a hidden message,
// because the comparison of questions hardly sees white space: kinds that people do not type, or
// so much of it, or so many changes of kind, that it could spell something.
func oddlySpaced(text []byte) bool {
	s := spacing{text: text, kind: blank}
	for i := 0; i < len(text); {
		if b := text[i]; b > ' ' && b < utf8.RuneSelf {
			i++
			continue
		} else if b == ' ' && i+1 < len(text) && text[i+1]-'!' < utf8.RuneSelf-'!' {
			s.count(blank)
			i++
			continue
		}
		gap := text[i : len(text)-len(bytes.TrimLeftFunc(text[i:], unicode.IsSpace))]
		if len(gap) == 0 {
			_, size := utf8.DecodeRune(text[i:])
			i += size
			continue
		}
		n, typed := spareSpace(gap, i+len(gap) == len(text))
		s.spare += n
		if i > 0 && i+len(gap) < len(text) {
			s.between(i, i+len(gap))
		}
		if i += len(gap); !typed || s.spare > mostSpace {
			return true
		}
	}
	return s.changes > mostChanges+len(text)/bytesAChange
}

// A spaceKind is the kind of white space between two words.
type spaceKind uint8

const (
	blank     spaceKind = iota
	wide                // more than one blank
	tabbed              // with a tab
	newLine             //
	emptyLine           // one or more empty lines
	noBreak             // U+00A0
	narrow              // U+202F
	ideograph           // U+3000
)

// spacing counts the white space of a text that could carry a message.
type spacing struct {
	text    []byte
	spare   int       // bytes without a purpose
	kind    spaceKind // of the last gap whose place does not explain its kind
	changes int       // changes of kind, and gaps between characters that are written without spaces
	cr      bool      // the last line ended with CR LF
	lines   bool      // a line ended
	block   int       // end of the paragraph that longest belongs to
	longest int       // longest line of that paragraph, in bytes
}

func (s *spacing) count(kind spaceKind) {
	if kind != s.kind {
		s.kind = kind
		s.changes++
	}
}

// between counts the white space text[i:end] between two characters.
func (s *spacing) between(i, end int) {
	gap := s.text[i:end]
	kind := kindOfSpace(gap)
	if kind == newLine || kind == emptyLine {
		cr := bytes.IndexByte(gap, '\r') >= 0
		if s.lines && cr != s.cr {
			s.changes++
		}
		s.lines, s.cr = true, cr
	}
	before, _ := utf8.DecodeLastRune(s.text[:i])
	after, _ := utf8.DecodeRune(s.text[end:])
	if isUnspaced(before) && isUnspaced(after) {
		s.changes++
	}
	if !s.accounted(kind, i, end, before, after) {
		s.count(kind)
	}
}

func kindOfSpace(gap []byte) spaceKind {
	switch lines := bytes.Count(gap, []byte{'\n'}); {
	case lines > 1:
		return emptyLine
	case lines == 1:
		return newLine
	case bytes.IndexByte(gap, '\t') >= 0:
		return tabbed
	case string(gap) == "\u00a0":
		return noBreak
	case string(gap) == "\u202f":
		return narrow
	case string(gap) == "\u3000":
		return ideograph
	case len(gap) > 1:
		return wide
	}
	return blank
}

// accounted reports whether the place of a gap explains its kind: a line may end after a
// punctuation mark, before something that looks like a list item, or where the next word would
// have made it the longest line.
func (s *spacing) accounted(kind spaceKind, i, end int, before, after rune) bool {
	word := isWordy(before)
	switch kind {
	case newLine, emptyLine:
		return !word || !isWordy(after) || s.wordEndsInMark(end) || kind == newLine && s.wrapped(i, end)
	case wide, tabbed:
		return !word
	case noBreak, narrow: // before French punctuation, in and after numbers
		return !word || !isWordy(after) || unicode.IsDigit(before) || unicode.IsDigit(after)
	case ideograph:
		return before >= 0x2e80 || after >= 0x2e80
	}
	return false
}

func isWordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) }

// isUnspaced reports whether r is a Chinese or Japanese character; people put no spaces between
// those, except around punctuation marks.
func isUnspaced(r rune) bool {
	return r >= 0x3041 && r <= 0x30fa || r >= 0x3400 && r <= 0x9fff || r >= 0x20000 && r <= 0x3ffff
}

// wordEndsInMark reports whether a punctuation mark follows the word at i directly: a field name,
// an item number, a call.
func (s *spacing) wordEndsInMark(i int) bool {
	for n := 0; i < len(s.text) && n < mostIndent; n++ {
		r, size := utf8.DecodeRune(s.text[i:])
		if !isWordy(r) {
			return !unicode.IsSpace(r)
		}
		i += size
	}
	return false
}

// wrapped reports whether the line before text[i:end] was broken because the next word would not
// have fitted into the longest line of its paragraph.
func (s *spacing) wrapped(i, end int) bool {
	line := i - 1 - bytes.LastIndexByte(s.text[:i], '\n')
	if i >= s.block {
		s.longest, s.block = line, len(s.text)
		for rest := s.text[i:]; len(rest) > 0; {
			n := bytes.IndexByte(rest, '\n') + 1
			if n == 0 {
				n = len(rest)
			}
			width := len(bytes.TrimSpace(rest[:n]))
			if rest = rest[n:]; width == 0 && len(rest) < len(s.text)-end {
				s.block = len(s.text) - len(rest)
				break
			}
			s.longest = max(s.longest, width)
		}
	}
	if s.longest < shortestWrap || line >= s.longest {
		return s.longest >= shortestWrap
	}
	rest := s.text[end:min(len(s.text), end+s.longest-line)]
	return line+len(rest) >= s.longest && !bytes.ContainsAny(rest, " \t\n")
}

// spareSpace returns how many bytes of a gap between words, or after the last word, have no
// purpose. The space that separates the words, the end of an empty line and the indentation of
// the next line have one. Non-ASCII spaces are typed one at a time, where French and Chinese use
// them.
func spareSpace(gap []byte, last bool) (n int, typed bool) {
	if r, size := utf8.DecodeRune(gap); r >= utf8.RuneSelf {
		return 0, size == len(gap) && (r == 0xa0 || r == 0x202f || r == 0x3000)
	}
	if bytes.IndexFunc(gap, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return 0, false
	}
	end := bytes.LastIndexByte(gap, '\n') + 1
	if indent := gap[end:]; end > 0 && !last && len(indent) <= mostIndent && len(bytes.Trim(indent, " "))*len(bytes.Trim(indent, "\t")) == 0 {
		gap = gap[:end]
	}
	return len(gap) - min(2, max(1, bytes.Count(gap, []byte{'\n'}))), true
}

// mostIndent is the deepest indentation of a line of code, in bytes, all spaces or all tabs.
const mostIndent = 64

// oddlyDrawn reports characters that fonts draw differently or not at all: private use,
// unassigned, object replacement, enclosing marks.
func oddlyDrawn(text []byte) bool {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		if !unicode.IsGraphic(r) && !unicode.In(r, unicode.Cf, unicode.Cc) ||
			r == 0xfffc || r == 0x1d159 || // object replacement; a note without a head
			unicode.Is(unicode.Me, r) && r != 0x20e3 { // a keycap is part of emoji
			return true
		}
	}
	return false
}

// wordCount counts the words of a text. A run of letters and digits is a word; in scripts written
// without spaces, every two letters are one.
type wordCount struct {
	words int  // of any script
	said  bool // at least one word has a letter
	other int  // of scripts other than Latin
	latin int  // of three or more letters, a to z
	odd   int  // those of latin that cannot be pronounced
}

// isNoise reports that most Latin words of the text are random letters.
func (w *wordCount) isNoise() bool {
	if w.other > 0 {
		return 2*w.odd > w.latin && 2*w.latin > w.words
	}
	return 2*w.odd > w.latin || w.latin == 0
}

// A lettering is the kind of script of a letter, as far as needed here.
type lettering uint8

const (
	noLetter lettering = iota
	numeral
	latin
	spaced   // another script with spaces between words, or an accented letter
	unspaced // a script without spaces between words
)

// readWords counts words until it has seen enough: a long text has words.
func readWords(text []byte) (w wordCount) {
	const enough = 64
	lone := 0 // letters without spaces so far
	before := noLetter
	var again repeated
	for i := 0; i < len(text) && w.words < enough; {
		kind, size := letteringAt(text[i:])
		if kind != latin && again.more(text[i:i+size]) {
			i += size
			continue
		}
		w.said = w.said || kind > numeral
		switch {
		case kind == unspaced:
			if lone++; lone%2 == 0 {
				w.words++
				w.other++
			}
		case kind != noLetter && (before == noLetter || before == unspaced):
			w.words++
		}
		if kind == spaced && before != spaced {
			w.other++
		}
		if kind == latin {
			for size < len(text)-i && text[i+size]|0x20-'a' <= 25 {
				size++
			}
			after := noLetter
			if i+size < len(text) {
				after, _ = letteringAt(text[i+size:])
			}
			if (before == noLetter || before == unspaced) && (after == noLetter || after == unspaced) { // no part of "café", "x86"
				w.addLatin(text[i : i+size])
			}
		}
		before = kind
		i += size
	}
	return w
}

// repeated is a non-ASCII character, and how often it stood in a row.
type repeated struct {
	letter [utf8.UTFMax]byte
	n      int
}

// more reports whether the character is the same as the two before it: then it only expresses
// laughter or a cry, and does not make the word longer.
func (a *repeated) more(letter []byte) bool {
	if n := len(letter); n > utf8.UTFMax || n == 1 || string(letter) != string(a.letter[:n]) {
		a.n, a.letter = 0, [utf8.UTFMax]byte{}
		copy(a.letter[:], letter)
	}
	a.n++
	return a.n > 2
}

func letteringAt(text []byte) (kind lettering, size int) {
	b := text[0]
	switch {
	case b|0x20-'a' <= 25:
		return latin, 1
	case b-'0' <= 9:
		return numeral, 1
	case b < utf8.RuneSelf:
		return noLetter, 1
	}
	r, size := utf8.DecodeRune(text)
	switch {
	case isJamo(r):
		if n := syllable(text); n > 0 {
			return spaced, n
		}
		return noLetter, size
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return unspaced, size
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return spaced, size
	}
	return noLetter, size
}

// isJamo reports whether r is a single Korean letter, not a syllable. Single letters are laughter
// and sighs.
func isJamo(r rune) bool {
	return r >= 0x1100 && r < 0x1200 || r >= 0x3131 && r < 0x3190 || r >= 0xa960 && r < 0xa980 || r >= 0xd7b0 && r < 0xd800 || r >= 0xffa0 && r < 0xffdd
}

// syllable returns the length, in bytes, of the Korean syllable at the beginning of the text if
// it is written in decomposed form (NFD); 0: none.
func syllable(text []byte) (size int) {
	for k, between := range [...][2]rune{{0x1100, 0x1112}, {0x1161, 0x1175}, {0x11a8, 0x11c2}} {
		r, n := utf8.DecodeRune(text[size:])
		if r < between[0] || r > between[1] {
			if k < 2 {
				return 0
			}
			break
		}
		size += n
	}
	return size
}

// addLatin counts a word of the letters a to z.
func (w *wordCount) addLatin(run []byte) {
	if len(run) < 3 {
		return
	}
	w.latin++
	vowel, odd := false, false
	for i, c := range run {
		c |= 0x20
		vowel = vowel || bytes.IndexByte([]byte("aeiouy"), c) >= 0
		odd = odd || i > 0 && strangers[run[i-1]|0x20-'a']>>(c-'a')&1 == 1
	}
	if odd || !vowel && len(run) > 3 {
		w.odd++
	}
}

// strangers are the rare letter pairs, as a set of second letters for each first letter. A pair
// is rare if fewer than one in 12,500 letter pairs is that pair, in the words of 60,000 questions
// and other texts in some ten languages. By this rule 94 % of random texts (2 to 6 words of 3 to
// 8 random letters) are noise, and 3 of 15,217 real questions.
var strangers = func() (set [26]uint32) {
	for i, letters := range [...]string{
		"", "dfgkpqvwxz", "fgqvwx", "kqx", "", "bcdghjkmnpqvwxz", "bcdfjkqvwxz", "cfghjkpqvwxz", "w", "bcdfghjklmnpqrtvwxyz",
		"bcdfgjkmpqvxz", "jqrxz", "dgjkqrvwxz", "x", "q", "bfjknqvwxz", "abcdefghijkmnopqrstvwxyz", "jqx", "jvx", "jqvx",
		"hquw", "bcdfghjklmnpqstvwxyz", "bcfgjkmpqtuvwxz", "bdfghjklmnoqrsvwyz", "fhjkqvxyz", "bcdfghjklmnpqrstvx",
	} {
		for _, c := range letters {
			set[i] |= 1 << (c - 'a')
		}
	}
	return set
}()
