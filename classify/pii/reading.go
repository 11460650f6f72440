// Reading: the text as displayed, without markup, and the original offsets of its bytes.

package pii

import (
	"bytes"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// A reading is a text without emphasis, tags, references and marks on letters ("dressing").
// Offsets in it are mapped back, so that a found value covers its dressing too.
type reading struct {
	text  []byte
	steps []step
	rules []Span // found in the text itself
	found []Span // found in the reading
}

// A step maps offsets of a reading to the text: the bytes from at up to the next step begin at
// from in the text. whole: together they stand for all bytes of the text up to the next step's
// from.
type step struct {
	at, from int32
	whole    bool
}

// maxReading bounds the memory kept between texts, in bytes.
const maxReading = 1 << 20

// mayDress are the bytes that may begin dressing: some ASCII marks, and all non-ASCII bytes
// except those that begin most Cyrillic, Chinese, Japanese and Korean letters.
var mayDress = func() (set [256]bool) {
	for b := range set {
		set[b] = hasByte("*`~<&\\_%[]=+\n", byte(b)) || b >= 0xc2 && b < 0xd0 || b > 0xd4 && b <= 0xe2 || b >= 0xea && b != 0xeb && b != 0xec
	}
	return set
}()

// How many bytes are read around a dressed digit: more before it, because the word that announces
// the value stands there.
const (
	readBefore = 128
	readAfter  = 96
	closeBy    = 4 // largest distance between a mark and the digit that it dresses
)

// read makes the reading of the parts of a text in which digits or an address are dressed. It
// returns false if there are none.
func (r *reading) read(text []byte) bool {
	r.text, r.steps = r.text[:0], r.steps[:0]
	end := 0 // end of the part read last
	for i := 0; i < len(text); {
		if !mayDress[text[i]] && i > 0 {
			i++
			continue
		}
		to, size := undress(text, i)
		if size == 0 || !dressesValue(text, i, i+size, to) {
			i += max(size, 1)
			continue
		}
		from := max(end, i-readBefore)
		for whole := max(end, from-maxItem); from > whole && text[from-1] > ' '; { // including the word in which it begins
			from--
		}
		for from > end && text[from]&0xc0 == 0x80 {
			from--
		}
		if from > end || end == 0 {
			r.steps = append(r.steps, step{int32(len(r.text)), int32(from), true})
			r.text = append(r.text, "\n\n"...)
		}
		end = r.readPart(text, from, i)
		i = end
	}
	if len(r.text) == 0 {
		return false
	}
	r.steps = append(r.steps, step{int32(len(r.text)), int32(end), true})
	return true
}

// readPart reads text[from:] up to a little after the last mark that dresses a digit. last is
// where one such mark stands. It returns where it ends.
func (r *reading) readPart(text []byte, from, last int) (end int) {
	copied, i := from, from
	for i < min(len(text), last+readAfter) {
		if !mayDress[text[i]] && i > 0 {
			i++
			continue
		}
		to, size := undress(text, i)
		if size == 0 {
			i++
			continue
		}
		if i >= last && dressesValue(text, i, i+size, to) {
			last = i + size - 1
		}
		r.copyPlain(text, copied, i)
		if to != 0 {
			r.steps = append(r.steps, step{int32(len(r.text)), int32(i), true})
			r.text = utf8.AppendRune(r.text, to)
		}
		i += size
		copied = i
	}
	for i < len(text) && text[i]&0xc0 == 0x80 {
		i++
	}
	r.copyPlain(text, copied, i)
	return i
}

// dressesValue reports whether a digit or an at sign stands close to the mark, or whether the
// mark itself encodes one.
func dressesValue(text []byte, start, end int, to rune) bool {
	if to == '@' || to >= '0' && to <= '9' || isDigit(foldRune(to)) {
		return true
	}
	for _, around := range [...][]byte{text[max(0, start-closeBy):start], text[end:min(len(text), end+closeBy)]} {
		for _, b := range around {
			if isDigit(b) || b == '@' {
				return true
			}
		}
	}
	return false
}

func (r *reading) copyPlain(text []byte, from, to int) {
	r.steps = append(r.steps, step{int32(len(r.text)), int32(from), false})
	r.text = append(r.text, text[from:to]...)
}

// place returns the offsets in the text of bytes of the reading.
func (r *reading) place(start, end int32) (int32, int32) {
	s, e := r.stepAt(start), r.stepAt(end-1)
	from, to := r.steps[s].from, r.steps[e].from+end-r.steps[e].at
	if !r.steps[s].whole {
		from += start - r.steps[s].at
	}
	if r.steps[e].whole {
		to = r.steps[e+1].from
	}
	return from, to
}

// stepAt returns the last step that begins at or before at.
func (r *reading) stepAt(at int32) int {
	return sort.Search(len(r.steps), func(i int) bool { return r.steps[i].at > at }) - 1
}

// linked returns the length, in bytes, of the rest of a Markdown link from i on: the end of its
// text and its target or name; 0: none.
func linked(text []byte, i int) (size int) {
	if i+1 == len(text) {
		return 0
	}
	if text[i+1] == '[' {
		end := i + 2
		for end < len(text) && end-i < 5 && isAlnum(text[end]) {
			end++
		}
		if end < len(text) && text[end] == ']' {
			return end + 1 - i
		}
		return 0
	}
	if text[i+1] != '(' {
		return 0
	}
	end := bytes.IndexAny(text[i:min(len(text), i+maxLink)], ")\n")
	if end < 0 || text[i+end] == '\n' {
		return 0
	}
	return end + 1
}

// maxLink bounds the target of a link, in bytes.
const maxLink = 128

// codes are forum tags that style a text.
var codes = []string{"b", "i", "u", "s", "url", "color", "colour", "size", "font", "code", "quote", "center", "left", "right", "sub", "sup", "spoiler", "tt", "em", "strong"}

// bracketed returns the length in bytes of the footnote mark or forum tag at i; 0: there is none.
func bracketed(text []byte, i int) (size int) {
	at := i + 1
	switch {
	case at == len(text):
		return 0
	case text[at] == '^':
		end := bytes.IndexAny(text[i:min(len(text), i+maxName)], "]\n")
		if end < 0 || text[i+end] == '\n' {
			return 0
		}
		return end + 1
	case text[at] == '/':
		at++
	}
	from := at
	for at < len(text) && at-from < 8 && isLetter(text[at]) {
		at++
	}
	if at == from || at == len(text) || text[at] != ']' && text[at] != '=' || !slices.Contains(codes, string(bytes.ToLower(text[from:at]))) {
		return 0
	}
	end := bytes.IndexAny(text[at:min(len(text), at+maxLink)], "]\n")
	if end < 0 || text[at+end] == '\n' {
		return 0
	}
	return at + end + 1 - i
}

// Bounds of a short list item, in bytes: its mark and its length.
const (
	maxMarker = 12
	maxItem   = 32
)

// item returns the length in bytes of the mark at the beginning of a short list item: a dash,
// "1.", "b)", a sign of quotation; 0: there is none. A line begins at i.
func item(text []byte, i int) (size int) {
	at := i
	for at < len(text) && at-i < maxMarker {
		switch b := text[at]; {
		case b == ' ' || b == '\t':
			at++
			continue
		case hasByte("-*+>#", b) && blankAt(text, at+1):
			at += 2
			size = at - i
			continue
		case b == 0xe2 && at+2 < len(text) && blankAt(text, at+3) && foldRune(rune(0x2000)|rune(text[at+1]&0x3f)<<6|rune(text[at+2]&0x3f)) != foreign: // a bullet
			at += 4
			size = at - i
			continue
		}
		if n := marker(text[at:]); n > 0 {
			at += n
			size = at - i
		}
		break
	}
	if size == 0 {
		return 0
	}
	at = i + size
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') && at-i < maxMarker {
		at++
	}
	if at+3 < len(text) && text[at] == '[' && hasByte(" xX", text[at+1]) && text[at+2] == ']' && blankAt(text, at+3) { // a box to tick
		at += 4
	}
	if rest := text[at:min(len(text), at+maxItem+1)]; len(rest) > maxItem && bytes.IndexByte(rest, '\n') < 0 {
		return 0
	}
	return at - i
}

