// Reply heads: a worker's status line and header lines, parsed in place.

package upstream

import (
	"bytes"
	"errors"
	"fmt"

	"kvasir/header"
	"kvasir/wire"
)

// maxReplyHead bounds the head of a reply, blank line included, in bytes.
const maxReplyHead = 64 << 10

var (
	errHeadTooLong = errors.New("reply head over 64 KiB")
	errNotHTTP     = errors.New("reply is no HTTP/1.0 or HTTP/1.1")
	errBareLF      = errors.New("reply head has a line that does not end in CRLF")
)

// A Head is the head of one reply (RFC 9112). The zero value is ready, and it is
// ready for the next reply once parse has returned n > 0. Its slices point into the
// bytes given to parse, and are valid as long as those are.
type Head struct {
	Status int   // 100 to 599
	Length int64 // Content-Length; -1: none, or overruled by chunked

	ContentType []byte // the value as it came; nil: none
	RetryAfter  []byte // the same

	minor   int    // of HTTP/1.x: 0 or 1
	chunked bool   // the body comes in chunks
	close   bool   // the connection must not be used again after this reply
	coding  []byte // Content-Encoding
	lines   []byte // the header lines as they came, CRLF each, without the blank line

	scanned int // bytes already searched for the blank line
}

// parse reads the head at the front of b and returns its bytes, blank line
// included. 0 without an error means that b ends too early: call again with
// the same bytes and more behind them. Every error is final; nothing that
// came over this connection can be trusted then.
//
// A status of 100 to 199 is an interim reply: skip n bytes and parse on. 101
// is an error, since nobody asked to switch protocols.
func (h *Head) parse(b []byte) (n int, err error) {
	n, err = h.find(b)
	if n == 0 || err != nil {
		return 0, err
	}
	*h = Head{Length: -1}
	line, lines := header.CutLine(b[:n-2])
	if err := h.parseStatus(line[:len(line)-2]); err != nil {
		return 0, err
	}
	h.lines = lines
	if err := h.parseFields(); err != nil {
		return 0, err
	}
	return n, nil
}

// find returns where the head ends, 0 while it has not. It refuses what can
// never become a head as soon as it is seen, so that a worker that speaks
// something else is not waited for.
func (h *Head) find(b []byte) (int, error) {
	const prefix = "HTTP/1."
	if k := min(len(b), len(prefix)); string(b[:k]) != prefix[:k] {
		return 0, errNotHTTP
	}
	for {
		k := bytes.IndexByte(b[h.scanned:], '\n')
		if k < 0 {
			break
		}
		i := h.scanned + k
		if b[i-1] != '\r' { // i > 0: the head begins with the prefix
			return 0, errBareLF
		}
		h.scanned = i + 1
		if b[i-2] == '\n' {
			if i >= maxReplyHead {
				return 0, errHeadTooLong
			}
			return i + 1, nil
		}
	}
	h.scanned = len(b)
	if len(b) >= maxReplyHead {
		return 0, errHeadTooLong
	}
	return 0, nil
}

// parseStatus reads "HTTP/1.1 200 OK". The reason, and the space before it,
// may be missing as some servers leave both out.
func (h *Head) parseStatus(line []byte) error {
	const digits = len("HTTP/1.1 ")
	if len(line) < digits+3 || line[7]|1 != '1' || line[8] != ' ' {
		return errNotHTTP
	}
	h.minor = int(line[7] - '0')
	for _, c := range line[digits : digits+3] {
		if c < '0' || c > '9' {
			return fmt.Errorf("reply has no three-digit status: %.40q", line)
		}
		h.Status = h.Status*10 + int(c-'0')
	}
	reason := line[digits+3:]
	if h.Status < 100 || h.Status > 599 || len(reason) > 0 && reason[0] != ' ' || !header.ValidValue(reason) {
		return fmt.Errorf("reply has a bad status line: %.40q", line)
	}
	if h.Status == 101 {
		return errors.New("reply switches protocols, which was not asked for")
	}
	return nil
}

// parseFields reads the header lines and decides how the body is framed.
func (h *Head) parseFields() error {
	var keepAlive, lengthSeen bool
	for rest := h.lines; len(rest) > 0; {
		var line []byte
		line, rest = header.CutLine(rest)
		name, value, err := header.CutField(line)
		if err != nil {
			return fmt.Errorf("reply head: %w", err)
		}
		switch len(name) {
		case len("Connection"):
			if header.Is(name, "connection") {
				h.close = h.close || header.HasToken(value, "close")
				keepAlive = keepAlive || header.HasToken(value, "keep-alive")
			}
		case len("Retry-After"):
			if header.Is(name, "retry-after") {
				h.RetryAfter = value
			}
		case len("Content-Type"):
			if header.Is(name, "content-type") {
				h.ContentType = value
			}
		case len("Content-Length"):
			if header.Is(name, "content-length") {
				n := header.ParseLength(value)
				if n < 0 || lengthSeen && n != h.Length {
					return fmt.Errorf("reply head: bad or second Content-Length %.40q", value)
				}
				h.Length, lengthSeen = n, true
			}
		case len("Content-Encoding"):
			if header.Is(name, "content-encoding") {
				h.coding = value
			}
		case len("Transfer-Encoding"):
			if header.Is(name, "transfer-encoding") {
				// A second one, or one in HTTP/1.0, is faulty framing (RFC 9112, 6.1).
				if !header.Is(value, "chunked") || h.chunked || h.minor == 0 {
					return fmt.Errorf("reply head: Transfer-Encoding %.40q is not understood", value)
				}
				h.chunked = true
			}
		}
	}
	if h.chunked && lengthSeen {
		h.Length, h.close = -1, true // RFC 9112, 6.3: possibly smuggled
	}
	if h.minor == 0 && !keepAlive {
		h.close = true
	}
	return nil
}

// framing is how the body behind the head is framed: the body of a reply to POST
// or GET, not to HEAD. An interim reply (1xx) has none and is not asked for one.
func (h *Head) framing() wire.Framing {
	switch {
	case h.Status == 204 || h.Status == 304 || h.Status < 200:
		return wire.Sized(0)
	case h.chunked:
		return wire.Chunked()
	case h.Length >= 0:
		return wire.Sized(h.Length)
	}
	return wire.UntilClose()
}

// AppendHeaders appends the end-to-end header lines to dst, byte for byte.
// Left out are hop-by-hop lines and Content-Length, because the body is framed
// anew, and what Kvasir says itself: X-Request-Id, X-Kvasir-*, X-Vsr-* and
// Access-Control-*.
func (h *Head) AppendHeaders(dst []byte) []byte {
	return header.AppendEndToEnd(dst, h.lines, droppedFromReply)
}
