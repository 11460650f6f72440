// Runs of digits: groups with single separators between them, as numbers of
// every kind are written.

package pii

const (
	maxDigits = 34
	maxGroups = 8
)

// The separators before a group. sepWide is a dash or dot with spaces around
// it, sepMixed what has parentheses.
const (
	sepNone  = 0
	sepSpace = ' '
	sepDash  = '-'
	sepDot   = '.'
	sepSlash = '/'
	sepParen = ')'
	sepWide  = '~'
)

// group is digits without anything between them.
type group struct {
	first, n   int // its first digit in digits.d, and how many
	start, end int // bytes of the text
	sep        byte
}

// digits is a run of groups.
type digits struct {
	start  int // of the run, with a '+' or '(' before it
	d      [maxDigits]byte
	n      int
	groups [maxGroups]group
	g      int
	plus   bool // '+' stands before the first digit
	paren  bool // '(' stands before the first group
	more   bool // the run goes on with more digits than are held here
	joined byte // what joins the run to digits before it in which nothing was found; 0: nothing
	money  bool // a currency sign or '#' stands before it
}

// value returns the digits of the groups a to b (without b).
func (d *digits) value(a, b int) []byte {
	return d.d[d.groups[a].first : d.groups[b-1].first+d.groups[b-1].n]
}

// end returns the byte after the last of the first k groups.
func (d *digits) end(k int) int { return d.groups[k-1].end }

// total returns how many digits the first k groups have.
func (d *digits) total(k int) int { return d.groups[k-1].first + d.groups[k-1].n }

// shape reports whether the run begins with groups of just these lengths, all joined by the same
// separator among seps.
func (d *digits) shape(seps string, lengths ...int) bool {
	if d.g < len(lengths) {
		return false
	}
	for i, n := range lengths {
		if d.groups[i].n != n {
			return false
		}
		if i > 0 && (!hasByte(seps, d.groups[i].sep) || d.groups[i].sep != d.groups[1].sep) {
			return false
		}
	}
	return true
}

// alone reports whether the first k groups are a number of their own: nothing joins them to
// digits before or after but a space or a parenthesis.
func (d *digits) alone(k int) bool {
	switch d.joined {
	case sepNone, sepSpace, sepWide, sepParen: // sepParen: "1) 4111 ..."
	default:
		return false
	}
	if k == d.g {
		return !d.more
	}
	return d.groups[k].sep == sepSpace || d.groups[k].sep == sepWide || d.groups[k].sep == sepParen
}

// whole reports whether the first k groups are all of the run.
func (d *digits) whole(k int) bool { return k == d.g && !d.more && d.joined == sepNone }

func hasByte(text string, c byte) bool {
	for i := range len(text) {
		if text[i] == c {
			return true
		}
	}
	return false
}

// digits reads the number at i and calls the scanners. It returns where the pass continues.
func (s *scan) digits(i int) int {
	if to := s.findApart(i); to > i {
		return to
	}
	d := &s.number
	solidEnd, letters := solid(s, i)
	if letters || charAt(s.text, solidEnd) == ':' || charAt(s.text, solidEnd) == '-' {
		if to := hexPairs(s, i); to > i {
			return to
		}
	}
	if letters {
		if to := mixed(s, i, solidEnd); to > i {
			return to
		}
		s.lastGroup = solidEnd
		return solidEnd
	}
	if !s.read(d, i) {
		s.lastGroup = solidEnd
		return solidEnd
	}
	s.work += d.groups[d.g-1].end - d.start
	if to := s.askDigits(d); to > i {
		return to
	}
	if to := host(s, i); to > i {
		return to
	}
	if d.groups[0].n >= 25 {
		if to := longToken(s, i); to > i {
			return to
		}
	}
	s.lastGroup = d.groups[0].end
	return d.groups[0].end
}

// askDigits calls the rows' scanners in the order of strength.
func (s *scan) askDigits(d *digits) int {
	claimed := 0
	for _, t := range askDigits {
		r := &table[t]
		near := s.near(r.label, d.start)
		if r.needs && !near && t != Age || claimed > 0 && !(near && (t == DriverLicense || t == Passport || t == MRN)) {
			continue
		}
		m := r.digits(s, d)
		if m.end <= m.start {
			continue
		}
		if m.bad {
			claimed = max(claimed, m.end)
			continue
		}
		s.emit(t, m)
		s.spend(m.end)
		return max(m.end, d.groups[0].end)
	}
	if claimed > 0 {
		s.lastGroup = claimed
	}
	return claimed
}

// spend forgets the announcing word, which counts for one value only, or for a whole list of
// phone numbers.
func (s *scan) spend(end int) {
	if s.label == lPhone {
		s.labelEnd = end
		return
	}
	s.label = lNone
}

// solid returns where the letters and digits at i end, and whether there are
// letters among them that do not mark a phone extension.
func solid(s *scan, i int) (end int, letters bool) {
	n := 0
	for end = i; end < len(s.text); n++ {
		c, size := fold(s.text, end)
		if isLetter(c) {
			if n >= 4 && (c == 'x' || c == 'e') && extension(s.text, end) > end {
				s.work += n
				return end, letters
			}
			letters = true
		} else if !isDigit(c) && c != nothing {
			break
		}
		end += size
	}
	s.work += n
	return end, letters
}

