// Global functions, namespaces, and the variable loop.

package template

import (
	"fmt"
	"strings"
	"time"
)

var globals = map[string]any{
	"range":           &function{"range", globalRange},
	"namespace":       &function{"namespace", globalNamespace},
	"dict":            &function{"dict", globalDict},
	"raise_exception": &function{"raise_exception", globalRaise},
	"strftime_now":    &function{"strftime_now", globalNow},
}

// maxRange is what jinja2's sandbox allows.
const maxRange = 100_000

func globalRange(r *render, a args) any {
	var n [3]int64
	n[2] = 1
	for i, v := range a.plain {
		x, _, whole, ok := number(v)
		if !ok || !whole || i > 2 {
			fail(ErrRender, "range of %s", typeName(v))
		}
		n[i] = x
	}
	switch {
	case len(a.plain) == 0 || len(a.names) > 0:
		fail(ErrRender, "range without a number")
	case len(a.plain) == 1:
		n[0], n[1] = 0, n[0]
	}
	const far = 1 << 40
	for _, x := range n {
		if x > far || x < -far {
			fail(ErrLimit, "a range so far")
		}
	}
	if n[2] == 0 {
		fail(ErrRender, "a range by steps of 0")
	}
	count := int64(0)
	if n[2] > 0 && n[0] < n[1] || n[2] < 0 && n[0] > n[1] {
		count = (n[1]-n[0]-sign(n[2]))/n[2] + 1
	}
	if count > maxRange {
		fail(ErrRender, "a range of more than %d", maxRange)
	}
	r.budget.items(int(count))
	r.budget.made(8 * int(count))
	l := &List{Items: make([]any, count)}
	for i := range count {
		l.Items[i] = n[0] + i*n[2]
	}
	return l
}

func sign(n int64) int64 {
	if n < 0 {
		return -1
	}
	return 1
}

// namespace is what loops can set attributes of.
type namespace struct{ attributes *Dict }

func globalNamespace(r *render, a args) any {
	d, _ := globalDict(r, a).(*Dict)
	return &namespace{d}
}

func globalDict(r *render, a args) any {
	r.budget.made((1 + len(a.names)) * sizePair)
	d := NewDict(len(a.names))
	if len(a.plain) > 0 {
		from, ok := a.plain[0].(*Dict)
		if !ok || len(a.plain) > 1 {
			fail(ErrUnsupported, "%s of %s", a.of, typeName(a.plain[0]))
		}
		d = clone(&r.budget, from)
	}
	for i, name := range a.names {
		put(&r.budget, d, name, a.values[i])
	}
	return d
}

func globalRaise(r *render, a args) any {
	fail(ErrRaised, "%.1000s", shownText(&r.budget, a.take([]string{"message"})[0]))
	return nil
}

func globalNow(r *render, a args) any {
	format, ok := a.take([]string{"format"})[0].(string)
	if !ok {
		fail(ErrRender, "strftime_now of no text")
	}
	now := time.Now
	if r.template.Now != nil {
		now = r.template.Now
	}
	r.budget.step(8 * len(format)) // a name or a number for each two bytes
	r.budget.built(8 * len(format))
	return strftime(now(), format)
}

// strftime is Python's, with English names.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i == len(format) {
			fail(ErrUnsupported, "strftime of a lone %%")
		}
		pad := "%02d"
		if format[i] == '-' && i+1 < len(format) {
			i, pad = i+1, "%d"
		}
		switch c := format[i]; c {
		case 'd', 'm', 'H', 'M', 'S', 'y', 'I':
			hour := (t.Hour()+11)%12 + 1
			n := map[byte]int{'d': t.Day(), 'm': int(t.Month()), 'H': t.Hour(), 'M': t.Minute(), 'S': t.Second(), 'y': t.Year() % 100, 'I': hour}
			fmt.Fprintf(&b, pad, n[c])
		case 'Y':
			fmt.Fprintf(&b, "%d", t.Year())
		case 'j':
			fmt.Fprintf(&b, "%03d", t.YearDay())
		case 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case 'B':
			b.WriteString(t.Month().String())
		case 'b', 'h':
			b.WriteString(t.Month().String()[:3])
		case 'A':
			b.WriteString(t.Weekday().String())
		case 'a':
			b.WriteString(t.Weekday().String()[:3])
		case 'p':
			b.WriteString(t.Format("PM"))
		case 'F':
			b.WriteString(t.Format("2006-01-02"))
		case 'T':
			b.WriteString(t.Format("15:04:05"))
		case '%':
			b.WriteByte('%')
		default:
			fail(ErrUnsupported, "strftime with %%%c", c)
		}
	}
	return b.String()
}

// attribute is an attribute of the variable loop.
func (l *loop) attribute(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.index + 1), true
	case "index0":
		return int64(l.index), true
	case "first":
		return l.index == 0, true
	case "last":
		return l.index == n-1, true
	case "length":
		return int64(n), true
	case "revindex":
		return int64(n - l.index), true
	case "revindex0":
		return int64(n - l.index - 1), true
	case "depth": // of recursive loops, which are not built
		return int64(1), true
	case "depth0":
		return int64(0), true
	case "previtem":
		if l.index > 0 {
			return l.items[l.index-1], true
		}
		return undefined{"there is no previous item"}, true
	case "nextitem":
		if l.index+1 < n {
			return l.items[l.index+1], true
		}
		return undefined{"there is no next item"}, true
	case "cycle":
		return &function{name, func(_ *render, a args) any {
			if len(a.plain) == 0 || len(a.names) > 0 {
				fail(ErrRender, "no items for cycling given")
			}
			return a.plain[l.index%len(a.plain)]
		}}, true
	case "changed":
		fail(ErrUnsupported, "loop.changed")
	}
	return nil, false
}

// percent is Python's text % values, with %s and %d.
func percent(cost *budget, format string, v any) any {
	values := []any{v}
	if l, ok := v.(*List); ok && l.kind == isTuple {
		values = l.Items
	}
	var b []byte
	cost.step(walking(len(format)))
	cost.made(len(format))
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			b = append(b, '%')
			continue
		}
		if i == len(format) || len(values) == 0 {
			fail(ErrRender, "a %% without value")
		}
		whole, isInt := values[0].(int64)
		switch {
		case format[i] == 's':
			b = appendText(cost, b, values[0])
		case format[i] == 'd' && isInt:
			b = appendText(cost, b, whole)
		default:
			fail(ErrUnsupported, "text %% with %%%c", format[i])
		}
		values = values[1:]
	}
	if len(values) > 0 {
		fail(ErrRender, "not all values of %% were used")
	}
	return string(b)
}
