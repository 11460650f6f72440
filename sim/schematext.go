// Strings and numbers within what a JSON schema allows.

package sim

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formats are examples of strings by their format.
var formats = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "duration": "P1D",
	"email": "simulated@example.com", "idn-email": "simulated@example.com", "hostname": "simulated.example.com",
	"idn-hostname": "simulated.example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/simulated", "iri": "https://example.com/simulated", "uri-reference": "/simulated",
	"iri-reference": "/simulated", "url": "https://example.com/simulated", "uuid": "123e4567-e89b-42d3-a456-426614174000",
	"json-pointer": "/simulated", "regex": "simulated", "byte": "c2ltdWxhdGVk",
}

// text makes a string: the example of its format, one by its pattern, or "simulated", as long as
// it must be.
func (m *maker) text(all []*node, vary int) *node {
	least, most := int(largest(all, "minLength", 0)), int(smallest(all, "maxLength", 1<<30))
	if !m.spend(least) {
		return nil
	}
	text := "simulated"
	if vary > 0 {
		text += " " + strconv.Itoa(vary+1)
	}
	fixed := false
	for _, s := range all {
		if example, ok := formats[s.get("format").textOf()]; ok {
			text, fixed = example, true
		}
	}
	for _, s := range all {
		pattern := s.get("pattern")
		if pattern == nil {
			continue
		}
		if re := m.compile(pattern.text); fixed && (re == nil || re.MatchString(text)) {
			continue
		}
		var ok bool
		if text, ok = m.patternText(pattern.text, least, vary); !ok {
			return m.giveUp("it has no string for the pattern %.100q", pattern.text)
		}
		fixed = true
	}
	if n := utf8.RuneCountInString(text); n < least && !fixed {
		text += strings.Repeat(".", least-n)
	} else if n > most && !fixed {
		text = text[max(0, len(text)-max(most, 0)):] // the end differs where it must
	}
	if !m.spend(len(text)) {
		return nil
	}
	return &node{kind: '"', text: text}
}

func (n *node) textOf() string {
	if n == nil {
		return ""
	}
	return n.text
}

// patternText makes a string that matches a regular expression, with at least as many characters
// where repeating what may be repeated gives them.
func (m *maker) patternText(pattern string, least, vary int) (text string, ok bool) {
	check := m.compile(pattern)
	if check == nil {
		return "", false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	for more := 0; more < maxPatternText; more = more*2 + 1 {
		out := patternWriter{more: more, vary: vary}
		out.write(parsed)
		text = string(out.text)
		if len(text) > maxPatternText || !m.charge(1+maxPatternSize*len(text)>>10) {
			return "", false
		}
		if utf8.RuneCountInString(text) >= least && check.MatchString(text) {
			return text, true
		}
	}
	return text, check.MatchString(text)
}

// compile returns a regular expression, compiled once, or nil if Go does not know it or it is too
// large.
func (m *maker) compile(pattern string) *regexp.Regexp {
	re, known := m.patterns[pattern]
	if known || len(pattern) > maxPattern || !m.charge(maxPattern/cheap) {
		return re
	}
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil && len(program.Inst) <= maxPatternSize {
			re, _ = regexp.Compile(pattern)
		}
	}
	m.patterns[pattern] = re
	return re
}

// patternWriter writes a string for a parsed regular expression; of alternatives the first.
type patternWriter struct {
	text       []byte
	more, vary int
	looks      int // at parts of the expression; bounded, since repeats of repeats may write nothing
}

