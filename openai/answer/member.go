// Members: those of an event's JSON at any depth, and the texts among them, in order.

package answer

import "bytes"

// A memberScanner goes from member to member of JSON, whatever their depth, so
// that an event can be changed in its texts alone. It trusts that the JSON is
// well-formed, and stays within its bytes if it is not. (An openai.Walker steps
// into what it is told to, and checks it.)
type memberScanner struct {
	b        []byte
	at       int
	depth    int    // of the member at hand: 1 in the outermost object
	low      int    // the least depth on the way to it from the member before
	key      []byte // its name, as written
	from, to int    // where the inside of its value is, if that is a string; else both are at
}

// next goes to the next member, false if there is none.
func (s *memberScanner) next() bool {
	s.low = s.depth
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case '"':
		case '{', '[':
			s.depth++
			s.at++
			continue
		case '}', ']':
			s.depth--
			s.low = min(s.low, s.depth)
			s.at++
			continue
		default:
			s.at++
			continue
		}
		from := s.at + 1
		s.skipString()
		key := s.b[from:max(from, s.at-1)]
		s.space()
		if s.at >= len(s.b) || s.b[s.at] != ':' {
			continue // an element of an array
		}
		s.at++
		s.space()
		s.key, s.from, s.to = key, s.at, s.at
		if s.at < len(s.b) && s.b[s.at] == '"' {
			s.from = s.at + 1
			s.skipString()
			s.to = max(s.from, s.at-1)
		}
		return true
	}
	return false
}

// skipString goes behind the string that begins here.
func (s *memberScanner) skipString() {
	s.at++
	for s.at < len(s.b) {
		n := bytes.IndexAny(s.b[s.at:], `"\`)
		if n < 0 {
			s.at = len(s.b)
			return
		}
		if s.at += n; s.b[s.at] == '"' {
			s.at++
			return
		}
		s.at = min(s.at+2, len(s.b))
	}
}

func (s *memberScanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\t' || s.b[s.at] == '\n' || s.b[s.at] == '\r') {
		s.at++
	}
}

// number is the digits of the value, empty if it is no number.
func (s *memberScanner) number() []byte {
	end := s.at
	for end < len(s.b) && s.b[end]-'0' <= 9 {
		end++
	}
	return s.b[s.at:end]
}

// isText says whether the member is a piece of what the model says.
func (s *memberScanner) isText() bool {
	if s.from == s.at {
		return false // no string
	}
	switch string(s.key) {
	case "content", "text", "delta", "refusal", "reasoning", "reasoning_content", "thinking", "partial_json", "arguments":
		return true
	}
	return false
}
