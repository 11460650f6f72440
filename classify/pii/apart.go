// Values written apart: a card number with one group on each line, with commas, or with a
// character between any two digits is still the same number to a reader.

package pii

import "bytes"

// Kinds of separators between two groups of digits. The last three also separate numbers of
// lists, tables and formulas, so values with them must meet stricter conditions.
const (
	gapPlain = 1 << iota // spaces, dots, dashes, slashes, quotes, marks
	gapLine              // the end of a line
	gapList              // commas, bars, tabs: as in lists and tables
	gapMath              // signs as in formulas, times and amounts
)

const (
	maxGap    = 16      // characters between two groups; a repeated one counts once
	maxLeader = 1 << 10 // bytes between two groups
	maxApart  = 40      // digits of a run that are kept
)

// apart is a run of groups of digits with anything except letters between them.
type apart struct {
	d      [maxApart]byte
	groups [maxApart]group // sep is not used
	n, g   int
	end    int  // where the last group that was read ends
	gaps   int  // all kinds of gaps in it
	loose  bool // the normal pass does not read it as one number
	whole  bool // no digits touch it on either side
}

// apartTypes are the types searched for in digits written apart, in this order: types with a
// check digit, then types that need a word before them.
var apartTypes = [...]Type{CNResidentID, CreditCard, USSSN, Aadhaar, NHS, BankNumber, PhoneNumber}

// findApart finds a value that begins with the digits at i and is written apart. It returns where
// it ends; i: none.
func (s *scan) findApart(i int) int {
	if i < s.apartEnd {
		return i
	}
	a := &s.scattered
	s.readApart(a, i)
	if s.apartEnd = a.end; !a.loose || a.n < 9 {
		return i
	}
	for _, t := range apartTypes {
		if m := s.apartValue(a, t); m.end > m.start {
			s.emit(t, m)
			if t == CreditCard && s.label == lCard {
				s.labelEnd = m.end // the word may announce a list of values
			} else {
				s.spend(m.end)
			}
			s.apartEnd = m.end
			return m.end
		}
	}
	return i
}

// readApart reads the run at i.
func (s *scan) readApart(a *apart, i int) {
	a.n, a.g, a.gaps, a.loose, a.whole, a.end = 0, 0, 0, false, !s.digitBefore(i), i
	for i < len(s.text) {
		g := group{first: a.n, start: i}
		more := false
		for i < len(s.text) {
			c, size := fold(s.text, i)
			if !isDigit(c) && c != nothing {
				break
			}
			if i += size; c == nothing {
				continue
			}
			if more = a.n == maxApart; more {
				break
			}
			a.d[a.n] = c
			a.n++
			g.n, g.end = g.n+1, i
		}
		a.end = i
		if more || !ends(s.text, i) { // too long, or the digits run on into letters
			a.n, a.whole = g.first, a.whole && !more
			return
		}
		a.groups[a.g] = g
		a.g++
		next, kinds := s.gap(i)
		if next < 0 {
			return
		}
		if read, sep := separator(s.text, i); read != next || sep == sepSlash || a.g >= maxGroups || g.n < 3 || sep == sepParen && s.text[i] == ')' && s.text[next-1] == '(' {
			a.loose = true
		}
		if a.gaps |= kinds; a.g == maxApart {
			a.whole = false
			return
		}
		i = next
	}
}

// digitBefore reports whether digits stand before i with no letter between.
func (s *scan) digitBefore(i int) bool {
	for range maxGap {
		c, size := foldBefore(s.text, i)
		switch {
		case size == 0 || wordy(c) && !isDigit(c) && c != '_' || c == ideo:
			return false
		case isDigit(c):
			return true
		}
		i -= size
	}
	return false
}

// gap reads the separator between the digits before i and the next ones. next is -1 if no digits
// follow, or if anything else comes first.
func (s *scan) gap(i int) (next, kinds int) {
	from := i
	last := byte(0xff)
	for n := 0; n <= maxGap && i < min(len(s.text), from+maxLeader); n++ {
		c, size := fold(s.text, i)
		if c == last {
			n-- // a row of dots counts once
		}
		last = c
		switch {
		case isDigit(c):
			if n == 0 {
				return -1, 0
			}
			s.work += i - from
			return i, kinds
		case isLetter(c) || c == foreign || c == ideo:
			return -1, 0
		case c == '\n' || c == '\r':
			kinds |= gapLine
		case c == ',' || c == ';' || c == '|' || c == '\t':
			kinds |= gapList
		case c < 0x80 && hasByte("+*=<>^%:~&$", c) || c == 0 && isCurrency(s.text[i:]):
			kinds |= gapMath
		case c == nothing:
			n--
		default:
			kinds |= gapPlain
		}
		i += size
	}
	return -1, 0
}

// isCurrency reports whether the text begins with a pound, a yen or one of the block of currency
// signs, or a sign of multiplication or division.
func isCurrency(text []byte) bool {
	return len(text) > 2 && (text[0] == 0xC2 && (text[1] == 0xA3 || text[1] == 0xA5) || text[0] == 0xE2 && text[1] == 0x82 && text[2] >= 0xA0 ||
		text[0] == 0xC3 && (text[1] == 0x97 || text[1] == 0xB7))
}