// digitLine reports whether the line at i is a single digit and nothing else.
func digitLine(text []byte, i int) bool {
	return i < len(text) && isDigit(text[i]) && (i+1 == len(text) || text[i+1] == '\n' || text[i+1] == '\r')
}

func blankAt(text []byte, i int) bool { return i < len(text) && (text[i] == ' ' || text[i] == '\t') }

// marker returns the length of the number or letter with which a list item at the beginning of
// the text begins, such as "1.", "b)" or "(iv)"; 0: there is none.
func marker(text []byte) (size int) {
	at := 0
	if len(text) > 0 && text[0] == '(' {
		at++
	}
	from := at
	for at < len(text) && at-from < 4 && isAlnum(text[at]) {
		at++
	}
	switch {
	case at == from || at-from == 4 || at == len(text):
		return 0
	case text[at] == ')', hasByte(".:", text[at]) && from == 0 && blankAt(text, at+1):
		return at + 1
	}
	return 0
}

// undress returns the character that the characters at i are displayed as, 0 for none, and how
// many bytes they take; size 0: they are displayed as written.
func undress(text []byte, i int) (to rune, size int) {
	if i == 0 {
		if n := item(text, 0); n > 0 {
			return 0, n
		}
	}
	switch b := text[i]; {
	case b == '\n':
		if n := item(text, i+1); n > 0 {
			if end := i + 1 + n; text[end-1] == ' ' && hasByte(".):", text[end-2]) && digitLine(text, end) {
				return ';', n + 1 // more than the end of a line, because the answers to a quiz look like this
			}
			return '\n', n + 1
		}
	case b == '[':
		return 0, bracketed(text, i)
	case b == '=':
		if to, n := byBytes(text, i); n > 0 && !isAlnum(foldRune(to)) && to != '=' {
			return to, n
		}
	case b == '+':
		if plusOfForm(text, i) {
			return ' ', 1
		}
	case b == '<':
		return tag(text, i)
	case b == '&':
		return reference(text[i:])
	case b == '`':
		return 0, 1
	case b == ']':
		return 0, linked(text, i)
	case b == '%':
		return byBytes(text, i)
	case b == '*' || b == '~':
		if i+1 < len(text) && text[i+1] == b {
			return 0, 2
		}
		if b == '*' && (opens(text, i) || closes(text, i)) {
			return 0, 1
		}
	case b == '_':
		if opens(text, i) || closes(text, i) || !besideLetter(text, i) {
			return 0, 1
		}
	case b == '\\':
		if to, n := escaped(text, i); n > 0 {
			return to, n
		}
		if i+1 < len(text) && text[i+1] > ' ' && text[i+1] < 0x7f && !isAlnum(text[i+1]) {
			if hasByte(",;:!", text[i+1]) {
				return ' ', 2 // spaces of TeX
			}
			return 0, 1
		}
	case b >= utf8.RuneSelf:
		r, n := utf8.DecodeRune(text[i:])
		if r < 0x300 && r != 0xb2 && r != 0xb3 && r != 0xb9 || r >= 0x370 && r < 0x483 || r >= 0x2e80 && r < 0xfe00 {
			return 0, 0 // most letters of Europe and Asia
		}
		if unicode.In(r, unicode.Mn, unicode.Me) {
			if before, _ := foldBefore(text, i); isAlnum(before) || before == ' ' || before == foreign && latinMarked(text, i) {
				return 0, n
			}
			return 0, 0
		}
		if foldRune(r) == nothing {
			return 0, n
		}
		if unicode.Is(unicode.Nd, r) && !isDigit(foldRune(r)) {
			return '0' + decimal(r), n
		}
		if c := ringed(r); c != 0 && (!plainBefore(text, i) || ringedAfter(text, i+n)) {
			return rune(c), n
		}
	}
	return 0, 0
}

