// Implied: function words that add no meaning where they stand.

package verify

// isImplied reports whether t implies the unmatched function word i of s: the mood of a condition
// that both have (what would happen if it broke, what happens if it breaks), or a degree that
// "why" implies (why is it so loud).
func isImplied(s *side, i int, t *side) bool {
	switch string(s.word(i)) {
	case "would", "will":
		return s.says("if") && t.says("if")
	case "so":
		return s.form == why && t.form == why
	}
	return false
}

// isSilent reports whether word i is grammar that a question may have or lack, depending on its
// word order.
func isSilent(s *side, i int) bool {
	w := &s.words[i]
	if w.class&asks != 0 || w.class&number != 0 && w.class&light != 0 { // a mile, one mile
		return true
	}
	if w.class&small == 0 || w.class&negator != 0 {
		return false
	}
	switch string(s.word(i)) {
	case "is", "are", "am", "do", "does", "did", "it", "that", "there", "got", "是", "会", "有", "由", "个", "一个":
		return true
	}
	return false
}

// isImpliedBy reports whether t implies every unmatched word of s.
func isImpliedBy(s *side, t *side) bool {
	for i := range s.words {
		if s.words[i].match < 0 && !isSilent(s, i) && !isImplied(s, i, t) {
			return false
		}
	}
	return true
}
