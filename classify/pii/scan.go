// The pass over the bytes: which values each byte can begin, and how overlapping finds are
// resolved.

package pii

import (
	"bytes"
	"unicode/utf8"
)

// scan is one pass over one text.
//
// Invariants:
//  1. Every step advances by at least one byte. It either reads at most a fixed number of bytes
//     around it, or advances past all bytes that it read.
//  2. out[base:] is sorted by Start and does not overlap.
type scan struct {
	text []byte
	out  []Span
	base int

	label    label  // the latest announcing word
	labelEnd int    // where it ended
	glyphs   bool   // it was Chinese, Japanese or Korean
	prior    uint64 // hash of the word before, for phrases of two words
	priorEnd int    // where it ended
	use      uint16 // use of the word before: wYear, wOld
	useEnd   int    // where it ended

	hostEnd   int // no host name is searched for before this offset
	keyEnd    int // nor a key
	codeEnd   int // nor a token of letters and digits
	urlEnd    int // nor a URL
	lastGroup int // the end of a group of digits in which nothing was found
	work      int // bytes looked at, for the test of linear time

	number digits
	token  code

	reading   reading
	scattered apart
	apartEnd  int // no value written apart is searched for before this offset
}

func (s *scan) find(dst []Span, text []byte) []Span {
	if len(text) > maxText {
		text = text[:maxText]
	}
	s.text, s.out, s.base = text, dst, len(dst)
	s.label, s.labelEnd, s.prior, s.priorEnd, s.use, s.useEnd = lNone, 0, 0, -1, 0, -1
	s.hostEnd, s.keyEnd, s.codeEnd, s.urlEnd, s.lastGroup, s.work, s.apartEnd = 0, 0, 0, 0, -1, 0, 0
	for i := 0; i < len(text); {
		switch kinds[text[i]] {
		case kOther:
			i++
		case kLetter:
			i = s.word(i)
		case kDigit:
			i = s.digits(i)
		case kAt:
			i = email(s, i)
		case kColon:
			i = colon(s, i)
		case kDash:
			i = dash(s, i)
		case kHigh:
			i = s.high(i)
		}
	}
	return s.out
}

// The kinds of value that a byte can begin.
const (
	kOther = iota
	kLetter
	kDigit
	kAt
	kColon
	kDash
	kHigh
)

var kinds = func() (k [256]uint8) {
	for c := range k {
		switch {
		case isLetter(byte(c)):
			k[c] = kLetter
		case isDigit(byte(c)):
			k[c] = kDigit
		case c >= utf8.RuneSelf:
			k[c] = kHigh
		}
	}
	k['@'], k[':'], k['-'] = kAt, kColon, kDash
	return k
}()

// word reads the word at i, and calls the scanners of values that can begin with a letter. It
// returns where the pass continues.
func (s *scan) word(i int) int {
	text := s.text
	hash, end := wordAt(text, i)
	if to := prefixed(s, i, end); to > i {
		return to
	}
	if end == i+1 && s.label == lIBAN {
		if to := s.spelledIBAN(i); to > i {
			return to
		}
	}
	if end < len(text) {
		switch c := text[end]; {
		case isDigit(c):
			if end-i <= 4 && hexBegins(s.text, i) {
				if to := hexPairs(s, i); to > i {
					return to
				}
			}
			if to := s.code(i); to > i {
				return to
			}
		case c == '.':
			if to := host(s, i); to > i {
				return to
			}
		case c == ':':
			if to := scheme(s, i, end); to > i {
				return to
			}
			if to := hexPairs(s, i); to > i {
				return to
			}
		case c == '-' && end-i == 2:
			if to := hexPairs(s, i); to > i {
				return to
			}
			if to := s.code(i); to > i {
				return to
			}
		case c == '-' && s.label != lNone, end-i == 2 && digitAfter(s.text, end):
			if to := s.code(i); to > i {
				return to
			}
		case c == '@' && s.hostEnd < i:
			s.hostEnd = i
		}
	}
	if w := words.find(hash); w != (word{}) {
		return s.known(w, i, end, hash)
	}
	s.prior, s.priorEnd = hash, end
	return end
}

// digitAfter reports whether a digit comes after the character at i.
func digitAfter(text []byte, i int) bool {
	_, size := fold(text, i)
	return isDigit(charAt(text, i+size))
}