// latinMarked reports whether the marks before i, if any, stand on a plain letter or digit.
func latinMarked(text []byte, i int) bool {
	for range 8 {
		r, n := utf8.DecodeLastRune(text[:i])
		if !unicode.In(r, unicode.Mn, unicode.Me) {
			return r < utf8.RuneSelf && isAlnum(byte(r))
		}
		i -= n
	}
	return true // this many marks are noise on any character
}

// decimal returns the value of a digit of any script; the ten digits of a script are consecutive.
func decimal(r rune) (value rune) {
	for value < 9 && unicode.Is(unicode.Nd, r-value-1) {
		value++
	}
	return value
}

// ringed returns the digit that r shows in a circle, in brackets, raised or lowered; 0: none.
func ringed(r rune) byte {
	switch {
	case r == 0xb2 || r == 0xb3:
		return '0' + byte(r-0xb0)
	case r == 0xb9:
		return '1'
	case r == 0x2070 || r >= 0x2074 && r <= 0x2079:
		return '0' + byte(r-0x2070)
	case r >= 0x2080 && r <= 0x2089:
		return '0' + byte(r-0x2080)
	case r >= 0x1f101 && r <= 0x1f10a:
		return '0' + byte(r-0x1f101)
	case r == 0x24ea || r == 0x24ff || r == 0x1f10b || r == 0x1f10c:
		return '0'
	}
	for _, one := range [...]rune{0x2460, 0x2474, 0x2488, 0x24f5, 0x2776, 0x2780, 0x278a} {
		if r >= one && r <= one+8 {
			return '1' + byte(r-one)
		}
	}
	return 0
}

