// E-mail addresses, URLs and host names.

package pii

const (
	maxLocal = 64  // bytes before the '@' (RFC 5321)
	maxHost  = 253 // bytes of a host name (RFC 1035)
)

// email takes the '@' at i. It returns where the pass continues.
func email(s *scan, i int) int {
	_, size := fold(s.text, i)
	start, end := localBefore(s.text, i), hostAfter(s.text, i+size)
	s.work += i - start + max(end-i, 0)
	if start == i || end <= i+size || fileName(s.text, end) {
		return i + size
	}
	s.emit(EmailAddress, match{start: start, end: end})
	return pair(s, end)
}

// fileName reports whether text[:end] ends like a file's name, as in "icon@2x.png".
func fileName(text []byte, end int) bool {
	for _, ext := range [...]string{".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".exe", ".dll", ".js", ".css", ".json", ".html"} {
		if end > len(ext) && equalFold(text[end-len(ext):end], ext) {
			return true
		}
	}
	return false
}

// localBefore returns where the local part that ends at text[:i] begins.
func localBefore(text []byte, i int) int {
	start, first := i, byte(0)
	for i-start < maxLocal*3 {
		c, size := foldBefore(text, start)
		if size == 0 || !isAlnum(c) && c != foreign && !hasByte("._%+-'&~=", c) && !(c == '#' || c == '!') {
			break
		}
		start -= size
		first = c
	}
	// A punctuation mark at the front belongs to the text around the address.
	for start < i && !isAlnum(first) && first != foreign && first != '_' {
		_, size := fold(text, start)
		start += size
		first = charAt(text, start)
	}
	// "key=name@host", "'name@host'": the address begins after that sign.
	for j := i - 1; j > start; j-- {
		if c := text[j]; c == '=' || c == '!' || c == '#' {
			return j + 1
		}
	}
	if start < i && i-start <= maxLocal*3 && charAt(text, i-1) != '.' {
		return start
	}
	return i
}

// hostAfter returns where a host name with a top-level domain that begins at
// i ends, -1 if none does.
func hostAfter(text []byte, i int) int {
	end, label, dots := i, i, 0
	good := -1
	for end < len(text) && end-i <= maxHost {
		c, size := fold(text, end)
		switch {
		case isAlnum(c) || c == foreign:
		case c == '-' && end > label:
		case c == '.' && end > label && charAt(text, end-1) != '-':
			if dots > 0 && topLevel(text, label, end) {
				good = end
			}
			dots++
			label = end + size
		default:
			if dots > 0 && topLevel(text, label, end) {
				return end
			}
			return good
		}
		end += size
	}
	if dots > 0 && topLevel(text, label, end) {
		return end
	}
	return good
}

// topLevel reports whether text[i:end] can be a top-level domain: letters, or punycode.
func topLevel(text []byte, i, end int) bool {
	n := 0
	for at := i; at < end; n++ {
		c, size := fold(text, at)
		if !isLetter(c) && c != foreign {
			return end-i > 4 && charAt(text, i)|0x20 == 'x' && charAt(text, i+1)|0x20 == 'n' && charAt(text, i+2) == '-'
		}
		at += size
	}
	return n >= 2 && n <= 18
}

// scheme takes a word that ends with ':' and finds a URL there. It returns where the pass
// continues; i: none.
func scheme(s *scan, i, end int) int {
	if i < s.urlEnd || end-i < 3 || end-i > 12 || end+3 > len(s.text) || string(s.text[end:end+3]) != "://" {
		return i
	}
	from := end + 3
	stop, host, path := from, from, false
	for ; stop < len(s.text) && !urlEnds(s.text[stop]); stop++ {
		switch c := s.text[stop]; {
		case path:
		case c == '/' || c == '?' || c == '#':
			path = true
		case c == '@':
			credentials(s, host, stop)
			host = stop + 1
		}
	}
	s.work += stop - i
	s.urlEnd = stop
	for stop > from && trailing(s.text[stop-1]) {
		stop--
	}
	if !web(s.text[i:end]) {
		return i
	}
	nameEnd := hostAfter(s.text, host)
	if nameEnd < 0 || nameEnd > stop {
		// The host is an address or a name of the local network: its own scanner finds it.
		s.hostEnd = max(s.hostEnd, from)
		return end + 3
	}
	s.emit(DomainName, match{start: i, end: stop})
	s.hostEnd = max(s.hostEnd, stop)
	return nameEnd
}

// web reports whether a scheme is one whose URLs are found as a whole.
func web(scheme []byte) bool {
	switch len(scheme) {
	case 3:
		return lower(scheme[0]) == 'f' && lower(scheme[1]) == 't' && lower(scheme[2]) == 'p'
	case 4, 5:
		return lower(scheme[0]) == 'h' && lower(scheme[1]) == 't' && lower(scheme[2]) == 't' && lower(scheme[3]) == 'p'
	}
	return false
}

func urlEnds(c byte) bool {
	return c <= ' ' || c >= 0x80 || hasByte("\"<>`{}|\\^", c)
}

// trailing reports whether c at the end of a URL belongs to the sentence.
func trailing(c byte) bool { return hasByte(".,;:!?'\")]*", c) }

