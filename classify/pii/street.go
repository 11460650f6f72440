// Street addresses by their pattern: a number and a word that names a kind of street. An address
// without these two is left to the tagger.

package pii

import "unicode/utf8"

// streetWords are the kinds of street that end a name ("Mill Road"), begin it
// ("rue de la Paix", "Via Roma"), or are its tail ("Hauptstraße").
var (
	streetLast    = wordSet("street st avenue ave av road rd boulevard blvd lane ln drive dr court ct place pl square sq terrace way parkway pkwy highway hwy circle cir trail crescent close row mews")
	abbreviations = wordSet("st ave av rd blvd ln dr ct pl sq pkwy hwy cir")
	streetFrench  = wordSet("rue avenue boulevard bd chemin impasse allée quai place cours route")
	streetFirst   = wordSet("rue avenue boulevard bd chemin impasse allée allee quai calle avenida avda plaza paseo carrera via viale piazza corso vicolo rua travessa praça praca alameda ulica ul улица ул проспект jalan jl")
	streetTails   = [...]string{"straße", "strasse", "str", "weg", "platz", "allee", "gasse", "damm", "ufer", "straat", "laan", "plein", "gracht", "gatan", "vägen", "gata", "veien", "vegen", "gade", "vej", "katu", "tie"}
	unitWords     = wordSet("apt apartment suite ste unit flat room floor")
	articles      = wordSet("de du des la le les del della dei di da do das dos e l d el los las")
)

func wordSet(list string) map[uint64]bool {
	m := make(map[uint64]bool)
	from := 0
	for i := 0; i <= len(list); i++ {
		if i == len(list) || list[i] == ' ' {
			m[hashWord(list[from:i])] = true
			from = i + 1
		}
	}
	return m
}

// streetDigits finds the address that a number belongs to.
func streetDigits(s *scan, d *digits) match {
	if d.plus || d.money || d.groups[0].n > 5 || d.joined != sepNone && d.joined != sepSpace {
		return match{}
	}
	if m := boxNumber(s.text, d); m.end > 0 {
		return m
	}
	start, end := d.groups[0].start, d.groups[0].end
	if charAt(s.text, end) == ideo {
		return glyphStreet(s.text, start, end)
	}
	if stop := streetAfter(s.text, end); stop > 0 {
		return match{start: start, end: unitAfter(s.text, stop)}
	}
	if from := streetBefore(s.text, start); from >= 0 && d.groups[0].n <= 4 {
		if c := charAt(s.text, end) | 0x20; c >= 'a' && c <= 'f' && ends(s.text, end+1) {
			end++
		}
		if ends(s.text, end) && charAt(s.text, end) != '%' && !countsThings(s.text, end) {
			return match{start: from, end: unitAfter(s.text, end)}
		}
	}
	return match{}
}

// houseLetter finds the address that ends with a house number and a letter, "12a", which is the
// token text[i:end]. It returns where the pass continues; i: none.
func houseLetter(s *scan, i, end int) int {
	if end-i < 2 || end-i > 5 || s.text[end-1]|0x20 > 'k' || !asciiDigits(s.text[i:end-1]) {
		return i
	}
	from := streetBefore(s.text, i)
	if from < 0 {
		return i
	}
	s.emit(StreetAddress, match{start: from, end: end})
	return end
}

// streetAfter reads "Mill Road" or "rue de la Paix" after a house number that ends at i, and
// returns where it ends; 0: it is not there.
func streetAfter(text []byte, i int) int {
	if charAt(text, i) == ',' {
		i++
	}
	last := 0
	for n := 0; n < 6 && charAt(text, i) == ' ' && i+1 < len(text); n++ {
		i++
		hash, end := wordAt(text, i)
		if end == i {
			return last
		}
		capital := isUpper(text[i]) || text[i] >= utf8.RuneSelf
		if n == 0 && streetFrench[hash] {
			return streetName(text, end)
		}
		if n > 0 && capital && streetLast[hash] {
			if last = end; charAt(text, end) == '.' && abbreviations[hash] {
				last++
			}
		}
		if !capital {
			return last
		}
		if i = end; charAt(text, i) == '.' {
			i++
		}
	}
	return last
}

// streetName reads the name after a kind of street that ends at i: articles and words with a
// capital. It returns where it ends; 0: none.
func streetName(text []byte, i int) int {
	last := 0
	for n := 0; n < 7; n++ {
		c := charAt(text, i)
		if c == '.' && n == 0 {
			i++
			c = charAt(text, i)
		}
		if c != ' ' && c != '\'' {
			break
		}
		_, size := char(text, i)
		if i += size; i >= len(text) {
			break
		}
		hash, end := wordAt(text, i)
		if end == i {
			break
		}
		if isUpper(text[i]) || text[i] >= utf8.RuneSelf {
			last = end
		} else if !articles[hash] {
			break
		}
		i = end
	}
	return last
}

