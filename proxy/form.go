// Form: multipart bodies, of which the model and the texts are read (RFC 7578).
package proxy

import (
	"bytes"
	"mime"
	"net/textproto"
	"strings"
)

// Bounds of a form.
const (
	maxFormParts    = 1000
	maxFormPartHead = 16 << 10
	maxBoundary     = 70 // RFC 2046
)

// isJSON tells whether a route that takes forms was sent JSON instead, as
// /v1/images/edits may be.
func isJSON(contentType []byte) bool {
	kind, _, _ := strings.Cut(string(contentType), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// A formReader goes from part to part of a multipart body.
type formReader struct {
	body      []byte
	delimiter []byte // CR LF -- boundary
	pos       int    // behind the last delimiter
}

// parseForm finds the model and the texts in the form's fields. File parts are
// stepped over, the body is never copied. What readers of forms disagree about
// is refused, and so are fields that are not UTF-8 as they stand.
func (r *request) parseForm(contentType []byte) *apiError {
	form, refused := newForm(contentType, r.body)
	if refused != nil {
		return refused
	}
	for n := 0; ; n++ {
		part, value, refused := form.next()
		if refused != nil {
			return refused
		}
		if part == nil {
			break
		}
		if n == maxFormParts {
			return badForm(int(value.start), "it has more than %d parts", maxFormParts)
		}
		if refused = r.field(part, value); refused != nil {
			return refused
		}
	}
	if !r.modelAt.given() {
		return invalid("model", "you must provide a model parameter")
	}
	return nil
}

// newForm begins at the first part of the body.
func newForm(contentType, body []byte) (*formReader, *apiError) {
	kind, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || kind != "multipart/form-data" {
		return nil, invalid("", "We could not read the form of your request: its Content-Type is `%s`. "+
			"Send multipart/form-data with a boundary.", clip(string(contentType)))
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, invalid("", "We could not read the form of your request: its charset is `%s`. Send UTF-8.", clip(charset))
	}
	boundary := params["boundary"]
	if boundary == "" || len(boundary) > maxBoundary {
		return nil, invalid("", "We could not read the form of your request: the boundary in its Content-Type has %d characters. "+
			"Send one of 1 to %d.", len(boundary), maxBoundary)
	}
	delimiter := []byte("\r\n--" + boundary)
	if !bytes.HasPrefix(body, delimiter[2:]) {
		return nil, badForm(0, "it does not begin with its boundary")
	}
	return &formReader{body: body, delimiter: delimiter, pos: len(delimiter) - 2}, nil
}

// badForm refuses a form that cannot be read.
func badForm(at int, what string, args ...any) *apiError {
	args = append(args, at)
	return invalid("", "We could not read the form of your request: "+what+", at byte %d. "+
		"(HINT: Send multipart/form-data as an HTTP library writes it.)", args...)
}

// next returns the head and the place of the value of the next part; a nil
// head after the last.
func (f *formReader) next() (textproto.MIMEHeader, span, *apiError) {
	rest := f.body[f.pos:]
	if bytes.HasPrefix(rest, []byte("--")) {
		if end := bytes.TrimRight(rest[2:], "\r\n\t "); len(end) > 0 {
			return nil, span{}, badForm(f.pos+2, "data after its last boundary")
		}
		return nil, span{}, nil
	}
	if !bytes.HasPrefix(rest, []byte("\r\n")) {
		return nil, span{}, badForm(f.pos, "a boundary does not end its line")
	}
	end := bytes.Index(rest[:min(len(rest), maxFormPartHead)], []byte("\r\n\r\n"))
	if end < 0 {
		return nil, span{}, badForm(f.pos, "the head of a part does not end within %d bytes", maxFormPartHead)
	}
	head, refused := partHead(rest[2:max(2, end)], f.pos)
	if refused != nil {
		return nil, span{}, refused
	}
	start := f.pos + end + 4
	// The delimiter's own CR LF may be the one that ends the head: an empty value.
	length := bytes.Index(f.body[start-2:], f.delimiter)
	if length < 0 {
		return nil, span{}, badForm(len(f.body), "it ends without its last boundary")
	}
	f.pos = start - 2 + length + len(f.delimiter)
	return head, span{int32(start), int32(max(start, start-2+length))}, nil
}

// partHead reads the header fields of a part.
func partHead(lines []byte, at int) (textproto.MIMEHeader, *apiError) {
	head := textproto.MIMEHeader{}
	for line := range strings.SplitSeq(string(lines), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsAny(line, "\r\n\x00") {
			return nil, badForm(at, "a part has a header line that is none")
		}
		head.Add(name, strings.TrimSpace(value))
	}
	return head, nil
}

// field takes the part's value if it is the model.
func (r *request) field(part textproto.MIMEHeader, value span) *apiError {
	dispositions := part.Values("Content-Disposition")
	if len(dispositions) != 1 {
		return badForm(int(value.start), "a part needs one Content-Disposition, but has %d", len(dispositions))
	}
	kind, params, err := mime.ParseMediaType(dispositions[0])
	if err != nil || kind != "form-data" || hasExtendedName(dispositions[0]) {
		return badForm(int(value.start), "a part has a Content-Disposition that cannot be read")
	}
	_, file := params["filename"]
	if params["name"] != "model" {
		return r.formText(part, params["name"], file, value)
	}
	if r.modelAt.given() {
		return invalid("model", "Duplicate parameter: 'model' is given a second time at byte %d. Send it once.", value.start)
	}
	if file {
		return invalid("model", "Invalid type for 'model': expected a form field, but got a file instead, at byte %d.", value.start)
	}
	name := r.body[value.start:value.end:value.end]
	if why := badModel(name); why != "" {
		return invalid("model", "%s, at byte %d.", why, value.start)
	}
	r.model, r.modelAt = name, value
	return nil
}

// formText takes a field's value for text, unless it is written as a name. Files
// are media, but for one in the place of the prompt.
func (r *request) formText(part textproto.MIMEHeader, name string, file bool, value span) *apiError {
	if file && name != "prompt" || value.start == value.end {
		return nil
	}
	if !asItStands(part) {
		return badForm(int(value.start), "the field `%s` is encoded, or not UTF-8", clip(name))
	}
	role := roleOther
	if name == "prompt" {
		role = roleUser
	} else if isName(r.body[value.start:value.end]) {
		return nil
	}
	r.texts = append(r.texts, text{at: value, message: -1, role: role, bare: true})
	return nil
}

// asItStands tells whether a part is UTF-8 that nobody decodes any further.
func asItStands(part textproto.MIMEHeader) bool {
	switch strings.ToLower(part.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		return false
	}
	_, params, err := mime.ParseMediaType(part.Get("Content-Type"))
	charset := params["charset"]
	return part.Get("Content-Type") == "" || err == nil && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// hasExtendedName tells whether a name is given as name*=, which only some
// readers of forms know (RFC 7578 forbids it).
func hasExtendedName(disposition string) bool {
	return strings.Contains(strings.ToLower(strings.Join(strings.Fields(disposition), "")), ";name*")
}
