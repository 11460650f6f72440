// Header lines that go on to the next hop, and those that are for one connection only.

package header

import "bytes"

// AppendEndToEnd appends to dst the lines that are neither dropped nor named by a
// Connection line, byte for byte, and stops at a blank line. It is dropped that
// leaves out the headers of one hop (HopByHop). Lines without a name are left out;
// that the others are well-formed is for the caller to have checked.
func AppendEndToEnd(dst, lines []byte, dropped func(name []byte) bool) []byte {
	if out, ok := appendKept(dst, lines, dropped, false); ok {
		return out
	}
	out, _ := appendKept(dst, lines, dropped, true)
	return out
}

// appendKept is AppendEndToEnd. It looks for names in Connection lines only where named is set, and is
// false where it is not and a Connection line has some: hardly any has, and looking for them first
// would read all lines twice.
func appendKept(dst, lines []byte, dropped func(name []byte) bool, named bool) (out []byte, ok bool) {
	start, i := 0, 0 // lines[start:i] is kept and not yet appended
	for i < len(lines) {
		line, _ := CutLine(lines[i:])
		name := line[:max(bytes.IndexByte(line, ':'), 0)]
		switch {
		case !named && Is(name, "connection") && namesHeaders(line):
			return dst, false
		case len(name) == 0 || dropped(name) || named && namedByConnection(lines, name):
			dst = append(dst, lines[start:i]...)
			start = i + len(line)
			if len(line) <= 2 {
				return dst, true
			}
		}
		i += len(line)
	}
	return append(dst, lines[start:i]...), true
}

// namesHeaders reports whether a Connection line names anything but close and keep-alive.
func namesHeaders(line []byte) bool {
	_, list := SplitField(line)
	for len(list) > 0 {
		var token []byte
		token, list = CutToken(list)
		if len(token) > 0 && !Is(token, "close") && !Is(token, "keep-alive") {
			return true
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
			token, list = CutToken(list)
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
		line, lines = CutLine(lines)
		if line[0]|0x20 == 'c' {
			if name, value := SplitField(line); Is(name, "connection") {
				return value, lines
			}
		}
	}
	return nil, nil
}

// HopByHop reports whether a header line is for one connection only (RFC 9110, 7.6.1, and the
// older Keep-Alive and Proxy-*).
func HopByHop(name []byte) bool {
	switch len(name) {
	case 2:
		return Is(name, "te")
	case 7:
		return Is(name, "trailer") || Is(name, "upgrade")
	case 10:
		return Is(name, "connection") || Is(name, "keep-alive")
	case 17:
		return Is(name, "transfer-encoding")
	}
	return HasPrefix(name, "proxy-")
}

// ParseLength reads a Content-Length: digits only. -1: it is none, or over 2^62.
func ParseLength(b []byte) int64 {
	if len(b) == 0 {
		return -1
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<62/10-1 {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
