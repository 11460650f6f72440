// Negation: not, without; 不, 没有, 无.

package verify

// A negation is a side as what its negating words turn round.
type negation struct{ *side }

// negationDiffers refuses pairs of which one side is turned round.
func negationDiffers(p *pair) bool {
	a, b := negation{&p.a}, negation{&p.b}
	return a.count() != b.count() || affixes{p}.reversed() || affixes{p}.apart() || negatesOther(a, b)
}

// negatesOther says whether a negation that both sides have turns another word
// round here than there.
func negatesOther(a, b negation) bool {
	for i := range a.words {
		w := &a.words[i]
		if w.class&negator == 0 || w.match < 0 {
			continue
		}
		if k := int(w.match); a.beforeSubject(i) && b.behindSubject(k) || a.behindSubject(i) && b.beforeSubject(k) {
			if !a.saysMore() && !b.saysMore() && !a.twoVerbs() {
				continue // why isn't it rising, why is it not rising
			}
		}
		mine, other := a.turned(i), b.turned(int(w.match))
		if (mine < 0) != (other < 0) {
			return true
		}
		if mine >= 0 && other >= 0 && a.words[mine].match >= 0 && b.words[other].match >= 0 && a.words[mine].match != int32(other) {
			return true
		}
	}
	return false
}

// turned returns the word that negation i turns round, -1: none.
func (s negation) turned(i int) int {
	for k := i + 1; k < len(s.words); k++ {
		if s.words[k].content() {
			return k
		}
	}
	return -1
}

// beforeSubject says whether negation i stands behind the verb of a question,
// before its subject: what it turns round comes later.
func (s negation) beforeSubject(i int) bool {
	return i > 0 && s.words[i-1].class&aux != 0 && (i == 1 || s.words[i-2].class&asks != 0)
}

// behindSubject says whether negation i stands behind a subject, and not beside a
// verb of its own.
func (s negation) behindSubject(i int) bool { return i > 1 && s.words[i-1].class&aux == 0 }

// twoVerbs says whether a question has two verbs that may each be negated.
func (s negation) twoVerbs() bool {
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

// begins says whether word i is the verb that a clause begins with, in a question.
func (s negation) begins(i int) bool {
	return s.words[i].clause && s.words[i].class&aux != 0 && string(s.word(i)) != "do"
}

// count is how many words negate. The one of a question that begins with its verb
// (isn't, can't) asks for the same as without it.
func (s negation) count() int {
	n := 0
	for i := range s.words {
		w := &s.words[i]
		if w.class&negator == 0 {
			continue
		}
		if i == 0 || !s.begins(i-1) || w.raw != s.words[i-1].raw+1 {
			n++
		}
	}
	return n
}
