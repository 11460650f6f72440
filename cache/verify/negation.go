// Negation: not, without; 不, 没有, 无.

package verify

// negationDiffers refuses pairs in which only one side is negated.
func negationDiffers(p *pair) bool {
	a, b := &p.a, &p.b
	return negations(a) != negations(b) || prefixReverses(p) || prefixApart(p) || negatesOther(a, b)
}

// negatesOther reports whether a negation that both sides have negates different words.
func negatesOther(a, b *side) bool {
	for i := range a.words {
		w := &a.words[i]
		if w.class&negator == 0 || w.match < 0 {
			continue
		}
		if k := int(w.match); beforeSubject(a, i) && behindSubject(b, k) || behindSubject(a, i) && beforeSubject(b, k) {
			if !a.saysMore() && !b.saysMore() && !hasTwoVerbs(a) {
				continue // why isn't it rising, why is it not rising
			}
		}
		mine, other := turnedBy(a, i), turnedBy(b, int(w.match))
		if (mine < 0) != (other < 0) {
			return true
		}
		if mine >= 0 && other >= 0 && a.words[mine].match >= 0 && b.words[other].match >= 0 && a.words[mine].match != int32(other) {
			return true
		}
	}
	return false
}

// turnedBy returns the word that negation i negates; -1: none.
func turnedBy(s *side, i int) int {
	for k := i + 1; k < len(s.words); k++ {
		if s.words[k].content() {
			return k
		}
	}
	return -1
}

// beforeSubject reports whether negation i stands between the verb and the subject of a question:
// then the word that it negates comes later.
func beforeSubject(s *side, i int) bool {
	return i > 0 && s.words[i-1].class&aux != 0 && (i == 1 || s.words[i-2].class&asks != 0)
}

// behindSubject reports whether negation i stands after a subject and not after an auxiliary
// verb.
func behindSubject(s *side, i int) bool { return i > 1 && s.words[i-1].class&aux == 0 }

// hasTwoVerbs reports whether a question has two verbs, each of which may be negated.
func hasTwoVerbs(s *side) bool {
	n := 0
	for i := range s.words {
		switch string(s.word(i)) {
		case "but", "and", "while", "whereas", "yet", "or", "if", "when", "because":
			if i > 0 {
				return true
			}
		default:
			if s.words[i].class&aux != 0 {
				n++
			}
		}
	}
	return n > 1
}

// beginsQuestion reports whether word i is the verb with which a clause of a question begins.
func beginsQuestion(s *side, i int) bool {
	return s.words[i].clause && s.words[i].class&aux != 0 && string(s.word(i)) != "do"
}

// negations counts the negating words. A question that begins with a negated verb (isn't, can't)
// asks the same as without the negation, so that one does not count.
func negations(s *side) int {
	n := 0
	for i := range s.words {
		w := &s.words[i]
		if w.class&negator == 0 {
			continue
		}
		if i == 0 || !beginsQuestion(s, i-1) || w.raw != s.words[i-1].raw+1 {
			n++
		}
	}
	return n
}