// plainBefore reports whether a plain letter or digit stands before i: then a single raised digit
// at i is a power or a footnote.
func plainBefore(text []byte, i int) bool { return i > 0 && isAlnum(text[i-1]) }

func ringedAfter(text []byte, i int) bool {
	r, _ := utf8.DecodeRune(text[i:])
	return ringed(r) != 0
}

func opens(text []byte, i int) bool {
	return (i == 0 || !isAlnum(text[i-1]) && text[i-1] < utf8.RuneSelf) && i+1 < len(text) && isAlnum(text[i+1])
}

func closes(text []byte, i int) bool {
	return (i+1 == len(text) || !isAlnum(text[i+1]) && text[i+1] < utf8.RuneSelf) && i > 0 && isAlnum(text[i-1])
}

// besideLetter reports whether a letter touches the underscores around i: then they are part of a
// name.
func besideLetter(text []byte, i int) bool {
	a, b := i, i+1
	for a > 0 && text[a-1] == '_' && i-a < maxGap {
		a--
	}
	for b < len(text) && text[b] == '_' && b-i < maxGap {
		b++
	}
	return a > 0 && isLetter(text[a-1]) || b < len(text) && isLetter(text[b])
}

// inline are the tags that only style a text; other tags separate the text before from the text
// after.
var inline = []string{"a", "abbr", "b", "bdi", "bdo", "big", "code", "del", "em", "font", "i", "ins", "kbd", "mark", "q", "s", "samp", "small", "span",
	"strike", "strong", "sub", "sup", "tt", "u", "var", "wbr"}

const maxTag = 4 << 10 // bytes

