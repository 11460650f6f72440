// Payment cards: issuer prefix, length and Luhn's check digit (ISO/IEC 7812).

package pii

// issuer is a range of prefixes that begins cards of some lengths.
type issuer struct {
	from, to int // first and last prefix, of the same number of digits
	digits   int // in a prefix
	lengths  uint32
}

func lengths(all ...int) (set uint32) {
	for _, n := range all {
		set |= 1 << n
	}
	return set
}

// issuers are the ranges that the networks publish.
var issuers = [...]issuer{
	{4, 4, 1, lengths(13, 16, 19)},                       // Visa
	{51, 55, 2, lengths(16)},                             // Mastercard
	{2221, 2720, 4, lengths(16)},                         // Mastercard
	{34, 34, 2, lengths(15)},                             // American Express
	{37, 37, 2, lengths(15)},                             // American Express
	{6011, 6011, 4, lengths(16, 17, 18, 19)},             // Discover
	{644, 659, 3, lengths(16, 17, 18, 19)},               // Discover
	{3500, 3599, 4, lengths(16, 17, 18, 19)},             // JCB
	{1800, 1800, 4, lengths(15)},                         // JCB
	{2131, 2131, 4, lengths(15)},                         // JCB
	{300, 305, 3, lengths(14, 16, 17, 18, 19)},           // Diners Club
	{3095, 3095, 4, lengths(14, 16, 17, 18, 19)},         // Diners Club
	{36, 36, 2, lengths(14, 15, 16, 17, 18, 19)},         // Diners Club
	{38, 39, 2, lengths(14, 16, 17, 18, 19)},             // Diners Club
	{62, 62, 2, lengths(16, 17, 18, 19)},                 // UnionPay
	{81, 82, 2, lengths(16, 17, 18, 19)},                 // UnionPay, RuPay
	{2200, 2204, 4, lengths(16, 17, 18, 19)},             // Mir
	{9792, 9792, 4, lengths(16)},                         // Troy
	{50, 50, 2, lengths(12, 13, 14, 15, 16, 17, 18, 19)}, // Maestro, RuPay
	{56, 69, 2, lengths(12, 13, 14, 15, 16, 17, 18, 19)}, // Maestro
}

// issued reports whether cards of that length begin with these digits.
func issued(d []byte) bool {
	for i := range issuers {
		is := &issuers[i]
		if is.lengths>>len(d)&1 == 0 {
			continue
		}
		prefix := 0
		for _, c := range d[:is.digits] {
			prefix = prefix*10 + int(c-'0')
		}
		if prefix >= is.from && prefix <= is.to {
			return true
		}
	}
	return false
}

// luhn reports whether the last digit checks the others (ISO/IEC 7812-1, annex B).
func luhn(d []byte) bool {
	sum := 0
	for i, c := range d {
		v := int(c - '0')
		if (len(d)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// card finds a card number: solid, in the groups that are printed on cards, or in other groups,
// if these make up the whole run.
func card(s *scan, d *digits) match {
	if d.plus || d.paren {
		return match{}
	}
	k, printed := d.cardGroups()
	if k == 0 || !d.alone(k) && !d.isFigure(k) || !printed && !d.whole(k) {
		return match{}
	}
	v := d.value(0, k)
	near := s.near(lCard, d.start)
	if near && k == 1 && d.g > 1 && d.total(d.g) <= 19 && d.whole(d.g) && !(issued(v) && luhn(v)) { // "411111111111 1111"
		if all := d.value(0, d.g); issued(all) && luhn(all) {
			k, v = d.g, all
		}
	}
	m := match{start: d.groups[0].start, end: d.end(k)}
	switch {
	case !same(v) && issued(v) && luhn(v):
		// Thirteen digits and fewer are as often a time or an article number.
		if len(v) < 14 && !near {
			return match{}
		}
		return m
	case near, printed && len(v) >= 14 && (k > 1 || issued(v)):
		m.bad = true
		return m
	}
	return match{}
}

// isFigure reports whether only a point and zeros follow the first k groups: a spreadsheet has
// formatted the number as a figure.
func (d *digits) isFigure(k int) bool {
	if k+1 != d.g || d.more || d.joined != sepNone && d.joined != sepSpace || d.groups[k].sep != sepDot || d.groups[k].n > 2 {
		return false
	}
	for _, c := range d.value(k, d.g) {
		if c != '0' {
			return false
		}
	}
	return true
}

// cardGroups returns how many groups can make up a card, and whether they are
// as printed on one.
func (d *digits) cardGroups() (k int, printed bool) {
	const seps = " -./~"
	switch {
	case d.groups[0].n >= 12 && d.groups[0].n <= 19:
		return 1, true
	case d.shape(seps, 4, 4, 4, 4, 3) && d.whole(5):
		return 5, true
	case d.shape(seps, 4, 4, 4, 4):
		return 4, true
	case d.shape(seps, 4, 6, 5), d.shape(seps, 4, 6, 4):
		return 3, true
	}
	for k := 2; k <= d.g; k++ {
		if g := d.groups[k-1]; g.sep != d.groups[1].sep || g.n < 2 && k < d.g || d.groups[0].n < 4 || g.n < 3 && k < d.g {
			return 0, false
		}
	}
	if n := d.total(d.g); d.g > 1 && n >= 14 && n <= 19 {
		return d.g, false
	}
	return 0, false
}

// same reports whether all digits are equal: such numbers are placeholders.
func same(d []byte) bool {
	for _, c := range d {
		if c != d[0] {
			return false
		}
	}
	return true
}
