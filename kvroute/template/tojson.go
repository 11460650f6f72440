// JSON: written as Python does.

package template

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonStyle is how json.dumps writes.
type jsonStyle struct {
	item, key string // ", " and ": "
	indent    string
	broken    bool // into lines
	ascii     bool
	sorted    bool
	counted   int // bytes of what is written
}

func filterToJSON(r *render, v any, a args) any {
	p := a.take([]string{"ensure_ascii", "indent", "separators", "sort_keys"}, false, nil, nil, false)
	style := jsonStyle{item: ", ", key: ": ", ascii: truth(p[0]), sorted: truth(p[3])}
	switch indent := p[1].(type) {
	case nil:
	case string:
		style.indent, style.broken = indent, true
	default:
		n, _, whole, ok := number(indent)
		if !ok || !whole || n > 1000 {
			fail(ErrRender, "tojson with indent %s", typeName(indent))
		}
		style.indent, style.broken = strings.Repeat(" ", int(max(n, 0))), true
	}
	if style.broken {
		style.item = ","
	}
	if p[2] != nil {
		l, ok := p[2].(*List)
		if !ok || len(l.Items) != 2 {
			fail(ErrRender, "tojson with separators %s", typeName(p[2]))
		}
		style.item, style.key = shownText(&r.budget, l.Items[0]), shownText(&r.budget, l.Items[1])
	}
	out := style.append(&r.budget, nil, v, 0)
	r.budget.grown(out, &style.counted)
	r.budget.built(len(out))
	return string(out)
}

func (j *jsonStyle) line(dst []byte, depth int) []byte {
	if !j.broken {
		return dst
	}
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, j.indent...)
	}
	return dst
}

func (j *jsonStyle) append(cost *budget, dst []byte, v any, depth int) []byte {
	deeper(cost, depth)
	cost.grown(dst, &j.counted)
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case BigInt:
		return append(dst, v...)
	case float64:
		cost.step(8)
		return appendFloat(dst, v, "Infinity", "NaN")
	case string:
		return j.text(cost, dst, v)
	case markup:
		return j.text(cost, dst, string(v))
	case *List:
		if v.kind < isView {
			return j.list(cost, dst, v.Items, depth)
		}
	case *Dict:
		return j.dict(cost, dst, v, depth)
	}
	fail(ErrRender, "%s is not JSON serializable", typeName(v))
	return nil
}

func (j *jsonStyle) list(cost *budget, dst []byte, items []any, depth int) []byte {
	if len(items) == 0 {
		return append(dst, "[]"...)
	}
	dst = append(dst, '[')
	for i, v := range items {
		if i > 0 {
			dst = append(dst, j.item...)
		}
		dst = j.append(cost, j.line(dst, depth+1), v, depth+1)
	}
	return append(j.line(dst, depth), ']')
}

func (j *jsonStyle) dict(cost *budget, dst []byte, d *Dict, depth int) []byte {
	if d.Len() == 0 {
		return append(dst, "{}"...)
	}
	cost.items(d.Len())
	order := make([]any, d.Len())
	for i := range order {
		order[i] = int64(i)
	}
	if j.sorted {
		sortBy(cost, order, false, func(i any) any { return d.keys[i.(int64)] })
	}
	dst = append(dst, '{')
	for i, at := range order {
		if i > 0 {
			dst = append(dst, j.item...)
		}
		key := d.keys[at.(int64)]
		switch key.(type) {
		case string:
		case nil, bool, int64, BigInt, float64:
			plain := jsonStyle{}
			key = string(plain.append(cost, nil, key, depth))
		default:
			fail(ErrRender, "%s as a key of JSON", typeName(key))
		}
		dst = j.text(cost, j.line(dst, depth+1), key.(string))
		dst = j.append(cost, append(dst, j.key...), d.vals[at.(int64)], depth+1)
	}
	return append(j.line(dst, depth), '}')
}

// textPiece is how much of a text is written before that is counted.
const textPiece = 64 << 10

// text writes a string, and counts it piece by piece: an escape is six times as long as what it stands for.
func (j *jsonStyle) text(cost *budget, dst []byte, s string) []byte {
	cost.step(walking(len(s)))
	dst = append(dst, '"')
	for len(s) > textPiece {
		n := backToRune(s, textPiece)
		dst = appendJSONText(dst, s[:n], j.ascii)
		cost.grown(dst, &j.counted)
		s = s[n:]
	}
	return append(appendJSONText(dst, s, j.ascii), '"')
}

// appendJSONText writes what stands in a string as Python's json does.
func appendJSONText(dst []byte, s string, ascii bool) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && (c < 0x7f || !ascii) {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		size := 1
		switch at := strings.IndexByte("\"\\\b\f\n\r\t", c); {
		case at >= 0:
			dst = append(dst, '\\', `"\bfnrt`[at])
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
				dst = appendUnit(appendUnit(dst, r1), r2)
			} else {
				dst = appendUnit(dst, r)
			}
		}
		i += size
		from = i
	}
	return append(dst, s[from:]...)
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// AppendJSON appends v as Python's json.dumps(v, ensure_ascii=False) writes it. v is what Parse makes.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	var err error
	line := 0
	func() {
		defer caught(&err, &line)
		style := jsonStyle{item: ", ", key: ": "}
		all := unbounded
		dst = style.append(&all, dst, v, 0)
	}()
	return dst, err
}
