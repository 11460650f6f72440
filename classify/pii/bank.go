// Bank accounts: IBAN, routing numbers, account numbers.

package pii

// ibanLengths are the lengths by country (SWIFT IBAN Registry, release 99,
// and the countries outside it that use the form).
var ibanLengths = func() map[[2]byte]int {
	const list = `AD24 AE23 AL28 AO25 AT20 AZ28 BA20 BE16 BF28 BG22 BH22 BI27 BJ28 BR29 BY28 CF27 CG27 CH21 CI28 CM27 CR22 CV25 CY28 CZ24 ` +
		`DE22 DJ27 DK18 DO28 DZ26 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GA27 GB22 GE22 GI23 GL18 GQ27 GR27 GT28 GW25 HN28 HR21 HU28 IE22 IL23 IQ23 IR26 IS26 IT27 ` +
		`JO30 KM27 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MA28 MC27 MD24 ME22 MG27 MK19 ML28 MN20 MR27 MT31 MU30 MZ25 NE28 NI28 NL18 NO15 OM23 ` +
		`PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SN28 SO23 ST25 SV28 TD27 TG28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30 `
	m := make(map[[2]byte]int)
	for i := 0; i+4 < len(list); i += 5 {
		m[[2]byte{list[i], list[i+1]}] = int(list[i+2]-'0')*10 + int(list[i+3]-'0')
	}
	return m
}()

// iban finds an International Bank Account Number (ISO 13616): a country, two
// check digits, and as many characters as the country has; solid, or in
// groups with single spaces or dashes between them.
func iban(s *scan, c *code) match {
	if c.n < 4 || !isLetter(c.buf[1]) || !isDigit(c.buf[2]) || !isDigit(c.buf[3]) {
		return match{}
	}
	return s.ibanOf([2]byte{c.buf[0], c.buf[1]}, c.start, 4)
}

// spelledIBAN finds an IBAN after its word, with a separator between any two characters. It
// returns where it ends; i: none.
func (s *scan) spelledIBAN(i int) int {
	if !s.near(lIBAN, i) {
		return i
	}
	country := [2]byte{s.text[i]}
	for at := i + 1; at < min(len(s.text), i+maxGap) && country[1] == 0; {
		b, size := char(s.text, at)
		if wordy(b) || b == ideo {
			country[1] = b
		}
		at += size
	}
	if m := s.ibanOf(country, i, 1); m.end > i && !m.bad {
		s.emit(IBAN, m)
		s.spend(m.end)
		return m.end
	}
	return i
}

// ibanOf reads an IBAN that begins at start. Separators may stand before its apart-th character
// and before all later ones.
func (s *scan) ibanOf(country [2]byte, start, apart int) match {
	length := ibanLengths[[2]byte{country[0] &^ 0x20, country[1] &^ 0x20}]
	if length == 0 {
		return match{}
	}
	m := match{start: start}
	rest, digits := 0, 0 // the number so far, modulo 97
	head := 0            // the first four characters, six digits of it that come last
	i, gaps := start, 0
	even, upper, lower := true, false, false // gaps only after groups of four; the case of the letters seen so far
	loose := apart < 4                       // gaps may be other than one space or dash
	near := s.near(lIBAN, start)
	for n := 0; n < length; n++ {
		b, size := char(s.text, i)
		if n >= apart && (b == ' ' || b == '-' || b == nothing) {
			i += size
			gaps++
			even = even && n%4 == 0
			b, size = char(s.text, i)
		}
		for wide, from := 0, i; n >= apart && size > 0 && wide < maxGap && i-from < maxLeader && !wordy(b) && b != ideo; wide++ {
			last := b
			i += size
			loose, even = true, even && n%4 == 0
			if b, size = char(s.text, i); b == last {
				wide-- // a line of dots counts once
			}
		}
		switch {
		case isDigit(b) && n > 1:
			digits++
			rest = (rest*10 + int(b-'0')) % 97
		case isLetter(b) && n != 2 && n != 3:
			upper, lower = upper || isUpper(b), lower || isLower(b)
			rest = (rest*100 + int(b|0x20-'a') + 10) % 97
		default:
			return match{}
		}
		if n == 3 {
			head, rest = rest, 0
		}
		i += size
	}
	s.work += i - start
	if !ends(s.text, i) || gaps > 12 && !loose || digits < 6 || loose && !even && !near {
		return match{}
	}
	m.end = i
	m.bad = (rest*1_000_000+head)%97 != 1
	if m.bad && loose || m.bad && (!even || upper && lower) {
		return match{} // other words that happen to have this length
	}
	return m
}

// routed reports whether nine digits are a routing number of the American Bankers Association:
// they begin with the number of a district, and fit the check digit with weights 3, 7, 1.
func routed(d []byte) bool {
	if district := int(d[0]-'0')*10 + int(d[1]-'0'); district > 12 && (district < 21 || district > 32) && (district < 61 || district > 72) && district != 80 {
		return false
	}
	sum := 0
	for i, c := range d {
		sum += int(c-'0') * [3]int{3, 7, 1}[i%3]
	}
	return sum%10 == 0 && !same(d)
}

// accountDigits finds a bank account or routing number after its word.
func accountDigits(s *scan, d *digits) match {
	k := 1
	for k < d.g && d.groups[k].sep == d.groups[1].sep && d.groups[k].sep != sepWide {
		k++
	}
	if d.plus || d.paren || d.money || !d.alone(k) || !ends(s.text, d.end(k)) || charAt(s.text, d.end(k)) == '%' {
		return match{}
	}
	v := d.value(0, k)
	m := match{start: d.groups[0].start, end: d.end(k)}
	if k == 2 && d.groups[1].sep == sepDash && len(v) <= 10 && d.groups[0].n <= d.groups[1].n {
		return match{} // a range
	}
	if s.label == lRouting {
		m.bad = len(v) != 9 || !routed(v)
		return m
	}
	if len(v) < 6 || len(v) > 17 || same(v) || countsThings(s.text, m.end) {
		return match{}
	}
	if len(v) >= 13 && issued(v) {
		return match{}
	}
	return m
}

// accountCode finds an account number that has letters, such as a bank's code
// before the digits.
func accountCode(s *scan, c *code) match {
	if s.label == lRouting {
		return match{}
	}
	return labelled(s, c, 6, 18)
}
