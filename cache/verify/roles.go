// Roles: who does what to whom.

package verify

// Roles are the parts that people and things have in s, held against those that
// they have in t.
type roles struct{ s, t clause }

// rolesDiffer refuses pairs whose words are the same and have other parts. Some
// of it shows only together with other words out of their order.
func rolesDiffer(p *pair) bool {
	a, b := p.clauses()
	r, back := roles{a, b}, roles{b, a}
	return r.governedMoved() || r.ownerMoved() || r.partMoved() || back.partMoved() ||
		order{a, b}.contentMoved() && (r.subjectMoved() || r.personsMoved() || r.endsMoved() || back.endsMoved())
}

// partMoved says whether somebody or something has a part in s that it cannot have
// in t. It is asked of both sides, the order of the other words aside.
func (r roles) partMoved() bool {
	return r.whoMoved() || r.whoseMoved() || r.transferMoved() || r.actorMoved() || r.relativeMoved()
}

// subjectMoved says whether who is asked for acts here and is acted upon there.
// A question for its subject keeps the order of a statement (who paid the
// owner), one for anything else puts a verb before the subject (whom did the
// owner pay): so the same words stand the other way round.
func (r roles) subjectMoved() bool {
	s, t := r.s.inversion(), r.t.inversion()
	return s != unclear && t != unclear && (s != t || s == either)
}

// personsMoved says whether somebody who acts here is acted upon there: if I
// report to my boss, if my boss reports to me.
func (r roles) personsMoved() bool {
	acts, suffers := r.s.persons()
	actsThere, suffersThere := r.t.persons()
	return acts != actsThere && suffers != suffersThere && acts+suffers == actsThere+suffersThere
}

// endsMoved says whether a Chinese question begins with the one who acts, as part
// of its question word or not, and the other ends with the same one: 我怎么起诉老板,
// 老板怎么起诉我.
func (r roles) endsMoved() bool {
	s, t := r.s, r.t
	m := len(t.words) - 1
	if len(s.words) < 3 || m < 2 || string(s.rawText(0)) != "我" || string(t.word(m)) != "我" || s.isCopular() || t.isCopular() {
		return false
	}
	return s.words[0].class&(asks|pronoun) != 0
}

// governedMoved says whether a Chinese pronoun stands behind a preposition here
// alone: 我怎么跟你, 你怎么跟我.
func (r roles) governedMoved() bool {
	for i := range r.s.words {
		if w := &r.s.words[i]; w.class&pronoun != 0 && w.class&cjk != 0 && w.match >= 0 && r.s.governed(i) != r.t.governed(int(w.match)) {
			return true
		}
	}
	return false
}

// ownerMoved says whether what owns here is owned there: the dog's owner, the
// owner's dog.
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

// whoMoved says whether a Chinese who stands first in s, where it acts, and last
// in t, where it is acted upon.
func (r roles) whoMoved() bool {
	s, t := r.s, r.t
	return len(s.words) > 2 && len(t.words) > 2 && string(s.word(0)) == "谁" && string(t.word(len(t.words)-1)) == "谁" && !s.isCopular() && !t.isCopular()
}

// whoseMoved says whether s asks who a thing is of and t who it is: 他是谁的老师,
// 谁是他的老师. What follows 的 is what both speak of.
func (r roles) whoseMoved() bool {
	s, t := r.s, r.t
	return s.ofWhom(true) && t.ofWhom(false) && !t.ofWhom(true) && s.isCopular() && !s.saysOther() && !t.saysOther()
}

// transferMoved says whether s gives what t takes. Chinese verbs of lending go
// either way, and the preposition tells: 借给他, 向他借.
func (r roles) transferMoved() bool { return r.s.lends() && r.t.borrows() }

// actorMoved says whether s keeps somebody from doing what t stops doing to
// somebody: stop the neighbour from watching, stop watching the neighbour.
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
		if t.takesObject(int(t.words[m].raw)) {
			return true
		}
	}
	return false
}

// relativeMoved says whether s names what is to be done with a thing and t what
// somebody does with it: a song to sing, a song you sing. The first asks for
// advice, the second for a fact.
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

// selfDiffers refuses pairs of which one speaks of the one who acts and the other
// of others: forgive yourself, forgive others.
func selfDiffers(p *pair) bool {
	a, b := p.clauses()
	return a.speaksOfSelf() != b.speaksOfSelf() && a.speaksOfOthers() != b.speaksOfOthers()
}
