// The methods of text, dicts and lists.

package template

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// methods that Python's types have. Those that are not built here are known, so that they are not taken
// for an attribute that is not there; those that change their object are refused by transformers, too.
var methods = map[string]map[string]bool{
	"str": known("strip lstrip rstrip split rsplit splitlines startswith endswith replace upper lower title capitalize find " +
		"rfind index rindex count join isdigit isalpha isalnum isdecimal isnumeric isspace isupper islower istitle isascii " +
		"isidentifier isprintable removeprefix removesuffix format format_map zfill center ljust rjust encode expandtabs " +
		"casefold swapcase partition rpartition translate maketrans"),
	"dict":  known("get items keys values copy pop popitem clear update setdefault fromkeys"),
	"list":  known("index count append extend insert pop remove clear sort reverse copy"),
	"tuple": known("index count"),
	"int":   known("real imag numerator denominator bit_length bit_count to_bytes from_bytes as_integer_ratio conjugate is_integer"),
	"float": known("real imag is_integer hex fromhex as_integer_ratio conjugate"),
}

func known(names string) map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		m[name] = true
	}
	return m
}

// isMethod tells whether Python's object has this attribute.
func isMethod(v any, name string) bool {
	switch v := v.(type) {
	case string:
		return methods["str"][name]
	case *Dict:
		return methods["dict"][name]
	case *List:
		if v.kind == isTuple {
			return methods["tuple"][name]
		}
		return methods["list"][name] || v.kind == isGenerator
	case bool, int64, BigInt:
		return methods["int"][name]
	case float64:
		return methods["float"][name]
	}
	return false
}

// method is a method of v.
func methodOf(cost *budget, v any, name string) any {
	return &function{name, func(r *render, a args) any {
		switch o := v.(type) {
		case string:
			return textMethod(&r.budget, o, name, a)
		case *Dict:
			return dictMethod(&r.budget, o, name, a)
		case *List:
			return listMethod(&r.budget, o, name, a)
		}
		fail(ErrUnsupported, "the method %s of %s", name, typeName(v))
		return nil
	}}
}

func dictMethod(cost *budget, d *Dict, name string, a args) any {
	switch name {
	case "get":
		if len(a.names) > 0 {
			fail(ErrRender, "get takes no named arguments")
		}
		p := a.take([]string{"key", "default"}, nil)
		if v, ok := lookup(cost, d, p[0]); ok {
			return v
		}
		return p[1]
	case "items":
		a.take(nil)
		return &List{Items: pairsOf(cost, d, isTuple), kind: isView}
	case "keys":
		a.take(nil)
		return &List{Items: each(cost, d), kind: isView}
	case "values":
		a.take(nil)
		cost.items(d.Len())
		return &List{Items: append([]any(nil), d.vals...), kind: isView}
	case "copy":
		a.take(nil)
		return clone(cost, d)
	}
	fail(ErrUnsupported, "the method %s of a dict", name)
	return nil
}

func listMethod(cost *budget, l *List, name string, a args) any {
	if l.kind < isView {
		switch name {
		case "index", "count":
			item := a.take([]string{"value"})[0]
			n := int64(0)
			for i, v := range l.Items {
				cost.step(1)
				if !alike(cost, v, item) {
					continue
				}
				if name == "index" {
					return int64(i)
				}
				n++
			}
			if name == "index" {
				fail(ErrRender, "not in list")
			}
			return n
		case "copy":
			cost.items(len(l.Items))
			return &List{Items: append([]any(nil), l.Items...)}
		}
	}
	fail(ErrUnsupported, "the method %s of %s", name, typeName(l))
	return nil
}

