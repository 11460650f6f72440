// Attributes, subscripts, slices, calls, and what can be gone through.

package template

import (
	"strings"
	"unicode/utf8"
)

type attributeNode struct {
	object node
	name   string
	item   bool // of a dict it is its item: there is no such method
	line   int
}

func (p *parser) attribute(object node, name string, line int) node {
	item := !strings.HasPrefix(name, "__") && !isMethod((*Dict)(nil), name)
	return &attributeNode{object, name, item, line}
}

func (n *attributeNode) eval(r *render) any {
	r.budget.step(1)
	v := n.object.eval(r)
	r.line = n.line
	if d, ok := v.(*Dict); ok && n.item {
		r.budget.step(d.search(n.name))
		if item, ok := d.Get(n.name); ok {
			return item
		}
		return undefined{n.name}
	}
	return attributeOf(&r.budget, v, n.name)
}

// attribute is Python's getattr, then the item of that name.
func attributeOf(cost *budget, v any, name string) any {
	if strings.HasPrefix(name, "__") {
		fail(ErrUnsupported, "the attribute %s", name)
	}
	cost.step(copying(len(name)))
	switch o := v.(type) {
	case *Dict:
		if isMethod(v, name) {
			return methodOf(cost, v, name)
		}
		if item, ok := lookup(cost, o, name); ok {
			return item
		}
	case undefined:
		fail(ErrRender, "%s is undefined, it has no %s", o.what, name)
	case *namespace:
		if item, ok := lookup(cost, o.attributes, name); ok {
			return item
		}
	case *loop:
		if item, ok := o.attribute(name); ok {
			return item
		}
	case markup:
		fail(ErrUnsupported, "%s of marked text", name)
	case *macro:
		fail(ErrUnsupported, "%s of a macro", name)
	default:
		if isMethod(v, name) {
			return methodOf(cost, v, name)
		}
	}
	return undefined{name}
}

type itemNode struct {
	object, key node
	line        int
}

func (n *itemNode) eval(r *render) any {
	r.budget.step(1)
	v, key := n.object.eval(r), n.key.eval(r)
	r.line = n.line
	return itemOf(&r.budget, v, key)
}

// item is Python's v[key], then the attribute of that name.
func itemOf(cost *budget, v, key any) any {
	switch o := v.(type) {
	case undefined:
		fail(ErrRender, "%s is undefined, it has no items", o.what)
	case *Dict:
		switch k := key.(type) {
		case *Dict:
			return undefined{"dict object"}
		case *List:
			if k.kind == isList {
				return undefined{"dict object"}
			}
		}
		if item, ok := lookup(cost, o, key); ok {
			return item
		}
	case *List:
		if i, _, whole, ok := number(key); ok && whole && o.kind < isView {
			if i < 0 {
				i += int64(len(o.Items))
			}
			if i >= 0 && i < int64(len(o.Items)) {
				return o.Items[i]
			}
			return undefined{"list object"}
		}
	case string:
		if i, _, whole, ok := number(key); ok && whole {
			cost.step(walking(len(o)))
			if n := int64(runeCount(o)); i < 0 {
				i += n
			} else if i >= n {
				return undefined{"str object"}
			}
			if i < 0 {
				return undefined{"str object"}
			}
			at := runeOffset(o, int(i))
			_, size := utf8.DecodeRuneInString(o[at:])
			return o[at : at+size]
		}
	}
	if name, ok := key.(string); ok {
		return attributeOf(cost, v, name)
	}
	return undefined{"item"}
}

type sliceNode struct {
	object node
	parts  [3]node
	line   int
}

func (n *sliceNode) eval(r *render) any {
	v := n.object.eval(r)
	var parts [3]*int64
	for i, p := range n.parts {
		if p == nil {
			continue
		}
		x := p.eval(r)
		if x == nil {
			continue
		}
		whole, _, isWhole, ok := number(x)
		if !ok || !isWhole {
			if isUndefined(v) {
				continue
			}
			fail(ErrRender, "a slice by %s", typeName(x))
		}
		parts[i] = &whole
	}
	r.line = n.line
	switch o := v.(type) {
	case undefined:
		fail(ErrRender, "%s is undefined, it has no items", o.what)
	case string:
		return sliceText(&r.budget, o, parts)
	case *List:
		if o.kind < isView {
			start, stop, step := bounds(parts, len(o.Items))
			l := &List{kind: o.kind}
			if step == 1 {
				r.budget.step(1)
				l.Items = o.Items[min(start, stop):stop:stop]
				return l
			}
			for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
				r.budget.step(1)
				r.budget.made(sizeItem)
				l.Items = append(l.Items, o.Items[i])
			}
			return l
		}
	}
	fail(ErrRender, "a slice of %s", typeName(v))
	return nil
}

