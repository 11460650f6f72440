// Passwords: the value after a word such as "password", and how such values
// are read.

package pii

// value is the value that a word announces: text[start:end].
type value struct {
	start, end int
	asserted   bool // ':', '=' or "is" stands before it
	sign       bool // what asserted it was ':' or '='
	quoted     bool
}

// valueAfter reads the value announced by the word that ends at text[:i]. It skips up to four
// more words such as "number is", and the signs between them. The zero value means none.
func valueAfter(s *scan, i int) (v value) {
	from := i
	for fillers := 0; fillers < 5; {
		c, size := char(s.text, i)
		switch {
		case size == 0:
			return value{}
		case c == ' ' || c == '\t' || c == '*':
		case c == ':' || c == '=' || c == '>':
			v.asserted, v.sign = true, true
			if c == '=' && charAt(s.text, i+1) == '=' {
				return value{}
			}
		case c == '\n' || c == '\r':
			if !v.sign || v.quoted {
				return value{}
			}
			fillers++
		case c == '"' || c == '\'' || c == '`':
			// A quote closes the name of a field, or opens the value.
			if next := charAt(s.text, i+size); next == ':' || next == '=' || next == ']' || (next == ' ' && (charAt(s.text, i+size+1) == ':' || charAt(s.text, i+size+1) == '=')) {
				i += size
				continue
			}
			if i == from {
				return value{}
			}
			return quoted(s, i, size, c, v)
		case c == '\\' && (charAt(s.text, i+1) == '"'):
			i++
			continue
		case c == ']' && v == (value{}), c == '(' && !v.asserted && fillers == 0, c == ')', c == ',' && !v.sign:
			return value{}
		case c == ideo:
			w, n := glyphAt(s.text, i)
			if n == 0 {
				return value{}
			}
			if w.use&wIs != 0 {
				v.asserted = true
			} else if w.use&wFiller == 0 {
				return value{}
			}
			i += n
			fillers++
			continue
		case c == '.' || c == ';' || c == '?' || c == '|' || c == '<' || c == '[' || c == '{' || c == '}':
			if !v.asserted {
				return value{}
			}
			fallthrough
		default:
			if before, _ := foldBefore(s.text, i); i == from && isLetter(before) {
				return value{} // it was no word: "PW7sU0FNVp", or a piece of base64
			}
			hash, end := wordAt(s.text, i)
			w := words.find(hash)
			if end > i && w.use&(wFiller|wIs) != 0 && charAt(s.text, end) <= ':' && !isDigit(charAt(s.text, end)) && !(v.sign && charAt(s.text, end) != ' ') {
				v.asserted = v.asserted || w.use&wIs != 0
				fillers++
				i = end
				continue
			}
			v.start, v.end = i, bareEnd(s.text, i)
			s.work += v.end - i
			return v
		}
		i += size
	}
	return value{}
}

// quoted reads the value that the quote at i opens.
func quoted(s *scan, i, size int, quote byte, v value) value {
	v.start, v.quoted = i+size, true
	for v.end = v.start; v.end-v.start < 512; {
		c, n := char(s.text, v.end)
		if n == 0 || c == '\n' {
			return value{}
		}
		if c == quote {
			s.work += v.end - i
			return v
		}
		if c == '\\' && quote != '`' && charAt(s.text, v.end+1) == quote {
			return v // the quotes themselves are escaped
		}
		v.end += n
	}
	return value{}
}

// bareEnd returns where a value without quotes that begins at i ends: at a space; the punctuation
// of the sentence does not belong to it.
func bareEnd(text []byte, i int) int {
	end := i
	for end < len(text) && end-i < 260 {
		c, size := fold(text, end)
		if c <= ' ' && c != foreign && c != ideo || c == '"' || c == ideo || c == '`' || c == '<' || text[end] == '\\' {
			break
		}
		if (c == ',' || c == ';' || c == '&') && !isAlnum(charAt(text, end+size)) && !hasByte("!@#$%^*", charAt(text, end+size)) {
			break
		}
		end += size
	}
	for end > i {
		c, size := foldBefore(text, end)
		if !hasByte(".,;:?'\")]}>", c) {
			break
		}
		end -= size
	}
	return end
}

