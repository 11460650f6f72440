// Faults: what is wrong with a request body, told so that the client can mend it.

package openai

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A faultKind is which sentence a fault is told in.
type faultKind uint8

const (
	faultNone      faultKind = iota
	faultSyntax              // what: why the bytes are no JSON, or none that we take
	faultDuplicate           // param comes twice
	faultType                // what: the types that param may have
	faultMissing             // param is not there
	faultCase                // param differs from the known member `what` by case alone
	faultOther               // what: the whole sentence
)

// Faults that are found in several places.
const (
	cutOff        = "the body ends too early"
	tooDeep       = "arrays and objects nested more than 64 levels deep"
	badUTF8       = "invalid UTF-8 in a string"
	noNumber      = "expected a value; NaN and Infinity are none in JSON"
	loneSurrogate = "a lone surrogate in a string: half of a character beyond U+FFFF"
)

// A fault is the first thing found wrong with a body. It costs no allocation
// until it is told.
type fault struct {
	kind  faultKind
	at    int    // its offset in the body
	what  string // see faultKind
	param string // where it is, as OpenAI writes it: messages[2].content; built from the inside out
}

// in puts the fault, if there is one, inside the member key.
func (f *fault) in(key []byte) {
	switch {
	case f.kind == faultNone || f.kind == faultSyntax:
	case f.param == "" || f.param[0] == '[':
		f.param = Clip(string(key)) + f.param
	default:
		f.param = Clip(string(key)) + "." + f.param
	}
}

// inElement puts the fault, if there is one, inside an array's element i.
func (f *fault) inElement(i int) {
	switch {
	case f.kind == faultNone || f.kind == faultSyntax:
	case f.param == "" || f.param[0] == '[':
		f.param = "[" + strconv.Itoa(i) + "]" + f.param
	default:
		f.param = "[" + strconv.Itoa(i) + "]." + f.param
	}
}

// refusal tells the fault as OpenAI would. It quotes the body, so it is for
// the client and not for a log.
func (f *fault) refusal(body []byte) *Error {
	switch f.kind {
	case faultSyntax:
		return Invalid("", "We could not parse the JSON body of your request: %s, at byte %d%s. "+
			"(HINT: The body must be one JSON object in UTF-8, as a JSON library writes it.)", f.what, f.at, near(body, f.at))
	case faultDuplicate:
		return Invalid(f.param, "Duplicate parameter: '%s' is given a second time at byte %d%s. "+
			"Send it once: readers of JSON differ in which one they take.", f.param, f.at, near(body, f.at))
	case faultCase:
		return Invalid(f.param, "Unknown parameter: '%s' differs from '%s' only by case, at byte %d%s. "+
			"Write it as '%s': readers of JSON differ in whether case counts.", f.param, f.what, f.at, near(body, f.at), f.what)
	case faultType:
		return Invalid(f.param, "Invalid type for '%s': expected %s, but got %s instead, at byte %d%s.",
			f.param, f.what, typeAt(body, f.at), f.at, near(body, f.at))
	case faultMissing:
		if f.param == "model" {
			return Invalid("model", "you must provide a model parameter")
		}
		if !strings.ContainsAny(f.param, ".[") {
			return Invalid(f.param, "Missing required parameter: '%s'.", f.param)
		}
		return Invalid(f.param, "Missing required parameter: '%s', in the object at byte %d%s.", f.param, f.at, near(body, f.at))
	default:
		return Invalid(f.param, "%s, at byte %d%s.", f.what, f.at, near(body, f.at))
	}
}

// typeAt names the type of the valid value at i.
func typeAt(body []byte, i int) string {
	switch c := body[i]; c {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// near quotes the body around offset at: at most 24 bytes before it and 40 from it on.
func near(body []byte, at int) string {
	if at >= len(body) && len(body) == 0 {
		return ""
	}
	at = min(at, len(body))
	from, to := max(0, at-24), min(len(body), at+40)
	for from > 0 && from < at && !utf8.RuneStart(body[from]) {
		from++
	}
	for to < len(body) && to > at && !utf8.RuneStart(body[to]) {
		to--
	}
	quote := Quoted(string(body[from:to]))
	if from > 0 {
		quote = "..." + quote
	}
	if to < len(body) {
		quote += "..."
	}
	return ", near `" + quote + "`"
}

// Quoted returns s with everything that does not print as an escape.
func Quoted(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x`)
			b.WriteByte("0123456789abcdef"[s[i]>>4])
			b.WriteByte("0123456789abcdef"[s[i]&15])
		case strconv.IsPrint(r):
			b.WriteString(s[i : i+n])
		default:
			escaped := strconv.QuoteRuneToASCII(r)
			b.WriteString(escaped[1 : len(escaped)-1])
		}
		i += n
	}
	return b.String()
}

// Clip shortens a client's name to at most 64 bytes and escapes what does not print.
func Clip(s string) string {
	if len(s) > 64 {
		n := 61
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "..."
	}
	return Quoted(s)
}