// known handles a word of the vocabulary.
func (s *scan) known(w word, i, end int, hash uint64) int {
	if w.use&wSecond != 0 && s.priorEnd >= 0 && i-s.priorEnd <= 12 {
		if p := words.find(hashPhrase(s.prior, hash)); p.label != lNone {
			w.label = p.label
			w.use |= p.use
		}
	}
	if w.use&wCapital != 0 && !(isUpper(s.text[i]) && isUpper(s.text[end-1])) {
		return end
	}
	if w.use&wJoin == 0 {
		s.prior, s.priorEnd = hash, end
	}
	before, beforeEnd := s.use, s.useEnd
	s.use, s.useEnd = w.use, end
	if w.month != 0 {
		if to := monthDay(s, i, end, w.month); to > end {
			return to
		}
		if before&wYear != 0 && i-beforeEnd == 1 && isUpper(s.text[i]) && end-i > 3 && hash != hashMars {
			s.emit(DateTime, match{start: i, end: end, score: 0.72}) // "in June"
		}
	}
	if w.use&wWeekday != 0 && end-i >= 5 {
		s.emit(DateTime, match{start: i, end: end, score: 0.72})
	}
	if w.label != lNone {
		s.announce(w.label, end)
	}
	return end
}

// announce records that a value of kind l may follow.
func (s *scan) announce(l label, end int) {
	s.label, s.labelEnd, s.glyphs = l, end, end >= 3 && s.text[end-1] >= utf8.RuneSelf && charAt(s.text, end-3) == ideo
	switch l {
	case lPassword:
		password(s, end)
	case lKey:
		secret(s, end)
	}
}

// high handles a character that is not ASCII.
func (s *scan) high(i int) int {
	if size := letterSize(s.text[i:]); size > 0 {
		return s.word(i)
	}
	c, size := fold(s.text, i)
	switch {
	case isDigit(c):
		return s.digits(i)
	case c == '@':
		return email(s, i)
	case c == ':':
		return colon(s, i)
	case c == ideo:
		if w, n := glyphAt(s.text, i); n > 0 {
			s.use, s.useEnd = w.use, i+n
			if w.use&wWeekday != 0 {
				s.emit(DateTime, match{start: i, end: i + n, score: 0.72})
			}
			if w.label != lNone {
				s.announce(w.label, i+n)
			}
			return i + n
		}
	case isLetter(c):
		return s.wide(i)
	case c == 0 && s.text[i] == 0xE3: // U+3012, the postal mark
		if w, n := glyphAt(s.text, i); n > 0 {
			s.announce(w.label, i+n)
		}
	}
	return i + size
}

// wide reads a full-width token.
func (s *scan) wide(i int) int {
	if to := s.code(i); to > i {
		return to
	}
	for i < len(s.text) {
		c, size := fold(s.text, i)
		if !isAlnum(c) {
			break
		}
		i += size
	}
	return i
}

// account reports whether a find inside the URL url is a number to protect: a card in groups, or
// a number that the URL itself names ("?card="). Other long numbers in URLs are page ids, and one
// in ten has a valid check digit by chance.
func (s *scan) account(t Type, m match, url *Span) bool {
	if t == CreditCard && bytes.IndexFunc(s.text[m.start:m.end], func(r rune) bool { return r < '0' || r > '9' }) >= 0 {
		return true // in groups
	}
	switch l := table[t].label; l {
	case lCard, lSSN, lAadhaar, lNHS, lNINO, lResident:
		return s.labelEnd > int(url.Start) && s.near(l, m.start)
	}
	return false
}

// emit adds a find of type t to the spans. Of overlapping finds the stronger one, which is
// earlier in the table, stays; a host name loses only its tail.
func (s *scan) emit(t Type, m match) {
	if m.score == 0 {
		m.score = table[t].score
		if l := table[t].label; table[t].near > 0 && s.near(l, m.start) || m.score == 0 {
			m.score = table[t].near
		}
	}
	span := Span{int32(m.start), int32(m.end), t, m.score}
	at := len(s.out)
	for at > s.base && s.out[at-1].Start >= span.End {
		at--
	}
	from := at
	for from > s.base && s.out[from-1].End > span.Start {
		if old := &s.out[from-1]; old.Type == DomainName && old.Start < span.Start && (t < DomainName || s.account(t, m, old)) {
			old.End = min(old.End, span.Start)
			break
		} else if old.Type <= t && !(old.Type == t && span.End-span.Start > old.End-old.Start) {
			return
		}
		from--
	}
	s.out = append(s.out, Span{})
	copy(s.out[at+1:], s.out[at:])
	s.out[at] = span
	s.out = append(s.out[:from], s.out[at:]...)
}
