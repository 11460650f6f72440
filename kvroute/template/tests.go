// The tests of jinja2: what stands behind `is`.

package template

type test func(r *render, v any, a args) bool

// compared is a test that is an operator.
func compared(sign string) test {
	return func(r *render, v any, a args) bool { return compare(&r.budget, sign, v, a.take([]string{"other"})[0]) }
}

// simple is a test without arguments.
func simple(is func(v any) bool) test {
	return func(_ *render, v any, a args) bool {
		a.take(nil)
		return is(v)
	}
}

// isCase is a test of a value's text.
func isCase(is func(r *render, s string) bool) test {
	return func(r *render, v any, a args) bool {
		a.take(nil)
		return is(r, shownText(&r.budget, v))
	}
}

// named is a text that something is looked up by.
func nameOf(cost *budget, v any) string {
	s, _ := v.(string)
	cost.step(copying(len(s)))
	return s
}

var tests = map[string]test{
	"defined":   simple(func(v any) bool { return !isUndefined(v) }),
	"undefined": simple(isUndefined),
	"none":      simple(func(v any) bool { return v == nil }),
	"boolean":   simple(isType[bool]),
	"true":      simple(func(v any) bool { return v == true }),
	"false":     simple(func(v any) bool { return v == false }),
	"string":    simple(func(v any) bool { return isType[string](v) || isType[markup](v) }),
	"escaped":   simple(isType[markup]),
	"float":     simple(isType[float64]),
	"integer":   simple(func(v any) bool { return isType[int64](v) || isType[BigInt](v) }),
	"number": simple(func(v any) bool {
		_, _, _, ok := number(v)
		return ok || isType[BigInt](v)
	}),
	"mapping":  simple(isType[*Dict]),
	"callable": simple(func(v any) bool { return isType[*macro](v) || isType[*function](v) }),
	"iterable": simple(func(v any) bool {
		switch v.(type) {
		case string, markup, undefined, *List, *Dict, *loop:
			return true
		}
		return false
	}),
	"sequence": simple(func(v any) bool {
		switch v := v.(type) {
		case string, markup, *Dict:
			return true
		case undefined:
			fail(ErrRender, "%s is undefined, it is no sequence", v.what)
		case *List:
			return v.kind < isView
		}
		return false
	}),
	"lower": isCase(func(r *render, s string) bool { return s == lowercased(&r.budget, s) && s != uppercased(&r.budget, s) }),
	"upper": isCase(func(r *render, s string) bool { return s == uppercased(&r.budget, s) && s != lowercased(&r.budget, s) }),
	"odd":   func(r *render, v any, _ args) bool { return equal(calculate(&r.budget, "%", v, int64(2)), int64(1)) },
	"even":  func(r *render, v any, _ args) bool { return equal(calculate(&r.budget, "%", v, int64(2)), int64(0)) },
	"divisibleby": func(r *render, v any, a args) bool {
		return equal(calculate(&r.budget, "%", v, a.take([]string{"num"})[0]), int64(0))
	},
	"in": func(r *render, v any, a args) bool { return contains(&r.budget, a.take([]string{"seq"})[0], v) },
	"sameas": func(_ *render, v any, a args) bool {
		other := a.take([]string{"other"})[0]
		switch v.(type) {
		case nil, bool:
			return v == other
		}
		fail(ErrUnsupported, "sameas of %s", typeName(v))
		return false
	},
	"filter": func(r *render, v any, _ args) bool { return r.filters[nameOf(&r.budget, v)] != nil },
	"test":   func(r *render, v any, _ args) bool { return r.tests[nameOf(&r.budget, v)] != nil },
	"eq":     compared("=="), "equalto": compared("=="), "==": compared("=="), "ne": compared("!="), "!=": compared("!="),
	"lt": compared("<"), "lessthan": compared("<"), "<": compared("<"), "le": compared("<="), "<=": compared("<="),
	"gt": compared(">"), "greaterthan": compared(">"), ">": compared(">"), "ge": compared(">="), ">=": compared(">="),
}

func isType[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
