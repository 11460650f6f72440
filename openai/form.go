// Form: multipart bodies, of which the model and the texts are read (RFC 7578).

package openai

import (
	"bytes"
	"mime"
	"net/textproto"
	"strings"
	"unicode"
	"unicode/utf8"

	"kvasir/header"
)

// Bounds of a form.
const (
	maxFormParts    = 1000
	maxFormPartHead = 16 << 10
	maxBoundary     = 70 // RFC 2046
)

// IsJSON tells whether a Content-Type says that a route that takes forms was sent
// JSON instead, as /v1/images/edits may be.
func IsJSON(contentType []byte) bool {
	kind, _, _ := strings.Cut(string(contentType), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// A formReader goes from part to part of a multipart body.
type formReader struct {
	body      []byte
	delimiter []byte // CR LF -- boundary
	pos       int    // behind the last delimiter
}

// A formPart is one part of a form.
type formPart struct {
	head  textproto.MIMEHeader
	at    Span // its head's lines, without the blank line behind them
	value Span
}

// A form is what a Request knows of a body that is one. Zero: it is JSON.
type form struct {
	boundary []byte
	heads    []formHead
}

// A formHead is the head of a part that came written otherwise than it is sent.
type formHead struct {
	at   Span
	with []byte // what is sent in its place
}

// parseForm finds the model and the texts in the fields of the form that is r's
// body. File parts are stepped over, the body is never copied. What readers of
// forms disagree about is refused, and so are fields that are not UTF-8 as they
// stand. The heads of parts are sent as they were read, and not as they came.
func parseForm(r *Request, contentType []byte) *Error {
	parts, refused := newForm(contentType, r.Body)
	if refused != nil {
		return refused
	}
	r.form.boundary = parts.delimiter[4:]
	for n := 0; ; n++ {
		part, refused := parts.next()
		if refused != nil {
			return refused
		}
		if part.head == nil {
			break
		}
		if n == maxFormParts {
			return badForm(int(part.value.Start), "it has more than %d parts", maxFormParts)
		}
		if refused = readPart(r, &part); refused != nil {
			return refused
		}
	}
	if !r.modelAt.Given() {
		return Invalid("model", "you must provide a model parameter")
	}
	return nil
}

// newForm begins at the first part of the body.
func newForm(contentType, body []byte) (*formReader, *Error) {
	kind, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || kind != "multipart/form-data" {
		return nil, Invalid("", "We could not read the form of your request: its Content-Type is `%s`. "+
			"Send multipart/form-data with a boundary.", Clip(string(contentType)))
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, Invalid("", "We could not read the form of your request: its charset is `%s`. Send UTF-8.", Clip(charset))
	}
	boundary := params["boundary"]
	if boundary == "" || len(boundary) > maxBoundary {
		return nil, Invalid("", "We could not read the form of your request: the boundary in its Content-Type has %d characters. "+
			"Send one of 1 to %d.", len(boundary), maxBoundary)
	}
	if hasExtended(string(contentType), "boundary") || strings.ContainsFunc(boundary, notOfBoundaries) {
		return nil, Invalid("", "We could not read the form of your request: the boundary in its Content-Type is written in a way that "+
			"servers read differently. Send one of letters, digits and '()+_,-./:=? only.")
	}
	delimiter := []byte("\r\n--" + boundary)
	if !bytes.HasPrefix(body, delimiter[2:]) {
		return nil, badForm(0, "it does not begin with its boundary")
	}
	return &formReader{body: body, delimiter: delimiter, pos: len(delimiter) - 2}, nil
}

// notOfBoundaries says which characters we take in no boundary: those that RFC
// 2046, 5.1.1, forbids, and the blank. That may stand in one though not at its end,
// and readers differ in whether they cut it off there.
func notOfBoundaries(c rune) bool {
	return c >= utf8.RuneSelf || !header.IsToken(byte(c)) && !strings.ContainsRune("(),/:=?", c) ||
		strings.ContainsRune("!#$%&*^`|~", c)
}

// AppendContentType appends the header line of the Content-Type that the body is
// sent with. It says how the body was read: as JSON, or as a form with this boundary.
func (r *Request) AppendContentType(dst []byte) []byte {
	if len(r.form.boundary) == 0 {
		return append(dst, "Content-Type: application/json\r\n"...)
	}
	dst = append(dst, "Content-Type: multipart/form-data; boundary="...)
	if bytes.ContainsAny(r.form.boundary, "(),/:=?") {
		return append(append(append(dst, '"'), r.form.boundary...), "\"\r\n"...)
	}
	return append(append(dst, r.form.boundary...), "\r\n"...)
}

// badForm refuses a form that cannot be read.
func badForm(at int, what string, args ...any) *Error {
	args = append(args, at)
	return Invalid("", "We could not read the form of your request: "+what+", at byte %d. "+
		"(HINT: Send multipart/form-data as an HTTP library writes it.)", args...)
}

// next returns the next part; one without a head after the last.
func (f *formReader) next() (formPart, *Error) {
	rest := f.body[f.pos:]
	if bytes.HasPrefix(rest, []byte("--")) {
		if end := bytes.TrimRight(rest[2:], "\r\n\t "); len(end) > 0 {
			return formPart{}, badForm(f.pos+2, "data after its last boundary")
		}
		return formPart{}, nil
	}
	if !bytes.HasPrefix(rest, []byte("\r\n")) {
		return formPart{}, badForm(f.pos, "a boundary does not end its line")
	}
	end := bytes.Index(rest[:min(len(rest), maxFormPartHead)], []byte("\r\n\r\n"))
	if end < 0 {
		return formPart{}, badForm(f.pos, "the head of a part does not end within %d bytes", maxFormPartHead)
	}
	head, refused := partHead(rest[2:max(2, end)], f.pos)
	if refused != nil {
		return formPart{}, refused
	}
	start := f.pos + end + 4
	// The delimiter's own CR LF may be the one that ends the head: an empty value.
	length := bytes.Index(f.body[start-2:], f.delimiter)
	if length < 0 {
		return formPart{}, badForm(len(f.body), "it ends without its last boundary")
	}
	at := Span{int32(f.pos + 2), int32(f.pos + max(2, end))}
	value := Span{int32(start), int32(max(start, start-2+length))}
	if other := f.looseDelimiter(value.Of(f.body)); other >= 0 {
		return formPart{}, badForm(start+other, "its boundary stands behind a line end that is not CR LF, which some servers take for one")
	}
	f.pos = start - 2 + length + len(f.delimiter)
	return formPart{head, at, value}, nil
}

// looseDelimiter is where in a value the boundary stands at the beginning of a line
// after CR or LF alone; -1 if nowhere. Werkzeug, and so Flask, takes that for the
// end of the part: it would find a field within a field there, and a model in it,
// that nobody else does.
func (f *formReader) looseDelimiter(value []byte) int {
	delimiter := f.delimiter[2:]
	for from := 0; ; {
		at := bytes.Index(value[from:], delimiter)
		if at < 0 {
			return -1
		}
		if at += from; at == 0 || value[at-1] == '\n' || value[at-1] == '\r' {
			return at
		}
		from = at + 1
	}
}

// partHead reads the header fields of a part.
func partHead(lines []byte, at int) (textproto.MIMEHeader, *Error) {
	head := textproto.MIMEHeader{}
	for line := range strings.SplitSeq(string(lines), "\r\n") {
		name, value, err := header.CutField([]byte(line + "\r\n"))
		if err != nil {
			return nil, badForm(at, "a part has a header line that is none")
		}
		head.Add(string(name), string(value))
	}
	return head, nil
}

// A field is what the head of a part says, as it is sent on.
type field struct {
	name     string
	file     bool
	filename string
	kind     string // its media type; "": none is said
	encoding string // Content-Transfer-Encoding; "": as it stands
}

// readPart reads a part, and notes how its head is sent if it came written
// otherwise.
func readPart(r *Request, part *formPart) *Error {
	f, refused := readField(part.head, int(part.value.Start))
	if refused != nil {
		return refused
	}
	if f.file && f.filename == "" && part.value.End > part.value.Start { // browsers send empty ones so
		return badForm(int(part.value.Start), "the field `%s` has an empty filename, which some servers take for none; leave it out or name the file", Clip(f.name))
	}
	if refused = takeField(r, f, part.value); refused != nil {
		return refused
	}
	if head := f.appendHead(nil); !bytes.Equal(head, part.at.Of(r.Body)) {
		r.form.heads = append(r.form.heads, formHead{part.at, head})
	}
	return nil
}

// readField reads the head of a part.
func readField(head textproto.MIMEHeader, at int) (f field, refused *Error) {
	for _, name := range [...]string{"Content-Disposition", "Content-Type", "Content-Transfer-Encoding"} {
		if n := len(head.Values(name)); n > 1 || n == 0 && name == "Content-Disposition" {
			return f, badForm(at, "a part needs one %s, but has %d", name, n)
		}
	}
	disposition := head.Get("Content-Disposition")
	kind, params, err := mime.ParseMediaType(disposition)
	if err != nil || kind != "form-data" || hasExtended(disposition, "name") {
		return f, badForm(at, "a part has a Content-Disposition that cannot be read")
	}
	f.name = params["name"]
	if !utf8.ValidString(f.name) || strings.ContainsFunc(f.name, oddInNames) || strings.TrimSpace(f.name) != f.name {
		return f, badForm(at, "the field `%s` has a name that servers read differently; use letters, digits and - _ . [ ]", Clip(f.name))
	}
	f.filename, f.file = params["filename"]
	if f.encoding = strings.ToLower(head.Get("Content-Transfer-Encoding")); strings.ContainsFunc(f.encoding, oddInNames) {
		return f, badForm(at, "a part has a Content-Transfer-Encoding that cannot be read")
	}
	if asTyped := head.Get("Content-Type"); asTyped != "" {
		kind, params, err = mime.ParseMediaType(asTyped)
		switch {
		case err != nil && f.file && f.name != "prompt": // a file of no known type
		case err != nil || (!f.file || f.name == "prompt") && !isUTF8(params["charset"]):
			return f, badForm(at, "the field `%s` is encoded, or not UTF-8", Clip(f.name))
		case strings.HasPrefix(kind, "multipart/"): // RFC 2388 had forms within fields
			return f, badForm(at, "the field `%s` is a form itself", Clip(f.name))
		case f.file:
			f.kind = mime.FormatMediaType(kind, params)
		default:
			f.kind = kind
		}
	}
	return f, nil
}

// oddInNames are the characters that readers of a quoted name take differently:
// some decode what others take as it stands.
func oddInNames(c rune) bool { return unicode.IsControl(c) || strings.ContainsRune("\"\\;%", c) }

func isUTF8(charset string) bool { return charset == "" || strings.EqualFold(charset, "utf-8") }

// appendHead appends the head's lines as browsers and Python's libraries write
// them, which is how most come.
func (f *field) appendHead(dst []byte) []byte {
	dst = append(append(append(dst, `Content-Disposition: form-data; name="`...), f.name...), '"')
	if f.file {
		dst = append(dst, `; filename="`...)
		for _, c := range f.filename {
			if oddInNames(c) {
				c = '_'
			}
			dst = utf8.AppendRune(dst, c)
		}
		dst = append(dst, '"')
	}
	if f.kind != "" {
		dst = append(append(dst, "\r\nContent-Type: "...), f.kind...)
	}
	if f.encoding != "" && f.file {
		dst = append(append(dst, "\r\nContent-Transfer-Encoding: "...), f.encoding...)
	}
	return dst
}

// takeField takes the value of a part if it is the model, or a text.
func takeField(r *Request, f field, value Span) *Error {
	if known := memberNames.otherCase([]byte(f.name)); known != "" {
		return Invalid(Clip(f.name), "Unknown parameter: '%s' differs from '%s' only by case, at byte %d. Write it as '%s'.",
			Clip(f.name), known, value.Start, known)
	}
	name := []byte(f.name)
	switch {
	case f.name == "model":
		return takeModel(r, f, value)
	case isRouterField(name): // in JSON they are taken out; no library sends them in a form
		return Invalid(Clip(f.name), "Unknown parameter: '%s' is for routers only, at byte %d. Leave it out.", Clip(f.name), value.Start)
	case isTokenIDs(name):
		r.Content.Unread++
	case isTemplate(name):
		if !r.Content.template.Given() {
			r.Content.template = value
		}
	case f.name == "_charset_" && !isUTF8(string(r.Body[value.Start:value.End])): // RFC 7578, 4.6
		return badForm(int(value.Start), "it is not UTF-8, as its field `_charset_` says")
	case namesModel(name):
		if len(r.Content.Adapters) == maxAdapters {
			return badForm(int(value.Start), "more than %d of its fields name adapters", maxAdapters)
		}
		r.Content.Adapters = append(r.Content.Adapters, Adapter{Name: f.name, value: value, bare: true})
	}
	return takeText(r, f, value)
}

func takeModel(r *Request, f field, value Span) *Error {
	switch {
	case r.modelAt.Given():
		return Invalid("model", "Duplicate parameter: 'model' is given a second time at byte %d. Send it once.", value.Start)
	case f.file:
		return Invalid("model", "Invalid type for 'model': expected a form field, but got a file instead, at byte %d.", value.Start)
	case !f.asItStands():
		return badForm(int(value.Start), "the field `model` is encoded, or not UTF-8")
	}
	name := r.Body[value.Start:value.End:value.End]
	if why := badModel(name); why != "" {
		return Invalid("model", "%s, at byte %d.", why, value.Start)
	}
	r.Model, r.modelAt = name, value
	return nil
}

// takeText takes a field's value for text, unless it is written as a name. A file
// is media, except in the place of the prompt, and except one that is text in a
// field that media are not sent in: there are servers that read it as the field's
// value.
func takeText(r *Request, f field, value Span) *Error {
	if value.Start == value.End || f.file && f.name != "prompt" && (isMedia(f.name) || !utf8.Valid(value.Of(r.Body))) {
		return nil
	}
	if !f.asItStands() {
		return badForm(int(value.Start), "the field `%s` is encoded, or not UTF-8", Clip(f.name))
	}
	role := RoleOther
	if f.name == "prompt" {
		role = RoleUser
	} else if isName(r.Body[value.Start:value.End]) {
		return nil
	}
	r.Content.Texts = append(r.Content.Texts, Text{At: value, Message: -1, Role: role, Bare: true})
	return nil
}

// isMedia tells whether a field is one of those that files are sent in.
func isMedia(name string) bool {
	switch strings.TrimSuffix(name, "[]") {
	case "file", "files", "image", "images", "mask", "audio", "ref_audio", "input_reference":
		return true
	}
	return false
}

// asItStands tells whether a part is text that nobody decodes any further.
func (f *field) asItStands() bool {
	switch f.encoding {
	case "", "7bit", "8bit", "binary":
		return true
	}
	return false
}

// hasExtended tells whether a parameter is given as name*=, which only some readers
// know (RFC 7578 forbids it for the names of fields).
func hasExtended(header, name string) bool {
	return strings.Contains(strings.ToLower(strings.Join(strings.Fields(header), "")), ";"+name+"*")
}
