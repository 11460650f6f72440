// Parts: personal data that begin in one part of a message and end in the next.
// A worker's template puts the parts together, so that a card number cut in two
// reaches the model whole.

package classify

import (
	"bytes"
	"cmp"
	"slices"

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
			piiInParts(j, j.order)
		}
		start = end
	}
	piiOverMessages(j)
	if len(j.halves) > 0 {
		keepHalves(j)
	}
	return nil
}

// piiOverMessages looks at messages that follow each other where one ends and the
// next begins with what could be two halves of a value. Only values with a check
// digit or a maker's prefix count there: two messages belong together less than two
// parts of one do.
func piiOverMessages(j *judging) {
	readingOrder(j)
	for rest := j.order; len(rest) > 0; {
		n := 1
		for n < len(rest) && halvesMeet(j, int(rest[n-1]), int(rest[n])) {
			n++
		}
		if n > 1 {
			first := len(j.halves)
			piiInParts(j, rest[:n])
			found := slices.DeleteFunc(j.halves[first:], func(e Entity) bool { return !e.Type.Checked() })
			j.halves = j.halves[:first+len(found)]
			sortHalves(j)
		}
		rest = rest[n:]
	}
}

// readingOrder puts the texts into the order in which a worker's template writes
// them: system prompts that stand in no message come first, wherever in the body
// their member stands.
func readingOrder(j *judging) {
	j.order = j.order[:0]
	for _, first := range [...]bool{true, false} {
		for i := range j.r.Texts {
			if t := &j.r.Texts[i]; (t.Message < 0 && t.Role == System) == first {
				j.order = append(j.order, int32(i))
			}
		}
	}
}

// nearEnd is how close to the end of a message, in bytes, half of a value must lie.
const nearEnd = 48

// halvesMeet says whether there are digits close to the end of text a and to the
// beginning of text b, the next one, of another message.
func halvesMeet(j *judging, a, b int) bool {
	x, y := &j.r.Texts[a], &j.r.Texts[b]
	if !follows(x, y) || !written(x.Role) || !written(y.Role) {
		return false
	}
	before, after := j.folded(a).bytes, j.folded(b).bytes
	return hasDigit(before[max(0, len(before)-nearEnd):]) && hasDigit(after[:min(len(after), nearEnd)])
}

// follows says whether y is read right behind x: the next message, or whatever
// comes behind a system prompt that stands in no message.
func follows(x, y *Text) bool {
	if x.Message < 0 {
		return x.Role == System && (y.Message >= 0 || y.Role == User)
	}
	return y.Message > x.Message
}

// written says that a role's message is one written text, not a record of fields.
func written(r Role) bool { return r == User || r == System || r == Assistant || r == Other }

func hasDigit(text []byte) bool { return bytes.ContainsAny(text, "0123456789") }

// sortHalves sorts the halves as keepHalves needs them and drops duplicates.
func sortHalves(j *judging) {
	slices.SortStableFunc(j.halves, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start))
	})
	j.halves = slices.CompactFunc(j.halves, func(a, b Entity) bool { return a.Text == b.Text && a.Start < b.End && b.Start < a.End })
}

// piiInParts finds what lies over the ends of parts that are read in this order.
func piiInParts(j *judging, parts []int32) {
	j.joined, j.edges = j.joined[:0], j.edges[:0]
	for _, part := range parts {
		i := int(part)
		f := j.folded(i)
		own := f.bytes
		if f.first != f.last {
			own = own[:f.own]
		}
		if len(own) <= 2*partEdge {
			addEdge(j, i, own, 0)
			continue
		}
		first := own[:partEdge]
		first = first[:bytes.LastIndexAny(first, " \n")+1]
		last := own[len(own)-partEdge:]
		last = last[bytes.IndexAny(last, " \n")+1:]
		addEdge(j, i, first, 0)
		j.joined = append(j.joined, "\n\n"...)
		addEdge(j, i, last, int32(len(own)-len(last)))
	}
	j.spans = pii.Find(j.spans[:0], j.joined)
	edges := j.edges
	for _, s := range j.spans {
		for len(edges) > 0 && edges[0].at+edges[0].n <= s.Start {
			edges = edges[1:]
		}
		if float64(s.Score) >= j.c.options.PII.Threshold {
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
