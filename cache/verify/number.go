// Number: 1,000 is 1000, one thousand, 1k, 一千; the third is the 3rd, 第三.

package verify

import (
	"math"
	"strconv"
)

// A numeral is a word that is a number or multiplies one.
type numeral struct {
	value   float64
	times   bool // hundred, thousand, 千
	ordinal bool // first, third
	alone   bool // too common to count as a number on its own: 一
}

func (x *lexicon) readNumerals() {
	put := func(word string, n numeral) { x.numerals[x.hash([]byte(word))] = n }
	for i, w := range []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
		"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"} {
		put(w, numeral{value: float64(i), alone: w == "one"})
	}
	for i, w := range []string{"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"} {
		put(w, numeral{value: float64(20 + 10*i)})
	}
	for i, w := range []string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"} {
		put(w, numeral{value: float64(1 + i), ordinal: true})
	}
	for n := 2; n < 60; n++ {
		switch r := roman(n); r {
		case "v", "x", "l", "vi", "xi", "xl", "xx", "xxx", "li", "lv": // not numbers: an editor, a name, sizes, a tag
		default:
			put(r, numeral{value: float64(n)})
		}
	}
	put("twentieth", numeral{value: 20, ordinal: true})
	for _, n := range []struct {
		words []string
		value float64
	}{
		{[]string{"hundred", "hundreds", "百"}, 1e2}, {[]string{"thousand", "thousands", "千"}, 1e3}, {[]string{"万"}, 1e4},
		{[]string{"lakh", "lakhs"}, 1e5}, {[]string{"million", "millions", "mn"}, 1e6}, {[]string{"crore", "crores"}, 1e7},
		{[]string{"亿"}, 1e8}, {[]string{"billion", "billions", "bn"}, 1e9}, {[]string{"trillion", "trillions", "tn"}, 1e12},
	} {
		for _, w := range n.words {
			put(w, numeral{value: n.value, times: true})
		}
	}
	for i, r := range []rune("零一二三四五六七八九") {
		put(string(r), numeral{value: float64(i), alone: r == '一'})
	}
	put("〇", numeral{value: 0})
	put("两", numeral{value: 2})
	put("十", numeral{value: 10, times: true})
}

// roman formats a number below 60 in Roman numerals.
func roman(n int) (text string) {
	for _, r := range []struct {
		value int
		text  string
	}{{50, "l"}, {40, "xl"}, {10, "x"}, {9, "ix"}, {5, "v"}, {4, "iv"}, {1, "i"}} {
		for ; n >= r.value; n -= r.value {
			text += r.text
		}
	}
	return text
}

// readNumber reads a number at raw i, and returns how many raws it takes; 0: none.
func readNumber(r *reader, i int) (value float64, c class, taken int) {
	p := &r.raws[i]
	if p.kind == ideograph {
		return readIdeographNumber(r, i)
	}
	if n, ok := r.v.words.numerals[p.hash]; p.kind == letters && ok {
		if _, phrase := r.v.words.longest(r.raws, i); phrase > 1 || n.times {
			return 0, 0, 0
		}
		return readWordNumber(r, i, n)
	}
	if p.kind != digits {
		return 0, 0, 0
	}
	if _, phrase := r.v.words.longest(r.raws, i); phrase > 1 {
		return 0, 0, 0
	}
	value, taken, c = parseDigits(r, p), 1, number
	for i+taken < len(r.raws) {
		q := &r.raws[i+taken]
		text := string(r.text[q.start:q.end])
		if q.glued {
			switch text {
			case "k":
				return value * 1e3, c, taken + 1
			case "st", "nd", "rd", "th":
				return value, c | ordinal, taken + 1
			case "s":
				return value + 0.5, c | ordinal, taken + 1 // 1990s
			}
		}
		n, ok := r.v.words.numerals[q.hash]
		if !ok || !n.times || q.kind == stop {
			break
		}
		value *= n.value
		taken++
	}
	return value, c, taken
}

// parseDigits returns the value of digits. A number with more than one point, or with a trailing
// zero that may matter (version 3.10), gets a unique value.
func parseDigits(r *reader, p *raw) float64 {
	text := r.text[p.start:p.end]
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(value, 0) {
		return -float64(r.v.words.hash(text)>>12) - 1
	}
	if n := len(text); text[n-1] == '0' && value != math.Trunc(value) {
		value += 1e-7
	}
	return value
}

