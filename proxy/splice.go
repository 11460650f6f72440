// Splices: edits of a body that leave every other byte as it was.
package proxy

import (
	"bytes"
	"cmp"
	"slices"
)

// splices are the edits of one body, in any order, not overlapping. The zero
// value is ready; it is reused with reset. Edits know only places; what they
// come to, commas included, is settled when the new body is asked for.
type splices struct {
	edits  []edit
	cuts   []cut  // the edits settled, in the body's order
	quoted []byte // the memory of names made into JSON
}

// An edit is one change as it was asked for.
type edit struct {
	at   span // what goes; for an insertion the empty span where it comes in
	kind editKind
	with []byte // what comes; the splices do not change it
}

type editKind uint8

const (
	editReplace editKind = iota
	editRemove           // at is a member of an object
	editInsert           // with becomes the last member of an object
)

// A cut is one change as it is made: body[start:end] gives way to with.
type cut struct {
	start, end int
	comma      bool // a comma comes before with
	with       []byte
}

// reset forgets the edits and keeps the memory.
func (s *splices) reset() {
	clear(s.edits) // lets go of what the edits hold
	clear(s.cuts)
	s.edits, s.cuts, s.quoted = s.edits[:0], s.cuts[:0], s.quoted[:0]
}

// empty tells whether the body stays as it is.
func (s *splices) empty() bool { return len(s.edits) == 0 }

// replace puts with in the place of at.
func (s *splices) replace(at span, with []byte) { s.add(edit{at, editReplace, with}) }

// remove takes out a member, given from its key to the end of its value, with
// the comma that joins it and the white space behind that comma.
func (s *splices) remove(member span) { s.add(edit{member, editRemove, nil}) }

// insertMember puts member, `"key":value`, behind the last one of object.
func (s *splices) insertMember(object span, member []byte) {
	end := object.end - 1 // its brace; settle goes back over the white space
	s.add(edit{span{end, end}, editInsert, member})
}

func (s *splices) add(e edit) {
	s.edits = append(s.edits, e)
	s.cuts = s.cuts[:0]
}

// length is how many bytes the new body has.
func (s *splices) length(body []byte) int {
	n := len(body)
	for _, c := range s.settled(body) {
		n += len(c.with) - (c.end - c.start)
		if c.comma {
			n++
		}
	}
	return n
}

var comma = []byte(",")

// segments appends the new body to dst, in pieces for one writev. They are
// sub-slices of body and of what was put in: valid as long as these are.
func (s *splices) segments(dst [][]byte, body []byte) [][]byte {
	from := 0
	for _, c := range s.settled(body) {
		dst = appendSegment(dst, body[from:c.start])
		if c.comma {
			dst = append(dst, comma)
		}
		dst = appendSegment(dst, c.with)
		from = c.end
	}
	return appendSegment(dst, body[from:])
}

func appendSegment(dst [][]byte, piece []byte) [][]byte {
	if len(piece) == 0 {
		return dst
	}
	return append(dst, piece)
}

// settled turns the edits into cuts.
func (s *splices) settled(body []byte) []cut {
	if len(s.cuts) > 0 {
		return s.cuts
	}
	slices.SortStableFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.at.start, b.at.start) })
	for _, e := range s.edits {
		switch c := (cut{start: int(e.at.start), end: int(e.at.end), with: e.with}); e.kind {
		case editReplace:
			s.cuts = append(s.cuts, c)
		case editRemove:
			s.settleRemoval(body, c)
		case editInsert:
			s.settleInsertion(body, c)
		}
	}
	return s.cuts
}

// settleRemoval widens c by the comma behind the member, or, behind the last
// member, by the one before it.
func (s *splices) settleRemoval(body []byte, c cut) {
	if next := skipSpace(body, c.end); body[next] == ',' {
		c.end = skipSpace(body, next+1)
		s.cuts = append(s.cuts, c)
		return
	}
	// All members right before it may be going too: then the comma to take
	// is the one before the first of them.
	for n := len(s.cuts); n > 0 && s.cuts[n-1].end == c.start && s.cuts[n-1].removes(); n-- {
		c.start = s.cuts[n-1].start
		s.cuts = s.cuts[:n-1]
	}
	if before := trimSpace(body, c.start); body[before-1] == ',' {
		c.start = before - 1
	}
	s.cuts = append(s.cuts, c)
}

// settleInsertion moves c behind the object's last member and finds out
// whether a member is left for a comma to stand behind.
func (s *splices) settleInsertion(body []byte, c cut) {
	c.start = trimSpace(body, c.start)
	last := c.start
	if n := len(s.cuts); n > 0 && s.cuts[n-1].end == last {
		if before := s.cuts[n-1]; before.removes() {
			last = trimSpace(body, before.start)
		} else if before.start == before.end {
			last = -1 // another insertion
		}
	}
	c.end = c.start
	c.comma = last < 0 || body[last-1] != '{'
	s.cuts = append(s.cuts, c)
}

func (c cut) removes() bool { return len(c.with) == 0 && c.end > c.start }

// skipSpace is the offset of the first byte from i on that is no white space.
func skipSpace(body []byte, i int) int {
	for body[i] == ' ' || body[i] == '\n' || body[i] == '\r' || body[i] == '\t' {
		i++
	}
	return i
}

// trimSpace is the offset behind the last byte before i that is no white space.
func trimSpace(body []byte, i int) int {
	return len(bytes.TrimRight(body[:i], " \n\r\t"))
}

// setModel makes name the model that the worker is asked for. In a form it
// comes as it is, so it must not have a line break in it.
func (r *request) setModel(s *splices, name string) {
	start := len(s.quoted)
	switch {
	case !r.whole.given():
		s.quoted = append(s.quoted, name...)
		s.replace(r.modelAt, s.quoted[start:])
	case r.modelAt.given():
		s.quoted = appendJSONString(s.quoted, name)
		s.replace(r.modelAt, s.quoted[start:])
	default:
		s.quoted = appendJSONString(append(s.quoted, `"model":`...), name)
		s.insertMember(r.whole, s.quoted[start:])
	}
}

var (
	jsonTrue      = []byte("true")
	includeUsage  = []byte(`"include_usage":true`)
	usageObject   = []byte(`{"include_usage":true}`)
	streamOptions = []byte(`"stream_options":{"include_usage":true}`)
)

// askUsage asks for the usage at the end of a stream. It changes nothing where
// the client asked for it, where nothing is streamed, and on routes that have
// no stream_options.
func (r *request) askUsage(s *splices) {
	if !r.stream || r.usage.include || r.kind != kindChat && r.kind != kindText {
		return
	}
	switch at := r.usage.at; {
	case r.usage.includeAt.given():
		s.replace(r.usage.includeAt, jsonTrue)
	case !at.given():
		s.insertMember(r.whole, streamOptions)
	case r.body[at.start] == '{':
		s.insertMember(at, includeUsage)
	default: // null
		s.replace(at, usageObject)
	}
}

// stripHandover takes out what a client must not send to a worker, and a byte
// order mark.
func (r *request) stripHandover(s *splices) {
	if r.whole.given() && bytes.HasPrefix(r.body, []byte(byteOrderMark)) {
		s.replace(span{0, int32(len(byteOrderMark))}, nil)
	}
	for _, member := range r.strip {
		s.remove(member)
	}
}
