// Dates with the name or the sign of a month: "12 de marzo de 2020", "March 12",
// "2020年3月12日".

package pii

// ordinal finds a date that begins with "3rd" or "1er". It returns where the pass continues; i:
// none.
func ordinal(s *scan, i int) int {
	at, day := i, 0
	for ; at < i+2 && isDigit(charAt(s.text, at)) && s.text[at] < 0x80; at++ {
		day = day*10 + int(s.text[at]-'0')
	}
	if _, end := wordAt(s.text, at); at == i || end-at != 2 || day < 1 || day > 31 || !begins(s.text, i) {
		return i
	}
	end := monthAfter(s.text, at+2, day)
	if end == 0 {
		return i
	}
	s.emit(DateTime, match{start: i, end: end})
	return end
}

// hashMars is the hash of "mars", a month in French and a planet in English.
var hashMars = hashWord("mars")

// glyphDate reads "2020年3月12日" and "3月12日" and returns where it ends; 0: it is not there.
func glyphDate(text []byte, d *digits) int {
	if charAt(text, d.groups[0].end) != ideo {
		return 0
	}
	at, year, month := d.groups[0].start, 2000, 0
	n, end, sign := counted(text, at)
	if sign == "年" && n >= 1000 && n <= 2999 {
		year = n
		next, stop, after := counted(text, end)
		if after != "月" {
			return end
		}
		n, end, sign = next, stop, after
	}
	if sign != "月" || n < 1 || n > 12 {
		return 0
	}
	month = n
	day, stop, after := counted(text, end)
	if after != "日" {
		if year != 2000 {
			return end
		}
		return 0
	}
	if !validDay(year, month, day) {
		return 0
	}
	return stop
}

// counted reads a number of up to four digits and the sign for year, month or day after it, and
// returns that sign in its Chinese form.
func counted(text []byte, i int) (n, end int, sign string) {
	for k := 0; k < 5; k++ {
		c, size := char(text, i)
		if c == ' ' {
			i += size
			continue
		}
		if !isDigit(c) {
			break
		}
		n = n*10 + int(c-'0')
		i += size
	}
	for _, sign := range [...][2]string{{"年", "年"}, {"月", "月"}, {"日", "日"}, {"号", "日"}, {"號", "日"}, {"년", "年"}, {"월", "月"}, {"일", "日"}} {
		if i+3 <= len(text) && string(text[i:i+3]) == sign[0] {
			return n, i + 3, sign[1]
		}
	}
	return n, i, ""
}

// dayMonth reads "12 March 2020", "12. März 2020", "3rd of May", "12 de marzo de 2020" and
// returns where it ends; 0: it is not there.
func dayMonth(text []byte, d *digits) int {
	day := number(d.value(0, 1)[:min(2, d.groups[0].n)])
	if d.groups[0].n > 2 || day < 1 || day > 31 {
		return 0
	}
	return monthAfter(text, d.groups[0].end, day)
}

// monthAfter reads the name of a month, and perhaps a year, after a day that
// ends at i.
func monthAfter(text []byte, i, day int) int {
	if charAt(text, i) == '.' {
		i++
	}
	gap := i
	for n := 0; n < 2; n++ {
		for charAt(text, i) == ' ' || charAt(text, i) == '-' && n == 0 {
			_, size := char(text, i)
			if i += size; i-gap > 8 {
				return 0
			}
		}
		if i >= len(text) {
			return 0
		}
		hash, end := wordAt(text, i)
		w := words.find(hash)
		if w.month != 0 {
			if end-i < 3 || !validDay(2000, int(w.month), day) {
				return 0
			}
			// "3 may", "5 mar": a short name needs a capital or a year.
			stop := yearAfter(text, end)
			if stop == end && (text[i] >= 'a' && text[i] <= 'z' && end-i <= 3) {
				return 0
			}
			if charAt(text, stop) == '.' && stop == end && end-i <= 4 && yearAfter(text, end+1) > end+1 {
				return yearAfter(text, end+1)
			}
			return stop
		}
		if n == 0 && w.use&wJoin == 0 || end == i {
			return 0
		}
		i = end
	}
	return 0
}

// yearAfter returns where a year after text[:i] ends; i: none.
func yearAfter(text []byte, i int) int {
	at := i
	if charAt(text, at) == ' ' && charAt(text, at+1) == ',' {
		at++
	}
	if charAt(text, at) == ',' || charAt(text, at) == '.' {
		at++
	}
	if c := charAt(text, at); c == ' ' || c == '-' {
		_, size := char(text, at)
		at += size
	}
	if at == i || at >= len(text) {
		return i
	}
	if hash, end := wordAt(text, at); end > at && words.find(hash).use&wJoin != 0 && charAt(text, end) == ' ' {
		at = end + 1
	}
	from := at
	n, year := 0, 0
	for ; n < 5; n++ {
		c, size := char(text, at)
		if !isDigit(c) {
			break
		}
		year = year*10 + int(c-'0')
		at += size
	}
	if n != 4 || year < 1000 || year > 2999 || !ends(text, at) && charAt(text, at) != 'T' || from == i {
		return i
	}
	return at
}

// monthDay reads "March 12, 2020", "Mar 12" and "March 2020" at a month's
// name. It returns where the pass continues, end if there is no date.
func monthDay(s *scan, i, end int, month uint8) int {
	if end-i < 3 || !begins(s.text, i) {
		return end
	}
	if charAt(s.text, i-1) == ' ' && isDigit(charAt(s.text, i-2)) && !(isDigit(charAt(s.text, i-3)) && isDigit(charAt(s.text, i-4))) {
		return end // a day stands before the month, and the month does not have that day
	}
	at := end
	if charAt(s.text, at) == '.' && end-i <= 4 {
		at++
	}
	if stop := yearAfter(s.text, at); stop > at && charAt(s.text, at) == ' ' {
		s.emit(DateTime, match{start: i, end: stop})
		return stop
	}
	if charAt(s.text, at) != ' ' || s.text[i] >= 'a' && s.text[i] <= 'z' && end-i <= 3 {
		return end
	}
	at++
	day, n := 0, 0
	for ; n < 3 && at < len(s.text) && isDigit(s.text[at]); n++ {
		day = day*10 + int(s.text[at]-'0')
		at++
	}
	if n == 0 || n > 2 || !validDay(2000, int(month), day) {
		return end
	}
	if c, d := charAt(s.text, at)|0x20, charAt(s.text, at+1)|0x20; c == 's' && d == 't' || c == 'n' && d == 'd' || c == 'r' && d == 'd' || c == 't' && d == 'h' {
		at += 2
	}
	if !ends(s.text, at) || charAt(s.text, at) == ':' || charAt(s.text, at) == '.' && isDigit(charAt(s.text, at+1)) || charAt(s.text, at) == '%' {
		return end
	}
	if stop := yearAfter(s.text, at); stop > at {
		at = stop
	}
	at = timeAfter(s.text, at)
	s.emit(DateTime, match{start: i, end: at})
	return at
}
