// Header lines of requests: refused where two servers could read them differently.

package edge

import (
	"bytes"

	"kvasir/header"
	"kvasir/openai"
)

// maxHeaderLines bounds the header lines of a request.
const maxHeaderLines = 200

// checkRequestHead refuses header lines that fasthttp accepts: names that are not tokens, folded
// lines, bare LF, control characters in values, Content-Length beside Transfer-Encoding, an
// impossibly large Content-Length, a transfer coding other than chunked, a second line of a
// header that decides how the body is read, more than 200 lines. raw is fasthttp's RawHeaders:
// the lines as received and the blank line after them, or nothing at all. The connection must be
// closed after a refusal.
func checkRequestHead(raw []byte) *openai.Error {
	var seen [len(bodyHeaders)]bool
	for lines := 0; len(raw) > 0; lines++ {
		var line []byte
		line, raw = header.CutLine(raw)
		if string(line) == "\r\n" {
			break
		}
		if lines == maxHeaderLines {
			e := openai.Invalid("", "the request has more than %d header lines; send fewer", maxHeaderLines)
			e.Status = 431
			return e
		}
		name, value, err := header.CutField(line)
		if err != nil {
			return openai.Invalid("", "the request head is refused: %v: %.200q", err, quotable(name, line))
		}
		if at := bodyHeader(name); at >= 0 {
			switch { // fasthttp accepts longer lengths than we do, and treats `identity` as no coding
			case at == contentLength && header.ParseLength(value) < 0:
				return openai.Invalid("", "the request head is refused: a Content-Length that is no number of bytes a body can have")
			case at == transferEncoding && !header.Is(value, "chunked"):
				return openai.Invalid("", "the request head is refused: a Transfer-Encoding that is not chunked")
			}
			if seen[at] {
				return openai.Invalid("", "the request head is refused: a second %s; send one: readers differ in which one they take", bodyHeaders[at])
			}
			if seen[at] = true; bytes.IndexByte(name, '_') >= 0 {
				return openai.Invalid("", "the request head is refused: %.200q is %s to some readers; write it with -", name, bodyHeaders[at])
			}
		}
	}
	if seen[contentLength] && seen[transferEncoding] {
		return openai.Invalid("", "the request head is refused: Content-Length and Transfer-Encoding together; send one of them")
	}
	return nil
}

// bodyHeaders decide how a body is read, and where it ends. When one of them has two lines,
// servers use the first, the last or both: the worker could read another body than the one judged
// here.
var bodyHeaders = [...]string{"Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding", "Host"}

const (
	contentLength    = 0 // in bodyHeaders
	transferEncoding = 1
)

// bodyHeader returns the index of name in bodyHeaders; -1: none. CGI and WSGI turn - into _, so a
// name written with _ is the same header there.
func bodyHeader(name []byte) int {
	switch name[0] | 0x20 {
	case 'c', 'h', 't':
	default:
		return -1
	}
	for at, one := range bodyHeaders {
		if header.Alike(name, one) {
			return at
		}
	}
	return -1
}

// quotable returns the part of a bad header line that an error may quote: its name, or its
// beginning. Values are not quoted, because they may be keys.
func quotable(name, line []byte) []byte {
	if len(name) > 0 {
		return name
	}
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		return line[:i]
	}
	return line[:min(len(line), 16)]
}