// textMethod is a method of str.
func textMethod(cost *budget, s, name string, a args) any {
	cost.step(copying(len(name)))
	if len(a.names) > 0 && name != "split" && name != "rsplit" && name != "splitlines" {
		fail(ErrUnsupported, "%s with named arguments", name)
	}
	switch name {
	case "strip", "lstrip", "rstrip":
		return strip(cost, s, name, a.take([]string{"chars"}, nil)[0])
	case "split", "rsplit":
		return split(cost, s, name == "rsplit", a)
	case "splitlines":
		return splitLines(cost, s, truth(a.take([]string{"keepends"}, false)[0]))
	case "startswith", "endswith":
		return hasAffix(cost, s, name, a.take([]string{"prefix"})[0])
	case "replace":
		return replace(cost, s, a)
	case "upper", "lower", "title", "capitalize":
		a.take(nil)
		return recased(cost, s, cases[name])
	case "find", "rfind", "index", "rindex", "count":
		sub, ok := a.take([]string{"sub"})[0].(string)
		if !ok {
			fail(ErrRender, "%s of no text", name)
		}
		return indexOf(cost, s, sub, name)
	case "join":
		return joinTexts(cost, s, each(cost, a.take([]string{"iterable"})[0]))
	case "removeprefix", "removesuffix":
		affix, ok := a.take([]string{"affix"})[0].(string)
		if !ok {
			fail(ErrRender, "%s of no text", name)
		}
		cost.step(copying(len(affix)))
		if name == "removeprefix" {
			return strings.TrimPrefix(s, affix)
		}
		return strings.TrimSuffix(s, affix)
	case "isspace":
		a.take(nil)
		return s != "" && trimLeft(cost, s, isSpace) == ""
	case "isdigit", "isalpha", "isalnum", "isupper", "islower", "isdecimal", "isnumeric":
		a.take(nil)
		cost.step(2 * walking(len(s)))
		return is(s, name)
	}
	fail(ErrUnsupported, "the method %s of text", name)
	return nil
}

func strip(cost *budget, s, name string, chars any) string {
	in := isSpace
	if chars != nil {
		set, ok := chars.(string)
		if !ok {
			fail(ErrRender, "%s of no text", name)
		}
		in = charSet(cost, set)
	}
	if name != "rstrip" {
		s = trimLeft(cost, s, in)
	}
	if name != "lstrip" {
		s = trimRight(cost, s, in)
	}
	return s
}

