// Tokens that mix letters and digits: account numbers, licences, addresses of
// machines and of money.

package pii

// maxCode is how many characters of a token are kept folded.
const maxCode = 64

// code is a token of letters and digits, with '-' and '_' within.
type code struct {
	start, end int              // the whole token: bytes of the text
	buf        [maxCode]byte    // folded
	off        [maxCode + 1]int // where each of buf begins in the text
	n          int              // of buf; the token may be longer
	solid      int              // how many of buf come before the first '-' or '_'
	solidEnd   int              // where they end, however many they are
	digits     int              // how many of buf are digits
	spread     [maxCode]byte    // the characters of groupsAt or compact, upper case
}

// code reads the token at i and calls the scanners. It returns where the pass continues; i:
// nothing was found.
func (s *scan) code(i int) int {
	if i < s.codeEnd || !begins(s.text, i) {
		return i
	}
	c := &s.token
	readCode(s.text, c, i)
	s.work += c.end - c.start
	claimed := i
	for _, t := range askCode {
		r := &table[t]
		near := s.near(r.label, i)
		if r.needs && !near || claimed > i && !(near && (t == DriverLicense || t == Passport || t == MRN)) {
			continue
		}
		m := r.code(s, c)
		if m.end <= m.start {
			continue
		}
		if m.bad {
			claimed = max(claimed, m.end)
			continue
		}
		s.emit(t, m)
		s.spend(m.end)
		return m.end
	}
	if claimed == i && c.digits >= 4 && c.end > c.solidEnd {
		// A part number in several pieces: its tail is no phone number.
		s.lastGroup = c.end
		return c.end
	}
	s.codeEnd = c.end
	return claimed
}

func readCode(text []byte, c *code, i int) {
	c.start, c.n, c.solid, c.solidEnd, c.digits = i, 0, -1, -1, 0
	held := true
	for i < len(text) {
		b, size := fold(text, i)
		if b == '-' || b == '_' {
			if next := charAt(text, i+size); !isAlnum(next) || c.n == maxCode {
				break
			}
			if c.solid < 0 {
				c.solid, c.solidEnd = c.n, i
			}
		} else if !isAlnum(b) {
			break
		}
		if c.n == maxCode {
			held = false
			if i-c.start > 1024 {
				break
			}
		}
		if held {
			c.buf[c.n], c.off[c.n] = b, i
			c.n++
			if isDigit(b) {
				c.digits++
			}
		}
		i += size
	}
	c.end = i
	if held {
		c.off[c.n] = i
	} else {
		c.off[c.n-1] = i
	}
	if c.solid < 0 {
		c.solid, c.solidEnd = c.n, i
	}
}

// whole reports whether buf holds all of the token, with nothing that would continue it.
func (c *code) whole(s *scan) bool { return c.n < maxCode && ends(s.text, c.end) }

// groupsAt matches pattern (L a letter, N a digit, A either) from the token's start on, and
// allows a single space, '-' or '.' before each character whose index is first or more. It fills
// spread and returns the end, -1 if the text does not match.
func (c *code) groupsAt(s *scan, first int, pattern string) int {
	i := c.start
	for k := range len(pattern) {
		b, size := char(s.text, i)
		if k >= first && (b == ' ' || b == '-' || b == '.') {
			i += size
			b, size = char(s.text, i)
		}
		ok := false
		switch pattern[k] {
		case 'L':
			ok = isLetter(b)
		case 'N':
			ok = isDigit(b)
		case 'A':
			ok = isAlnum(b)
		}
		if !ok {
			return -1
		}
		if c.spread[k] = b; isLetter(b) {
			c.spread[k] = b &^ 0x20
		}
		i += size
	}
	s.work += i - c.start
	if !ends(s.text, i) {
		return -1
	}
	return i
}

// char is fold that also works at the end of the text.
func char(text []byte, i int) (c byte, size int) {
	if i >= len(text) {
		return 0, 0
	}
	return fold(text, i)
}

// mixed takes a token that begins with a digit and has letters.
func mixed(s *scan, i, end int) int {
	if to := residentX(s, i, end); to > i {
		return to
	}
	if to := clock(s, i); to > i {
		return to
	}
	if to := ordinal(s, i); to > i {
		return to
	}
	if to := ageToken(s, i); to > i {
		return to
	}
	if to := houseLetter(s, i, end); to > i {
		return to
	}
	if to := s.code(i); to > i {
		return to
	}
	return host(s, i)
}

// residentX reads a Chinese resident number that ends with X as digits.
func residentX(s *scan, i, end int) int {
	if end-i < 18 || charAt(s.text, end-1)&^0x20 != 'X' && charAt(s.text, end-3)&^0x20 != 'X' {
		return i
	}
	d := &s.number
	if !s.read(d, i) || d.groups[0].n != 17 {
		return i
	}
	m := resident(s, d)
	switch {
	case m.end <= m.start:
		return i
	case m.bad:
		return m.end
	}
	s.emit(CNResidentID, m)
	s.spend(m.end)
	return m.end
}
