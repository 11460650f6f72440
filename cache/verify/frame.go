// Frame: who does what to whom, as the small words around the others tell it.
package verify

// ends says whether word i is the last of its clause.
func (s *side) ends(i int) bool {
	return i+1 == len(s.words) || s.words[i+1].clause
}

// frameDiffers refuses pairs whose words are the same and have other parts.
func frameDiffers(p *pair) bool {
	return p.subjectMoved() || p.transferMoved(&p.a, &p.b) || p.transferMoved(&p.b, &p.a) || p.actorMoved(&p.a, &p.b) || p.actorMoved(&p.b, &p.a) ||
		p.relativeDiffers(&p.a, &p.b) || p.relativeDiffers(&p.b, &p.a)
}

// subjectMoved says whether who is asked for acts here and is acted upon there.
// A question for its subject keeps the order of a statement (who paid the
// owner), one for anything else puts a verb before the subject (whom did the
// owner pay): so the same words stand the other way round.
func (p *pair) subjectMoved() bool {
	a, b := p.a.inversion(), p.b.inversion()
	return a != unclear && b != unclear && (a != b || a == either) && p.contentMoved() || p.whoMoved(&p.a, &p.b) || p.whoMoved(&p.b, &p.a) || p.whoseMoved(&p.a, &p.b) || p.whoseMoved(&p.b, &p.a)
}

// whoMoved says whether a Chinese who stands first in s, where it acts, and last
// in t, where it is acted upon.
func (p *pair) whoMoved(s, t *side) bool {
	return len(s.words) > 2 && len(t.words) > 2 && string(s.word(0)) == "谁" && string(t.word(len(t.words)-1)) == "谁" && !s.isCopular() && !t.isCopular()
}

// whoseMoved says whether s asks who a thing is of and t who it is: 他是谁的老师,
// 谁是他的老师. What follows 的 is what both speak of.
func (p *pair) whoseMoved(s, t *side) bool {
	return s.ofWhom(true) && t.ofWhom(false) && !t.ofWhom(true) && s.isCopular() && !s.saysOther() && !t.saysOther()
}

// ofWhom says whether 谁的 and a thing stand in a side, or 谁 with no 的.
func (s *side) ofWhom(owner bool) bool {
	for i := range s.raws {
		if string(s.rawText(i)) == "谁" && (string(s.rawText(i+1)) == "的") == owner && (!owner || s.rawText(i+2) != nil) {
			return true
		}
	}
	return false
}

// isCopular says whether a Chinese question has the verb to be.
func (s *side) isCopular() bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "是", "是谁", "叫", "为", "当":
			return true
		}
	}
	return false
}

// transferMoved says whether s gives what t takes. Chinese verbs of lending go
// either way, and the preposition tells: 借给他, 向他借.
func (p *pair) transferMoved(s, t *side) bool {
	return s.lends() && t.borrows()
}

// lends says whether a side lends or lets to somebody.
func (s *side) lends() bool {
	lends, to := false, false
	for i := range s.words {
		switch w := &s.words[i]; string(s.word(i)) {
		case "借", "租", "贷":
			lends = true
		case "借给", "租给", "贷给", "出借", "出租":
			return true
		case "给":
			to = to || w.match < 0
		}
	}
	return lends && to
}

// borrows says whether a side borrows or hires from somebody.
func (s *side) borrows() bool {
	from := false
	for i := range s.words {
		switch string(s.word(i)) {
		case "借", "租", "贷":
			if from {
				return true
			}
		case "向", "跟", "找", "从", "问", "同", "和":
			from = true
		}
	}
	return false
}

// An inversion is how the words of a question are put.
type inversion uint8

const (
	unclear  inversion = iota
	stated             // who paid the owner
	inverted           // whom did the owner pay
	either             // who will pay the owner, who will the owner pay
)

// inversion tells the order of a question for a person or thing. A passive
// (whom was it paid by) asks for who acts in either order.
func (s *side) inversion() inversion {
	if s.form != who && s.form != what || len(s.words) < 3 || s.words[0].class&asks == 0 || s.words[0].class&cjk != 0 {
		return unclear
	}
	helped := false
	for i := range s.words {
		switch string(s.word(i)) {
		case "is", "are", "am", "was", "were", "be", "been", "being", "by", "mean", "means":
			return unclear
		case "do", "does", "did":
			if i > 2 || s.ends(i) {
				return unclear
			}
			helped = true
		}
		if s.words[i].clause && i > 0 {
			return unclear
		}
	}
	if helped || string(s.word(0)) == "whom" {
		return inverted
	}
	switch w := &s.words[1]; {
	case w.class&(asks|pronoun|negator) != 0 || s.words[0].taken():
		return unclear
	case w.class&aux != 0:
		return either
	}
	return stated
}

// taken says whether a question word is a phrase: what is, what are the.
func (w *word) taken() bool { return w.end-w.start > 5 }

// actorMoved says whether s keeps somebody from doing what t stops doing to
// somebody: stop the neighbour from watching, stop watching the neighbour.
func (p *pair) actorMoved(s, t *side) bool {
	for i := 2; i+1 < len(s.words); i++ {
		if w := &s.words[i]; w.match >= 0 || string(s.word(i)) != "from" {
			continue
		}
		m := int(s.words[i+1].match)
		if m < 1 || !has(s.word(i+1), "ing") || !has(t.word(m), "ing") {
			continue
		}
		before := &t.words[m-1] // stop
		if before.match < 0 || before.class&(small|asks) != 0 || s.words[i].raw-s.words[before.match].raw < 2 {
			continue
		}
		if t.takesObject(int(t.words[m].raw)) {
			return true
		}
	}
	return false
}

// takesObject says whether what follows the verb at raw i is who or what it is
// done to. Without an article it may be what does it: bleeding gums.
func (s *side) takesObject(i int) bool {
	switch string(s.rawText(i + 1)) {
	case "a", "an", "the", "my", "your", "his", "her", "their", "our", "its", "this", "that", "these", "those",
		"me", "you", "him", "us", "them", "it", "someone", "somebody", "anyone", "anybody", "everyone", "people", "others", "other":
		return true
	}
	return false
}

// relativeDiffers says whether s names what is to be done with a thing and t what
// somebody does with it: a song to sing, a song you sing. The first asks for
// advice, the second for a fact.
func (p *pair) relativeDiffers(s, t *side) bool {
	for i := 1; i < len(s.words); i++ {
		w := &s.words[i]
		m := int(w.match)
		if m < 2 || string(s.rawText(int(w.raw)-1)) != "to" {
			continue
		}
		head := i - 1
		if string(s.word(head)) == "to" {
			head--
		}
		if head < 0 || s.words[head].match != int32(m-2) || s.words[head].class&(small|asks|light) == small {
			continue
		}
		if v := &t.words[m-1]; v.class&pronoun != 0 && v.match < 0 && t.words[m].raw == v.raw+1 && t.words[m-2].class&(asks|aux) == 0 {
			return true
		}
	}
	return false
}