// host takes a word before a '.' and finds a host name without a scheme. It returns where the
// pass continues; i: none.
func host(s *scan, i int) int {
	if i < s.hostEnd || i > 0 && (s.text[i-1] == '@' || s.text[i-1] == '.' || s.text[i-1] == '/' || s.text[i-1] == '_' || s.text[i-1] == '-' || s.text[i-1] == '$') {
		return i
	}
	end := i
	for end < len(s.text) && end-i <= maxHost && (isAlnum(s.text[end]) || s.text[end] == '-' || s.text[end] == '.') {
		end++
	}
	s.work += end - i
	s.hostEnd = end
	for end > i && (s.text[end-1] == '.' || s.text[end-1] == '-') {
		end--
	}
	if end == i || !ends(s.text, end) || charAt(s.text, end) == '@' || charAt(s.text, end) == '(' || charAt(s.text, end) == '[' {
		return i
	}
	labels, label := 1, i
	for at := i; at < end; at++ {
		if s.text[at] == '.' {
			if at == label {
				return i
			}
			labels++
			label = at + 1
		}
	}
	if labels < 2 || !knownTop(s.text, i, label, end, labels) {
		return i
	}
	stop := end
	if charAt(s.text, stop) == '/' {
		for stop < len(s.text) && !urlEnds(s.text[stop]) {
			stop++
		}
		for trailing(s.text[stop-1]) {
			stop--
		}
		s.work += stop - end
	}
	s.emit(DomainName, match{start: i, end: stop, score: 0.8})
	s.hostEnd = max(s.hostEnd, stop)
	return end
}

// knownTop reports whether the name text[i:end], whose last label begins at label, ends in a
// top-level domain. Those that are also the end of a file's name or a word need "www.", a third
// label or a path.
func knownTop(text []byte, i, label, end, labels int) bool {
	if end-label > 12 {
		return false
	}
	var top [12]byte
	mixed := false
	for k, c := range text[label:end] {
		top[k] = lower(c)
		mixed = mixed || k > 0 && isUpper(c) != isUpper(text[label+1]) || k == 1 && isUpper(text[label]) != isUpper(c)
	}
	sure, known := tops[string(top[:end-label])]
	if !known || mixed {
		return false
	}
	www := end-i > 4 && lower(text[i]) == 'w' && lower(text[i+1]) == 'w' && lower(text[i+2]) == 'w' && text[i+3] == '.'
	if name := text[i:label]; !www && labels == 2 && (equalFold(name, "asp.") || equalFold(name, "vb.") || equalFold(name, "ado.") || equalFold(name, "system.")) {
		return false
	}
	if isUpper(text[label]) && isLower(text[i+1]) {
		return false
	}
	return sure || www || labels > 2 && end-label == 2 && charAt(text, end) != '.' && !codeAround(text, i, end) || charAt(text, end) == '/' && end-label == 2
}

// codeAround reports whether the name looks like an expression in a program.
func codeAround(text []byte, i, end int) bool {
	return charAt(text, end) == '=' || charAt(text, end) == ';' || charAt(text, i-1) == '(' || charAt(text, i-1) == '='
}

func equalFold(text []byte, lowered string) bool {
	if len(text) != len(lowered) {
		return false
	}
	for i, c := range text {
		if lower(c) != lowered[i] {
			return false
		}
	}
	return true
}

// tops are common top-level domains: true if the name alone is enough.
var tops = func() map[string]bool {
	m := make(map[string]bool)
	add := func(sure bool, list string) {
		for i, from := 0, 0; i <= len(list); i++ {
			if i == len(list) || list[i] == ' ' {
				if i > from {
					m[list[from:i]] = sure
				}
				from = i + 1
			}
		}
	}
	add(true, "com net org edu gov mil biz xyz online site shop store tech cloud blog club pro mobi museum aero coop jobs travel tel asia "+
		"de fr es pt nl dk fi se ch uk eu pl cz sk hu ro bg gr ru ua lv lt ee cn jp kr tw hk sg th vn tr il ae za ng ke gh eg ma br mx ar cl pe uy ve nz au ca ie lu cy hr si ba mk")
	add(false, "io ai app dev info name id me tv cc co us uk in it is at be no to so sh rs py pl md my am ly gl fm im ph pk ir eg ws la li zip mov py ps ml ms tn")
	return m
}()

// pair finds the password in "name@host / secret" and "name@host:secret". It returns where the
// pass continues.
func pair(s *scan, i int) int {
	at := i
	switch {
	case charAt(s.text, at) == ' ' && charAt(s.text, at+1) == '/' && charAt(s.text, at+2) == ' ':
		at += 3
	case charAt(s.text, at) == ':' && charAt(s.text, at+1) > ' ':
		at++
	default:
		return i
	}
	end := bareEnd(s.text, at)
	if end-at >= 6 && strength(s.text, at, end) >= 3 {
		s.emit(Password, match{start: at, end: end})
		return end
	}
	return i
}

// credentials finds the password in "scheme://user:password@host", whose part
// before the '@' is text[i:end].
func credentials(s *scan, i, end int) {
	for at := i; at < end && at-i < 128; at++ {
		if s.text[at] == ':' {
			if at+1 < end && end-at < 256 && !placeholder(s.text, at+1, end) {
				s.emit(Password, match{start: at + 1, end: end})
			}
			return
		}
	}
}
