// Addresses on networks: IPv4, IPv6, MAC.

package pii

// ipv4 finds four octets. A version number ("v1.2.3.4") or a longer row of numbers is not an
// address.
func ipv4(s *scan, d *digits) match {
	if d.plus || d.g < 4 || !d.shapeDots() {
		return match{}
	}
	m := match{start: d.groups[0].start, end: d.end(4)}
	if d.pairs() {
		return match{} // as often a phone number: 02.27.96.63.08
	}
	if d.joined == sepDot || d.joined == sepDash || d.g > 4 && d.groups[4].sep == sepDot || !ends(s.text, m.end) {
		return match{start: m.start, end: d.end(d.g), bad: true}
	}
	for i := range 4 {
		v := d.value(i, i+1)
		if len(v) > 3 || number(v) > 255 || len(v) > 1 && v[0] == '0' {
			if len(v) > 3 {
				return match{}
			}
			m.bad = true
			return m
		}
	}
	if d.total(4) == 4 && !same(d.value(0, 4)) {
		m.score = 0.65 // 1.9.2.4 is as often a version
	}
	if s.label == lOther && d.start-s.labelEnd < 3 && number(d.value(0, 1)) < 30 {
		m.bad = true // "version 1.2.3.4"
	}
	return m
}

// shapeDots reports whether dots alone join the first four groups.
func (d *digits) shapeDots() bool {
	return d.groups[1].sep == sepDot && d.groups[2].sep == sepDot && d.groups[3].sep == sepDot
}

// pairs reports whether all groups have two digits and the first is below 10.
func (d *digits) pairs() bool {
	for _, g := range d.groups[:d.g] {
		if g.n != 2 {
			return false
		}
	}
	return d.d[0] == '0'
}

// colon takes the ':' at i: an IPv6 address may begin with "::".
func colon(s *scan, i int) int {
	if charAt(s.text, i+1) == ':' && isHex(charAt(s.text, i+2)) && begins(s.text, i) && charAt(s.text, i-1) != ':' {
		if to := hexPairs(s, i); to > i {
			return to
		}
	}
	_, size := fold(s.text, i)
	return i + size
}

// hexPairs finds a MAC or IPv6 address at i. It returns where the pass continues; i: none.
func hexPairs(s *scan, i int) int {
	if !begins(s.text, i) || i > 0 && (s.text[i-1] == ':' || s.text[i-1] == '-' && isHex(charAt(s.text, i-2)) || s.text[i-1] == '.') {
		return i
	}
	end := mac(s.text, i)
	if end == 0 {
		end = dottedMAC(s.text, i)
	}
	if end > 0 {
		s.emit(MACAddress, match{start: i, end: end})
		return end
	}
	var ok bool
	end, ok = ipv6(s.text, i)
	if ok {
		s.emit(IPAddress, match{start: i, end: end})
		s.spend(end)
		return end
	}
	return i
}

// hexBegins reports whether at most four hexadecimal digits and a ':', '-' or '.' stand at i.
func hexBegins(text []byte, i int) bool {
	for n := range 5 {
		if i+n >= len(text) || !isHex(text[i+n]) {
			return n > 0 && hasByte(":-.", charAt(text, i+n))
		}
	}
	return false
}

// mac reads six pairs of hexadecimal digits with ':' or '-' between them and returns where they
// end; 0: it is not there.
func mac(text []byte, i int) int {
	sep := charAt(text, i+2)
	if sep != ':' && sep != '-' || i+17 > len(text) {
		return 0
	}
	letters, zero := false, true
	for k := range 17 {
		c := text[i+k]
		if k%3 == 2 {
			if c != sep {
				return 0
			}
			continue
		}
		if !isHex(c) {
			return 0
		}
		letters = letters || isLetter(c)
		zero = zero && c == '0'
	}
	end := i + 17
	if !ends(text, end) || (charAt(text, end) == sep && isHex(charAt(text, end+1))) || zero || !letters && sep == '-' {
		return 0
	}
	return end
}

// dottedMAC reads three groups of four hexadecimal digits with dots between them, and returns
// where they end; 0: it is not there. Both letters and decimal digits must be among them.
func dottedMAC(text []byte, i int) int {
	end, letters, digits := i+14, 0, 0
	if end > len(text) || text[i+4] != '.' || text[i+9] != '.' || !ends(text, end) || charAt(text, end) == '.' && isAlnum(charAt(text, end+1)) {
		return 0
	}
	for k, c := range text[i:end] {
		switch {
		case k == 4 || k == 9:
		case isDigit(c):
			digits++
		case isHex(c):
			letters++
		default:
			return 0
		}
	}
	if letters == 0 || digits == 0 {
		return 0
	}
	return end
}

// ipv6 reads an address (RFC 4291): eight groups, or fewer with one "::", and perhaps four octets
// last. An expression such as "std::a" is not an address: except for "::1", there must be a digit
// and more than one group.
func ipv6(text []byte, i int) (end int, ok bool) {
	groups, double, digits := 0, -1, 0
	at := i
	if charAt(text, at) == ':' {
		if charAt(text, at+1) != ':' {
			return i, false
		}
		double, at = 0, at+2
	}
	for at < len(text) && groups < 8 {
		n := 0
		for ; n < 5 && at+n < len(text) && isHex(text[at+n]); n++ {
			if isDigit(text[at+n]) {
				digits++
			}
		}
		if n == 0 || n > 4 {
			break
		}
		if charAt(text, at+n) == '.' && groups > 0 {
			if stop := octets(text, at); stop > 0 {
				groups, at = groups+2, stop
				break
			}
		}
		at += n
		groups++
		if charAt(text, at) != ':' || groups == 8 {
			break
		}
		if charAt(text, at+1) == ':' {
			if double >= 0 {
				return i, false
			}
			double = groups
			at += 2
			if !isHex(charAt(text, at)) {
				break
			}
			continue
		}
		if !isHex(charAt(text, at+1)) {
			break
		}
		at++
	}
	if at < len(text) && (!ends(text, at) || text[at] == ':' && (isHex(charAt(text, at+1)) || charAt(text, at+1) == ':')) || digits == 0 {
		return i, false
	}
	if charAt(text, at) == '.' && isDigit(charAt(text, at+1)) {
		return i, false
	}
	switch {
	case double < 0:
		return at, groups == 8
	case groups > 7:
		return i, false
	case groups == 1:
		return at, double == 0 && at-i == 3 && text[i+2] == '1' || double == 1 && at-i == 6
	}
	return at, groups > 1
}

// octets reads four decimal octets and returns where they end; 0: it is not there.
func octets(text []byte, i int) int {
	for k := range 4 {
		v, n := 0, 0
		for ; n < 4 && isDigit(charAt(text, i)); n++ {
			v = v*10 + int(charAt(text, i)-'0')
			i++
		}
		if n == 0 || n > 3 || v > 255 {
			return 0
		}
		if k < 3 {
			if charAt(text, i) != '.' {
				return 0
			}
			i++
		}
	}
	return i
}
