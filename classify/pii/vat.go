// Value-added tax numbers of the European Union and the United Kingdom, with
// the check digits that the tax offices publish.

package pii

// vatRule is the form of a country's numbers after its two letters (L a
// letter, N a digit, A either), and its check.
type vatRule struct {
	country, form string
	check         func([]byte) bool
}

var vatRules = [...]vatRule{
	{"AT", "LNNNNNNNN", func(d []byte) bool { return d[0] == 'U' && vatAustria(d[1:]) }},
	{"BE", "NNNNNNNNNN", func(d []byte) bool { return d[0] <= '1' && number(d[:8])%97 == 97-number(d[8:]) }},
	{"BG", "NNNNNNNNN", vatBulgaria},
	{"CY", "NNNNNNNNL", vatCyprus},
	{"CZ", "NNNNNNNN", func(d []byte) bool { return d[0] != '9' && (11-weigh(d, 8, 7, 6, 5, 4, 3, 2)%11)%10 == digit(d, 7) }},
	{"CZ", "NNNNNNNNNN", func(d []byte) bool { return number(d)%11 == 0 }},
	{"DE", "NNNNNNNNN", func(d []byte) bool { return d[0] != '0' && mod1110(d) }},
	{"DK", "NNNNNNNN", func(d []byte) bool { return d[0] != '0' && weigh(d, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0 }},
	{"EE", "NNNNNNNNN", func(d []byte) bool { return weigh(d, 3, 7, 1, 3, 7, 1, 3, 7, 1)%10 == 0 }},
	{"EL", "NNNNNNNNN", func(d []byte) bool { return weigh(d, 256, 128, 64, 32, 16, 8, 4, 2)%11%10 == digit(d, 8) }},
	{"ES", "ANNNNNNNA", vatSpain},
	{"FI", "NNNNNNNN", func(d []byte) bool { return weigh(d, 7, 9, 10, 5, 8, 4, 2, 1)%11 == 0 }},
	{"FR", "AANNNNNNNNN", vatFrance},
	{"GB", "NNNNNNNNN", vatBritain},
	{"HR", "NNNNNNNNNNN", mod1110},
	{"HU", "NNNNNNNN", func(d []byte) bool { return weigh(d, 9, 7, 3, 1, 9, 7, 3, 1)%10 == 0 }},
	{"IE", "NNNNNNNL", func(d []byte) bool { return vatIreland(d, 0) == d[7] }},
	{"IE", "NNNNNNNLL", func(d []byte) bool { return d[8] <= 'I' && vatIreland(d, int(d[8]-'A')+1) == d[7] }},
	{"IT", "NNNNNNNNNNN", luhn},
	{"LT", "NNNNNNNNN", func(d []byte) bool { return d[7] == '1' && vatLithuania(d) }},
	{"LT", "NNNNNNNNNNNN", func(d []byte) bool { return d[10] == '1' && vatLithuania(d) }},
	{"LU", "NNNNNNNN", func(d []byte) bool { return number(d[:6])%89 == number(d[6:]) }},
	{"LV", "NNNNNNNNNNN", func(d []byte) bool { return d[0] > '3' && weigh(d, 9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1)%11 == 3 }},
	{"MT", "NNNNNNNN", func(d []byte) bool { return weigh(d, 3, 4, 6, 7, 8, 9, 10, 1)%37 == 0 }},
	{"NL", "NNNNNNNNNLNN", vatNetherlands},
	{"PL", "NNNNNNNNNN", func(d []byte) bool { return weigh(d, 6, 5, 7, 2, 3, 4, 5, 6, 7)%11 == digit(d, 9) }},
	{"PT", "NNNNNNNNN", func(d []byte) bool { return (11-weigh(d, 9, 8, 7, 6, 5, 4, 3, 2)%11)%11%10 == digit(d, 8) }},
	{"RO", "NNNNNNNN", vatRomania},
	{"RO", "NNNNNNNNN", vatRomania},
	{"RO", "NNNNNNNNNN", vatRomania},
	{"SE", "NNNNNNNNNNNN", func(d []byte) bool { return d[10] == '0' && d[11] == '1' && luhn(d[:10]) }},
	{"SI", "NNNNNNNN", vatSlovenia},
	{"SK", "NNNNNNNNNN", func(d []byte) bool { return d[0] != '0' && number(d)%11 == 0 }},
}

// vatCode finds a number with its country. For a number of the right form with a wrong check
// digit it returns a bad match.
func vatCode(s *scan, c *code) match {
	near := s.near(lVAT, c.start)
	if c.n < 2 || !isLetter(c.buf[0]) || !isLetter(c.buf[1]) || !near && (!isUpper(c.buf[0]) || !isUpper(c.buf[1])) {
		return match{}
	}
	a, b := c.buf[0]&^0x20, c.buf[1]&^0x20
	bad := match{}
	for i := range vatRules {
		r := &vatRules[i]
		if r.country[0] != a || r.country[1] != b {
			continue
		}
		end := c.vatEnd(s, r.form)
		if end < 0 {
			continue
		}
		if r.check(c.spread[2 : 2+len(r.form)]) {
			return match{start: c.start, end: end}
		}
		bad = match{start: c.start, end: end, bad: true}
	}
	return bad
}

// vatEnd matches the form after the two letters of the country.
func (c *code) vatEnd(s *scan, form string) int {
	const longest = "LLNNNNNNNNNNNNNN"
	var pattern [len(longest)]byte
	pattern[0], pattern[1] = 'L', 'L'
	n := 2 + copy(pattern[2:], form)
	return c.groupsAt(s, 2, string(pattern[:n]))
}

// vatDigits finds a number without the letters of its country after a word that announces one,
// for the countries where that is usual.
func vatDigits(s *scan, d *digits) match {
	if !s.near(lVAT, d.start) || d.plus || d.paren {
		return match{}
	}
	k := 1
	for k < d.g && hasByte(" -.", d.groups[k].sep) {
		k++
	}
	if !d.alone(k) || !ends(s.text, d.end(k)) {
		return match{}
	}
	v := d.value(0, k)
	m := match{start: d.groups[0].start, end: d.end(k)}
	for i := range vatRules {
		switch r := &vatRules[i]; r.country {
		case "BE", "DE", "DK", "FI", "GB", "IT", "PL", "PT", "EL":
			if len(r.form) == len(v) && r.check(v) {
				return m
			}
		}
	}
	if len(v) >= 8 && len(v) <= 12 {
		m.bad = true
		return m
	}
	return match{}
}

func digit(d []byte, i int) int { return int(d[i] - '0') }

// weigh adds up the first digits, each with its weight.
func weigh(d []byte, weights ...int) (sum int) {
	for i, w := range weights {
		sum += w * int(d[i]-'0')
	}
	return sum
}

// mod1110 checks the last digit after ISO 7064 MOD 11,10.
func mod1110(d []byte) bool {
	p := 10
	for _, c := range d[:len(d)-1] {
		if p = (p + int(c-'0')) % 10; p == 0 {
			p = 10
		}
		p = p * 2 % 11
	}
	return (p+int(d[len(d)-1]-'0'))%10 == 1
}

func vatAustria(d []byte) bool {
	sum := 4
	for i := range 7 {
		v := digit(d, i)
		if i%2 == 1 {
			v = v*2/10 + v*2%10
		}
		sum += v
	}
	return (10-sum%10)%10 == digit(d, 7)
}

func vatBulgaria(d []byte) bool {
	sum := weigh(d, 1, 2, 3, 4, 5, 6, 7, 8) % 11
	if sum == 10 {
		sum = weigh(d, 3, 4, 5, 6, 7, 8, 9, 10) % 11 % 10
	}
	return sum == digit(d, 8)
}

func vatCyprus(d []byte) bool {
	odd := [10]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21}
	sum := 0
	for i := range 8 {
		if i%2 == 0 {
			sum += odd[digit(d, i)]
		} else {
			sum += digit(d, i)
		}
	}
	return byte('A'+sum%26) == d[8]
}

