// Phone numbers: with a country code, in national forms, and bare digits
// after a word such as "call".

package pii

// phone finds a phone number with its extension. The number is the whole run of digits, or
// another separator than its own divides it from the rest of the run.
func phone(s *scan, d *digits) match {
	if d.joined == sepDot || d.joined == sepDash || d.joined == sepSlash || d.money {
		return match{}
	}
	if phoneTail(s.text, d.end(d.g)) && !d.more {
		s.label, s.labelEnd = lPhone, d.start
	}
	near := s.near(lPhone, d.start)
	for k := d.g; k > 0; k-- {
		if !phoneEnds(s.text, d, k) {
			continue
		}
		if score := phoneForm(s, d, k, near); score > 0 {
			return match{start: d.start, end: extension(s.text, d.end(k)), score: score}
		}
	}
	return match{}
}

// phoneEnds reports whether a number may end after k groups.
func phoneEnds(text []byte, d *digits, k int) bool {
	end := d.end(k)
	if !ends(text, end) && extension(text, end) == end {
		return false
	}
	if k == d.g {
		if d.more {
			return false
		}
		switch charAt(text, end) {
		case ',':
			return !isDigit(charAt(text, end+1))
		case '%', ':':
			return charAt(text, end) == ':' && !isDigit(charAt(text, end+1))
		}
		return true
	}
	sep := d.groups[k].sep
	return (sep == sepSpace || sep == sepWide) && (k == 1 || d.plus || d.groups[k-1].sep != sep)
}

// phoneForm returns the score of the first k groups as a phone number, 0 if
// they are none.
func phoneForm(s *scan, d *digits, k int, near bool) float32 {
	n := d.total(k)
	if d.mixedDots(k) || allZero(d.d[1:n]) {
		return 0
	}
	score := func(alone float32) float32 {
		if near {
			return 0.95
		}
		return alone
	}
	if n > 16 || isSSNShape(s.text, d, k) || !d.plus && k == 2 && streetAfter(s.text, d.end(k)) > 0 {
		return 0
	}
	if d.plus {
		if d.international(k) {
			return 0.95
		}
		return 0
	}
	foreign := s.foreign(lPhone, d.start) && s.label != lDate && s.label != lAge && s.label != lAddress && s.label != lPassword && s.label != lKey
	if foreign && (s.label != lOther || d.start-s.labelEnd < 20) {
		return 0
	}
	if d.joined != sepNone && k > 1 && d.groups[1].sep == d.joined {
		return 0
	}
	switch {
	case d.g > 1 && d.shape("-./ ", 4, 4, 4) && !near, d.allYears(k):
		return 0
	case d.nanp(k):
		return score(0.85)
	case k == 1 && d.chinaMobile(0, n), d.chinaGroups(k):
		return score(0.8)
	case d.d[0] == '0' && d.d[1] == '0' && n >= 10 && countryCode(d.d[2:n]) > 0 && (k > 1 || near) && d.fewSingles(k):
		return score(0.85)
	case d.trunk(k, n):
		return score(0.75)
	case d.paren && k >= 2 && d.groups[1].sep == sepParen && n >= 7 && n <= 12 && d.groups[0].n <= 5 && d.fewSingles(k):
		return score(0.75)
	case n == 11 && k > 2 && d.groups[0].n == 1 && d.d[0] == '8' && d.groups[1].n >= 3 && d.groups[2].sep == sepParen:
		return score(0.8) // Russia's trunk prefix
	case s.glyphs && near && k == 1 && d.d[0] == '1' && n >= 10 && n <= 12:
		return 0 // a mobile number of China that is too short, too long or of no network
	case near && barePhone(s, d, k, n):
		return 0.85
	}
	return 0
}

// international reports whether the first k groups, which a '+' precedes, are a country code and
// as many digits as the country has.
func (d *digits) international(k int) bool {
	n := d.total(k)
	cc := countryCode(d.d[:n])
	if cc == 0 || !d.fewSingles(k) {
		return false
	}
	rest := d.d[cc:n]
	for i := 1; i < k; i++ {
		if g := d.groups[i]; g.n == 1 && d.d[g.first] == '0' && g.sep == sepParen {
			n-- // "+41 (0)71": the trunk prefix is not dialled
		}
	}
	switch n -= cc; string(d.d[:cc]) {
	case "1":
		return n == 10 && rest[0] >= '2'
	case "7", "91":
		return n == 10
	case "33", "34":
		return n == 9
	case "86":
		return n >= 9 && n <= 11 && (rest[0] != '1' || n == 11 && rest[1] >= '3' || rest[1] == '0' && n == 10)
	}
	return n >= 5 && n+cc >= 8 && n+cc <= 15
}

