// Parts: personal data that begin in one part of a message and end in the next.
// A worker's template puts the parts together, so that a card number cut in two
// reaches the model whole.

package classify

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"

	"kvasir/classify/pii"
)

// partEdge is how many bytes of each end of a part are looked at with its
// neighbours: more than any value of one line and what announces it.
const partEdge = 128

// An edge is a stretch of a part among those that are read together.
type edge struct {
	at, n int32 // in the joined bytes
	text  int
	from  int32 // in the part, folded
}

// piiOverParts looks at the ends of the parts of each message of those who
// write to the model. In what an assistant or a tool says the texts of one
// message are fields of a record, whose digits do not belong together.
func piiOverParts(j *judging) error {
	texts := j.r.Texts
	j.halves = j.halves[:0]
	for start := 0; start < len(texts); {
		end := start + 1
		for end < len(texts) && together(&texts[start], &texts[end]) {
			end++
		}
		if role := texts[start].Role; end > start+1 && (role == User || role == System) {
			if j.overdue() {
				return ErrTimeout
			}
			j.order = j.order[:0]
			for i := start; i < end; i++ {
				j.order = append(j.order, int32(i))
			}
			piiInParts(j, j.order, meetParts)
		}
		start = end
	}
	piiOverMessages(j)
	if len(j.halves) > 0 {
		keepHalves(j)
	}
	return nil
}

// piiOverMessages looks at the ends of messages that follow each other, where one
// ends and the next begins with what could be two halves of a value. Only what a
// check digit or a maker's prefix tells is believed there: two messages have more
// between them than two parts.
func piiOverMessages(j *judging) {
	texts := j.r.Texts
	loose := slices.IndexFunc(texts, func(t Text) bool { return isLoose(&t) }) >= 0
	readingOrder(j, func(t *Text) bool { return false })
	piiInOrder(j)
	if !loose {
		return
	}
	readingOrder(j, isLoose)
	piiInOrder(j)
	from := slices.IndexFunc(j.order, func(i int32) bool { return isLoose(&texts[i]) })
	to := from
	for to < len(j.order) && isLoose(&texts[j.order[to]]) {
		to++
	}
	slices.Reverse(j.order[from:to])
	piiInOrder(j)
}

// isLoose says that a text is no system prompt and stands in no message: a prompt,
// what is to come behind it, an earlier input. Which of them follows which is the
// template's affair, and several prompts of one request do not follow at all.
func isLoose(t *Text) bool { return t.Message < 0 && t.Role != System }

// piiInOrder looks at each two texts of order that follow each other.
func piiInOrder(j *judging) {
	for rest := j.order; len(rest) > 0; {
		n, as := 1, meetMessages
		for n < len(rest) && halvesMeet(j, int(rest[n-1]), int(rest[n])) {
			if isLoose(&j.r.Texts[rest[n-1]]) && isLoose(&j.r.Texts[rest[n]]) {
				as = meetLoosely
			}
			n++
		}
		if n > 1 {
			piiInParts(j, rest[:n], as)
			sortHalves(j)
		}
		rest = rest[n:]
	}
}

// readingOrder puts the texts into the order in which a worker's template writes
// them: system prompts that stand in no message come first, wherever in the body
// their member stands, then those of the others outside of messages that also
// says, then the messages.
func readingOrder(j *judging, also func(*Text) bool) {
	j.order = j.order[:0]
	for _, is := range [...]func(*Text) bool{
		func(t *Text) bool { return t.Message < 0 && t.Role == System }, also, func(t *Text) bool { return t.Message >= 0 },
	} {
		for i := range j.r.Texts {
			if is(&j.r.Texts[i]) {
				j.order = append(j.order, int32(i))
			}
		}
	}
}

// nearEnd is how close to the end of a message, in bytes, half of a value must lie.
const nearEnd = 48

// halvesMeet says whether there are digits close to the end of text a and to the
// beginning of text b, the next one.
func halvesMeet(j *judging, a, b int) bool {
	x, y := &j.r.Texts[a], &j.r.Texts[b]
	if !follows(x, y) || !written(x.Role) || !written(y.Role) {
		return false
	}
	before, after := j.folded(a).bytes, j.folded(b).bytes
	_, end := unpadded(before)
	start, _ := unpadded(after)
	return hasDigit(before[max(0, end-nearEnd):end]) && hasDigit(after[start:min(len(after), start+nearEnd)])
}

// maxPadding is how many bytes that say nothing may stand between two halves: of
// more a reader sees no more than of some.
const maxPadding = 16

// unpadded is where a text begins and ends without the white space, dots and other
// signs on both sides, where these are more than stand between two groups of digits.
func unpadded(text []byte) (from, to int) {
	says := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	to = len(text)
	if first := bytes.IndexFunc(text, says); first > maxPadding {
		from = first
	}
	if last := bytes.LastIndexFunc(text, says); last >= 0 && to-last > maxPadding+utf8.UTFMax {
		_, size := utf8.DecodeRune(text[last:])
		to = last + size
	}
	return from, to
}

