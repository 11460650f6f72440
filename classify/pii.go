// PII: personal data in every text, by rules with check digits and, for names,
// by the tagger.

package classify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvasir/classify/pii"
)

// KindPII has the types of classify/pii as values.
const KindPII Kind = "pii"

func piiTypes() (names []string) {
	for t := pii.Type(1); t <= pii.Types(); t++ {
		names = append(names, t.String())
	}
	return names
}

// personal is a judging that looks for personal data.
type personal struct{ *judging }

func (j *judging) findPII() error { return personal{j}.search() }

func (j personal) search() error {
	for i := range j.r.Texts {
		if j.overdue() {
			return ErrTimeout
		}
		if err := j.piiIn(i); err != nil {
			return err
		}
	}
	if err := j.piiOverParts(); err != nil {
		return err
	}
	j.v.PII.Judged = true
	return nil
}

// piiIn appends the spans of one text, in its own bytes, to the verdict.
func (j personal) piiIn(i int) error {
	first, key := len(j.v.PII.Spans), j.c.shared.key(j.r.Texts[i].Bytes)
	if known, ok := j.c.shared.pii.get(key); ok {
		for _, s := range known.spans[:known.n] {
			j.v.PII.Spans = append(j.v.PII.Spans, Entity{i, s})
		}
		return nil
	}
	if err := j.searchPII(i); err != nil {
		return err
	}
	var few fewSpans
	spans := j.v.PII.Spans[first:]
	if few.n = len(spans); few.n <= len(few.spans) {
		for k := range spans {
			few.spans[k] = spans[k].Span
		}
		j.c.shared.pii.put(key, few)
	}
	return nil
}

// searchPII is piiIn of a text that did not come of late.
func (j personal) searchPII(i int) error {
	f := j.folded(i)
	if len(f.bytes) == 0 {
		return nil
	}
	if raw := j.r.Texts[i].Bytes; f.first != f.last && bytes.Contains(raw, []byte(tagPrefix)) {
		first := len(j.v.PII.Spans)
		defer j.alsoWithoutTags(i, first)
	}
	j.spans = pii.Find(j.spans[:0], f.bytes)
	if !j.c.names {
		j.keepSpans(i, f)
		return nil
	}
	for p := (pieces{text: f.bytes, size: maxPiece}); p.next(); {
		if j.overdue() {
			return ErrTimeout
		}
		j.namesIn(&p)
	}
	j.keepSpans(i, f)
	return nil
}

// tagPrefix begins every tag character.
const tagPrefix = "\xf3\xa0"

// alsoWithoutTags adds to the spans of text i, which are those from first on, what
// stands there for who does not see tags. Folding spells them out, for a model may
// read them; between two digits they hide a number from that reading.
func (j personal) alsoWithoutTags(i, first int) {
	j.spans = pii.Find(j.spans[:0], j.r.Texts[i].Bytes)
	known := slices.Clone(j.v.PII.Spans[first:])
	for _, s := range j.spans {
		inside := slices.ContainsFunc(known, func(e Entity) bool { return e.Start <= s.Start && s.End <= e.End })
		if float64(s.Score) >= j.c.options.PII.Threshold && !inside {
			known = slices.DeleteFunc(known, func(e Entity) bool { return s.Start < e.End && e.Start < s.End })
			known = append(known, Entity{i, s})
		}
	}
	slices.SortStableFunc(known, func(a, b Entity) int { return cmp.Compare(a.Start, b.Start) })
	j.v.PII.Spans = append(j.v.PII.Spans[:first], known...)
}

// asksForNames says whether anything can depend on what only the tagger finds:
// where all of it may pass, and no decision asks, it need not look.
func (c *Classifier) asksForNames(conditions []Decision) bool {
	o := &c.options.PII
	if o.All || o.Action == Annotate {
		return true
	}
	for t := pii.Type(1); t <= pii.Types(); t++ {
		if (isName(t) || t == pii.StreetAddress) && !slices.Contains(o.Allow, t.String()) {
			return true
		}
	}
	return slices.ContainsFunc(conditions, func(d Decision) bool { return d.When.asksFor(KindPII) })
}