// charSet tells whether a character is among those of a text. Of long ones it makes a set: to look
// through the text for each character would cost the product of both.
func charSet(cost *budget, set string) func(rune) bool {
	if len(set) <= 16 {
		return func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	chars := map[rune]bool{}
	for _, c := range set {
		cost.step(1)
		if !chars[c] {
			cost.step(4)
			cost.made(sizePair)
			chars[c] = true
		}
	}
	return func(c rune) bool { return chars[c] }
}

// trimPiece is how much of a text is trimmed before that is counted.
const trimPiece = 4 << 10

func trimLeft(cost *budget, s string, in func(rune) bool) string {
	for s != "" {
		piece := s
		if len(s) > trimPiece {
			piece = s[:backToRune(s, trimPiece)]
		}
		rest := strings.TrimLeftFunc(piece, in)
		gone := len(piece) - len(rest)
		cost.step(1 + gone)
		s = s[gone:]
		if rest != "" {
			break
		}
	}
	return s
}

func trimRight(cost *budget, s string, in func(rune) bool) string {
	for s != "" {
		piece := s
		if len(s) > trimPiece {
			piece = s[backToRune(s, len(s)-trimPiece):]
		}
		rest := strings.TrimRightFunc(piece, in)
		gone := len(piece) - len(rest)
		cost.step(1 + gone)
		s = s[:len(s)-gone]
		if rest != "" {
			break
		}
	}
	return s
}

// backToRune is the begin of the character that the byte at i belongs to.
func backToRune(s string, i int) int {
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

func hasAffix(cost *budget, s, name string, what any) bool {
	has := strings.HasPrefix
	if name == "endswith" {
		has = strings.HasSuffix
	}
	switch w := what.(type) {
	case string:
		cost.step(copying(len(w)))
		return has(s, w)
	case *List:
		if w.kind == isTuple {
			for _, v := range w.Items {
				cost.step(1)
				if hasAffix(cost, s, name, v) {
					return true
				}
			}
			return false
		}
	}
	fail(ErrRender, "%s of no text", name)
	return false
}

// split is Python's: without a separator at runs of white space.
func split(cost *budget, s string, right bool, a args) any {
	p := a.take([]string{"sep", "maxsplit"}, nil, int64(-1))
	times, isInt := p[1].(int64)
	if !isInt {
		fail(ErrRender, "split with %s times", typeName(p[1]))
	}
	most := -1
	if times >= 0 {
		most = int(min(times, maxMade))
	}
	l := &List{}
	switch sep := p[0].(type) {
	case nil:
		if most >= 0 {
			fail(ErrUnsupported, "split at white space, so often")
		}
		cost.step(walking(len(s)))
		for field := range strings.FieldsFuncSeq(s, isSpace) {
			addPart(cost, l, field)
		}
	case string:
		if sep == "" {
			fail(ErrRender, "empty separator")
		}
		cost.step(scanning(len(s)))
		if right && most >= 0 {
			cutRight(cost, l, s, sep, most)
		} else {
			cut(cost, l, s, sep, most)
		}
	default:
		fail(ErrRender, "split at %s", typeName(sep))
	}
	return l
}

// cut appends the parts of a text to a list, cut at most so often where that is not negative.
func cut(cost *budget, l *List, s, sep string, most int) {
	for ; most != 0; most-- {
		i := strings.Index(s, sep)
		if i < 0 {
			break
		}
		cost.step(copying(len(sep)))
		addPart(cost, l, s[:i])
		s = s[i+len(sep):]
	}
	addPart(cost, l, s)
}

// cutRight is cut from the end.
func cutRight(cost *budget, l *List, s, sep string, most int) {
	for ; most > 0; most-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		cost.step(copying(len(sep)))
		addPart(cost, l, s[i+len(sep):])
		s = s[:i]
	}
	addPart(cost, l, s)
	slices.Reverse(l.Items)
}

// part appends a part of a text to a list.
func addPart(cost *budget, l *List, s string) {
	cost.step(2)
	cost.made(sizeText)
	l.Items = append(l.Items, s)
}

func splitLines(cost *budget, s string, keep bool) *List {
	l := &List{}
	cost.step(walking(len(s)))
	for s != "" {
		end, size := len(s), 0
		for i, c := range s {
			if c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029 {
				end, size = i, utf8.RuneLen(c)
				if strings.HasPrefix(s[i:], "\r\n") {
					size = 2
				}
				break
			}
		}
		line := s[:end]
		if keep {
			line = s[:end+size]
		}
		addPart(cost, l, line)
		s = s[end+size:]
	}
	return l
}

func replace(cost *budget, s string, a args) string {
	p := a.take([]string{"old", "new", "count"}, int64(-1))
	old, ok := p[0].(string)
	by, ok2 := p[1].(string)
	times, ok3 := p[2].(int64)
	if !ok || !ok2 || !ok3 {
		fail(ErrRender, "replace of no text")
	}
	n := countOf(cost, s, old)
	if times >= 0 {
		n = int(min(int64(n), times))
	}
	if n == 0 {
		return s
	}
	if by != "" && n > maxMade/len(by) {
		fail(ErrLimit, "a text of more than %d bytes", maxMade)
	}
	cost.step(scanning(len(s)) + 2*n)
	cost.built(len(s) + n*len(by))
	return strings.Replace(s, old, by, n)
}

// count is how often a text is in another; of those that overlap the first counts.
func countOf(cost *budget, s, sub string) int {
	cost.step(scanning(len(s)))
	if len(sub) < 2 {
		return strings.Count(s, sub)
	}
	n := 0
	for {
		i := strings.Index(s, sub)
		if i < 0 {
			return n
		}
		cost.step(1 + copying(len(sub)))
		n++
		s = s[i+len(sub):]
	}
}

func indexOf(cost *budget, s, sub, name string) any {
	cost.step(scanning(len(s)))
	var i int
	switch name {
	case "count":
		return int64(countOf(cost, s, sub))
	case "find", "index":
		i = strings.Index(s, sub)
	default:
		i = strings.LastIndex(s, sub)
	}
	if i < 0 {
		if name == "index" || name == "rindex" {
			fail(ErrRender, "substring not found")
		}
		return int64(-1)
	}
	return int64(runeCount(s[:i]))
}

func joinTexts(cost *budget, sep string, items []any) string {
	n := 0
	cost.items(len(items))
	parts := make([]string, len(items))
	for i, v := range items {
		s, ok := v.(string)
		if !ok {
			fail(ErrRender, "join of %s", typeName(v))
		}
		parts[i] = s
		n += len(s) + len(sep)
		if n > maxMade {
			break
		}
	}
	cost.built(n)
	return strings.Join(parts, sep)
}

// is answers for ASCII; what Python says of other characters is not built.
func is(s, name string) bool {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) >= 0 {
		fail(ErrUnsupported, "%s of characters beyond ASCII", name)
	}
	cased, other := false, false
	for _, c := range []byte(s) {
		low, up, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
		switch name {
		case "isalpha":
			other = other || !low && !up
		case "isalnum":
			other = other || !low && !up && !digit
		case "isupper":
			cased, other = cased || up, other || low
		case "islower":
			cased, other = cased || low, other || up
		default:
			other = other || !digit
		}
	}
	if name == "isupper" || name == "islower" {
		return cased && !other
	}
	return s != "" && !other
}

