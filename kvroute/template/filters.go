// The filters of jinja2 that templates use.

package template

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

type filter func(r *render, v any, a args) any

// filters by name. Those that apply others find them in the rendering.
var filters = map[string]filter{
	"abs": filterAbs, "attr": filterAttr, "capitalize": filterMethod("capitalize"), "count": filterLength,
	"d": filterDefault, "default": filterDefault, "dictsort": filterDictsort, "e": filterEscape, "escape": filterEscape,
	"first": filterFirst, "float": filterFloat, "indent": filterIndent, "int": filterInt, "items": filterItems,
	"join": filterJoin, "last": filterLast, "length": filterLength, "list": filterList, "lower": filterMethod("lower"),
	"map": filterMap, "max": filterExtreme(1), "min": filterExtreme(-1), "reject": filterSelect(false, false),
	"rejectattr": filterSelect(false, true), "replace": filterReplace, "reverse": filterReverse, "round": filterRound,
	"safe": filterSafe, "select": filterSelect(true, false), "selectattr": filterSelect(true, true),
	"sort": filterSort, "string": filterString, "sum": filterSum, "title": filterMethod("title"), "tojson": filterToJSON,
	"trim": filterTrim, "unique": filterUnique, "upper": filterMethod("upper"),
}

// softly is the text of a value, as jinja2's soft_str.
func softly(cost *budget, v any) string {
	if _, ok := v.(markup); ok {
		fail(ErrUnsupported, "a filter of marked text")
	}
	return shownText(cost, v)
}

// filterMethod is a filter that is a method of text.
func filterMethod(name string) filter {
	return func(r *render, v any, a args) any {
		a.take(nil)
		return textMethod(&r.budget, softly(&r.budget, v), name, args{of: name})
	}
}

func filterAbs(_ *render, v any, a args) any {
	a.take(nil)
	x, f, whole, ok := number(v)
	if !ok {
		fail(ErrRender, "abs of %s", typeName(v))
	}
	if whole {
		if x == math.MinInt64 {
			fail(ErrUnsupported, "large numbers")
		}
		return max(x, -x)
	}
	return math.Abs(f)
}

func filterAttr(r *render, v any, a args) any {
	name, ok := a.take([]string{"name"})[0].(string)
	if _, isDict := v.(*Dict); !ok || isDict || isUndefined(v) {
		// Only attributes, no items: of a dict there are methods.
		fail(ErrUnsupported, "attr of %s", typeName(v))
	}
	return attributeOf(&r.budget, v, name)
}

func filterDefault(_ *render, v any, a args) any {
	p := a.take([]string{"default_value", "boolean"}, "", false)
	if isUndefined(v) || truth(p[1]) && !truth(v) {
		return p[0]
	}
	return v
}

func filterDictsort(r *render, v any, a args) any {
	p := a.take([]string{"case_sensitive", "by", "reverse"}, false, "key", false)
	d, ok := v.(*Dict)
	if !ok {
		fail(ErrRender, "dictsort of %s", typeName(v))
	}
	at := 0
	switch p[1] {
	case "key":
	case "value":
		at = 1
	default:
		fail(ErrRender, "dictsort by %v", p[1])
	}
	pairs := pairsOf(&r.budget, d, isTuple)
	sortBy(&r.budget, pairs, truth(p[2]), func(v any) any { return folded(&r.budget, v.(*List).Items[at], truth(p[0])) })
	return &List{Items: pairs}
}

// pairs are the keys and values of a dict.
func pairsOf(cost *budget, d *Dict, kind listKind) []any {
	cost.step(d.Len())
	cost.made(d.Len() * (sizeItem + sizeList + 2*sizeItem))
	pairs := make([]any, d.Len())
	for i := range pairs {
		pairs[i] = &List{Items: []any{d.keys[i], d.vals[i]}, kind: kind}
	}
	return pairs
}

// fold is text in lower case where case does not count.
func folded(cost *budget, v any, sensitive bool) any {
	if s, ok := v.(string); ok && !sensitive {
		return lowercased(cost, s)
	}
	return v
}

func sortBy(cost *budget, items []any, reverse bool, key func(any) any) {
	cost.step(len(items))
	cost.made(len(items) * (2*sizeItem + 8))
	keys := make([]any, len(items))
	order := make([]int, len(items))
	for i, v := range items {
		keys[i], order[i] = key(v), i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		cost.step(2) // and moving items
		if reverse {
			a, b = b, a
		}
		switch {
		case isLess(cost, keys[a], keys[b]):
			return -1
		case isLess(cost, keys[b], keys[a]):
			return 1
		}
		return 0
	})
	sorted := make([]any, len(items))
	for i, at := range order {
		sorted[i] = items[at]
	}
	copy(items, sorted)
}

