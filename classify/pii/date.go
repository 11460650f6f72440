// Dates and times: numeric, with the name of a month, in Chinese, and single
// years after a word such as "since".

package pii

// validDay reports whether the day exists. Where the year is not known, the caller passes 2000, a
// leap year.
func validDay(year, month, day int) bool {
	if month < 1 || month > 12 || day < 1 {
		return false
	}
	days := [...]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && (year%4 != 0 || year%100 == 0 && year%400 != 0) {
		days = 28
	}
	return day <= days
}

// date finds what begins with digits.
func date(s *scan, d *digits) match {
	if d.plus || d.money || d.joined == sepDash || d.joined == sepDot || d.joined == sepSlash {
		return match{}
	}
	m := match{start: d.groups[0].start}
	if end := glyphDate(s.text, d); end > 0 {
		m.end = end
		return m
	}
	if end := numericDate(s, d); end != 0 {
		if m.end = end; end < 0 {
			return match{start: m.start, end: -end, bad: true}
		}
		m.end = timeAfter(s.text, end)
		return m
	}
	if end := dayMonth(s.text, d); end > 0 {
		m.end = timeAfter(s.text, end)
		return m
	}
	if end := clockEnd(s.text, m.start); end > 0 {
		m.end, m.score = end, 0.72
		return m
	}
	if lonelyYear(s, d) {
		m.end, m.score = d.groups[0].end, 0.72
		return m
	}
	return match{}
}

// numericDate finds three groups that are a date. The result is negative if they have the form of
// a date, but that day does not exist.
func numericDate(s *scan, d *digits) int {
	if d.g < 3 || d.groups[1].sep != d.groups[2].sep || !hasByte("-/.", d.groups[1].sep) {
		return 0
	}
	a, b, c := d.groups[0].n, d.groups[1].n, d.groups[2].n
	x, y, z := number(d.value(0, 1)), number(d.value(1, 2)), number(d.value(2, 3))
	end := d.end(3)
	if !ends(s.text, end) && charAt(s.text, end) != 'T' || d.g > 3 && d.groups[3].sep == d.groups[1].sep {
		return 0
	}
	switch {
	case a == 4 && b <= 2 && c <= 2:
		if x < 1000 || x > 2999 || !validDay(x, y, z) {
			return -end
		}
	case a <= 2 && b <= 2 && c == 4:
		if z < 1000 || z > 2999 || !validDay(z, x, y) && !validDay(z, y, x) {
			return -end
		}
	case a <= 2 && b <= 2 && c == 2 && (d.groups[1].sep != sepDash || s.near(lDate, d.start)) && a+b >= 2:
		if d.groups[1].sep == sepDot && !(a == 2 && b == 2) || !validDay(2000, x, y) && !validDay(2000, y, x) && !validDay(2000, y, z) {
			return 0
		}
	default:
		return 0
	}
	return end
}

// timeAfter returns where a time of the day after a date ends; i: none.
func timeAfter(text []byte, i int) int {
	at := i
	switch c := charAt(text, at); {
	case c == 'T' || c == ' ':
		at++
	case c == ',' && charAt(text, at+1) == ' ':
		at += 2
	default:
		return i
	}
	if end := clockEnd(text, at); end > 0 {
		return end
	}
	if end := hhmm(text, at); end > 0 && ends(text, end) {
		return end
	}
	return i
}

// hhmm reads "15:04" at i and returns where it ends; 0: it is not there.
func hhmm(text []byte, i int) int {
	end := i
	for end < i+2 && isDigit(charAt(text, end)) {
		end++
	}
	if end == i || charAt(text, end) != ':' && charAt(text, end) != 'h' || !isDigit(charAt(text, end+1)) || !isDigit(charAt(text, end+2)) || isDigit(charAt(text, end+3)) {
		return 0
	}
	if hour := number(text[i:end]); hour > 24 || text[end+1] > '5' || !asciiDigits(text[i:end]) || !asciiDigits(text[end+1:end+3]) {
		return 0
	}
	return end + 3
}

func asciiDigits(d []byte) bool {
	for _, c := range d {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// clockEnd reads a time of the day that cannot be a ratio or a verse: with seconds, or with "am",
// "pm", "Uhr". It returns where it ends; 0: none.
func clockEnd(text []byte, i int) int {
	at := hhmm(text, i)
	whole := false
	if at > 0 && charAt(text, at) == ':' && isDigit(charAt(text, at+1)) && isDigit(charAt(text, at+2)) && charAt(text, at+1) <= '5' && !isDigit(charAt(text, at+3)) {
		at, whole = at+3, true
		if charAt(text, at) == '.' && isDigit(charAt(text, at+1)) {
			at++
			for at < len(text) && isDigit(text[at]) {
				at++
			}
		}
		if charAt(text, at) == 'Z' {
			at++
		} else if c := charAt(text, at); (c == '+' || c == '-') && hhmm(text, at+1) > 0 {
			at = hhmm(text, at+1)
		}
	}
	if at == 0 {
		if at = i; !isDigit(charAt(text, at)) {
			return 0
		}
		for at < i+2 && isDigit(charAt(text, at)) {
			at++
		}
	}
	end := at
	if charAt(text, at) == ' ' {
		at++
	}
	switch a, b := charAt(text, at)|0x20, charAt(text, at+1)|0x20; {
	case (a == 'a' || a == 'p') && b == 'm' && ends(text, at+2):
		if hour := hourOf(text[i:end]); hour >= 1 && hour <= 12 {
			return at + 2
		}
	case (a == 'a' || a == 'p') && charAt(text, at+1) == '.' && charAt(text, at+2)|0x20 == 'm' && charAt(text, at+3) == '.':
		return at + 4
	case a == 'u' && b == 'h' && charAt(text, at+2)|0x20 == 'r' && ends(text, at+3):
		return at + 3
	}
	if whole && ends(text, end) && !(charAt(text, end) == ':' && isDigit(charAt(text, end+1))) {
		return end
	}
	return 0
}

// hourOf returns the number at the front of a time.
func hourOf(d []byte) (n int) {
	for _, c := range d {
		if !isDigit(c) {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// clock finds a time of the day at a token with letters, such as "3pm".
func clock(s *scan, i int) int {
	if !begins(s.text, i) || isDigit(charAt(s.text, i-2)) && (charAt(s.text, i-1) == '.' || charAt(s.text, i-1) == ':' || charAt(s.text, i-1) == ',') {
		return i
	}
	end := clockEnd(s.text, i)
	if end == 0 {
		return i
	}
	s.emit(DateTime, match{start: i, end: end, score: 0.72})
	return end
}

// lonelyYear reports whether the digits are a year after a word such as "in".
func lonelyYear(s *scan, d *digits) bool {
	if d.groups[0].n != 4 || d.joined != sepNone || d.g > 1 && d.groups[1].sep != sepSpace || d.paren {
		return false
	}
	year, end := number(d.value(0, 1)), d.groups[0].end
	if year < 1900 || year > 2040 || !ends(s.text, end) || s.use&wYear == 0 || d.start-s.useEnd > 2 || d.g > 1 {
		return false
	}
	c := charAt(s.text, end)
	return c != '%' && (c != ',' && c != '.' && c != ':' || !isDigit(charAt(s.text, end+1))) && !countsThings(s.text, end)
}