func (w *patternWriter) write(re *syntax.Regexp) {
	if w.looks++; !w.mayGoOn() {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		w.text = append(w.text, string(re.Rune)...)
	case syntax.OpCharClass:
		w.text = utf8.AppendRune(w.text, w.pick(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.text = append(w.text, byte('a'+w.vary%26))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			w.write(sub)
		}
	case syntax.OpAlternate:
		w.write(re.Sub[w.vary%len(re.Sub)])
	case syntax.OpStar:
		w.repeat(re.Sub[0], w.more)
	case syntax.OpPlus:
		w.repeat(re.Sub[0], 1+w.more)
	case syntax.OpQuest:
		w.repeat(re.Sub[0], min(w.more, 1))
	case syntax.OpRepeat:
		n := re.Min + w.more
		if re.Max >= 0 {
			n = min(n, re.Max)
		}
		w.repeat(re.Sub[0], n)
	}
}

func (w *patternWriter) repeat(re *syntax.Regexp, n int) {
	for i := 0; i < n && w.mayGoOn(); i++ {
		w.write(re)
	}
}

func (w *patternWriter) mayGoOn() bool {
	return len(w.text) <= maxPatternText && w.looks <= 8*maxPatternText
}

// pick takes a character of a class, a letter or a digit if there is one. Classes are pairs of
// first and last characters.
func (w *patternWriter) pick(class []rune) rune {
	for _, want := range [][2]rune{{'a', 'z'}, {'0', '9'}, {'A', 'Z'}, {' ', '~'}} {
		for i := 0; i+1 < len(class); i += 2 {
			if low, high := max(class[i], want[0]), min(class[i+1], want[1]); low <= high {
				return low + rune(w.vary)%(high-low+1)
			}
		}
	}
	if len(class) == 0 {
		return 'a' // an empty class: nothing matches, and the check says so
	}
	return class[0]
}

// numberOf makes a number: 1, or the nearest to it that is allowed.
func (m *maker) numberOf(all []*node, whole bool, vary int) *node {
	low, high := tightest(all, "minimum", "exclusiveMinimum", -1), -tightest(all, "maximum", "exclusiveMaximum", 1)
	step := 0.0
	if whole {
		step = 1
	}
	for _, s := range all {
		if n := s.get("multipleOf"); n != nil && n.number > step {
			step = n.number // of several, the largest; the check tells whether it will do
		}
	}
	v := min(max(1, low), high)
	if step > 0 {
		v = math.Ceil(v/step) * step
		if v > high {
			v = math.Floor(high/step) * step
		}
		if v == low && m.excluded(all, v) {
			v += step
		}
		if v == high && m.excluded(all, v) {
			v -= step
		}
		v += float64(vary) * step
	} else {
		if m.excluded(all, v) {
			switch {
			case low > -math.MaxFloat64 && high < math.MaxFloat64:
				v = low + (high-low)/2
			case v == low:
				v++
			default:
				v--
			}
		}
		if room := high - v; vary > 0 && room > 0 {
			v += min(float64(vary), room*float64(vary)/float64(vary+1))
		}
	}
	if math.Abs(v) > 1<<53 && whole || math.IsInf(v, 0) || math.IsNaN(v) {
		return m.giveUp("a number out of range")
	}
	return numberNode(v)
}

// excluded reports whether a bound that does not belong to its range is this number.
func (m *maker) excluded(all []*node, v float64) bool {
	return slices.ContainsFunc(all, func(s *node) bool {
		for _, keyword := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
			if n := s.get(keyword); n != nil && n.kind == '0' && n.number == v {
				return true
			}
		}
		return excludes4(s, "exclusiveMinimum", "minimum", v) || excludes4(s, "exclusiveMaximum", "maximum", v)
	})
}

// excludes4 reads draft 4's form, in which the exclusion is true beside the bound.
func excludes4(s *node, exclusive, bound string, v float64) bool {
	flag, n := s.get(exclusive), s.get(bound)
	return flag != nil && flag.kind == 't' && n != nil && n.kind == '0' && n.number == v
}

// tightest returns the tightest bound of two keywords: with side -1 the largest lower bound, with
// side 1 the negative of the smallest upper one.
func tightest(all []*node, keyword, exclusive string, side float64) float64 {
	bound := -math.MaxFloat64
	for _, s := range all {
		for _, name := range []string{keyword, exclusive} {
			if n := s.get(name); n != nil && n.kind == '0' {
				bound = max(bound, -side*n.number)
			}
		}
	}
	return bound
}

func numberNode(v float64) *node {
	format := byte('f')
	if v != 0 && (math.Abs(v) >= 1e21 || math.Abs(v) < 1e-6) {
		format = 'e'
	}
	return &node{kind: '0', text: strconv.FormatFloat(v, format, -1, 64), number: v}
}