func filterEscape(r *render, v any, a args) any {
	a.take(nil)
	if m, ok := v.(markup); ok {
		return m
	}
	s := softly(&r.budget, v)
	r.budget.step(walking(len(s)))
	special := 0
	for _, c := range []byte(s) {
		if strings.IndexByte(`&><'"`, c) >= 0 {
			special++
		}
	}
	r.budget.step(2 * special)
	r.budget.built(len(s) + 4*special)
	return markup(escaper.Replace(s))
}

var escaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func filterSafe(r *render, v any, a args) any {
	a.take(nil)
	if m, ok := v.(markup); ok {
		return m
	}
	return markup(softly(&r.budget, v))
}

func filterFirst(r *render, v any, a args) any {
	a.take(nil)
	if items := each(&r.budget, v); len(items) > 0 {
		return items[0]
	}
	return undefined{"the first item of nothing"}
}

func filterLast(r *render, v any, a args) any {
	a.take(nil)
	if l, ok := v.(*List); ok && l.kind == isGenerator {
		fail(ErrRender, "last of a generator")
	}
	if items := each(&r.budget, v); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined{"the last item of nothing"}
}

// defined fails for what is not: the default is for what is no number.
func defined(v any) {
	if u, ok := v.(undefined); ok {
		fail(ErrRender, "%s is undefined, it is no number", u.what)
	}
}

func filterFloat(r *render, v any, a args) any {
	or := a.take([]string{"default"}, 0.0)[0]
	if _, f, _, ok := number(v); ok {
		return f
	}
	defined(v)
	if s, ok := v.(string); ok {
		r.budget.step(2 * walking(len(s)))
		s = strings.TrimFunc(s, isSpace)
		if !plainNumber(s, true) {
			if strings.ContainsAny(s, "0123456789nN") {
				fail(ErrUnsupported, "float of %.40q", s)
			}
			return or
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			fail(ErrUnsupported, "float of %.40q", s)
		}
		return f
	}
	return or
}

// plainNumber tells whether text is a decimal number as every language writes it.
func plainNumber(s string, fraction bool) bool {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	digits, dots := 0, 0
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && fraction:
			dots++
		default:
			return false
		}
	}
	return digits > 0 && dots <= 1
}

func filterInt(r *render, v any, a args) any {
	p := a.take([]string{"default", "base"}, int64(0), int64(10))
	if p[1] != int64(10) {
		fail(ErrUnsupported, "int to another base")
	}
	if x, f, whole, ok := number(v); ok {
		switch {
		case whole:
			return x
		case math.Abs(f) < 1<<62:
			return int64(f)
		}
		fail(ErrUnsupported, "large numbers")
	}
	defined(v)
	if s, ok := v.(string); ok {
		r.budget.step(2 * walking(len(s)))
		s = strings.TrimFunc(s, isSpace)
		if plainNumber(s, false) {
			i, err := strconv.ParseInt(s, 10, 64)
			if err != nil || strings.HasPrefix(s, "+-") || strings.HasPrefix(s, "-+") {
				fail(ErrUnsupported, "int of %.40q", s)
			}
			return i
		}
		if strings.ContainsAny(s, "0123456789") {
			fail(ErrUnsupported, "int of %.40q", s)
		}
	}
	return p[0]
}

func filterItems(r *render, v any, a args) any {
	a.take(nil)
	switch v := v.(type) {
	case undefined:
		return &List{kind: isGenerator}
	case *Dict:
		return &List{Items: pairsOf(&r.budget, v, isTuple), kind: isGenerator}
	}
	fail(ErrRender, "items of %s", typeName(v))
	return nil
}

func filterJoin(r *render, v any, a args) any {
	p := a.take([]string{"d", "attribute"}, "", nil)
	var b []byte
	for i, item := range each(&r.budget, v) {
		r.budget.step(1)
		if p[1] != nil {
			item = follow(&r.budget, item, p[1])
		}
		if i > 0 {
			b = appendText(&r.budget, b, p[0])
		}
		b = appendText(&r.budget, b, item)
	}
	r.budget.built(len(b))
	return string(b)
}