// apartValue applies the rule of a type. After a word that announces the type, the value may be
// any groups, from one of the first three on. Without such a word, the run must have the usual
// form of such values, and stand alone.
func (s *scan) apartValue(a *apart, t Type) match {
	l := table[t].label
	if !s.near(l, a.groups[0].start) {
		if t != CreditCard && t != CNResidentID || !s.standsOut(a, t) {
			return match{}
		}
		return s.askApart(a, t, 0, a.g)
	}
	if t == PhoneNumber || t == BankNumber && s.label != lRouting { // no check digits
		if t == BankNumber || !a.whole || a.gaps&(gapList|gapMath) != 0 || !a.phoneLike() {
			return match{}
		}
		return s.askApart(a, t, 0, a.g)
	}
	for from := 0; from < min(3, a.g); from++ {
		for to := from + 1; to <= a.g; to++ {
			if !fits(t, a.total(from, to)) {
				continue
			}
			if m := s.askApart(a, t, from, to); m.end > m.start {
				return m
			}
		}
	}
	return match{}
}

// fits reports whether values of the type can have n digits.
func fits(t Type, n int) bool {
	switch t {
	case CNResidentID:
		return n == 18
	case CreditCard:
		return n >= 14 && n <= 19 || n == 13
	case Aadhaar:
		return n == 12
	case NHS:
		return n == 10
	}
	return n == 9 // of the United States: a social security or a routing number
}

// total returns how many digits the groups from from up to, but not including, to have.
func (a *apart) total(from, to int) int {
	return a.groups[to-1].first + a.groups[to-1].n - a.groups[from].first
}

// askApart applies the rule of the type to the digits of some groups, as if they were written
// together. An announced phone number keeps its groups.
func (s *scan) askApart(a *apart, t Type, from, to int) match {
	d := &s.number
	d.n, d.g, d.paren, d.more, d.joined, d.money = copy(d.d[:], a.d[a.groups[from].first:][:min(a.total(from, to), maxDigits)]), 1, false, false, sepNone, false
	d.start = a.groups[from].start
	before, size := foldBefore(s.text, d.start)
	if d.plus = before == '+' && t == PhoneNumber; d.plus {
		d.start -= size
	}
	d.groups[0] = group{first: 0, n: d.n, start: a.groups[from].start, end: a.groups[to-1].end}
	if t == PhoneNumber && to-from <= maxGroups && to-from < d.n {
		d.g = to - from
		for k := range d.g {
			d.groups[k] = a.groups[from+k]
			d.groups[k].first -= a.groups[from].first
			d.groups[k].sep = sepSpace
		}
	}
	m := table[t].digits(s, d)
	if m.bad {
		return match{}
	}
	return m
}

// phoneLike reports whether the groups are those of phone numbers, or single digits.
func (a *apart) phoneLike() bool {
	return a.sizes(1) || a.shaped(3, 3, 4) || a.shaped(1, 3, 3, 4) || a.shaped(3, 4, 4) || a.shaped(3, 4)
}

// sizes reports whether all groups have n digits.
func (a *apart) sizes(n int) bool {
	for _, g := range a.groups[:a.g] {
		if g.n != n {
			return false
		}
	}
	return true
}

func (a *apart) shaped(sizes ...int) bool {
	if a.g != len(sizes) {
		return false
	}
	for i, n := range sizes {
		if a.groups[i].n != n {
			return false
		}
	}
	return true
}

// standsOut reports whether an unannounced run has the form of a value of the type, and not that
// of numbers in a list, a row or a formula. This is needed because one in forty runs of four such
// numbers has the first digits and the check digit of a card.
func (s *scan) standsOut(a *apart, t Type) bool {
	if !a.whole || a.gaps&gapMath != 0 {
		return false
	}
	printed := a.shaped(4, 4, 4, 4) || a.shaped(4, 6, 5) || a.shaped(4, 6, 4) || a.shaped(4, 4, 4, 4, 3)
	if t == CNResidentID {
		printed = a.shaped(6, 8, 4)
	}
	switch {
	case a.gaps == gapPlain:
		return printed || a.sizes(1)
	case a.gaps == gapLine && a.sizes(1): // one digit per line, and as many as most cards have
		return t == CreditCard && (a.n == 15 || a.n == 16) && s.ownLines(a)
	case !printed || a.sorted():
		return false
	case a.gaps&gapList == 0:
		return true
	}
	return s.ownLines(a)
}

// sorted reports whether the groups rise or fall throughout, as numbers of a list often do.
func (a *apart) sorted() bool {
	up, down := true, true
	for i := 1; i < a.g; i++ {
		before, at := a.groups[i-1], a.groups[i]
		x, y := string(a.d[before.first:][:before.n]), string(a.d[at.first:][:at.n])
		up, down = up && x < y, down && x > y
	}
	return up || down
}

// ownLines reports whether nothing else stands in the lines of the run. The run may also be the
// only row of a table, unless a header line above shows that it is a row of figures.
func (s *scan) ownLines(a *apart) bool {
	bars := false
	i := a.groups[0].start
	for ; i > 0 && s.text[i-1] != '\n'; i-- {
		if !hasByte(" \t\r|", s.text[i-1]) {
			return false
		}
		bars = bars || s.text[i-1] == '|'
	}
	if i > 0 && bars {
		line := s.text[max(0, i-1-maxRow) : i-1]
		if line = line[bytes.LastIndexByte(line, '\n')+1:]; bytes.IndexByte(line, '|') >= 0 {
			return false
		}
	}
	for i := a.groups[a.g-1].end; i < len(s.text) && s.text[i] != '\n'; i++ {
		if !hasByte(" \t\r|", s.text[i]) {
			return false
		}
	}
	return true
}

// maxRow is how many bytes of the line above a row are checked.
const maxRow = 256
