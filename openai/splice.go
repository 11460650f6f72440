// Splices: edits of a body that leave every other byte as it was.

package openai

import (
	"bytes"
	"cmp"
	"slices"
)

// Splices are the edits of one body, in any order, not overlapping. The zero
// value is ready; Reset makes it ready again. An edit knows only its place; what
// becomes of the commas around it is settled when the new body is asked for.
//
//	var s openai.Splices
//	openai.SetModel(&s, &r, "qwen")
//	openai.StripHandover(&s, &r)
//	pieces := s.Segments(nil, r.Body)
type Splices struct {
	edits  []edit
	cuts   []cut  // the edits settled, in the body's order
	quoted []byte // memory for names and members made into JSON
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
	start, end int
	comma      bool // a comma comes before with
	with       []byte
}

// maxEdits is for how many edits memory is kept between bodies.
const maxEdits = 4096

// Reset forgets the edits and keeps the memory, unless there were very many.
func (s *Splices) Reset() {
	if cap(s.edits) > maxEdits {
		*s = Splices{}
		return
	}
	clear(s.edits) // lets go of what the edits hold
	clear(s.cuts)
	s.edits, s.cuts, s.quoted = s.edits[:0], s.cuts[:0], s.quoted[:0]
}

// Len is how many edits there are.
func (s *Splices) Len() int { return len(s.edits) }

// Covers says whether one of the first n edits takes out a byte of what stands at
// at. It looks at each of them.
func (s *Splices) Covers(n int, at Span) bool {
	for _, e := range s.edits[:n] {
		if e.kind != editInsert && e.at.Start < at.End && at.Start < e.at.End {
			return true
		}
	}
	return false
}

// Empty tells whether the body stays as it is.
func (s *Splices) Empty() bool { return len(s.edits) == 0 }

// Replace puts with in the place of at. It is kept, not copied.
func (s *Splices) Replace(at Span, with []byte) { s.add(edit{at, editReplace, with}) }

// Remove takes out a member, given from its key to the end of its value, with
// the comma that joins it and the white space behind that comma.
func (s *Splices) Remove(member Span) { s.add(edit{member, editRemove, nil}) }

// InsertMember puts member, `"key":value`, behind the last one of object. It is
// kept, not copied.
func (s *Splices) InsertMember(object Span, member []byte) {
	end := object.End - 1 // its brace; settleInsertion goes back over the white space
	s.add(edit{Span{end, end}, editInsert, member})
}

func (s *Splices) add(e edit) {
	s.edits = append(s.edits, e)
	s.cuts = s.cuts[:0]
}

// Length is how many bytes the new body has.
func (s *Splices) Length(body []byte) int {
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

// Removal is where the bytes stand that go from body, commas included, if the
// one edit is a removal.
func (s *Splices) Removal(body []byte) (start, end int) {
	gone := s.settled(body)[0]
	return gone.start, gone.end
}

// Segments appends the new body to dst, in pieces for one writev. They are
// sub-slices of body and of what was put in: valid as long as these are.
func (s *Splices) Segments(dst [][]byte, body []byte) [][]byte {
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

// AppendTo appends the new body to dst. Unlike Segments it keeps nothing of body.
func (s *Splices) AppendTo(dst, body []byte) []byte {
	from := 0
	for _, c := range s.settled(body) {
		dst = append(dst, body[from:c.start]...)
		if c.comma {
			dst = append(dst, ',')
		}
		dst = append(dst, c.with...)
		from = c.end
	}
	return append(dst, body[from:]...)
}

// AppendSpan appends what the new body has in the place of at, most bytes of it or a little more:
// what is put in comes whole. No edit may reach over the border of at.
func (s *Splices) AppendSpan(dst, body []byte, at Span, most int) []byte {
	cuts, from, full := s.settled(body), int(at.Start), len(dst)+most
	first, _ := slices.BinarySearchFunc(cuts, from, func(c cut, from int) int { return cmp.Compare(c.start, from) })
	for _, c := range cuts[first:] {
		if c.start >= int(at.End) || len(dst) >= full {
			break
		}
		dst = append(dst, body[from:min(c.start, from+full-len(dst))]...)
		if len(dst) < full {
			dst = append(dst, c.with...)
		}
		from = c.end
	}
	if len(dst) < full {
		dst = append(dst, body[from:min(int(at.End), from+full-len(dst))]...)
	}
	return dst
}

func appendSegment(dst [][]byte, piece []byte) [][]byte {
	if len(piece) == 0 {
		return dst
	}
	return append(dst, piece)
}

// settled turns the edits into cuts.
func (s *Splices) settled(body []byte) []cut {
	if len(s.cuts) > 0 {
		return s.cuts
	}
	slices.SortStableFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.at.Start, b.at.Start) })
	for _, e := range s.edits {
		switch c := (cut{start: int(e.at.Start), end: int(e.at.End), with: e.with}); e.kind {
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
	if next := SkipSpace(body, c.end); body[next] == ',' {
		c.end = SkipSpace(body, next+1)
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
func (s *Splices) settleInsertion(body []byte, c cut) {
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
