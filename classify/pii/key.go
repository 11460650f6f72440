// Keys and tokens of programs: found by the prefixes of their issuers, and as random-looking text
// after a word such as "api key".

package pii

import "bytes"

// keyForm is the prefix of one issuer's keys, and the form of the rest.
type keyForm struct {
	prefix string
	min    int  // characters after the prefix, at least
	upper  bool // only capitals and digits follow
	hex    bool // only hexadecimal digits follow
	dots   bool // the rest may contain '.'
}

// keyForms are the forms that issuers document so that scanners of source code can find them.
var keyForms = []keyForm{
	{prefix: "sk-ant-", min: 20}, {prefix: "sk-proj-", min: 20}, {prefix: "sk-or-", min: 20}, {prefix: "sk-", min: 20},
	{prefix: "sk_live_", min: 16}, {prefix: "sk_test_", min: 16}, {prefix: "rk_live_", min: 16}, {prefix: "rk_test_", min: 16},
	{prefix: "pk_live_", min: 16}, {prefix: "pk_test_", min: 16}, {prefix: "whsec_", min: 20},
	{prefix: "ghp_", min: 30}, {prefix: "gho_", min: 30}, {prefix: "ghu_", min: 30}, {prefix: "ghs_", min: 30}, {prefix: "ghr_", min: 30},
	{prefix: "github_pat_", min: 22}, {prefix: "glpat-", min: 18}, {prefix: "gldt-", min: 18}, {prefix: "glrt-", min: 18},
	{prefix: "AKIA", min: 16, upper: true}, {prefix: "ASIA", min: 16, upper: true},
	{prefix: "xoxb-", min: 20}, {prefix: "xoxp-", min: 20}, {prefix: "xoxa-", min: 20}, {prefix: "xoxr-", min: 20}, {prefix: "xoxs-", min: 20}, {prefix: "xapp-", min: 20},
	{prefix: "AIza", min: 33}, {prefix: "ya29.", min: 30, dots: true}, {prefix: "GOCSPX-", min: 24},
	{prefix: "hf_", min: 30}, {prefix: "npm_", min: 34}, {prefix: "pypi-", min: 50}, {prefix: "gsk_", min: 40}, {prefix: "r8_", min: 30}, {prefix: "nvapi-", min: 40},
	{prefix: "xai-", min: 40}, {prefix: "pplx-", min: 40}, {prefix: "tvly-", min: 20}, {prefix: "SG.", min: 50, dots: true},
	{prefix: "dop_v1_", min: 60, hex: true}, {prefix: "doo_v1_", min: 60, hex: true}, {prefix: "dor_v1_", min: 60, hex: true},
	{prefix: "shpat_", min: 32, hex: true}, {prefix: "shpss_", min: 32, hex: true}, {prefix: "shpca_", min: 32, hex: true},
	{prefix: "dapi", min: 32, hex: true}, {prefix: "key-", min: 32, hex: true}, {prefix: "sq0atp-", min: 22}, {prefix: "sq0csp-", min: 40},
	{prefix: "lin_api_", min: 32}, {prefix: "ntn_", min: 40}, {prefix: "PMAK-", min: 50}, {prefix: "rubygems_", min: 40, hex: true},
	{prefix: "hvs.", min: 24}, {prefix: "AGE-SECRET-KEY-1", min: 50, upper: true}, {prefix: "EAAC", min: 60}, {prefix: "LTAI", min: 16}, {prefix: "AKID", min: 28},
	{prefix: "sbp_", min: 36}, {prefix: "figd_", min: 36}, {prefix: "phc_", min: 36}, {prefix: "glsa_", min: 36}, {prefix: "eyJ", min: 20, dots: true},
}

// keyFirst are the forms by their first byte.
var keyFirst = func() (first [256][]keyForm) {
	for _, f := range keyForms {
		first[f.prefix[0]] = append(first[f.prefix[0]], f)
	}
	return first
}()

// keyPairs is the set of the first two bytes of the forms.
var keyPairs = func() (set [1 << 10]uint64) {
	for _, f := range keyForms {
		pair := uint(f.prefix[0])<<8 | uint(f.prefix[1])
		set[pair>>6] |= 1 << (pair & 63)
	}
	return set
}()

// prefixed finds a key with a known prefix, or a segregated-witness address, at the word
// text[i:end]. It returns where the pass continues; i: none.
func prefixed(s *scan, i, end int) int {
	if end < len(s.text) && s.text[end] == '1' {
		if to := segwit(s, i); to > i {
			return to
		}
	}
	if end-i > 24 && s.text[end-1] < 0x80 {
		if to := longToken(s, i); to > i {
			return to
		}
	}
	if i+1 == len(s.text) || i < s.keyEnd {
		return i
	}
	if pair := uint(s.text[i])<<8 | uint(s.text[i+1]); keyPairs[pair>>6]>>(pair&63)&1 == 0 {
		return i
	}
	for k := range keyFirst[s.text[i]] {
		f := &keyFirst[s.text[i]][k]
		if len(s.text)-i < len(f.prefix)+f.min || string(s.text[i:i+len(f.prefix)]) != f.prefix {
			continue
		}
		if to := key(s, f, i); to > i {
			return to
		}
	}
	return i
}