// tag reads a tag or a comment of HTML.
func tag(text []byte, i int) (to rune, size int) {
	if bytes.HasPrefix(text[i:], []byte("<!--")) {
		for at := i + 4; at < min(len(text), i+maxTag); {
			n := bytes.IndexAny(text[at:min(len(text), i+maxTag)], "<>")
			if n < 0 || bytes.HasPrefix(text[at+n:], []byte("<!--")) { // search for the end only up to the next beginning
				return 0, 0
			}
			if at += n + 1; text[at-1] == '>' && text[at-2] == '-' && text[at-3] == '-' {
				return 0, at - i
			}
		}
		return 0, 0
	}
	at := i + 1
	if at < len(text) && text[at] == '/' {
		at++
	}
	from := at
	for at < len(text) && at-from < 12 && isAlnum(text[at]) {
		at++
	}
	if at == from || !isLetter(text[from]) || at == len(text) {
		return 0, 0
	}
	end := tagEnd(text[at:min(len(text), at+maxTag)])
	if end < 0 || end > 0 && text[at] != ' ' && text[at] != '/' && text[at] != '\n' {
		return 0, 0
	}
	size = at + end + 1 - i
	var lowered [12]byte
	name := lowered[:copy(lowered[:], text[from:at])]
	for k := range name {
		name[k] = lower(name[k])
	}
	switch string(name) {
	case "br", "p", "div", "li":
		return '\n', size
	}
	if slices.ContainsFunc(inline, func(tag string) bool { return tag == string(name) }) {
		return 0, size
	}
	return '|', size
}

// tagEnd returns where the tag whose name stands before rest ends; -1: it does not end before the
// next tag begins. Quoted attribute values may contain < and >.
func tagEnd(rest []byte) int {
	for at := 0; at < len(rest); {
		n := bytes.IndexAny(rest[at:], "<>\"'")
		if n < 0 {
			return -1
		}
		at += n
		switch c := rest[at]; c {
		case '>':
			return at
		case '<':
			return -1
		default:
			at++
			if n = bytes.IndexByte(rest[at:], c); n >= 0 {
				at += n + 1
			}
		}
	}
	return -1
}

// references are the named characters that may occur within or between values.
var references = map[string]rune{
	"nbsp": ' ', "ensp": ' ', "emsp": ' ', "thinsp": ' ', "hairsp": ' ', "numsp": ' ', "puncsp": ' ', "NonBreakingSpace": ' ', "MediumSpace": ' ', "ThinSpace": ' ',
	"emsp13": ' ', "emsp14": ' ', "Tab": ' ', "NewLine": '\n', "shy": gone, "zwnj": gone, "zwj": gone, "lrm": gone, "rlm": gone, "NoBreak": gone,
	"ZeroWidthSpace": gone, "NegativeThinSpace": gone, "ApplyFunction": gone, "InvisibleTimes": gone, "InvisibleComma": gone,
	"commat": '@', "period": '.', "comma": ',', "colon": ':', "sol": '/', "bsol": '\\', "hyphen": '-', "dash": '-', "ndash": '-', "mdash": '-', "minus": '-',
	"lowbar": '_', "UnderBar": '_', "plus": '+', "num": '#', "lpar": '(', "rpar": ')', "ast": '*', "middot": '.', "bull": '.', "verbar": '|', "amp": '&',
}

// gone stands for a character that is not displayed.
const gone = -1

// reference reads a character reference of HTML: &#52;, &#x34;, &nbsp;
func reference(text []byte) (to rune, size int) {
	end := 1
	for end < len(text) && end < 20 && (isAlnum(text[end]) || end == 1 && text[end] == '#') {
		end++
	}
	if end < 3 {
		return 0, 0
	}
	size = end
	if end < len(text) && text[end] == ';' {
		size++
	}
	if text[1] != '#' {
		to = references[string(text[1:end])]
		if to == 0 || size == end {
			return 0, 0
		}
	} else {
		digits, base := text[2:end], rune(10)
		if digits[0]|0x20 == 'x' {
			digits, base = digits[1:], 16
		}
		for _, c := range digits {
			v := rune(99)
			switch {
			case isDigit(c):
				v = rune(c - '0')
			case isHex(c):
				v = rune(c|0x20-'a') + 10
			}
			if v >= base || to > unicode.MaxRune {
				return 0, 0
			}
			to = to*base + v
		}
		if to > unicode.MaxRune {
			return 0, 0
		}
	}
	if to <= 0 || to == 0xad || to >= 0x200b && to <= 0x200f || to == 0x2060 || to == 0xfeff {
		to = 0
	}
	return to, size
}