// vatSpain checks the identity numbers of citizens (eight digits and a
// letter), of foreigners (X, Y or Z first) and of companies.
func vatSpain(d []byte) bool {
	const letters = "TRWAGMYFPDXBNJZSQVHLCKE"
	switch first := d[0]; {
	case isDigit(first):
		return d[8] == letters[number(d[:8])%23]
	case first >= 'X' && first <= 'Z':
		return d[8] == letters[(int(first-'X')*10_000_000+number(d[1:8]))%23]
	case !hasByte("ABCDEFGHJNPQRSUVW", first):
		return false
	}
	sum := 0
	for i, c := range d[1:8] {
		v := int(c - '0')
		if i%2 == 0 {
			v = v*2/10 + v*2%10
		}
		sum += v
	}
	check := (10 - sum%10) % 10
	return d[8] == byte('0'+check) || d[8] == "JABCDEFGHI"[check]
}

func vatFrance(d []byte) bool {
	if !luhn(d[2:]) {
		return false
	}
	if isDigit(d[0]) && isDigit(d[1]) {
		return number(d[:2]) == (12+3*(number(d[2:])%97))%97
	}
	return !hasByte("IO", d[0]) && !hasByte("IO", d[1])
}

func vatBritain(d []byte) bool {
	rest := (weigh(d, 8, 7, 6, 5, 4, 3, 2) + number(d[7:])) % 97
	return rest == 0 || rest == 42
}

func vatIreland(d []byte, second int) byte {
	return "WABCDEFGHIJKLMNOPQRSTUV"[(weigh(d, 8, 7, 6, 5, 4, 3, 2)+9*second)%23]
}

func vatLithuania(d []byte) bool {
	n := len(d) - 1
	first, second := 0, 0
	for i := range n {
		first += digit(d, i) * (1 + i%9)
		second += digit(d, i) * (1 + (i+2)%9)
	}
	if first %= 11; first == 10 {
		first = second % 11 % 10
	}
	return first == digit(d, n)
}

// vatNetherlands checks both kinds: the older kind has the check digit of the citizen's number;
// the newer kind is ISO 7064 MOD 97-10 over the whole number, country included.
func vatNetherlands(d []byte) bool {
	if d[9] != 'B' || d[10] == '0' && d[11] == '0' {
		return false
	}
	if (weigh(d, 9, 8, 7, 6, 5, 4, 3, 2)-digit(d, 8))%11 == 0 {
		return true
	}
	rest := 2321 % 97 // "NL"
	for _, c := range d {
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest == 1
}

func vatRomania(d []byte) bool {
	const weights = "753217532"
	n := len(d) - 1
	sum := 0
	for i := range n {
		sum += digit(d, i) * int(weights[len(weights)-n+i]-'0')
	}
	return sum*10%11%10 == digit(d, n) && d[0] != '0'
}

func vatSlovenia(d []byte) bool {
	check := 11 - weigh(d, 8, 7, 6, 5, 4, 3, 2)%11
	return d[0] != '0' && check != 11 && check%10 == digit(d, 7)
}