// plainCase refuses characters of which one in another case is several, or depends on others.
func plainCase(s string) {
	for _, r := range s {
		switch {
		case r < 0x80:
		case r == 0xdf || r == 0x130 || r == 0x149 || r == 0x1f0 || r == 0x345 || r == 0x390 || r == 0x3a3 || r == 0x3b0 || r == 0x587,
			r >= 0x1c4 && r <= 0x1cc, r >= 0x1f1 && r <= 0x1f3, r >= 0x1e96 && r <= 0x1e9e, r >= 0x1f50 && r <= 0x1fff,
			r >= 0xfb00 && r <= 0xfb17, r >= 0x10d0 && r <= 0x10ff, r >= 0x1c90 && r <= 0x1cbf:
			fail(ErrUnsupported, "upper and lower case of %q", r)
		}
	}
}

// cases are what changes upper and lower case.
var cases = map[string]func(string) string{"upper": upper, "lower": lower, "title": title, "capitalize": capitalize}

// recased is a text in another case.
func recased(cost *budget, s string, to func(string) string) string {
	cost.step(len(s))
	cost.made(len(s) + len(s)/2) // few characters take more bytes in another case
	return to(s)
}

func uppercased(cost *budget, s string) string { return recased(cost, s, upper) }
func lowercased(cost *budget, s string) string { return recased(cost, s, lower) }

func upper(s string) string {
	plainCase(s)
	return strings.ToUpper(s)
}

func lower(s string) string {
	plainCase(s)
	return strings.ToLower(s)
}

func capitalize(s string) string {
	plainCase(s)
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}

// title is jinja2's filter, which cuts words at white space and brackets, and Python's method, which
// cuts them where letters end. They agree on words of letters; other texts are not built.
func title(s string) string {
	plainCase(s)
	start := true
	return strings.Map(func(r rune) rune {
		switch {
		case isSpace(r) || r == '-':
			start = true
			return r
		case !unicode.IsLetter(r):
			fail(ErrUnsupported, "title of %q", r)
		case start:
			start = false
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}
