// Ages: a number of years after a word such as "turned", or before one such as
// "years old".

package pii

// age finds a number of years that someone is old; the span is the number.
func age(s *scan, d *digits) match {
	n := d.groups[0].n
	if n > 3 || d.money || d.plus || d.joined != sepNone && d.joined != sepSpace {
		return match{}
	}
	v, end := number(d.value(0, 1)), d.groups[0].end
	if v == 0 || v > 120 || n > 1 && d.d[0] == '0' {
		return match{}
	}
	if !oldAfter(s, end) && !ageBefore(s, d, v, end) {
		return match{}
	}
	return match{start: d.groups[0].start, end: end}
}

// ageBefore reports whether the number directly follows a word such as "age" or "turned", and is
// not a count of something else.
func ageBefore(s *scan, d *digits, v, end int) bool {
	if s.label != lAge || d.start-s.labelEnd > 10 || !fillers(s.text, s.labelEnd, d.start) {
		return false
	}
	if d.g > 1 && (d.groups[1].sep == sepDot || d.groups[1].sep == sepSlash) {
		return false
	}
	switch c := charAt(s.text, end); {
	case c == '%', c == ',' && isDigit(charAt(s.text, end+1)), c == ':' && isDigit(charAt(s.text, end+1)), c == '.' && isDigit(charAt(s.text, end+1)):
		return false
	case !ends(s.text, end):
		return false
	}
	if charAt(s.text, end) == ' ' && charAt(s.text, end+1) == '%' {
		return false
	}
	if s.use&wWeak != 0 && (v < 10 || charAt(s.text, end) == ideo || charAt(s.text, end) == ' ' && isAlnum(charAt(s.text, end+1)) && !clauseWords[hashAfter(s, end)]) {
		return false
	}
	if next, stop := wordAfter(s.text, end); stop > end && words.find(next).use&wUnit != 0 {
		switch next {
		case hashYears, hashAnos, hashAnni, hashAnsF, hashJahre, hashAnios:
			return true
		}
		return false
	}
	return true
}

// clauseWords may follow an age that ends a clause.
var clauseWords = wordSet("and when but at in then or years yet")

func hashAfter(s *scan, i int) uint64 {
	hash, _ := wordAfter(s.text, i)
	return hash
}

// fillers reports whether text[i:end] has only words such as "is" and "of".
func fillers(text []byte, i, end int) bool {
	for i < end {
		hash, stop := wordAt(text[:end], i)
		if stop == i {
			c, size := fold(text, i)
			if c != ideo && !hasByte(" :=('\"-\n", c) {
				return false
			}
			i += size
			continue
		}
		if words.find(hash).use&(wFiller|wIs|wWeak) == 0 {
			return false
		}
		i = stop
	}
	return true
}

// The words for years, which also count other things.
var (
	hashYears = hashWord("years")
	hashJahre = hashWord("jahre")
	hashAnsF  = hashWord("ans")
	hashAnios = hashWord("años")
	hashAnos  = hashWord("anos")
	hashAnni  = hashWord("anni")
	hashYear  = hashWord("year")
	hashYr    = hashWord("yr")
	hashYrs   = hashWord("yrs")
	hashAlt   = hashWord("alt")
	hashJahr  = hashWord("jährige")
	hashJahrr = hashWord("jähriger")
	hashLet   = hashWord("лет")
	hashGoda  = hashWord("года")
	hashTuoi  = hashWord("tuổi")
	hashYas   = hashWord("yaşında")
	hashLat   = hashWord("lat")
)

// wordAfter reads the word after text[:i], over a space or a dash.
func wordAfter(text []byte, i int) (hash uint64, end int) {
	if c, size := char(text, i); c == ' ' || c == '-' {
		i += size
	}
	if i >= len(text) {
		return 0, i
	}
	hash, end = wordAt(text, i)
	if end == i {
		return 0, i
	}
	return hash, end
}

// oldAfter reports whether what follows text[:i] makes the number before it an age: "-year-old",
// " years old", " Jahre alt", "岁".
func oldAfter(s *scan, i int) bool {
	if c, size := char(s.text, i); c == ideo || c == ' ' && charAt(s.text, i+size) == ideo {
		if c == ' ' {
			i += size
		}
		w, n := glyphAt(s.text, i)
		return n > 0 && w.use&wOld != 0
	}
	next, end := wordAfter(s.text, i)
	switch next {
	case hashYear, hashYears, hashYr, hashYrs:
		after, _ := wordAfter(s.text, end)
		return words.find(after).use&wOld != 0 || charAt(s.text, end) == ' ' && charAt(s.text, end+1) == 'o' && charAt(s.text, end+2) == '/'
	case hashJahre:
		after, _ := wordAfter(s.text, end)
		return after == hashAlt
	case hashJahr, hashJahrr, hashLet, hashYas, hashTuoi:
		return true
	case hashGoda, hashLat:
		return s.label == lAge
	case hashAnsF, hashAnios, hashAnos, hashAnni:
		return haveBefore(s, i)
	}
	return next != 0 && next == hashYO
}

var hashYO = hashWord("yo")

// haves are the words with which Romance languages give an age: "to have" years.
var haves = func() map[uint64]bool {
	m := make(map[uint64]bool)
	for _, w := range []string{"ai", "a", "as", "avait", "aura", "avons", "ont", "tengo", "tiene", "tienes", "tenía", "tienen", "con", "cumplí", "cumplió", "tenho", "tem", "tinha", "ho", "ha", "hai", "aveva", "com", "âgé", "âgée", "de", "di"} {
		m[hashWord(w)] = true
	}
	return m
}()

// haveBefore reports whether the number that ends at i follows such a word.
func haveBefore(s *scan, i int) bool {
	return s.label == lAge && i-s.labelEnd < 16 || s.priorEnd >= 0 && i-s.priorEnd <= 5 && haves[s.prior] && s.prior != hashDe && s.prior != hashDi
}

var hashDe, hashDi = hashWord("de"), hashWord("di")

// ageToken finds an age at the front of a token that begins with a digit:
// "62yo", "35y".
func ageToken(s *scan, i int) int {
	end := i
	for end < len(s.text) && end-i < 4 && isDigit(s.text[end]) {
		end++
	}
	if end-i > 3 || end == i || !begins(s.text, i) {
		return i
	}
	hash, stop := wordAt(s.text, end)
	if v := s.text[i:end]; number(v) == 0 || number(v) > 120 || !ends(s.text, stop) {
		return i
	}
	if hash != hashYO && !(hash == hashYear || hash == hashYears) {
		return i
	}
	if hash != hashYO && !oldAfter(s, end) {
		return i
	}
	s.emit(Age, match{start: i, end: end})
	return stop
}