// path is the item of that name or number, also of an item, as in map(attribute="a.b").
func follow(cost *budget, v, name any) any {
	s, ok := name.(string)
	if !ok {
		return itemOf(cost, v, name)
	}
	for part := range strings.SplitSeq(s, ".") {
		cost.step(1 + walking(len(part)))
		if i, err := strconv.Atoi(part); err == nil && plainNumber(part, false) {
			v = itemOf(cost, v, int64(i))
			continue
		}
		v = itemOf(cost, v, part)
	}
	return v
}

func lengthOf(cost *budget, v any) int64 {
	switch v := v.(type) {
	case undefined:
		return 0
	case string:
		cost.step(scanning(len(v)))
		return int64(runeCount(v))
	case *Dict:
		return int64(v.Len())
	case *List:
		if v.kind != isGenerator {
			return int64(len(v.Items))
		}
	}
	fail(ErrRender, "%s has no length", typeName(v))
	return 0
}

func filterLength(r *render, v any, a args) any {
	a.take(nil)
	return lengthOf(&r.budget, v)
}

func filterList(r *render, v any, a args) any {
	a.take(nil)
	items := each(&r.budget, v)
	r.budget.items(len(items))
	return &List{Items: append([]any(nil), items...)}
}

// filterMap is map("filter", arguments...) and map(attribute=name, default=v).
func filterMap(r *render, v any, a args) any {
	items := each(&r.budget, v)
	r.budget.items(len(items))
	out := &List{Items: make([]any, 0, len(items)), kind: isGenerator}
	if len(a.plain) == 0 {
		p := a.take([]string{"attribute", "default"}, nil, undefined{})
		for _, item := range items {
			item = follow(&r.budget, item, p[0])
			if !isUndefined(p[1]) && isUndefined(item) {
				item = p[1]
			}
			out.Items = append(out.Items, item)
		}
		return out
	}
	name, _ := a.plain[0].(string)
	r.budget.step(copying(len(name)))
	f := r.filters[name]
	if f == nil {
		fail(ErrUnsupported, "the filter %.40q", name)
	}
	rest := args{of: name, plain: a.plain[1:], names: a.names, values: a.values}
	for _, item := range items {
		r.budget.step(1)
		out.Items = append(out.Items, f(r, item, rest))
	}
	return out
}

// filterSelect keeps the items, or those with an attribute, of which a test is true, or not.
func filterSelect(want, attribute bool) filter {
	return func(r *render, v any, a args) any {
		items := each(&r.budget, v)
		out := &List{kind: isGenerator}
		rest := a.plain
		var name any
		if attribute {
			if len(rest) == 0 {
				fail(ErrRender, "%s needs an attribute", a.of)
			}
			name, rest = rest[0], rest[1:]
		}
		is := test(func(_ *render, v any, _ args) bool { return truth(v) })
		var testArgs args
		if len(rest) > 0 {
			of, _ := rest[0].(string)
			r.budget.step(copying(len(of)))
			if is = r.tests[of]; is == nil {
				fail(ErrUnsupported, "the test %.40q", of)
			}
			testArgs = args{of: of, plain: rest[1:], names: a.names, values: a.values}
		}
		for _, item := range items {
			r.budget.step(1)
			asked := item
			if attribute {
				asked = follow(&r.budget, item, name)
			}
			if is(r, asked, testArgs) == want {
				r.budget.made(sizeItem)
				out.Items = append(out.Items, item)
			}
		}
		return out
	}
}

func filterExtreme(sign int) filter {
	return func(r *render, v any, a args) any {
		p := a.take([]string{"case_sensitive", "attribute"}, false, nil)
		var best, bestKey any = undefined{"no item"}, nil
		for i, item := range each(&r.budget, v) {
			r.budget.step(1)
			key := item
			if p[1] != nil {
				key = follow(&r.budget, item, p[1])
			}
			key = folded(&r.budget, key, truth(p[0]))
			if i == 0 || sign > 0 && isLess(&r.budget, bestKey, key) || sign < 0 && isLess(&r.budget, key, bestKey) {
				best, bestKey = item, key
			}
		}
		return best
	}
}

