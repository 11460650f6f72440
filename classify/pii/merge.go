// One list of values from two: what the rules found and what a tagger found.

package pii

// Merge appends to dst the spans of rules and of names, each sorted by Start and not overlapping,
// and returns it, sorted and not overlapping. Of two spans that overlap, the stronger type stays:
// types with a distinctive form before addresses and postal codes, and these before names. Of
// equally strong ones the longer stays. A URL yields to a value inside it that has a check digit.
// dst must not share memory with rules or names.
func Merge(dst, rules, names []Span) []Span {
	base := len(dst)
	for len(rules) > 0 || len(names) > 0 {
		from := &rules
		if len(rules) == 0 || len(names) > 0 && names[0].Start < rules[0].Start {
			from = &names
		}
		s := (*from)[0]
		*from = (*from)[1:]
		// s begins where the last one does or later, so it overlaps that one at most.
		if n := len(dst); n == base || dst[n-1].End <= s.Start {
			dst = append(dst, s)
		} else if last := &dst[n-1]; last.Type == DomainName && s.Type.Checked() && last.Start < s.Start {
			last.End = s.Start // it gives up its tail
			dst = append(dst, s)
		} else if s.Beats(dst[n-1]) {
			dst[n-1] = s
		}
	}
	return dst
}

// Beats reports whether s stays if it overlaps other.
func (s Span) Beats(other Span) bool {
	a, b := s.Type.strength(), other.Type.strength()
	return a > b || a == b && s.End-s.Start > other.End-other.Start
}

// strength orders the types by how much their form alone says.
func (t Type) strength() int {
	switch t {
	case Person, GPE, Organization, NRP, Title:
		return 0
	case StreetAddress, ZipCode:
		return 1
	}
	return 2
}
