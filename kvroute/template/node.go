// Expressions: what a rendering evaluates.

package template

import (
	"math"
	"slices"
	"strings"
)

type node interface{ eval(r *render) any }

type constNode struct{ value any }

func (n *constNode) eval(*render) any { return n.value }

type nameNode struct {
	id   int
	name string
}

func (n *nameNode) eval(r *render) any {
	r.budget.step(1)
	if v, ok := r.get(n.id); ok {
		return v
	}
	return undefined{n.name}
}

type listNode struct {
	items []node
	kind  listKind
}

func (n *listNode) eval(r *render) any {
	r.budget.items(len(n.items))
	l := &List{Items: make([]any, len(n.items)), kind: n.kind}
	for i, item := range n.items {
		l.Items[i] = item.eval(r)
	}
	return l
}

type dictNode struct{ keys, values []node }

func (n *dictNode) eval(r *render) any {
	r.budget.step(1)
	r.budget.made((1 + len(n.keys)) * sizePair)
	d := NewDict(len(n.keys))
	for i, k := range n.keys {
		key := k.eval(r)
		put(&r.budget, d, key, n.values[i].eval(r))
	}
	return d
}

type conditionNode struct{ yes, test, no node }

func (n *conditionNode) eval(r *render) any {
	r.budget.step(1)
	if truth(n.test.eval(r)) {
		return n.yes.eval(r)
	}
	if n.no == nil {
		return undefined{"the inline if-expression without else"}
	}
	return n.no.eval(r)
}

type orNode struct{ a, b node }

func (n *orNode) eval(r *render) any {
	if v := n.a.eval(r); truth(v) {
		return v
	}
	return n.b.eval(r)
}

type andNode struct{ a, b node }

func (n *andNode) eval(r *render) any {
	if v := n.a.eval(r); !truth(v) {
		return v
	}
	return n.b.eval(r)
}

type notNode struct{ a node }

func (n *notNode) eval(r *render) any { return !truth(n.a.eval(r)) }

type compareNode struct {
	first node
	signs []string
	rest  []node
}

func (n *compareNode) eval(r *render) any {
	a := n.first.eval(r)
	for i, sign := range n.signs {
		r.budget.step(1)
		b := n.rest[i].eval(r)
		if !compare(&r.budget, sign, a, b) {
			return false
		}
		a = b
	}
	return true
}

func compare(cost *budget, sign string, a, b any) bool {
	switch sign {
	case "==":
		return alike(cost, a, b)
	case "!=":
		return !alike(cost, a, b)
	case "<":
		return isLess(cost, a, b)
	case "<=":
		return ordered(cost, a, b, sign, 0) <= 0
	case ">":
		return isLess(cost, b, a)
	case ">=":
		return ordered(cost, a, b, sign, 0) >= 0
	case "in":
		return contains(cost, b, a)
	}
	return !contains(cost, b, a)
}

func alike(cost *budget, a, b any) bool { return same(cost, a, b, 0) }

func isLess(cost *budget, a, b any) bool { return ordered(cost, a, b, "<", 0) < 0 }

// sumNode is a + b + c, from the left.
type sumNode struct{ items []node }

func (n *sumNode) eval(r *render) any {
	var few [8]any
	return summed(&r.budget, r.all(few[:0], n.items))
}

// all evaluates the items in their order and appends what they are to dst.
func (r *render) all(dst []any, items []node) []any {
	for _, item := range items {
		dst = append(dst, item.eval(r))
	}
	return dst
}

// size is the bytes of values that are all texts; negative: they are not.
func size(vals []any) int {
	n := 0
	for _, v := range vals {
		s, ok := v.(string)
		if !ok {
			return -1
		}
		n += len(s)
	}
	return n
}

// joined is texts as one, copied once.
func joined(cost *budget, texts []any, size int) string {
	cost.built(size)
	var b strings.Builder
	b.Grow(size)
	for _, v := range texts {
		b.WriteString(v.(string))
	}
	return b.String()
}

// sum adds from the left; a run of texts at once.
func summed(cost *budget, vals []any) any {
	cost.step(len(vals))
	if n := size(vals); n >= 0 {
		return joined(cost, vals, n)
	}
	a := vals[0]
	for _, b := range vals[1:] {
		a = plus(cost, a, b)
	}
	return a
}

func plus(cost *budget, a, b any) any {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			cost.built(len(x) + len(y))
			return x + y
		}
	case *List:
		if y, ok := b.(*List); ok && x.kind == y.kind && x.kind < isView {
			cost.items(len(x.Items) + len(y.Items))
			return &List{Items: append(append(make([]any, 0, len(x.Items)+len(y.Items)), x.Items...), y.Items...), kind: x.kind}
		}
	case markup:
		fail(ErrUnsupported, "marked text in a sum")
	}
	if _, ok := b.(markup); ok {
		fail(ErrUnsupported, "marked text in a sum")
	}
	return calculate(cost, "+", a, b)
}

// concatNode is a ~ b ~ c.
type concatNode struct{ items []node }

func (n *concatNode) eval(r *render) any {
	var few [8]any
	return concat(&r.budget, r.all(few[:0], n.items))
}

func concat(cost *budget, vals []any) any {
	if n := size(vals); n >= 0 {
		return joined(cost, vals, n)
	}
	var b []byte
	for _, v := range vals {
		b = appendText(cost, b, v)
	}
	cost.built(len(b))
	return string(b)
}

type arithmeticNode struct {
	sign string
	a, b node
}

func (n *arithmeticNode) eval(r *render) any {
	r.budget.step(1)
	a, b := n.a.eval(r), n.b.eval(r)
	if s, ok := a.(string); ok && n.sign == "%" {
		return percent(&r.budget, s, b)
	}
	if n.sign == "*" {
		if v, ok := repeat(&r.budget, a, b); ok {
			return v
		}
		if v, ok := repeat(&r.budget, b, a); ok {
			return v
		}
	}
	return calculate(&r.budget, n.sign, a, b)
}