// mixedDots reports whether both dots and spaces separate the digits, as with decimals in a table.
func (d *digits) mixedDots(k int) bool {
	dot, space := false, false
	for i := 1; i < k; i++ {
		dot = dot || d.groups[i].sep == sepDot
		space = space || d.groups[i].sep == sepSpace || d.groups[i].sep == sepWide
	}
	return dot && space && !d.plus
}

// allZero reports whether all digits are 0.
func allZero(d []byte) bool { return len(d) > 0 && d[0] == '0' && same(d) }

// isSSNShape reports whether the groups are 3-2-4 with dashes: no country writes its phone
// numbers like that, so a wrong social security number is not a phone number either.
func isSSNShape(text []byte, d *digits, k int) bool {
	return k == 3 && d.shape("-", 3, 2, 4) && !d.plus
}

// nanp reports whether the groups are a number of the North American plan: an area code that does
// not begin with 0 or 1, then 3 and 4 digits.
func (d *digits) nanp(k int) bool {
	i := 0
	if k == 4 && d.groups[0].n == 1 && d.d[0] == '1' {
		i = 1
	}
	if k == 2 && d.groups[0].n == 3 && d.groups[1].n == 7 && d.groups[1].sep == sepParen {
		return d.d[0] >= '2'
	}
	if k-i != 3 || d.groups[i].n != 3 || d.groups[i+1].n != 3 || d.groups[i+2].n != 4 {
		return false
	}
	if d.groups[i+1].sep == sepSlash || d.groups[i+2].sep == sepSlash || d.groups[i+2].sep == sepParen {
		return false
	}
	// Other numbers have spaces between their digits, too: be stricter if there are only spaces.
	area, exchange := d.d[d.groups[i].first], d.d[d.groups[i+1].first]
	if d.groups[i+1].sep == sepSpace && d.groups[i+2].sep == sepSpace {
		return area >= '2' && exchange >= '2'
	}
	return area >= '1'
}

// chinaMobile reports whether the digits from a to b are a mobile number of China: eleven digits,
// of which the first two are 13 to 19.
func (d *digits) chinaMobile(a, b int) bool {
	return b-a == 11 && d.d[a] == '1' && d.d[a+1] >= '3' && !same(d.d[a+1:b])
}

func (d *digits) chinaGroups(k int) bool {
	return k == 3 && d.chinaMobile(0, d.total(k)) && (d.shape(" -~", 3, 4, 4) || d.shape(" -~", 3, 3, 5) || d.shape(" -~", 4, 4, 3)) ||
		k == 4 && d.groups[0].n == 2 && d.d[0] == '8' && d.d[1] == '6' && d.chinaMobile(2, d.total(k))
}

// trunk reports whether the groups are a national number with the trunk prefix 0, as most of
// Europe, Asia and Oceania write it.
func (d *digits) trunk(k, n int) bool {
	if d.d[0] != '0' || k < 2 || n < 9 || n > 12 && !(d.paren && n == 13) || d.groups[0].n < 2 || d.groups[0].n > 6 {
		return false
	}
	for i := 1; i < k; i++ {
		g := d.groups[i]
		if g.n < 2 || g.sep == sepSlash && i > 1 || g.sep == sepDot && (g.n == 4 && n == 8) {
			return false
		}
	}
	return true
}

// barePhone reports whether the groups can be a phone number after a word that announces one.
func barePhone(s *scan, d *digits, k, n int) bool {
	if n > 15 || k == 1 && (n < 7 || n > 13) || k > 1 && n < 6 || d.joined != sepNone {
		return false
	}
	for i := range k {
		g := d.groups[i]
		if g.n < 2 && i > 0 || i > 0 && g.sep == sepSlash && i != 1 || i > 0 && i < k-1 && g.sep == sepWide {
			return false
		}
	}
	if k == 1 && n <= 8 && validDay(number(d.d[:4]), number(d.d[4:6]), number(d.d[6:n])) && d.d[0] <= '2' {
		return false
	}
	if k == 2 && d.groups[1].sep == sepDash && allZero(d.d[d.groups[0].n-2:d.groups[0].n]) && allZero(d.d[n-2:n]) {
		return false // "8000-10000" is a range
	}
	if s.use&wUnit != 0 && d.start-s.useEnd <= 2 {
		return false // "Rs. 30000"
	}
	return !countsThings(s.text, d.end(k))
}

// countsThings reports whether the word after text[:i] makes the number before it a quantity.
func countsThings(text []byte, i int) bool {
	if charAt(text, i) == ' ' {
		i++
	}
	if i >= len(text) {
		return false
	}
	hash, end := wordAt(text, i)
	return end > i && words.find(hash).use&wUnit != 0
}

