// Identity numbers of the United States, China, India and the United Kingdom.

package pii

// ssn finds a social security number, AAA-GG-SSSS. Area 000, 666 and 900 to 999, group 00 and
// serial 0000 were never given out (Social Security Administration, randomization of 2011). A few
// numbers that advertisements made known are excluded, too.
func ssn(s *scan, d *digits) match {
	near := s.near(lSSN, d.start)
	k := 0
	switch {
	case d.plus || d.paren:
		return match{}
	case d.shape("-", 3, 2, 4), near && d.shape(" .~/", 3, 2, 4):
		k = 3
	case near && d.groups[0].n == 9:
		k = 1
	default:
		return match{}
	}
	if !d.alone(k) || d.joined == sepSpace && k == 3 && d.groups[1].sep == sepSpace {
		return match{}
	}
	m := match{start: d.groups[0].start, end: d.end(k)}
	v := d.value(0, k)
	area, group, serial := string(v[:3]), string(v[3:5]), string(v[5:9])
	m.bad = area == "000" || area == "666" || v[0] == '9' || group == "00" || serial == "0000" ||
		string(v) == "078051120" || string(v) == "219099999"
	if m.bad && !near && d.groups[0].n == 9 {
		return match{}
	}
	return m
}

// resident finds a resident identity number of China (GB 11643-1999): six
// digits of a region, a birth date, a serial, and a check digit (ISO 7064 MOD
// 11-2, 10 is X).
func resident(s *scan, d *digits) match {
	k, x := 0, byte(0)
	switch {
	case d.plus || d.paren:
		return match{}
	case d.groups[0].n == 18:
		k = 1
	case d.shape(" -", 6, 8, 4):
		k = 3
	case d.groups[0].n == 17, d.shape(" -", 6, 8, 3):
		if k = 1; d.groups[0].n != 17 {
			k = 3
		}
		if x = charAt(s.text, d.end(k)) &^ 0x20; x != 'X' {
			return match{}
		}
	default:
		return match{}
	}
	m := match{start: d.groups[0].start, end: d.end(k)}
	if x != 0 {
		_, size := fold(s.text, m.end)
		m.end += size
	}
	if !d.alone(k) || !ends(s.text, m.end) {
		return match{}
	}
	v := d.value(0, k)
	if !provinces[(v[0]-'0')*10+v[1]-'0'] || !birthDate(v[6:14]) {
		m.bad = s.near(lResident, d.start)
		if !m.bad {
			return match{}
		}
		return m
	}
	m.bad = residentCheck(v) != last(v, x)
	return m
}

func last(v []byte, x byte) byte {
	if x != 0 {
		return x
	}
	return v[17]
}

// residentCheck returns the check character for the first 17 digits.
func residentCheck(v []byte) byte {
	sum := 0
	for i := range 17 {
		sum += int(v[i]-'0') * (1 << (17 - i) % 11)
	}
	return "10X98765432"[sum%11]
}

// provinces are the first two digits that GB/T 2260 knows.
var provinces = func() (p [100]bool) {
	for _, n := range []int{11, 12, 13, 14, 15, 21, 22, 23, 31, 32, 33, 34, 35, 36, 37, 41, 42, 43, 44, 45, 46, 50, 51, 52, 53, 54, 61, 62, 63, 64, 65, 71, 81, 82, 83} {
		p[n] = true
	}
	return p
}()

// birthDate reports whether yyyymmdd is a day on which a living person can have been born. This
// package reads no clock, so the last accepted year lies well ahead.
func birthDate(v []byte) bool {
	return validDay(number(v[:4]), number(v[4:6]), number(v[6:8])) && number(v[:4]) >= 1900 && number(v[:4]) <= 2040
}

// number returns the value of a few digits.
func number(d []byte) (n int) {
	for _, c := range d {
		n = n*10 + int(c-'0')
	}
	return n
}

// aadhaar finds the number of an Indian resident: twelve digits, the first not 0 or 1, the last a
// check digit after Verhoeff (UIDAI). If no word announces it, it is found only as it is printed,
// in groups of four.
func aadhaar(s *scan, d *digits) match {
	near := s.near(lAadhaar, d.start)
	k := 0
	switch {
	case d.plus || d.paren:
		return match{}
	case d.shape(" -.~", 4, 4, 4):
		k = 3
	case near && d.groups[0].n == 12:
		k = 1
	default:
		return match{}
	}
	if !d.alone(k) || k == 3 && !d.whole(3) && !near {
		return match{}
	}
	v := d.value(0, k)
	m := match{start: d.groups[0].start, end: d.end(k)}
	m.bad = v[0] < '2' || !verhoeff(v) || s.foreign(lAadhaar, d.start)
	return m
}

// The tables of Verhoeff's scheme: multiplication in the dihedral group D5,
// and the permutation (J. Verhoeff, Error Detecting Decimal Codes, 1969).
var (
	dihedral = [10]string{"0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
		"5987604321", "6598710432", "7659821043", "8765932104", "9876543210"}
	permuted = [8]string{"0123456789", "1576283094", "5803796142", "8916043527",
		"9453126870", "4286573901", "2793806415", "7046913258"}
)

func verhoeff(d []byte) bool {
	c := byte('0')
	for i := range d {
		c = dihedral[c-'0'][permuted[i%8][d[len(d)-1-i]-'0']-'0']
	}
	return c == '0'
}

// nhs finds a National Health Service number: ten digits, the last a check digit modulo 11 (NHS
// Data Dictionary). One in eleven phone numbers fits that check digit too, so a word must
// announce the number.
func nhs(s *scan, d *digits) match {
	k := 0
	switch {
	case d.plus || d.paren:
		return match{}
	case d.groups[0].n == 10:
		k = 1
	case d.shape(" -.~", 3, 3, 4):
		k = 3
	default:
		return match{}
	}
	if !d.alone(k) {
		return match{}
	}
	v := d.value(0, k)
	sum := 0
	for i := range 9 {
		sum += int(v[i]-'0') * (10 - i)
	}
	check := (11 - sum%11) % 11
	return match{start: d.groups[0].start, end: d.end(k), bad: check == 10 || check != int(v[9]-'0')}
}

// nino finds a National Insurance number: two letters, six digits, a letter
// (HMRC, NIM39110).
func nino(s *scan, c *code) match {
	m := match{start: c.start}
	i := c.groupsAt(s, 2, "LLNNNNNNL")
	if i < 0 {
		return match{}
	}
	m.end = i
	a, b, suffix := c.spread[0], c.spread[1], c.spread[8]
	if !isUpper(c.buf[0]) && !s.near(lNINO, c.start) {
		return match{}
	}
	m.bad = hasByte("DFIQUV", a) || hasByte("DFIOQUV", b) || suffix > 'D'
	switch string([]byte{a, b}) {
	case "BG", "GB", "NK", "KN", "TN", "NT", "ZZ":
		m.bad = true
	}
	return m
}
