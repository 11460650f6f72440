// The methods of text, dicts and lists.

package template

import (
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
func (r *render) method(v any, name string) any {
	return &function{name, func(r *render, a args) any {
		switch o := v.(type) {
		case string:
			return r.textMethod(o, name, a)
		case *Dict:
			return r.dictMethod(o, name, a)
		case *List:
			return r.listMethod(o, name, a)
		}
		fail(ErrUnsupported, "the method %s of %s", name, typeName(v))
		return nil
	}}
}

func (r *render) dictMethod(d *Dict, name string, a args) any {
	switch name {
	case "get":
		if len(a.names) > 0 {
			fail(ErrRender, "get takes no named arguments")
		}
		p := a.take([]string{"key", "default"}, nil)
		if v, ok := d.lookup(p[0]); ok {
			return v
		}
		return p[1]
	case "items":
		a.take(nil)
		return &List{Items: r.pairs(d, isTuple), kind: isView}
	case "keys":
		a.take(nil)
		return &List{Items: r.items(d), kind: isView}
	case "values":
		a.take(nil)
		r.step(d.Len())
		return &List{Items: append([]any(nil), d.vals...), kind: isView}
	case "copy":
		a.take(nil)
		r.step(d.Len())
		return d.Clone()
	}
	fail(ErrUnsupported, "the method %s of a dict", name)
	return nil
}

func (r *render) listMethod(l *List, name string, a args) any {
	if l.kind < isView {
		switch name {
		case "index", "count":
			item := a.take([]string{"value"})[0]
			n := int64(0)
			for i, v := range l.Items {
				r.step(1)
				if !r.equal(v, item) {
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
			return &List{Items: append([]any(nil), l.Items...)}
		}
	}
	fail(ErrUnsupported, "the method %s of %s", name, typeName(l))
	return nil
}

// textMethod is a method of str. Whatever it costs is about the length of the text.
func (r *render) textMethod(s, name string, a args) any {
	r.built(len(s))
	if len(a.names) > 0 && name != "split" && name != "rsplit" && name != "splitlines" {
		fail(ErrUnsupported, "%s with named arguments", name)
	}
	switch name {
	case "strip", "lstrip", "rstrip":
		return strip(s, name, a.take([]string{"chars"}, nil)[0])
	case "split", "rsplit":
		return r.split(s, name == "rsplit", a)
	case "splitlines":
		return r.splitLines(s, truth(a.take([]string{"keepends"}, false)[0]))
	case "startswith", "endswith":
		return affix(s, name, a.take([]string{"prefix"})[0])
	case "replace":
		return r.replace(s, a)
	case "upper", "lower", "title", "capitalize":
		a.take(nil)
		return map[string]func(string) string{"upper": upper, "lower": lower, "title": title, "capitalize": capitalize}[name](s)
	case "find", "rfind", "index", "rindex", "count":
		sub, ok := a.take([]string{"sub"})[0].(string)
		if !ok {
			fail(ErrRender, "%s of no text", name)
		}
		return find(s, sub, name)
	case "join":
		return r.join(s, r.items(a.take([]string{"iterable"})[0]))
	case "removeprefix", "removesuffix":
		affix, ok := a.take([]string{"affix"})[0].(string)
		if !ok {
			fail(ErrRender, "%s of no text", name)
		}
		if name == "removeprefix" {
			return strings.TrimPrefix(s, affix)
		}
		return strings.TrimSuffix(s, affix)
	case "isspace":
		a.take(nil)
		return s != "" && strings.TrimLeftFunc(s, isSpace) == ""
	case "isdigit", "isalpha", "isalnum", "isupper", "islower", "isdecimal", "isnumeric":
		a.take(nil)
		return is(s, name)
	}
	fail(ErrUnsupported, "the method %s of text", name)
	return nil
}

func strip(s, name string, chars any) string {
	in := isSpace
	if chars != nil {
		set, ok := chars.(string)
		if !ok {
			fail(ErrRender, "%s of no text", name)
		}
		in = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	if name != "rstrip" {
		s = strings.TrimLeftFunc(s, in)
	}
	if name != "lstrip" {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

func affix(s, name string, what any) bool {
	has := strings.HasPrefix
	if name == "endswith" {
		has = strings.HasSuffix
	}
	switch w := what.(type) {
	case string:
		return has(s, w)
	case *List:
		if w.kind == isTuple {
			for _, v := range w.Items {
				if affix(s, name, v) {
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
func (r *render) split(s string, right bool, a args) any {
	p := a.take([]string{"sep", "maxsplit"}, nil, int64(-1))
	times, isInt := p[1].(int64)
	if !isInt {
		fail(ErrRender, "split with %s times", typeName(p[1]))
	}
	most := -1
	if times >= 0 {
		most = int(min(times, maxOutput))
	}
	var parts []string
	switch sep := p[0].(type) {
	case nil:
		if most >= 0 {
			fail(ErrUnsupported, "split at white space, so often")
		}
		parts = strings.FieldsFunc(s, isSpace)
	case string:
		switch {
		case sep == "":
			fail(ErrRender, "empty separator")
		case most < 0:
			parts = strings.Split(s, sep)
		case !right:
			parts = strings.SplitN(s, sep, most+1)
		default:
			rest := []string(nil)
			for ; most > 0; most-- {
				i := strings.LastIndex(s, sep)
				if i < 0 {
					break
				}
				rest = append(rest, s[i+len(sep):])
				s = s[:i]
			}
			parts = append(parts, s)
			for i := len(rest) - 1; i >= 0; i-- {
				parts = append(parts, rest[i])
			}
		}
	default:
		fail(ErrRender, "split at %s", typeName(sep))
	}
	r.step(len(parts))
	l := &List{Items: make([]any, len(parts))}
	for i, part := range parts {
		l.Items[i] = part
	}
	return l
}

func (r *render) splitLines(s string, keep bool) *List {
	l := &List{}
	for s != "" {
		r.step(1)
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
		l.Items = append(l.Items, line)
		s = s[end+size:]
	}
	return l
}

func (r *render) replace(s string, a args) string {
	p := a.take([]string{"old", "new", "count"}, int64(-1))
	old, ok := p[0].(string)
	by, ok2 := p[1].(string)
	times, ok3 := p[2].(int64)
	if !ok || !ok2 || !ok3 {
		fail(ErrRender, "replace of no text")
	}
	n := strings.Count(s, old)
	if times >= 0 {
		n = int(min(int64(n), times))
	}
	if by != "" && n > maxOutput/len(by) {
		fail(ErrLimit, "a text of more than %d bytes", maxOutput)
	}
	r.built(len(s) + n*len(by))
	return strings.Replace(s, old, by, n)
}

func find(s, sub, name string) any {
	var i int
	switch name {
	case "count":
		return int64(strings.Count(s, sub))
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

func (r *render) join(sep string, items []any) string {
	n := 0
	parts := make([]string, len(items))
	for i, v := range items {
		s, ok := v.(string)
		if !ok {
			fail(ErrRender, "join of %s", typeName(v))
		}
		parts[i] = s
		n += len(s) + len(sep)
		r.step(1)
		if n > maxOutput {
			break
		}
	}
	r.built(n)
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