// key reads the key of the form at i and returns where it ends, i if it is
// none.
func key(s *scan, f *keyForm, i int) int {
	from := i + len(f.prefix)
	end, digits, dots := from, 0, 0
	for ; end < len(s.text); end++ {
		c := s.text[end]
		switch {
		case isDigit(c):
			digits++
		case f.upper && !isUpper(c), f.hex && !isHex(c):
			goto stop
		case c == '.' && f.dots && end+1 < len(s.text) && isAlnum(s.text[end+1]):
			dots++
		case !isAlnum(c) && c != '_' && c != '-':
			goto stop
		}
	}
stop:
	s.work += end - i
	for end > from && s.text[end-1] == '-' {
		end--
	}
	// Words with dashes, as in "sk-learn-contrib", have no digits.
	if end-from < f.min || digits < 1+f.min/20 || !begins(s.text, i) && s.text[i-1] != '_' || !ends(s.text, end) || standsForKey(s.text[from:end]) {
		s.keyEnd = max(s.keyEnd, end)
		return i
	}
	if f.prefix == "eyJ" && dots != 2 && !s.near(lKey, i) {
		s.keyEnd = max(s.keyEnd, end)
		return i
	}
	s.emit(APIKey, match{start: i, end: end, score: 0.99})
	return end
}

// stands are words that documentation writes where a key would be. One in eight million random
// keys of 50 characters contains one.
var stands = [...]string{"your-", "your_", "yourkey", "yourapi", "example", "placeholder", "xxxxx"}

// standsForKey reports whether the text after a prefix shows that it is not a key, as in
// "sk-your-api-key-123". A provider's example in the form of a key, such as AKIAIOSFODNN7EXAMPLE,
// still counts as a key.
func standsForKey(d []byte) bool {
	for _, word := range stands {
		if bytes.Contains(d, []byte(word)) {
			return true
		}
	}
	return false
}

// dash takes the '-' at i: a private key may begin.
func dash(s *scan, i int) int {
	const begin, rule = "-----BEGIN ", "-----"
	if !bytes.HasPrefix(s.text[i:], []byte(begin)) {
		return i + 1
	}
	line := i + len(begin)
	for line < len(s.text) && (isUpper(s.text[line]) || s.text[line] == ' ') {
		line++
	}
	if !bytes.HasSuffix(s.text[i:line], []byte("PRIVATE KEY")) && !bytes.HasSuffix(s.text[i:line], []byte("PRIVATE KEY BLOCK")) || !bytes.HasPrefix(s.text[line:], []byte(rule)) {
		return line
	}
	// The body contains no such line, so that no byte is read twice.
	body := line + len(rule)
	n := bytes.Index(s.text[body:], []byte(rule))
	if n < 0 {
		n = len(s.text) - body // cut off: the rest is the key
	}
	end := body + n
	s.work += end - i
	if n > 16<<10 || n < 32 {
		return body
	}
	if bytes.HasPrefix(s.text[end:], []byte("-----END ")) {
		end += len("-----END ")
		for end < len(s.text) && (isUpper(s.text[end]) || s.text[end] == ' ') {
			end++
		}
		if bytes.HasPrefix(s.text[end:], []byte(rule)) {
			end += len(rule)
		}
	}
	s.emit(APIKey, match{start: i, end: end, score: 0.99})
	return end
}

// secret looks for a value after the word that ends at text[:i].
func secret(s *scan, i int) {
	v := valueAfter(s, i)
	if v.end-v.start < 16 || v.end-v.start > 256 || placeholder(s.text, v.start, v.end) {
		return
	}
	if !chanceLike(s.text[v.start:v.end]) {
		return
	}
	s.emit(APIKey, match{start: v.start, end: v.end, score: 0.85})
}

// chanceLike reports whether a token looks random: it alternates between letters and digits more
// often than any word, path or identifier.
func chanceLike(token []byte) bool {
	var seen [128]bool
	digits, letters, distinct, turns := 0, 0, 0, 0
	var before byte
	for _, c := range token {
		if c >= 0x80 || c <= ' ' {
			return false
		}
		if !seen[c] {
			seen[c] = true
			distinct++
		}
		kind := byte(0)
		switch {
		case isDigit(c):
			kind = 1
			digits++
		case isUpper(c):
			kind = 2
			letters++
		case isLower(c):
			kind = 3
			letters++
		case !hasByte("-_+/=.~", c):
			return false
		}
		if kind != before && before != 0 && kind != 0 {
			turns++
		}
		before = kind
	}
	return digits >= 2 && letters >= 2 && distinct >= 8 && turns*5 >= len(token) || digits >= 1 && len(token) >= 32 && turns*4 >= len(token)
}

// longToken finds nothing by itself: it moves past a token of more than 24
// letters and digits, so that data in base 64 is not read as words and
// numbers. It returns where the token ends, i if it is shorter.
func longToken(s *scan, i int) int {
	end, digits := i, 0
	for end < len(s.text) && end-i < 512 && (isAlnum(s.text[end]) || s.text[end] == '+' || s.text[end] == '/' || s.text[end] == '=' || s.text[end] == '_' || s.text[end] == '-') {
		if isDigit(s.text[end]) {
			digits++
		}
		end++
	}
	s.work += end - i
	if end-i < 64 || digits == 0 {
		return i
	}
	return end
}
