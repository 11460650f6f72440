// Roles: who does what to whom.

package verify

// roles compares the roles that people and things have in s with those in t.
type roles struct{ s, t *side }

// rolesDiffer refuses pairs with the same words in different roles. Some of the checks apply only
// if the content words have moved too.
func rolesDiffer(p *pair) bool {
	a, b := p.sides()
	r, back := roles{a, b}, roles{b, a}
	return r.governedMoved() || r.ownerMoved() || r.partMoved() || back.partMoved() ||
		order{a, b}.contentMoved() && (r.subjectMoved() || r.personsMoved() || r.endsMoved() || back.endsMoved())
}

// partMoved reports whether somebody or something has a role in s that it cannot have in t,
// whatever the order of the other words. It is called for both sides.
func (r roles) partMoved() bool {
	return r.whoMoved() || r.whoseMoved() || r.transferMoved() || r.actorMoved() || r.relativeMoved()
}

// subjectMoved reports whether the person asked for is the subject in s and the object in t. A
// question for its subject keeps the order of a statement (who paid the owner). A question for
// anything else puts a verb before the subject (whom did the owner pay), so the same words come
// in reversed order.
func (r roles) subjectMoved() bool {
	s, t := inversionOf(r.s), inversionOf(r.t)
	return s != unclear && t != unclear && (s != t || s == either)
}

// personsMoved reports whether a person is the subject in s and the object in t: if I report to
// my boss, if my boss reports to me.
func (r roles) personsMoved() bool {
	acts, suffers := personsIn(r.s)
	actsThere, suffersThere := personsIn(r.t)
	return acts != actsThere && suffers != suffersThere && acts+suffers == actsThere+suffersThere
}

// endsMoved reports whether a Chinese question begins with the person who acts, which may be part
// of its question word, and the other question ends with the same person: 我怎么起诉老板, 老板怎么起诉我.
func (r roles) endsMoved() bool {
	s, t := r.s, r.t
	m := len(t.words) - 1
	if len(s.words) < 3 || m < 2 || string(s.rawText(0)) != "我" || string(t.word(m)) != "我" || isCopular(s) || isCopular(t) {
		return false
	}
	return s.words[0].class&(asks|pronoun) != 0
}

// governedMoved reports whether a Chinese pronoun follows a preposition only in s: 我怎么跟你, 你怎么跟我.
func (r roles) governedMoved() bool {
	for i := range r.s.words {
		if w := &r.s.words[i]; w.class&pronoun != 0 && w.class&cjk != 0 && w.match >= 0 && isGoverned(r.s, i) != isGoverned(r.t, int(w.match)) {
			return true
		}
	}
	return false
}

// ownerMoved reports whether the owner in s is the owned in t: the dog's owner, the owner's dog.
func (r roles) ownerMoved() bool {
	s, t := r.s, r.t
	for i := 0; i+1 < len(s.words); i++ {
		w, u := &s.words[i], &s.words[i+1]
		if s.raws[w.raw].owns && u.raw == w.raw+1 && u.match >= 0 && w.match == u.match+1 {
			if k := t.words[u.match].raw; t.raws[k].owns && t.words[w.match].raw == k+1 {
				return true
			}
		}
	}
	return false
}

// whoMoved reports whether a Chinese "who" stands first in s, as the subject, and last in t, as
// the object.
func (r roles) whoMoved() bool {
	s, t := r.s, r.t
	return len(s.words) > 2 && len(t.words) > 2 && string(s.word(0)) == "谁" && string(t.word(len(t.words)-1)) == "谁" && !isCopular(s) && !isCopular(t)
}

// whoseMoved reports whether s asks whose somebody is and t who it is: 他是谁的老师, 谁是他的老师. The word
// after 的 is the topic of both.
func (r roles) whoseMoved() bool {
	s, t := r.s, r.t
	return asksOfWhom(s, true) && asksOfWhom(t, false) && !asksOfWhom(t, true) && isCopular(s) && !s.saysOther() && !t.saysOther()
}

// transferMoved reports whether s lends and t borrows. Chinese verbs of lending mean both, and
// the preposition decides: 借给他, 向他借.
func (r roles) transferMoved() bool { return lends(r.s) && borrows(r.t) }

// actorMoved reports whether s stops somebody from doing a thing that t stops doing to that
// person: stop the neighbour from watching, stop watching the neighbour.
func (r roles) actorMoved() bool {
	s, t := r.s, r.t
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
		if takesObject(t, int(t.words[m].raw)) {
			return true
		}
	}
	return false
}

// relativeMoved reports whether s says what can be done with a thing and t what somebody does
// with it: a song to sing, a song you sing. The first asks for advice, the second for a fact.
func (r roles) relativeMoved() bool {
	s, t := r.s, r.t
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

// selfDiffers refuses pairs in which one is about the person who acts and the other about other
// persons: forgive yourself, forgive others.
func selfDiffers(p *pair) bool {
	a, b := p.sides()
	return speaksOfSelf(a) != speaksOfSelf(b) && speaksOfOthers(a) != speaksOfOthers(b)
}