// readWordNumber reads a number in English words: two hundred and five thousand.
func readWordNumber(r *reader, i int, n numeral) (value float64, c class, taken int) {
	if n.ordinal {
		return n.value, number | ordinal, 1
	}
	total, part := 0.0, n.value
	taken = 1
	for i+taken < len(r.raws) {
		q := &r.raws[i+taken]
		next, ok := r.v.words.numerals[q.hash]
		skip := 0
		if !ok && i+taken+1 < len(r.raws) && q.kind == letters && string(r.text[q.start:q.end]) == "and" && (part >= 100 || total > 0) {
			if next, ok = r.v.words.numerals[r.raws[i+taken+1].hash]; ok && next.times {
				ok = false
			}
			skip = 1
		}
		switch {
		case !ok || q.kind != letters:
			return numberOf(total+part, n, taken)
		case next.times && next.value >= 1000:
			total, part = (total+part)*next.value, 0
		case next.times:
			part *= next.value
		case part == 0 && total > 0, part >= 100 && next.value < 100, part >= 20 && part < 100 && next.value < 10 && math.Mod(part, 10) == 0:
			part += next.value
			if next.ordinal {
				return total + part, number | ordinal, taken + skip + 1
			}
		default:
			return numberOf(total+part, n, taken)
		}
		taken += skip + 1
	}
	return numberOf(total+part, n, taken)
}

func numberOf(value float64, n numeral, taken int) (float64, class, int) {
	if taken == 1 && n.alone {
		return value, number | light, 1
	}
	return value, number, taken
}

// readIdeographNumber reads a number in Chinese: 三十五, 二〇二四, 第三. A single small numeral counts
// only where no other word begins.
func readIdeographNumber(r *reader, i int) (value float64, c class, taken int) {
	if _, phrase := r.v.words.longest(r.raws, i); phrase > 0 {
		return 0, 0, 0
	}
	c = number
	at := i
	if p := &r.raws[i]; string(r.text[p.start:p.end]) == "第" {
		c |= ordinal
		at++
		if at < len(r.raws) && r.raws[at].kind == digits {
			return parseDigits(r, &r.raws[at]), c, 2
		}
	}
	total, part, digit := 0.0, 0.0, -1.0
	count := 0
	var first numeral
	for ; at < len(r.raws) && r.raws[at].kind == ideograph; at++ {
		n, ok := r.v.words.numerals[r.raws[at].hash]
		if !ok {
			break
		}
		if count == 0 {
			first = n
		}
		count++
		switch {
		case n.times && n.value >= 1e4:
			total = (total + part + max(digit, 0)) * n.value
			part, digit = 0, -1
		case n.times:
			part += max(digit, 0) * n.value
			if digit < 0 {
				part += n.value
			}
			digit = -1
		case digit > 0 || digit == 0 && count > 1 && part == 0 && total == 0:
			digit = digit*10 + n.value // 二〇二四
		default:
			digit = n.value
		}
	}
	if count == 0 {
		return 0, 0, 0
	}
	value = total + part + max(digit, 0)
	if count == 1 && c&ordinal == 0 && (first.alone || first.times) {
		c |= light
	}
	return value, c, at - i
}

// sumSign returns the operator that the word at raw i means between two numbers: two plus two,
// 3加5; "": none.
func sumSign(r *reader, i int) string {
	if n := len(r.words); n == 0 || i+1 >= len(r.raws) || r.gap >= 0 || r.words[n-1].class&number == 0 {
		return ""
	}
	p := &r.raws[i]
	sign := ""
	switch string(r.text[p.start:p.end]) {
	case "plus", "加":
		sign = "+"
	case "minus", "减":
		sign = "-"
	case "times", "乘":
		sign = "*"
	default:
		return ""
	}
	if _, _, taken := readNumber(r, i+1); taken == 0 {
		return ""
	}
	return sign
}

// addNumber adds a number as a word. An ordinal is not the same word as its number.
func addNumber(r *reader, i, taken int, value float64, c class) {
	if c&ordinal != 0 && value == math.Trunc(value) && besideMonth(r, i, taken) {
		c &^= ordinal // the 3rd of May, 3 May
	}
	if value == 1 && c&ordinal == 0 {
		c |= light
	}
	bits := math.Float64bits(value)
	if c&ordinal != 0 {
		bits ^= 0xabcdef0123456789
	}
	r.add(word{concept: bits*0x9e3779b97f4a7c15 | 1, class: c, value: value}, i, taken)
}

// besideMonth reports whether a month stands before or after a number.
func besideMonth(r *reader, i, taken int) bool {
	if n := len(r.words); n > 0 && r.words[n-1].class&date != 0 {
		return true
	}
	for k := i + taken; k < min(i+taken+2, len(r.raws)); k++ {
		if e, ok := r.v.words.single(r.raws[k].hash); ok && e.class&date != 0 && r.raws[k].kind == letters {
			return true
		}
	}
	return false
}
