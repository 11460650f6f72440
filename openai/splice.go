// Splices: edits of a body that leave every other byte as it was.
package openai

import (
	"bytes"
	"cmp"
	"slices"
)

// Splices are the edits of one body, in any order, not overlapping. The zero
// value is ready; it is reused with reset. Edits know only places; what they
// come to, commas included, is settled when the new body is asked for.
type Splices struct {
	Edits  []edit
	cuts   []cut  // the edits settled, in the body's order
	Quoted []byte // the memory of names made into JSON
}

// An edit is one change as it was asked for.
type edit struct {
	at   Span // what goes; for an insertion the empty span where it comes in
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
	Start, End int
	comma      bool // a comma comes before with
	with       []byte
}

// Reset forgets the edits and keeps the memory.
func (s *Splices) Reset() {
	clear(s.Edits) // lets go of what the edits hold
	clear(s.cuts)
	s.Edits, s.cuts, s.Quoted = s.Edits[:0], s.cuts[:0], s.Quoted[:0]
}

// Empty tells whether the body stays as it is.
func (s *Splices) Empty() bool { return len(s.Edits) == 0 }

// Replace puts with in the place of at.
func (s *Splices) Replace(at Span, with []byte) { s.add(edit{at, editReplace, with}) }

// Remove takes out a member, given from its key to the end of its value, with
// the comma that joins it and the white space behind that comma.
func (s *Splices) Remove(member Span) { s.add(edit{member, editRemove, nil}) }

// InsertMember puts member, `"key":value`, behind the last one of object.
func (s *Splices) InsertMember(object Span, member []byte) {
	end := object.End - 1 // its brace; settle goes back over the white space
	s.add(edit{Span{end, end}, editInsert, member})
}

func (s *Splices) add(e edit) {
	s.Edits = append(s.Edits, e)
	s.cuts = s.cuts[:0]
}

// Length is how many bytes the new body has.
func (s *Splices) Length(body []byte) int {
	n := len(body)
	for _, c := range s.Settled(body) {
		n += len(c.with) - (c.End - c.Start)
		if c.comma {
			n++
		}
	}
	return n
}

var comma = []byte(",")

// Segments appends the new body to dst, in pieces for one writev. They are
// sub-slices of body and of what was put in: valid as long as these are.
func (s *Splices) Segments(dst [][]byte, body []byte) [][]byte {
	from := 0
	for _, c := range s.Settled(body) {
		dst = appendSegment(dst, body[from:c.Start])
		if c.comma {
			dst = append(dst, comma)
		}
		dst = appendSegment(dst, c.with)
		from = c.End
	}
	return appendSegment(dst, body[from:])
}

func appendSegment(dst [][]byte, piece []byte) [][]byte {
	if len(piece) == 0 {
		return dst
	}
	return append(dst, piece)
}

// Settled turns the edits into cuts.
func (s *Splices) Settled(body []byte) []cut {
	if len(s.cuts) > 0 {
		return s.cuts
	}
	slices.SortStableFunc(s.Edits, func(a, b edit) int { return cmp.Compare(a.at.Start, b.at.Start) })
	for _, e := range s.Edits {
		switch c := (cut{Start: int(e.at.Start), End: int(e.at.End), with: e.with}); e.kind {
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
func (s *Splices) settleRemoval(body []byte, c cut) {
	if next := SkipSpace(body, c.End); body[next] == ',' {
		c.End = SkipSpace(body, next+1)
		s.cuts = append(s.cuts, c)
		return
	}
	// All members right before it may be going too: then the comma to take
	// is the one before the first of them.
	for n := len(s.cuts); n > 0 && s.cuts[n-1].End == c.Start && s.cuts[n-1].removes(); n-- {
		c.Start = s.cuts[n-1].Start
		s.cuts = s.cuts[:n-1]
	}
	if before := trimSpace(body, c.Start); body[before-1] == ',' {
		c.Start = before - 1
	}
	s.cuts = append(s.cuts, c)
}

// settleInsertion moves c behind the object's last member and finds out
// whether a member is left for a comma to stand behind.
func (s *Splices) settleInsertion(body []byte, c cut) {
	c.Start = trimSpace(body, c.Start)
	last := c.Start
	if n := len(s.cuts); n > 0 && s.cuts[n-1].End == last {
		if before := s.cuts[n-1]; before.removes() {
			last = trimSpace(body, before.Start)
		} else if before.Start == before.End {
			last = -1 // another insertion
		}
	}
	c.End = c.Start
	c.comma = last < 0 || body[last-1] != '{'
	s.cuts = append(s.cuts, c)
}

func (c cut) removes() bool { return len(c.with) == 0 && c.End > c.Start }

// SkipSpace is the offset of the first byte from i on that is no white space.
func SkipSpace(body []byte, i int) int {
	for body[i] == ' ' || body[i] == '\n' || body[i] == '\r' || body[i] == '\t' {
		i++
	}
	return i
}

// trimSpace is the offset behind the last byte before i that is no white space.
func trimSpace(body []byte, i int) int {
	return len(bytes.TrimRight(body[:i], " \n\r\t"))
}

// SetModel makes name the model that the worker is asked for. In a form it
// comes as it is, so it must not have a line break in it.
func (r *Request) SetModel(s *Splices, name string) {
	start := len(s.Quoted)
	switch {
	case !r.Whole.Given():
		s.Quoted = append(s.Quoted, name...)
		s.Replace(r.modelAt, s.Quoted[start:])
	case r.modelAt.Given():
		s.Quoted = AppendString(s.Quoted, name)
		s.Replace(r.modelAt, s.Quoted[start:])
	default:
		s.Quoted = AppendString(append(s.Quoted, `"model":`...), name)
		s.InsertMember(r.Whole, s.Quoted[start:])
	}
}

var (
	jsonTrue      = []byte("true")
	includeUsage  = []byte(`"include_usage":true`)
	usageObject   = []byte(`{"include_usage":true}`)
	streamOptions = []byte(`"stream_options":{"include_usage":true}`)
)

// AskUsage asks for the usage at the end of a stream. It changes nothing where
// the client asked for it, where nothing is streamed, and on routes that have
// no stream_options.
func (r *Request) AskUsage(s *Splices) {
	if !r.Stream || r.Usage.Include || r.kind != KindChat && r.kind != KindText {
		return
	}
	switch at := r.Usage.at; {
	case r.Usage.includeAt.Given():
		s.Replace(r.Usage.includeAt, jsonTrue)
	case !at.Given():
		s.InsertMember(r.Whole, streamOptions)
	case r.Body[at.Start] == '{':
		s.InsertMember(at, includeUsage)
	default: // null
		s.Replace(at, usageObject)
	}
}

// StripHandover takes out what a client must not send to a worker, and a byte
// order mark.
func (r *Request) StripHandover(s *Splices) {
	if r.Whole.Given() && bytes.HasPrefix(r.Body, []byte(ByteOrderMark)) {
		s.Replace(Span{0, int32(len(ByteOrderMark))}, nil)
	}
	for _, member := range r.strip {
		s.Remove(member)
	}
}

// Covers says whether what stands at at is going already. It looks at every
// edit: redact asks it of the few that were there before its own.
func (s *Splices) Covers(at Span) bool {
	for _, e := range s.Edits {
		if e.kind != editInsert && e.at.Start < at.End && at.Start < e.at.End {
			return true
		}
	}
	return false
}
