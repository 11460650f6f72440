// Numbers without a public check digit, which are recognised only by the word before them:
// licences, passports, medical records, postal codes.

package pii

// labelled takes the whole token as a value if it has from least to most characters, digits among
// them.
func labelled(s *scan, c *code, least, most int) match {
	if !c.whole(s) || c.n < least || c.n > most || c.digits < 4 || c.digits*3 < c.n {
		return match{}
	}
	return match{start: c.start, end: c.end}
}

// labelledDigits takes groups of digits as one value, if one kind of separator joins them and
// they have from least to most digits together.
func labelledDigits(s *scan, d *digits, seps string, least, most int) match {
	k := 1
	for k < d.g && hasByte(seps, d.groups[k].sep) && d.groups[k].sep == d.groups[1].sep {
		k++
	}
	if d.plus || d.paren || d.money || !d.alone(k) || !ends(s.text, d.end(k)) {
		return match{}
	}
	if n := d.total(k); n < least || n > most || countsThings(s.text, d.end(k)) {
		return match{}
	}
	// A year or a date after the word is a time, not a value.
	if n := d.total(k); k == 1 && n <= 4 {
		if v := number(d.value(0, 1)); n == 4 && v >= 1900 && v <= 2100 {
			return match{}
		}
	}
	return match{start: d.groups[0].start, end: d.end(k)}
}

// Driver's licences: every state and country has its own form, from seven digits to eighteen
// characters with letters, and for only a few is the check digit public.
func licenceDigits(s *scan, d *digits) match { return labelledDigits(s, d, "- ", 5, 18) }
func licenceCode(s *scan, c *code) match     { return labelled(s, c, 5, 20) }

// Passports: a letter or two and six to nine digits; the check digit stands
// only in the machine-readable zone.
func passportDigits(s *scan, d *digits) match { return labelledDigits(s, d, " ", 6, 10) }

func passportCode(s *scan, c *code) match {
	if c.solid != c.n {
		return match{}
	}
	return labelled(s, c, 6, 12)
}

// Medical record numbers: each hospital has its own.
func recordDigits(s *scan, d *digits) match { return labelledDigits(s, d, "- ", 5, 14) }
func recordCode(s *scan, c *code) match     { return labelled(s, c, 5, 20) }

// zipDigits finds a postal code of digits: in any national form after a word that announces it,
// or as five digits after the two letters of a state.
func zipDigits(s *scan, d *digits) match {
	if d.plus || d.paren || d.money || d.joined != sepNone && d.joined != sepSpace {
		return match{}
	}
	if !s.near(lZip, d.start) {
		return stateZip(s.text, d)
	}
	if d.start-s.labelEnd > 24 {
		return match{}
	}
	k := 1
	switch {
	case d.shape("-", 5, 4), d.shape("- ", 5, 3), d.shape("- ", 3, 2), d.shape("-", 2, 3), d.shape("-", 4, 3), d.shape("-", 3, 4), d.shape("-", 3, 3), d.shape(" ", 3, 3):
		k = 2
	}
	n := d.total(k)
	end := d.end(k)
	if k == 1 && (n < 3 || n > 8 || n == 8 && s.label != lZip) {
		return match{}
	}
	// The Netherlands: four digits, two letters.
	if k == 1 && n == 4 && charAt(s.text, end) == ' ' && isUpper(charAt(s.text, end+1)) && isUpper(charAt(s.text, end+2)) && ends(s.text, end+3) {
		end += 3
	}
	if !ends(s.text, end) || !d.alone(k) || countsThings(s.text, end) {
		return match{}
	}
	return match{start: d.groups[0].start, end: end}
}

// stateZip finds a ZIP code after the letters of a state, as in "Austin, TX
// 78701".
func stateZip(text []byte, d *digits) match {
	i := d.start
	zip4 := d.shape("-", 5, 4)
	if d.groups[0].n != 5 || i < 4 || text[i-1] != ' ' || !states[[2]byte{text[i-3], text[i-2]}] || !begins(text, i-3) {
		return match{}
	}
	k := 1
	if zip4 {
		k = 2
	}
	if !d.alone(k) || !ends(text, d.end(k)) {
		return match{}
	}
	// A comma must separate the state from the city: "IN 12345" also occurs in ordinary text.
	j := i - 4
	if text[j] == ' ' {
		j--
	}
	if j < 0 || text[j] != ',' {
		return match{}
	}
	return match{start: d.groups[0].start, end: d.end(k)}
}

var states = func() map[[2]byte]bool {
	const list = "ALAKAZARCACOCTDEDCFLGAHIIDILINIAKSKYLAMEMDMAMIMNMSMOMTNENVNHNJNMNYNCNDOHOKORPARISCSDTNTXUTVTVAWAWVWIWYPRGUVIASMP"
	m := make(map[[2]byte]bool)
	for i := 0; i < len(list); i += 2 {
		m[[2]byte{list[i], list[i+1]}] = true
	}
	return m
}()

// zipCode finds the postal codes with letters of the United Kingdom, Canada,
// Ireland and others after their word.
func zipCode(s *scan, c *code) match {
	if !s.near(lZip, c.start) || c.start-s.labelEnd > 24 {
		return match{}
	}
	for _, form := range [...]string{"LNLNLN", "LLNNNLL", "LLNNLL", "LNNNLL", "LNNLL", "LLNLNLL", "LNLNLL", "LNNAAAA", "NNNNLL"} {
		if end := c.groupsAt(s, 1, form); end > 0 {
			return match{start: c.start, end: end}
		}
	}
	if c.n >= 4 && c.n <= 8 && c.digits >= 3 && c.whole(s) && c.digits >= c.n-3 {
		return match{start: c.start, end: c.end}
	}
	return match{}
}