// read reads the run of groups at i into d. It returns false if no number can
// begin there.
func (s *scan) read(d *digits, i int) bool {
	d.n, d.g, d.plus, d.paren, d.more, d.joined, d.money = 0, 0, false, false, false, sepNone, false
	d.start = i
	if !s.readBefore(d, i) {
		return false
	}
	sep := byte(sepNone)
	for i < len(s.text) {
		end, ok := s.readGroup(d, i, sep)
		if !ok {
			break
		}
		i, sep = separator(s.text, end)
		if i < 0 {
			break
		}
	}
	if d.joined == sepDot && d.g > 0 && s.nextField(d) {
		d.joined = sepNone
	}
	if d.paren && (d.g < 2 || d.groups[1].sep != sepParen) {
		if d.paren = false; !d.plus {
			d.start = d.groups[0].start
		}
	}
	return d.g > 0
}

// nextField reports whether the comma before the run ends a field of a table, as in
// "17,4111111111111111": the digits after the comma are then neither a group of thousands nor the
// decimals of a number below one, or they go on in a way that no amount does.
func (s *scan) nextField(d *digits) bool {
	comma, size := foldBefore(s.text, d.groups[0].start)
	if comma != ',' {
		return false
	}
	if d.groups[0].n == 3 {
		return d.g > 1 && d.groups[1].sep == sepDash
	}
	before := d.groups[0].start - size
	zero, n := foldBefore(s.text, before)
	digit, _ := foldBefore(s.text, before-n)
	return d.groups[0].n > 3 && !(zero == '0' && !isDigit(digit))
}

// readBefore checks the characters before the first digit.
func (s *scan) readBefore(d *digits, i int) bool {
	c, size := foldBefore(s.text, i)
	if c == ' ' && i > size && s.text[i-size-1] == '(' {
		c, size = '(', size+1 // "( 212 ) 688 - 5994", text cut into tokens
	}
	switch c {
	case '+':
		d.plus, d.start = true, i-size
		if b, n := foldBefore(s.text, d.start); b == '(' {
			d.start -= n
		}
		return true
	case '(':
		d.paren, d.start = true, i-size
		if b, n := foldBefore(s.text, d.start); b == '+' {
			d.plus, d.start = true, d.start-n
		}
	case '$', '#':
		d.money = true
	case '.', ',':
		if b, _ := foldBefore(s.text, i-size); isDigit(b) {
			d.joined = sepDot
		}
	case '-', '_':
		if b, _ := foldBefore(s.text, i-size); isLetter(b) {
			return s.labelEnd == i-size
		}
	}
	if size == 2 && i >= 2 && s.text[i-2] == 0xC2 && (s.text[i-1] == 0xA3 || s.text[i-1] == 0xA5) || size == 3 && s.text[i-3] == 0xE2 && s.text[i-2] == 0x82 && s.text[i-1] >= 0xA0 {
		d.money = true // pound, yen, and the currency block
	}
	if s.lastGroup >= 0 && s.lastGroup < i {
		if next, sep := separator(s.text, s.lastGroup); next == i {
			d.joined = sep
		}
	}
	return !wordy(c)
}

// readGroup reads the digits at i as one group. ok is false if letters follow directly, or if
// there is no room for the digits.
func (s *scan) readGroup(d *digits, i int, sep byte) (end int, ok bool) {
	g := group{first: d.n, start: i, sep: sep}
	for end = i; end < len(s.text); {
		c, size := fold(s.text, end)
		if c == nothing {
			end += size
			continue
		}
		if !isDigit(c) {
			checked := c|0x20 == 'x' && g.n == 3 && ends(s.text, end+size)              // a resident number of China
			checked = checked || c == 'T' && g.n == 2 && d.g == 2 && d.groups[0].n == 4 // a time follows
			if wordy(c) && d.g > 0 && !checked && extension(s.text, end) == end {
				return i, false
			}
			break
		}
		if d.n+g.n == maxDigits || d.g == maxGroups {
			d.more = true
			return i, false
		}
		d.d[d.n+g.n] = c
		g.n++
		end += size
		g.end = end
	}
	d.groups[d.g] = g
	d.g++
	d.n += g.n
	return g.end, true
}

// separator reads what may stand between two groups at i, and returns where
// the next group begins, -1 if none does.
func separator(text []byte, i int) (next int, sep byte) {
	spaces, sign, parens := 0, byte(0), false
	for n := 0; n < 5 && i < len(text); n++ {
		c, size := fold(text, i)
		switch {
		case isDigit(c):
			switch {
			case n == 0:
				return -1, sepNone
			case parens:
				return i, sepParen
			case sign == '.' && spaces > 0:
				return -1, sepNone // a sentence ends
			case sign != 0 && spaces > 0:
				return i, sepWide
			case sign != 0:
				return i, sign
			}
			return i, sepSpace
		case c == ' ':
			spaces++
		case c == nothing:
		case c == '(' || c == ')':
			parens = true
		case (c == '-' || c == '.' || c == '/') && sign == 0:
			sign = c
		default:
			return -1, sepNone
		}
		i += size
	}
	return -1, sepNone
}
