// Implied: small words that say nothing where they stand.
package verify

// implied says whether the unmatched small word i of s goes without saying in t:
// the mood of a condition that both have (what would happen if it broke, what
// happens if it breaks), a degree that why takes for granted (why is it so loud).
func (s *side) implied(i int, t *side) bool {
	switch string(s.word(i)) {
	case "would", "will":
		return s.says("if") && t.says("if")
	case "so":
		return s.form == why && t.form == why
	}
	return false
}

// matchBecoming matches to be with to become where it is asked how: either is how
// one comes to be it.
func (p *pair) matchBecoming() {
	if p.a.form != how || p.b.form != how || len(p.a.words) < 3 || len(p.b.words) < 3 {
		return
	}
	w, u := &p.a.words[1], &p.b.words[1]
	if w.match < 0 && u.match < 0 && isBecoming(p.a.word(1)) && isBecoming(p.b.word(1)) {
		w.match, u.match = 1, 1
	}
}

func isBecoming(word []byte) bool { return string(word) == "be" || string(word) == "become" }
