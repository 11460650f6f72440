// Implied: small words that say nothing where they stand.

package verify

// implied says whether the unmatched small word i of s goes without saying in t:
// the mood of a condition that both have (what would happen if it broke, what
// happens if it breaks), a degree that why takes for granted (why is it so loud).
func (s clause) implied(i int, t clause) bool {
	switch string(s.word(i)) {
	case "would", "will":
		return s.says("if") && t.says("if")
	case "so":
		return s.form == why && t.form == why
	}
	return false
}

// silent says whether word i is grammar that a question has or has not by the
// order of its words.
func (s clause) silent(i int) bool {
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

// impliedBy says whether all that s alone says goes without saying in t.
func (s clause) impliedBy(t clause) bool {
	for i := range s.words {
		if s.words[i].match < 0 && !s.silent(i) && !s.implied(i, t) {
			return false
		}
	}
	return true
}