func filterIndent(r *render, v any, a args) any {
	p := a.take([]string{"width", "first", "blank"}, int64(4), false, false)
	switch v.(type) {
	case string, markup:
	default:
		fail(ErrRender, "indent of %s", typeName(v))
	}
	s := softly(&r.budget, v)
	by, ok := p[0].(string)
	if n, _, whole, isNumber := number(p[0]); !ok && isNumber && whole {
		by, ok = strings.Repeat(" ", int(min(max(n, 0), 10_000))), true
	}
	if !ok {
		fail(ErrRender, "indent by %s", typeName(p[0]))
	}
	r.budget.built(len(s) + len(by))
	lines := splitLines(&r.budget, s+"\n", false).Items
	var b strings.Builder
	for i, line := range lines {
		line := line.(string)
		r.budget.built(1 + len(by) + len(line))
		if i > 0 {
			b.WriteByte('\n')
		}
		if i > 0 && (line != "" || truth(p[2])) || i == 0 && truth(p[1]) {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return b.String()
}

func filterReplace(r *render, v any, a args) any {
	p := a.take([]string{"old", "new", "count"}, nil)
	if p[2] == nil {
		p[2] = int64(-1)
	}
	return textMethod(&r.budget, softly(&r.budget, v), "replace", args{of: "replace", plain: []any{softly(&r.budget, p[0]), softly(&r.budget, p[1]), p[2]}})
}

func filterReverse(r *render, v any, a args) any {
	a.take(nil)
	if s, ok := v.(string); ok {
		r.budget.step(2 * walking(len(s)))
		r.budget.made(4*runeCount(s) + len(s))
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes)
	}
	items := each(&r.budget, v)
	r.budget.items(len(items))
	items = slices.Clone(items)
	slices.Reverse(items)
	return &List{Items: items, kind: isGenerator}
}

func filterRound(r *render, v any, a args) any {
	p := a.take([]string{"precision", "method"}, int64(0), "common")
	n, f, whole, ok := number(v)
	places, isInt := p[0].(int64)
	if !ok || !isInt || places < 0 || places > 15 {
		fail(ErrUnsupported, "round of %s", typeName(v))
	}
	switch power := math.Pow(10, float64(places)); p[1] {
	case "common":
		if whole {
			return n
		}
		// Half to even, of the exact value.
		r.budget.step(300) // up to 300 digits are written and read
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(places), 64), 64)
		return rounded
	case "ceil":
		return math.Ceil(f*power) / power
	case "floor":
		return math.Floor(f*power) / power
	}
	fail(ErrRender, "round by %v", p[1])
	return nil
}

func filterSort(r *render, v any, a args) any {
	p := a.take([]string{"reverse", "case_sensitive", "attribute"}, false, false, nil)
	items := each(&r.budget, v)
	r.budget.items(len(items))
	items = slices.Clone(items)
	if s, ok := p[2].(string); ok && strings.Contains(s, ",") {
		fail(ErrUnsupported, "sort by several attributes")
	}
	sortBy(&r.budget, items, truth(p[0]), func(v any) any {
		if p[2] != nil {
			v = follow(&r.budget, v, p[2])
		}
		return folded(&r.budget, v, truth(p[1]))
	})
	return &List{Items: items}
}

func filterString(r *render, v any, a args) any {
	a.take(nil)
	return softly(&r.budget, v)
}

func filterSum(r *render, v any, a args) any {
	p := a.take([]string{"attribute", "start"}, nil, int64(0))
	total := p[1]
	if _, ok := total.(string); ok {
		fail(ErrRender, "sum of text")
	}
	for _, item := range each(&r.budget, v) {
		r.budget.step(1)
		if p[0] != nil {
			item = follow(&r.budget, item, p[0])
		}
		total = plus(&r.budget, total, item)
	}
	return total
}

func filterTrim(r *render, v any, a args) any {
	chars := a.take([]string{"chars"}, nil)[0]
	return textMethod(&r.budget, softly(&r.budget, v), "strip", args{of: "trim", plain: []any{chars}})
}

func filterUnique(r *render, v any, a args) any {
	p := a.take([]string{"case_sensitive", "attribute"}, false, nil)
	seen, out := NewDict(0), &List{kind: isGenerator}
	for _, item := range each(&r.budget, v) {
		r.budget.step(1)
		key := item
		if p[1] != nil {
			key = follow(&r.budget, item, p[1])
		}
		key = folded(&r.budget, key, truth(p[0]))
		if _, ok := lookup(&r.budget, seen, key); !ok {
			put(&r.budget, seen, key, nil)
			r.budget.made(sizeItem)
			out.Items = append(out.Items, item)
		}
	}
	return out
}
