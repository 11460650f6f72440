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

// searchPersonal looks into every text, and then at what lies over the ends of
// parts and messages.
func searchPersonal(j *judging) error {
	for i := range j.r.Texts {
		if j.overdue() {
			return ErrTimeout
		}
		if err := piiIn(j, i); err != nil {
			return err
		}
	}
	if err := piiOverParts(j); err != nil {
		return err
	}
	j.v.PII.Judged = true
	return nil
}

// piiIn appends the spans of one text, in its own bytes, to the verdict.
func piiIn(j *judging, i int) error {
	first, key := len(j.v.PII.Spans), j.c.shared.key(j.r.Texts[i].Bytes)
	if known, ok := j.c.shared.pii.get(key); ok {
		for _, s := range known.spans[:known.n] {
			j.v.PII.Spans = append(j.v.PII.Spans, Entity{i, s})
		}
		return nil
	}
	if err := searchPII(j, i); err != nil {
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

// searchPII looks for personal data in a text whose result is not known from an equal one.
func searchPII(j *judging, i int) error {
	f := j.folded(i)
	if len(f.bytes) == 0 {
		return nil
	}
	if raw := j.r.Texts[i].Bytes; f.first != f.last && bytes.Contains(raw, []byte(tagPrefix)) {
		first := len(j.v.PII.Spans)
		defer alsoWithoutTags(j, i, first)
	}
	j.spans = pii.Find(j.spans[:0], f.bytes)
	if !j.c.names {
		keepSpans(j, i, f)
		return nil
	}
	rules := len(j.spans)
	for p := (pieces{text: f.bytes, size: maxPiece}); p.next(); {
		if j.overdue() {
			return ErrTimeout
		}
		if err := namesIn(j, &p); err != nil {
			return err
		}
	}
	if j.c.options.PII.Model.Dir != "" {
		j.spans = cutAtRules(j.spans, rules)
	}
	keepSpans(j, i, f)
	return nil
}

// tagPrefix begins every tag character.
const tagPrefix = "\xf3\xa0"

// alsoWithoutTags adds to the spans of text i, which are those from first on, what a
// reader finds who does not see tag characters. Folding spells tags out, because a
// model may read them; but a tag between two digits then hides the number.
func alsoWithoutTags(j *judging, i, first int) {
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

// asksForNames says whether anything depends on what only the tagger finds. Where
// all names may pass and no decision asks for them, it need not run.
func (c *Classifier) asksForNames(conditions []Decision) bool {
	o := &c.options.PII
	if o.All || o.Action == Annotate || o.Model.Dir != "" { // whatever it may find
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
func namesIn(j *judging, p *pieces) (err error) {
	from := len(j.spans)
	key := j.c.shared.key(p.piece)
	if known, ok := j.c.shared.names.get(key); ok {
		j.spans = append(j.spans, known.spans[:known.n]...)
	} else {
		if j.spans, err = j.reader.names(j.spans, p.piece); err != nil {
			return err
		}
		if known.n = copy(known.spans[:], j.spans[from:]); known.n == len(j.spans)-from {
			j.c.shared.names.put(key, known)
		}
	}
	for k := from; k < len(j.spans); k++ {
		j.spans[k].Start += int32(p.at)
		j.spans[k].End += int32(p.at)
	}
	return nil
}

// keepSpans moves the spans of one text that reach the threshold into the verdict,
// sorted. Where two overlap, a rule's wins over a name, and the earlier over the
// later. Spans in decoded text all stand at the stretch that was decoded.
func keepSpans(j *judging, i int, f *folded) {
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
