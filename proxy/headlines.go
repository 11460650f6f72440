// Header lines: taken apart, refused where two servers could read them differently, and passed on without what is for one hop only.
package proxy

import (
	"bytes"

	"kvasir/header"
	"kvasir/openai"
)

// maxHeaderLines bounds the header lines of a request.
const maxHeaderLines = 200

// checkRequestHead refuses what fasthttp lets pass in the header lines of a
// request: names that are no tokens, folded lines, bare LF, control characters
// in values, Content-Length beside Transfer-Encoding or beyond all bodies, another
// coding than chunked, a second line of a header that decides how the body is
// read, more than 200 lines. raw is fasthttp's
// RawHeaders: the lines as they came, the blank line behind them or nothing at
// all. The connection has to be closed after a refusal.
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
			switch { // fasthttp takes longer lengths than we read, and `identity` for no coding
			case at == contentLength && parseLength(value) < 0:
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

// bodyHeaders decide how a body is read, and where it ends. Of two lines of one of
// them, servers take the first, the last or both: what was judged here would be
// another body for the worker.
var bodyHeaders = [...]string{"Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding", "Host"}

const (
	contentLength    = 0 // in bodyHeaders
	transferEncoding = 1
)

// bodyHeader is which of bodyHeaders name is, -1: none. CGI and WSGI make _ of -,
// so a name written so is the same header there.
func bodyHeader(name []byte) int {
	switch name[0] | 0x20 {
	case 'c', 'h', 't':
	default:
		return -1
	}
	for at, header := range bodyHeaders {
		if len(header) == len(name) && isHeader(name, header) {
			return at
		}
	}
	return -1
}

// isHeader compares two names of one length without regard to case, and _ with -.
func isHeader(name []byte, header string) bool {
	for i, c := range name {
		if want := header[i]; c|0x20 != want|0x20 && !(c == '_' && want == '-') {
			return false
		}
	}
	return true
}

// quotable is what an error may quote of a bad header line: its name, or its
// beginning. Values are not quoted, they may be keys.
func quotable(name, line []byte) []byte {
	if len(name) > 0 {
		return name
	}
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		return line[:i]
	}
	return line[:min(len(line), 16)]
}

// appendLines appends those lines that are neither dropped nor named by a
// Connection line, and stops at a blank line. Lines without a name are left
// out; everything else about them was checked before.
func appendLines(dst, lines []byte, dropped func(name []byte) bool) []byte {
	named := connectionNames(lines)
	start, i := 0, 0 // lines[start:i] is kept and not yet appended
	for i < len(lines) {
		line, _ := header.CutLine(lines[i:])
		name, _ := header.SplitField(line)
		if len(name) == 0 || dropped(name) || named && namedByConnection(lines, name) {
			dst = append(dst, lines[start:i]...)
			start = i + len(line)
			if len(line) <= 2 {
				return dst
			}
		}
		i += len(line)
	}
	return append(dst, lines[start:i]...)
}

// connectionNames says whether a Connection line names anything but close and
// keep-alive.
func connectionNames(lines []byte) bool {
	for len(lines) > 0 {
		var list []byte
		list, lines = cutConnection(lines)
		for len(list) > 0 {
			var token []byte
			token, list = header.CutToken(list)
			if len(token) > 0 && !header.Is(token, "close") && !header.Is(token, "keep-alive") {
				return true
			}
		}
	}
	return false
}

func namedByConnection(lines, name []byte) bool {
	for len(lines) > 0 {
		var list []byte
		list, lines = cutConnection(lines)
		for len(list) > 0 {
			var token []byte
			token, list = header.CutToken(list)
			if bytes.EqualFold(token, name) {
				return true
			}
		}
	}
	return false
}

// cutConnection takes lines off up to the next Connection line and returns its
// value, nil at the end.
func cutConnection(lines []byte) (value, rest []byte) {
	for len(lines) > 0 {
		var line []byte
		line, lines = header.CutLine(lines)
		if line[0]|0x20 == 'c' {
			if name, value := header.SplitField(line); header.Is(name, "connection") {
				return value, lines
			}
		}
	}
	return nil, nil
}