func sliceText(cost *budget, s string, parts [3]*int64) any {
	cost.step(scanning(len(s)))
	count := runeCount(s)
	start, stop, step := bounds(parts, count)
	if step == 1 {
		if start >= stop {
			return ""
		}
		cost.step(walking(len(s)))
		from := runeOffset(s, start)
		return s[from : from+runeOffset(s[from:], stop-start)]
	}
	cost.step(walking(3 * len(s)))
	cost.made(8*count + len(s))
	runes, out := []rune(s), []rune(nil)
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		out = append(out, runes[i])
	}
	return string(out)
}

// bounds are Python's slice.indices.
func bounds(parts [3]*int64, n int) (start, stop, step int) {
	step = 1
	if parts[2] != nil {
		step = int(max(min(*parts[2], maxMade), -maxMade))
		if step == 0 {
			fail(ErrRender, "a slice by steps of 0")
		}
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	clamp := func(p *int64, or int) int {
		if p == nil {
			return or
		}
		i := *p
		if i < 0 {
			i += int64(n)
		}
		return int(max(min(i, int64(high)), int64(low)))
	}
	if step < 0 {
		return clamp(parts[0], high), clamp(parts[1], low), step
	}
	return clamp(parts[0], low), clamp(parts[1], high), step
}

// each is what a loop over a value goes through.
func each(cost *budget, v any) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case *List:
		return v.Items
	case *Dict:
		cost.items(v.Len())
		return append([]any(nil), v.keys...)
	case string:
		cost.step(walking(len(v)))
		n := runeCount(v)
		cost.step(2 * n)
		cost.made(n * sizeText)
		items := make([]any, 0, n)
		for i, c := range v {
			items = append(items, v[i:i+utf8.RuneLen(c)])
		}
		return items
	}
	fail(ErrRender, "%s is not iterable", typeName(v))
	return nil
}

// contains is Python's item in v.
func contains(cost *budget, v, item any) bool {
	switch v := v.(type) {
	case undefined:
		return false
	case string:
		s, ok := item.(string)
		if !ok {
			fail(ErrRender, "%s in text", typeName(item))
		}
		cost.step(scanning(len(v)))
		return strings.Contains(v, s)
	case *Dict:
		_, ok := lookup(cost, v, item)
		return ok
	case *List:
		for _, x := range v.Items {
			cost.step(1)
			if alike(cost, x, item) {
				return true
			}
		}
		return false
	}
	fail(ErrRender, "%s is not iterable", typeName(v))
	return false
}

// arguments of a call, a filter or a test.
type arguments struct {
	plain  []node
	names  []string
	named  []node
	spread node // *list
}

// args are arguments, evaluated.
type args struct {
	of     string // the name of what they are for
	plain  []any
	names  []string
	values []any
	caller *macro
}

func (r *render) evaluate(a *arguments) (v args) {
	if len(a.plain) > 0 {
		r.budget.made(len(a.plain) * sizeItem)
		v.plain = make([]any, len(a.plain))
		for i, n := range a.plain {
			v.plain[i] = n.eval(r)
		}
	}
	if a.spread != nil {
		items := each(&r.budget, a.spread.eval(r))
		r.budget.items(len(items))
		v.plain = append(v.plain, items...)
	}
	if len(a.named) > 0 {
		r.budget.items(len(a.named))
		v.names, v.values = a.names, make([]any, len(a.named))
		for i, n := range a.named {
			v.values[i] = n.eval(r)
		}
	}
	return v
}

func (a *args) named(name string) (any, bool) {
	for i, n := range a.names {
		if n == name {
			return a.values[i], true
		}
	}
	return nil, false
}

// take sorts arguments by their parameters; what is not given is the default. More than the parameters,
// or others, are an error.
func (a *args) take(parameters []string, defaults ...any) []any {
	if len(a.plain) > len(parameters) {
		fail(ErrRender, "%s takes at most %d arguments", a.of, len(parameters))
	}
	values := append([]any(nil), a.plain...)
	found := 0
	for i := len(values); i < len(parameters); i++ {
		if v, ok := a.named(parameters[i]); ok {
			found++
			values = append(values, v)
			continue
		}
		if i < len(parameters)-len(defaults) {
			fail(ErrRender, "%s needs %s", a.of, parameters[i])
		}
		values = append(values, defaults[i-len(parameters)+len(defaults)])
	}
	if found < len(a.names) {
		fail(ErrUnsupported, "%s with %s", a.of, strings.Join(a.names, ", "))
	}
	return values
}

// function is a function of ours.
type function struct {
	name string
	call func(r *render, a args) any
}

type callNode struct {
	callee node
	line   int
	arguments
}

func (n *callNode) eval(r *render) any {
	r.budget.step(1)
	callee := n.callee.eval(r)
	a := r.evaluate(&n.arguments)
	r.line = n.line
	switch c := callee.(type) {
	case *function:
		a.of = c.name
		return c.call(r, a)
	case *macro:
		return c.call(r, a)
	case undefined:
		fail(ErrRender, "%s is undefined, it cannot be called", c.what)
	}
	fail(ErrRender, "%s cannot be called", typeName(callee))
	return nil
}
