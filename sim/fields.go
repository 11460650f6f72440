// Reading a request body field by field, as leniently and with the same error messages as vLLM's
// schema.

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fields are the top-level fields of a request body; of duplicates the last one counts. failure
// keeps the first error, and every read after it returns the zero value.
type fields struct {
	raw     map[string]json.RawMessage
	failure *failure
}

// decodeFields reads a body. If the body as a whole is wrong, the result's failure says why.
func decodeFields(body []byte) *fields {
	f := &fields{}
	if !utf8.Valid(body) {
		f.failure = detail(400, "There was an error parsing the body")
		return f
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || string(trimmed) == "null" {
		f.failure = invalid("missing", "body", "Field required", "None", "")
		return f
	}
	err := json.Unmarshal(body, &f.raw)
	if err == nil {
		return f
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at, reason := pythonJSONError(body, syntax)
		f.failure = invalid("json_invalid", fmt.Sprintf("body.%d", at), "JSON decode error", "<dict of 0 items>", reason)
		return f
	}
	f.failure = invalid("model_attributes_type", "body",
		"Input should be a valid dictionary or object to extract fields from", describe(body), "")
	return f
}

// pythonJSONError returns where, in characters, Python's decoder stops at a syntax error, and its
// message.
func pythonJSONError(body []byte, err *json.SyntaxError) (at int, reason string) {
	offset := int(err.Offset) - 1
	ended := err.Error() == "unexpected end of JSON input"
	if ended { // parse again with a byte that fits nowhere, to learn what was expected
		offset = len(body)
		var v any
		if e := json.Unmarshal(append(bytes.Clone(body), 1), &v); !errors.As(e, &err) {
			return utf8.RuneCount(body), "Expecting value"
		}
	}
	for _, row := range []struct{ ours, theirs string }{
		{"beginning of object key string", "Expecting property name enclosed in double quotes"},
		{"beginning of value", "Expecting value"},
		{"after object key:value pair", "Expecting ',' delimiter"},
		{"after array element", "Expecting ',' delimiter"},
		{"after object key", "Expecting ':' delimiter"},
		{"after top-level value", "Extra data"},
		{"in string escape code", `Invalid \escape`},
		{"hexadecimal character escape", `Invalid \uXXXX escape`},
		{"in string literal", "Invalid control character at"},
	} {
		if !strings.Contains(err.Error(), row.ours) {
			continue
		}
		if ended && strings.Contains(row.ours, "in string") {
			return utf8.RuneCount(body[:lastStringStart(body)]), "Unterminated string starting at"
		}
		return utf8.RuneCount(body[:offset]), row.theirs
	}
	return utf8.RuneCount(body[:offset]), "Expecting value"
}

// lastStringStart finds the quote that opens the string in which body ends.
func lastStringStart(body []byte) (start int) {
	inside := false
	for i := 0; i < len(body); i++ {
		switch {
		case inside && body[i] == '\\':
			i++
		case body[i] == '"':
			inside = !inside
			start = i
		}
	}
	return start
}

// describe formats a JSON value as vLLM's error messages do.
func describe(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return strings.ToUpper(strconv.FormatBool(v)[:1]) + strconv.FormatBool(v)[1:]
	case string:
		return v
	case []any:
		return fmt.Sprintf("<list of %d items>", len(v))
	case map[string]any:
		return fmt.Sprintf("<dict of %d items>", len(v))
	}
	return string(bytes.TrimSpace(raw))
}

// fail keeps the first error.
func (f *fields) fail(failure *failure) {
	if f.failure == nil {
		f.failure = failure // may be nil, too
	}
}

func (f *fields) complain(kind, name, msg string) {
	f.fail(invalid(kind, "body."+name, msg, describe(f.raw[name]), ""))
}

// get returns a field's JSON, or nil if it is absent, null or after a failure.
func (f *fields) get(name string) json.RawMessage {
	raw := f.raw[name]
	if f.failure != nil || len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// require fails if a field is absent.
func (f *fields) require(name string) {
	if _, ok := f.raw[name]; !ok {
		f.fail(invalid("missing", "body."+name, "Field required", fmt.Sprintf("<dict of %d items>", len(f.raw)), ""))
	}
}

// integer reads a whole number, also written as 8.0 or "8"; ok is false if it is absent.
func (f *fields) integer(name string) (value int, ok bool) {
	raw := f.get(name)
	if raw == nil {
		return 0, false
	}
	switch text := string(raw); raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &text)
		value, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			f.complain("int_parsing", name, "Input should be a valid integer, unable to parse string as an integer")
		}
		return value, err == nil
	case '{', '[', 't', 'f':
		f.complain("int_type", name, "Input should be a valid integer")
	default:
		v, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || math.Abs(v) > 1<<53:
			f.complain("int_parsing_size", name, "Unable to parse input string as an integer, exceeded maximum size")
		case v != math.Trunc(v):
			f.complain("int_from_float", name, "Input should be a valid integer, got a number with a fractional part")
		default:
			return int(v), true
		}
	}
	return 0, false
}

// number reads a number, also written as a string.
func (f *fields) number(name string) (value float64, ok bool) {
	raw := f.get(name)
	if raw == nil {
		return 0, false
	}
	text := string(raw)
	switch raw[0] {
	case '{', '[', 't', 'f':
		f.complain("float_type", name, "Input should be a valid number")
		return 0, false
	case '"':
		_ = json.Unmarshal(raw, &text)
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		f.complain("float_parsing", name, "Input should be a valid number, unable to parse string as a number")
	}
	return value, err == nil
}

// boolean reads true, false, 1 or 0; absent is false.
func (f *fields) boolean(name string) bool {
	raw := f.get(name)
	switch string(raw) {
	case "true", "1", `"true"`:
		return true
	case "", "false", "0", `"false"`:
		return false
	}
	f.complain("bool_type", name, "Input should be a valid boolean")
	return false
}

// text reads a string; ok is false if it is absent.
func (f *fields) text(name string) (value string, ok bool) {
	raw := f.get(name)
	if raw == nil {
		return "", false
	}
	if json.Unmarshal(raw, &value) != nil {
		f.complain("string_type", name, "Input should be a valid string")
		return "", false
	}
	return value, true
}

// texts reads a string or a list of them.
func (f *fields) texts(name string) (values []string) {
	raw := f.get(name)
	if raw == nil {
		return nil
	}
	if raw[0] == '"' {
		value, _ := f.text(name)
		return []string{value}
	}
	if json.Unmarshal(raw, &values) != nil {
		f.complain("string_type", name, "Input should be a valid string")
		return nil
	}
	return values
}

// object reads a field that is an object into v, a pointer to a struct, and reports whether it is
// there.
func (f *fields) object(name string, v any) bool {
	raw := f.get(name)
	if raw == nil {
		return false
	}
	if json.Unmarshal(raw, v) != nil {
		f.complain("dict_type", name, "Input should be a valid dictionary")
		return false
	}
	return true
}

// rename returns the fields that a table names, by its other names.
func (f *fields) rename(names map[string]string) *fields {
	out := &fields{raw: map[string]json.RawMessage{}, failure: f.failure}
	for from, to := range names {
		if raw, ok := f.raw[from]; ok {
			out.raw[to] = raw
		}
	}
	return out
}