// replyDrops are the headers of a worker that do not go on to a client, besides
// the hop-by-hop ones and the families below: a worker speaks for a model, not
// for the site that clients know. By these it would set cookies there, switch
// browsers over, have them report or ask for passwords, have a proxy in front of
// us hand out its files, or speak of a limit that is not the key's.
var replyDrops = byLength(
	"content-length", "x-request-id",
	"set-cookie", "set-cookie2", "clear-site-data", "strict-transport-security", "public-key-pins", "public-key-pins-report-only",
	"expect-ct", "refresh", "location", "content-location", "alt-svc", "alt-used", "link", "service-worker-allowed", "sourcemap", "x-sourcemap",
	"content-security-policy", "content-security-policy-report-only", "report-to", "reporting-endpoints", "nel", "timing-allow-origin",
	"www-authenticate", "authentication-info", "x-sendfile", "x-lighttpd-send-file", "x-reproxy-url", "x-accel-redirect",
)

// byLength has names by how long they are, so that a header is compared with few.
func byLength(names ...string) (table [48][]string) {
	for _, name := range names {
		table[len(name)] = append(table[len(name)], name)
	}
	return table
}

func droppedFromReply(name []byte) bool {
	if len(name) < len(replyDrops) {
		for _, drop := range replyDrops[len(name)] {
			if header.Is(name, drop) {
				return true
			}
		}
	}
	return hopByHop(name) || header.HasPrefix(name, "x-kvasir-") || header.HasPrefix(name, "x-vsr-") ||
		header.HasPrefix(name, "x-ratelimit-") || header.HasPrefix(name, "access-control-") // which pages may ask is for server.cors to say
}

// requestDrops are the headers of a client that do not go on to a worker, besides
// the hop-by-hop ones and two families:
//
//   - what is written anew: Host, Content-Length, Content-Type (as the body was
//     read), Content-Encoding (it is sent decompressed), Accept-Encoding, Expect,
//     X-Request-Id;
//   - credentials. Whoever may pass the client's own on adds it;
//   - what steers an engine from the inside (prefill and decode addresses,
//     data-parallel ranks, Dynamo's worker ids) and is for routers only: from a
//     client it is a way past the placement;
//   - what makes another request of this one at some servers: its method or path.
//
// A name with _ for - is the same one to CGI and WSGI, and does not go on either.
var requestDrops = []string{
	"host", "expect", "content-length", "content-type", "content-encoding", "accept-encoding", "x-request-id",
	"authorization", "x-api-key", "api-key",
	"x-data-parallel-rank", "x-data-parallel-host-port", "x-prefiller-host-port", "x-encoder-hosts-ports",
	"x-kv-cache-source-host-port", "x-worker-instance-id", "x-prefill-instance-id", "x-dp-rank", "x-prefill-dp-rank",
	"x-original-url", "x-rewrite-url", "x-http-method", "x-http-method-override", "x-method-override",
}

func droppedFromRequest(name []byte) bool {
	for _, drop := range requestDrops {
		if len(drop) == len(name) && isHeader(name, drop) {
			return true
		}
	}
	return hopByHop(name) || beginsHeader(name, "x-dynamo-") || beginsHeader(name, "x-gateway-destination-endpoint")
}

// beginsHeader is isHeader for the beginning of a name.
func beginsHeader(name []byte, prefix string) bool {
	return len(name) >= len(prefix) && isHeader(name[:len(prefix)], prefix)
}

// hopByHop says whether a header line is for one connection only (RFC 9110,
// 7.6.1, and the older Keep-Alive and Proxy-*).
func hopByHop(name []byte) bool {
	switch len(name) {
	case 2:
		return header.Is(name, "te")
	case 7:
		return header.Is(name, "trailer") || header.Is(name, "upgrade")
	case 10:
		return header.Is(name, "connection") || header.Is(name, "keep-alive")
	case 17:
		return header.Is(name, "transfer-encoding")
	}
	return header.HasPrefix(name, "proxy-")
}