// follows says whether y is read right behind x: the next message or part of it,
// or whatever comes behind a text that stands in no message.
func follows(x, y *Text) bool {
	if x.Message < 0 {
		return y.Message >= 0 || x.Role == System || y.Role != System
	}
	return y.Message > x.Message || y.Message == x.Message && x.Role == y.Role && (x.Role == User || x.Role == System)
}

// written says that a role's message is one written text, not a record of fields.
func written(r Role) bool { return r == User || r == System || r == Assistant || r == Other }

func hasDigit(text []byte) bool { return bytes.IndexFunc(text, unicode.IsNumber) >= 0 }

// sortHalves sorts the halves as keepHalves needs them and drops duplicates.
func sortHalves(j *judging) {
	slices.SortStableFunc(j.halves, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start))
	})
	j.halves = slices.CompactFunc(j.halves, func(a, b Entity) bool { return a.Text == b.Text && a.Start < b.End && b.Start < a.End })
}

// A meeting is how texts follow each other.
type meeting uint8

const (
	meetParts    meeting = iota // of one message
	meetMessages                // only what a check digit or a maker's prefix tells is believed
	meetLoosely                 // nor is that, of bare digits which no word announces
)

// believes says whether a find over the border of two texts counts.
func (m meeting) believes(s pii.Span, text []byte) bool {
	switch m {
	case meetMessages:
		return s.Type.Checked()
	case meetLoosely:
		return s.Type.Checked() && (s.Announced() || bytes.ContainsFunc(text, func(r rune) bool { return !unicode.IsNumber(r) }))
	}
	return true
}

// piiInParts finds what lies over the ends of parts that are read in this order.
func piiInParts(j *judging, parts []int32, as meeting) {
	j.joined, j.edges = j.joined[:0], j.edges[:0]
	for _, part := range parts {
		i := int(part)
		f := j.folded(i)
		own := f.bytes
		if f.first != f.last {
			own = own[:f.own]
		}
		start, end := unpadded(own)
		own = own[start:end]
		at := int32(start)
		if len(own) <= 2*partEdge {
			addEdge(j, i, own, at)
			continue
		}
		first := own[:partEdge]
		first = first[:bytes.LastIndexAny(first, " \n")+1]
		last := own[len(own)-partEdge:]
		last = last[bytes.IndexAny(last, " \n")+1:]
		addEdge(j, i, first, at)
		j.joined = append(j.joined, "\n\n"...)
		addEdge(j, i, last, at+int32(len(own)-len(last)))
	}
	j.spans = pii.Find(j.spans[:0], j.joined)
	edges := j.edges
	for _, s := range j.spans {
		for len(edges) > 0 && edges[0].at+edges[0].n <= s.Start {
			edges = edges[1:]
		}
		if float64(s.Score) >= j.c.options.PII.Threshold && as.believes(s, j.joined[s.Start:s.End]) {
			addHalves(j, s, edges)
		}
	}
}

func addEdge(j *judging, text int, stretch []byte, from int32) {
	j.edges = append(j.edges, edge{int32(len(j.joined)), int32(len(stretch)), text, from})
	j.joined = append(j.joined, stretch...)
}

// addHalves adds to halves what stands in each of the edges of a span that begins
// in the first of them and does not end there.
func addHalves(j *judging, s pii.Span, edges []edge) {
	if len(edges) == 0 || s.End <= edges[0].at+edges[0].n {
		return
	}
	for _, e := range edges {
		if e.at >= s.End {
			return
		}
		from, to := max(s.Start, e.at), min(s.End, e.at+e.n)
		for from < to && j.joined[from] == ' ' {
			from++
		}
		if from == to {
			continue
		}
		half := s
		half.Start, half.End = j.folds.original(&j.folds.texts[e.text], from-e.at+e.from, to-e.at+e.from)
		j.halves = append(j.halves, Entity{e.text, half})
	}
}

// keepHalves moves the sorted halves into the verdict. A half replaces what it was
// taken for by itself, and is dropped where its own text has something longer there.
func keepHalves(j *judging) {
	spans := slices.DeleteFunc(j.v.PII.Spans, func(e Entity) bool {
		at, _ := slices.BinarySearchFunc(j.halves, e, func(h, e Entity) int {
			return cmp.Or(cmp.Compare(h.Text, e.Text), cmp.Compare(h.End, e.Start+1))
		})
		for ; at < len(j.halves) && j.halves[at].Text == e.Text && j.halves[at].Start < e.End; at++ {
			h := &j.halves[at]
			if e.Start >= h.Start && e.End <= h.End {
				return true
			}
			h.End = h.Start // not to be kept; it stays in order
		}
		return false
	})
	for _, h := range j.halves {
		if h.End > h.Start {
			spans = append(spans, h)
		}
	}
	slices.SortStableFunc(spans, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Start, b.Start))
	})
	j.v.PII.Spans = spans
}