// fewSingles reports whether at most the country code and a trunk prefix in parentheses are
// single digits.
func (d *digits) fewSingles(k int) bool {
	singles := 0
	for i := 1; i < k; i++ {
		if d.groups[i].n == 1 && d.groups[i].sep != sepParen {
			singles++
		}
	}
	return singles <= 1
}

// allYears reports whether the groups are years, as in a range of them.
func (d *digits) allYears(k int) bool {
	for i := range k {
		if v := number(d.value(i, i+1)[:min(4, d.groups[i].n)]); d.groups[i].n != 4 || v < 1800 || v > 2100 {
			return false
		}
	}
	return k > 1
}

// extension returns where the extension of a phone number that ends at i
// ends: "x123", " ext. 123", " #123"; i if it has none.
func extension(text []byte, i int) int {
	at := i
	if c, size := char(text, at); c == ',' || c == ';' {
		at += size
	}
	if c, size := char(text, at); c == ' ' {
		at += size
	}
	mark, size := char(text, at)
	switch {
	case mark == '#' && at > i:
		at += size
	case mark|0x20 == 'x' || mark|0x20 == 'e' || mark|0x20 == 'd':
		hash, end := wordAt(text, at)
		if !extensionWords[hash] {
			return i
		}
		at = end
	case mark == ideo:
		const word = "分机"
		if at+len(word) > len(text) || string(text[at:at+len(word)]) != word {
			return i
		}
		at += len(word)
	default:
		return i
	}
	for range 2 {
		if c, size := char(text, at); c == '.' || c == ' ' || c == ':' {
			at += size
		}
	}
	from := at
	n := 0
	for ; n < 7; n++ {
		c, size := char(text, at)
		if !isDigit(c) {
			break
		}
		at += size
	}
	if at == from || n > 6 || !ends(text, at) {
		return i
	}
	return at
}

var extensionWords = func() map[uint64]bool {
	m := make(map[uint64]bool)
	for _, w := range []string{"x", "ext", "extn", "extension", "dw", "durchwahl"} {
		m[hashWord(w)] = true
	}
	return m
}()

// phoneTail reports whether a word after the number, as in "-Office" or "(mobile)", makes it a
// phone number.
func phoneTail(text []byte, i int) bool {
	i = extension(text, i)
	for range 2 {
		switch c, size := char(text, i); c {
		case ' ', '-', '(', '/':
			i += size
		}
	}
	if i >= len(text) {
		return false
	}
	hash, end := wordAt(text, i)
	return end > i && tailWords[hash] && charAt(text, end) != ':'
}

var tailWords = func() map[uint64]bool {
	m := make(map[uint64]bool)
	for _, w := range []string{"office", "fax", "mobile", "cell", "phone", "home", "work", "desk", "landline", "handy", "mobil", "portable", "móvil", "celular", "telemóvel"} {
		m[hashWord(w)] = true
	}
	return m
}()

// countryCode returns how many digits of d are a country calling code (ITU
// E.164) that is assigned, 0 if none begins there.
func countryCode(d []byte) int {
	if len(d) < 4 {
		return 0
	}
	if d[0] == '1' || d[0] == '7' {
		return 1
	}
	if two := number(d[:2]); two >= 20 && callingCodes[two] {
		return 2
	}
	if three := number(d[:3]); three >= 200 && callingCodes[three] {
		return 3
	}
	return 0
}

// callingCodes are the codes of two and of three digits for which libphonenumber knows a number.
// testdata/phones.tsv has all of them, and a test compares the two.
var callingCodes = func() (t [1000]bool) {
	for _, code := range []int{
		20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56, 57, 58, 60, 61, 62, 63, 64, 65, 66, 81, 82, 84, 86, 90, 91, 92, 93, 94, 95, 98,
		211, 212, 213, 216, 218, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 257, 258, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 290, 291, 297, 298, 299,
		350, 351, 352, 353, 354, 355, 356, 357, 358, 359, 370, 371, 372, 373, 374, 375, 376, 377, 378, 380, 381, 382, 383, 385, 386, 387, 389,
		420, 421, 423,
		500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 590, 591, 592, 593, 594, 595, 596, 597, 598, 599,
		670, 672, 673, 674, 675, 676, 677, 678, 679, 680, 681, 682, 683, 685, 686, 687, 688, 689, 690, 691, 692,
		800, 808, 850, 852, 853, 855, 856, 870, 878, 880, 881, 882, 883, 886, 888,
		960, 961, 962, 963, 964, 965, 966, 967, 968, 970, 971, 972, 973, 974, 975, 976, 977, 979, 992, 993, 994, 995, 996, 998,
	} {
		t[code] = true
	}
	return t
}()