// password looks for a password after the word that ends at text[:i].
func password(s *scan, i int) {
	v := valueAfter(s, i)
	n := v.end - v.start
	if n < 3 || n > 128 || placeholder(s.text, v.start, v.end) {
		return
	}
	strength := strength(s.text, v.start, v.end)
	ok := strength >= 3
	switch {
	case v.quoted && v.asserted:
		ok = n >= 3 && (strength >= 2 || spaces(s.text, v.start, v.end) == 0)
	case v.quoted:
		ok = strength >= 2 && n >= 4
	case v.sign && lettersOnly(s.text, v.start, v.end):
		// "password: newPassword" looks like code; "PASSWORD=SuperSecret" does not.
		ok = strength >= 2 && n >= 6 && charAt(s.text, v.start-1) == '=' && charAt(s.text, v.start-2) != ' ' && charAt(s.text, v.end) != ',' && charAt(s.text, v.end) != ')'
	case v.sign:
		ok = strength >= 2 && n >= 4
	case v.asserted:
		ok = strength >= 2 && n >= 5
	}
	if ok && spaces(s.text, v.start, v.end) <= 3 {
		s.emit(Password, match{start: v.start, end: v.end})
	}
}

// lettersOnly reports whether text[i:end] has no digit or sign.
func lettersOnly(text []byte, i, end int) bool {
	for _, c := range text[i:end] {
		if c < 0x80 && !isLetter(c) {
			return false
		}
	}
	return true
}

func spaces(text []byte, i, end int) (n int) {
	for _, c := range text[i:end] {
		if c == ' ' {
			n++
		}
	}
	return n
}

// strength counts the kinds of characters in text[i:end]: small letters,
// capitals other than the first, digits, signs.
func strength(text []byte, i, end int) int {
	var kinds [4]int
	for at := i; at < end; at++ {
		switch c := text[at]; {
		case isLower(c):
			kinds[0] = 1
		case isUpper(c):
			if at > i {
				kinds[1] = 1
			}
			kinds[0] |= 1
		case isDigit(c):
			kinds[2] = 1
			if end-i >= 6 && at == end-1 && kinds[0] == 0 {
				kinds[3] = 1 // digits alone: a code that someone chose
			}
		case c >= 0x80, c == ' ', c == '\'', c == '-' && at > i && at < end-1 && isLetter(text[at-1]) && isLetter(text[at+1]):
		default:
			kinds[3] = 1
		}
	}
	return kinds[0] + kinds[1] + kinds[2] + kinds[3]
}

// placeholder reports whether text[i:end] only stands for a secret: a variable, a call,
// asterisks.
func placeholder(text []byte, i, end int) bool {
	v := text[i:end]
	if len(v) == 0 {
		return true
	}
	switch v[0] {
	case '<', '[', '{', '(':
		return true
	case '$', '%':
		if len(v) > 1 && (v[1] == '{' || v[1] == '(' || v[0] == '$' && isUpper(v[1]) && allName(v[1:]) || v[0] == '%' && v[len(v)-1] == '%') {
			return true
		}
	}
	if allName(v) && (v[0] == '_' || hasWord(v, "password") || hasWord(v, "passwd") || hasWord(v, "secret_") || hasWord(v, "your_") || hasWord(v, "your-")) {
		return true
	}
	stars := 0
	for k, c := range v {
		if c == '*' || c == 'x' || c == 'X' || c == '.' || c == '_' {
			stars++
		}
		if (c == '(' || c == '[') && k > 0 && isLetter(v[k-1]) && allName(v[:k]) {
			return true
		}
		if c == '.' && k > 2 && k+2 < len(v) && isLower(v[k-1]) && isLetter(v[k+1]) && allName(v) {
			return true // a field of a record in a program
		}
	}
	return stars == len(v) || stars*4 >= len(v)*3
}

// hasWord reports whether d holds a lower-case word, in any case.
func hasWord(d []byte, lowered string) bool {
	for i := 0; i+len(lowered) <= len(d); i++ {
		if equalFold(d[i:i+len(lowered)], lowered) {
			return true
		}
	}
	return false
}

// allName reports whether d is a name in a program, or a path of such names.
func allName(d []byte) bool {
	for _, c := range d {
		if !isLetter(c) && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