// repeat is text or a list times a number.
func repeat(cost *budget, a, b any) (any, bool) {
	times, _, whole, ok := number(b)
	if !ok || !whole {
		return nil, false
	}
	times = max(times, 0)
	switch a := a.(type) {
	case string:
		if a == "" {
			return "", true
		}
		if times > maxMade/int64(len(a)) {
			fail(ErrLimit, "a text of more than %d bytes", maxMade)
		}
		cost.built(len(a) * int(times))
		return strings.Repeat(a, int(times)), true
	case *List:
		if a.kind >= isView {
			return nil, false
		}
		l := &List{kind: a.kind}
		if len(a.Items) == 0 {
			return l, true
		}
		if times > maxSteps {
			fail(ErrLimit, "more than %d steps", maxSteps)
		}
		cost.items(len(a.Items) * int(times))
		l.Items = slices.Repeat(a.Items, int(times))
		return l, true
	}
	return nil, false
}

// arithmetic computes with numbers, for what takes longer than a step.
func calculate(cost *budget, sign string, a, b any) any {
	switch sign {
	case "%":
		cost.step(slowFloats(a, b, 500)) // a division step for each power of two between the two
	case "**":
		cost.step(slowFloats(a, b, 10))
	}
	return arithmetic(sign, a, b)
}

// slowFloats is n unless both are whole.
func slowFloats(a, b any, n int) int {
	if _, float := a.(float64); float {
		return n
	}
	if _, float := b.(float64); float {
		return n
	}
	return 0
}

// arithmetic computes with numbers. Whole results beyond 64 bits are not built.
func arithmetic(sign string, a, b any) any {
	x, f, whole, ok := number(a)
	y, g, whole2, ok2 := number(b)
	if !ok || !ok2 {
		if _, big := a.(BigInt); big {
			fail(ErrUnsupported, "arithmetic with large numbers")
		}
		if _, big := b.(BigInt); big {
			fail(ErrUnsupported, "arithmetic with large numbers")
		}
		fail(ErrRender, "%s %s %s", typeName(a), sign, typeName(b))
	}
	if (sign == "/" || sign == "//" || sign == "%") && g == 0 {
		fail(ErrRender, "division by zero")
	}
	if whole && whole2 && sign != "/" {
		if v, ok := integers(sign, x, y); ok {
			return v
		}
		if sign != "**" || y >= 0 {
			fail(ErrUnsupported, "large numbers")
		}
	}
	switch sign {
	case "+":
		return f + g
	case "-":
		return f - g
	case "*":
		return f * g
	case "/":
		return f / g
	case "//":
		return math.Floor(f / g)
	case "%":
		m := math.Mod(f, g)
		if m != 0 && (m < 0) != (g < 0) {
			m += g
		}
		return m
	}
	if f < 0 && g != math.Trunc(g) || f == 0 && g < 0 {
		fail(ErrUnsupported, "%v ** %v", f, g)
	}
	return math.Pow(f, g)
}

// integers computes, and says false where the result has more than 64 bits.
func integers(sign string, x, y int64) (any, bool) {
	const small = 1 << 31
	switch sign {
	case "+":
		s := x + y
		return s, (s > x) == (y > 0)
	case "-":
		s := x - y
		return s, (s < x) == (y > 0)
	case "*":
		if -small < x && x < small && -small < y && y < small {
			return x * y, true
		}
		return nil, false
	case "//", "%":
		if x == math.MinInt64 {
			return nil, false
		}
		q, m := x/y, x%y
		if m != 0 && (m < 0) != (y < 0) {
			q, m = q-1, m+y
		}
		if sign == "//" {
			return q, true
		}
		return m, true
	}
	if y < 0 || y > 62 {
		return nil, false
	}
	p := int64(1)
	for range y {
		if p > small || p < -small || x > small || x < -small {
			return nil, false
		}
		p *= x
	}
	return p, true
}

type negativeNode struct{ a node }

func (n *negativeNode) eval(r *render) any {
	v := n.a.eval(r)
	x, f, whole, ok := number(v)
	switch {
	case !ok:
		fail(ErrRender, "-%s", typeName(v))
	case whole && x == math.MinInt64:
		fail(ErrUnsupported, "large numbers")
	case whole:
		return -x
	}
	return -f
}

type positiveNode struct{ a node }

func (n *positiveNode) eval(r *render) any {
	v := n.a.eval(r)
	x, f, whole, ok := number(v)
	switch {
	case !ok:
		fail(ErrRender, "+%s", typeName(v))
	case whole:
		return x
	}
	return f
}

type filterNode struct {
	value node // nil: of a filter or set block
	name  string
	line  int
	arguments
	filter filter
}

func (n *filterNode) eval(r *render) any {
	r.budget.step(1)
	v := n.value.eval(r)
	a := r.evaluate(&n.arguments)
	r.line = n.line
	a.of = n.name
	return n.filter(r, v, a)
}

// filterChain applies the filters of a block.
func (r *render) filterChain(chain node, v any) any {
	n, ok := chain.(*filterNode)
	if !ok {
		return v
	}
	r.budget.step(1)
	v = r.filterChain(n.value, v)
	a := r.evaluate(&n.arguments)
	a.of = n.name
	return n.filter(r, v, a)
}

type testNode struct {
	value node
	name  string
	line  int
	arguments
	test test
}

func (n *testNode) eval(r *render) any {
	r.budget.step(1)
	v := n.value.eval(r)
	a := r.evaluate(&n.arguments)
	a.of = n.name
	return n.test(r, v, a)
}