// streetBefore looks for "Hauptstraße" or "Via Roma" before a house number that begins at i, and
// returns where it begins; -1: it is not there.
func streetBefore(text []byte, i int) int {
	end := i
	for end > 0 && end > i-3 && (text[end-1] == ' ' || text[end-1] == ',' || text[end-1] == '.') {
		end--
	}
	if end == i {
		return -1
	}
	for n := 0; n < 5; n++ {
		from := wordBefore(text, end)
		if from == end || end-from < 2 && n == 0 {
			return -1
		}
		capital := isUpper(text[from]) || text[from] >= utf8.RuneSelf
		hash, _ := wordAt(text[:end], from)
		switch {
		case n > 0 && streetFirst[hash]:
			return from
		case n == 0 && capital && streetTail(text, from, end):
			return from
		case !capital && !articles[hash]:
			return -1
		}
		end = from
		for end > 0 && end > from-2 && (text[end-1] == ' ' || text[end-1] == '.' || text[end-1] == '\'') {
			end--
		}
		if end == from {
			return -1
		}
	}
	return -1
}

// streetTail reports whether the word text[i:end] ends like a street.
func streetTail(text []byte, i, end int) bool {
	for _, tail := range streetTails {
		if n := len(tail); end-i > n+2 && string(text[end-n:end]) == tail {
			return true
		}
	}
	return false
}

// wordBefore returns where the word that ends at text[:end] begins; it looks
// at no more than 32 bytes.
func wordBefore(text []byte, end int) int {
	i := end
	for i > 0 && end-i < 32 {
		c, size := foldBefore(text, i)
		if !isLetter(c) && c != foreign && c != '-' {
			break
		}
		i -= size
	}
	return i
}

// unitAfter reads ", Apt. 12" or " Suite 400" after an address that ends at i.
func unitAfter(text []byte, i int) int {
	at := i
	if charAt(text, at) == ',' {
		at++
	}
	for charAt(text, at) == ' ' && at < i+3 {
		at++
	}
	if at == i || at >= len(text) {
		return i
	}
	hash, end := wordAt(text, at)
	if !unitWords[hash] {
		return i
	}
	at = end
	for at < end+3 && hasByte(". #", charAt(text, at)) {
		at++
	}
	from := at
	for at < from+5 && isAlnum(charAt(text, at)) && text[at] < utf8.RuneSelf {
		at++
	}
	if at == from || !ends(text, at) || !isDigit(charAt(text, from)) && at-from > 1 {
		return i
	}
	return at
}

// boxNumber finds "P.O. Box 255" and the addresses of the armed forces, "Unit
// 5022 Box 1225\nDPO AE 44085".
func boxNumber(text []byte, d *digits) match {
	i, end := d.start, d.groups[0].end
	before := func(word string) bool {
		return i >= len(word) && equalFold(text[i-len(word):i], word)
	}
	switch {
	case before("p.o. box "), before("po box "), before("p.o box "):
		from := i - len("po box ")
		if text[from] == '.' || text[from] == 'o' || text[from] == 'O' {
			from--
		}
		for from > 0 && lower(text[from]) != 'p' && i-from < 10 {
			from--
		}
		return match{start: from, end: end}
	case before("unit ") && begins(text, i-5), before("psc ") && begins(text, i-4):
		at := end
		if charAt(text, at) == ',' {
			at++
		}
		if at+5 > len(text) || !equalFold(text[at:at+5], " box ") {
			return match{}
		}
		at += 5
		for at < len(text) && isDigit(text[at]) {
			at++
		}
		if charAt(text, at) != '\n' && charAt(text, at) != ' ' || at+13 > len(text) || !equalFold(text[at+2:at+5], "po ") || text[at+7] != ' ' {
			return match{}
		}
		stop := at + 8
		for stop < at+13 && isDigit(text[stop]) {
			stop++
		}
		from := i - 5
		if before("psc ") {
			from = i - 4
		}
		return match{start: from, end: stop}
	}
	return match{}
}

// glyphStreet finds a Chinese address around the house number text[i:end]:
// the ideographs before it that end with a kind of street, and building,
// floor and room after it.
func glyphStreet(text []byte, i, end int) match {
	if end+3 > len(text) || i < 6 {
		return match{}
	}
	switch string(text[end : end+3]) {
	case "号", "號", "弄":
	default:
		return match{}
	}
	switch string(text[i-3 : i]) {
	case "路", "街", "道", "巷", "弄", "段":
	default:
		return match{}
	}
	from := i - 3
	for from >= 3 && i-from < 75 && charAt(text, from-3) == ideo && utf8.RuneStart(text[from-3]) {
		stop := false
		switch string(text[from-3 : from]) {
		case "在", "住", "是", "址", "到", "于", "寄", "往", "为", "去", "的", "和", "从":
			stop = true
		}
		if stop {
			break
		}
		from -= 3
	}
	stop := end + 3
	for n := 0; n < 5; n++ {
		at := stop
		for at < len(text) && at < stop+5 && isAlnum(text[at]) {
			at++
		}
		sign := 0
		for _, unit := range [...]string{"单元", "号楼", "栋", "幢", "楼", "层", "室", "号", "座"} {
			if at+len(unit) <= len(text) && string(text[at:at+len(unit)]) == unit {
				sign = len(unit)
				break
			}
		}
		if sign == 0 || at == stop {
			break
		}
		stop = at + sign
	}
	return match{start: from, end: stop}
}
