// Values as text: Python's str() and repr().

package template

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendText appends str(v).
func appendText(cost *budget, dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		cost.built(len(v))
		return append(dst, v...)
	case markup:
		cost.built(len(v))
		return append(dst, v...)
	case undefined:
		return dst
	}
	return appendRepr(cost, dst, v, 0)
}

func shownText(cost *budget, v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b := appendText(cost, nil, v)
	cost.built(len(b))
	return string(b)
}

// deeper counts an item of a value that is gone through, and refuses one that is nested too deep.
func deeper(cost *budget, depth int) {
	if depth > maxNested {
		fail(ErrLimit, "a value nested more than %d deep", maxNested)
	}
	cost.step(1)
}

func appendRepr(cost *budget, dst []byte, v any, depth int) []byte {
	deeper(cost, depth)
	cost.made(8)
	switch v := v.(type) {
	case nil:
		return append(dst, "None"...)
	case bool:
		if v {
			return append(dst, "True"...)
		}
		return append(dst, "False"...)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case BigInt:
		cost.built(len(v))
		return append(dst, v...)
	case float64:
		cost.step(8)
		return appendFloat(dst, v, "inf", "nan")
	case string:
		cost.step(len(v))
		cost.made(4 * len(v)) // an escape is no longer
		return appendQuoted(dst, v)
	case undefined:
		return append(dst, "Undefined"...)
	case *List:
		return appendList(cost, dst, v, depth)
	case *Dict:
		dst = append(dst, '{')
		for i, k := range v.keys {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(appendRepr(cost, dst, k, depth+1), ": "...)
			dst = appendRepr(cost, dst, v.vals[i], depth+1)
		}
		return append(dst, '}')
	}
	fail(ErrUnsupported, "%s as text", typeName(v))
	return nil
}

func appendList(cost *budget, dst []byte, l *List, depth int) []byte {
	if l.kind >= isView {
		fail(ErrUnsupported, "%s as text", typeName(l))
	}
	brackets := "[]"
	if l.kind == isTuple {
		brackets = "()"
	}
	dst = append(dst, brackets[0])
	for i, v := range l.Items {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendRepr(cost, dst, v, depth+1)
	}
	if l.kind == isTuple && len(l.Items) == 1 {
		dst = append(dst, ',')
	}
	return append(dst, brackets[1])
}

// appendFloat writes the shortest digits that read back the same, as Python's repr(): with an exponent
// below 1e-4 and from 1e16 on.
func appendFloat(dst []byte, f float64, infinity, nan string) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, nan...)
	case math.IsInf(f, 1):
		return append(dst, infinity...)
	case math.IsInf(f, -1):
		return append(append(dst, '-'), infinity...)
	}
	start := len(dst)
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// appendQuoted is repr() of text.
func appendQuoted(dst []byte, s string) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	dst = append(dst, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0x100 && !unicode.IsPrint(r):
			dst = append(dst, '\\', 'x', hexDigits[r>>4], hexDigits[r&15])
		case r < 0x80 || unicode.IsPrint(r):
			dst = utf8.AppendRune(dst, r)
		case r < 0x10000:
			dst = append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			dst = append(dst, '\\', 'U', '0', '0', hexDigits[r>>20&15], hexDigits[r>>16&15], hexDigits[r>>12&15],
				hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		}
	}
	return append(dst, quote)
}

const hexDigits = "0123456789abcdef"

// isSpace is Python's str.isspace for one character.
func isSpace(r rune) bool {
	switch {
	case r <= ' ':
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	case r < 0x80:
		return false
	}
	return r == 0x85 || r == 0xa0 || r == 0x1680 || r >= 0x2000 && r <= 0x200a || r == 0x2028 || r == 0x2029 ||
		r == 0x202f || r == 0x205f || r == 0x3000
}

// runeCount is the length of text as Python counts.
func runeCount(s string) int { return utf8.RuneCountInString(s) }

// runeOffset is the byte at which the n-th character begins; n is at most the length.
func runeOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