// asksFor says whether a kind stands anywhere in the condition.
func (c *Condition) asksFor(kind Kind) bool {
	return slices.ContainsFunc(c.Is, func(is Is) bool { return is.Kind == kind }) ||
		slices.ContainsFunc(c.All, func(w Condition) bool { return w.asksFor(kind) }) ||
		slices.ContainsFunc(c.Any, func(w Condition) bool { return w.asksFor(kind) }) ||
		c.Not != nil && c.Not.asksFor(kind)
}

// namesIn appends the names in one piece to spans.
func (j personal) namesIn(p *pieces) {
	from := len(j.spans)
	key := j.c.shared.key(p.piece)
	if known, ok := j.c.shared.names.get(key); ok {
		j.spans = append(j.spans, known.spans[:known.n]...)
	} else {
		j.spans = j.reader.names(j.spans, p.piece)
		if known.n = copy(known.spans[:], j.spans[from:]); known.n == len(j.spans)-from {
			j.c.shared.names.put(key, known)
		}
	}
	for k := from; k < len(j.spans); k++ {
		j.spans[k].Start += int32(p.at)
		j.spans[k].End += int32(p.at)
	}
}

// keepSpans moves what was found in one text into the verdict, sorted, those
// above the threshold. Where two overlap, rules win over names and the first
// over the later; what was decoded from one stretch all stands at that stretch.
func (j personal) keepSpans(i int, f *folded) {
	n := 0
	for _, s := range j.spans {
		if float64(s.Score) >= j.c.options.PII.Threshold {
			j.spans[n] = s
			n++
		}
	}
	spans := j.spans[:n]
	slices.SortStableFunc(spans, func(a, b pii.Span) int { return int(a.Start - b.Start) })
	first := len(j.v.PII.Spans)
	for _, s := range spans {
		decoded := f.decoded(s.Start)
		s.Start, s.End = j.folds.original(f, s.Start, s.End)
		kept := j.v.PII.Spans[first:]
		switch last := len(kept) - 1; {
		case decoded || last < 0 || kept[last].End <= s.Start:
			j.v.PII.Spans = append(j.v.PII.Spans, Entity{i, s})
		case s.Beats(kept[last].Span):
			kept[last] = Entity{i, s} // a rule, or the name whole that the piece before cut
		}
	}
	if f.first != f.last {
		found := j.v.PII.Spans[first:]
		slices.SortStableFunc(found, func(a, b Entity) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Type, b.Type), cmp.Compare(b.Score, a.Score))
		})
		found = slices.CompactFunc(found, func(a, b Entity) bool { return a.Start == b.Start && a.Type == b.Type })
		j.v.PII.Spans = j.v.PII.Spans[:first+len(found)]
	}
}

// isName says that only the tagger finds this type.
func isName(t pii.Type) bool { return t >= pii.Person }

func isPII(j *judging, value string) (float64, bool) {
	for i := range j.v.PII.Spans {
		if s := &j.v.PII.Spans[i]; s.Type.String() == value {
			return float64(s.Score), true
		}
	}
	return 0, false
}

// reportPII counts what was found by type: what may not pass is marked.
func reportPII(v *Verdict) string {
	counts := map[string]int{}
	var order []string
	for i := range v.PII.Spans {
		name := v.PII.Spans[i].Type.String()
		if counts[name]++; counts[name] == 1 {
			order = append(order, name)
		}
	}
	if len(order) == 0 {
		return "nothing"
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%d %s", counts[name], name)
		if slices.Contains(v.PII.Denied, name) {
			order[i] += " (may not pass)"
		}
	}
	return strings.Join(order, ", ")
}

func foundPII(j *judging) string {
	var types []string
	for i := range j.v.PII.Spans {
		types = append(types, j.v.PII.Spans[i].Type.String())
	}
	slices.Sort(types)
	if types = slices.Compact(types); len(types) == 0 {
		return "none"
	}
	return strings.Join(types, ", ")
}
