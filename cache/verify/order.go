// Order: from A to B is not from B to A, and a dog that bites a man is not a man
// that bites a dog.
package verify

// maxOrdered bounds the words whose order is compared: pairs of them are looked
// at.
const maxOrdered = 24

// orderDiffers refuses pairs in which two words have exchanged their places:
// each stands where the other stood, before or behind the same word. Words that
// only moved (France's capital, the capital of France) have other neighbours.
func orderDiffers(p *pair) bool {
	if p.numbersMoved() || p.personsMoved() || p.ownerMoved() || p.endsMoved(&p.a, &p.b) || p.endsMoved(&p.b, &p.a) || len(p.a.words) > maxLoosely && (p.wordsMoved() || lettersMoved(p.a.text, p.b.text)) {
		return true
	}
	var moved [maxOrdered]int32
	n := 0
	for i := range p.a.words {
		w := &p.a.words[i]
		if w.match >= 0 && p.b.words[w.match].match == int32(i) && w.counts() && n < maxOrdered {
			moved[n] = int32(i)
			n++
		}
	}
	for k, i := range moved[:n] {
		for _, j := range moved[k+1 : n] {
			mi, mj := p.a.words[i].match, p.a.words[j].match
			if mi > mj && p.a.words[i].concept != p.a.words[j].concept && p.exchanged(i, j, mi, mj) {
				return true
			}
		}
	}
	return false
}

// maxLoosely is how many words may be put in another order at all. Of a longer
// text two words that are exchanged deep within hardly change the score.
const maxLoosely = 40

// wordsMoved says whether words that count come in another order.
func (p *pair) wordsMoved() bool {
	last := int32(-1)
	for i := range p.a.words {
		w := &p.a.words[i]
		if w.match < 0 || p.b.words[w.match].match != int32(i) || !w.counts() && w.class&(number|isCode|operator) == 0 {
			continue
		}
		if w.match < last {
			return true
		}
		last = w.match
	}
	return false
}

// lettersMoved says whether two texts are the same characters in another order,
// spaces aside: a - b and b - a in the middle of a program.
func lettersMoved(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == ' ' || a[0] == '\n':
			a = a[1:]
		case b[0] == ' ' || b[0] == '\n':
			b = b[1:]
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
		default:
			return sameLetters(a, b)
		}
	}
	return false
}

// sameLetters says whether two texts are the same characters, spaces aside.
func sameLetters(a, b []byte) bool {
	var count [256]int
	for _, c := range a {
		count[c]++
	}
	for _, c := range b {
		count[c]--
	}
	count[' '], count['\n'] = 0, 0
	return count == [256]int{}
}

// numbersMoved says whether two neighbouring numbers have exchanged their places,
// but for those of a list.
func (p *pair) numbersMoved() bool {
	last := int32(-1)
	for i := range p.a.words {
		w := &p.a.words[i]
		if w.class&number == 0 || w.match < 0 {
			continue
		}
		if last >= 0 && w.match < p.a.words[last].match && !(p.a.linked(last, int32(i)) && p.b.linked(w.match, p.a.words[last].match)) {
			return true
		}
		last = int32(i)
	}
	return false
}

// personsMoved says whether somebody who acts here is acted upon there: 我怎么跟你
// and 你怎么跟我, if I report to my boss and if my boss reports to me. In English
// that shows only together with other words out of their order.
func (p *pair) personsMoved() bool {
	for i := range p.a.words {
		if w := &p.a.words[i]; w.class&pronoun != 0 && w.class&cjk != 0 && w.match >= 0 && p.a.governed(i) != p.b.governed(int(w.match)) {
			return true
		}
	}
	acts, suffers := p.a.persons()
	actsThere, suffersThere := p.b.persons()
	return acts != actsThere && suffers != suffersThere && acts+suffers == actsThere+suffersThere && p.contentMoved()
}

// endsMoved says whether a Chinese question begins with the one who acts, as part
// of its question word or not, and the other ends with the same one, with other
// words out of their order: 我怎么起诉老板, 老板怎么起诉我.
func (p *pair) endsMoved(s, t *side) bool {
	m := len(t.words) - 1
	if len(s.words) < 3 || m < 2 || string(s.rawText(0)) != "我" || string(t.word(m)) != "我" || s.isCopular() || t.isCopular() {
		return false
	}
	return s.words[0].class&(asks|pronoun) != 0 && p.contentMoved()
}

// governed says whether a Chinese preposition stands before word i.
func (s *side) governed(i int) bool {
	if i == 0 || s.words[i-1].raw+1 != s.words[i].raw {
		return false
	}
	switch w := &s.words[i-1]; string(s.text[w.start:w.end]) {
	case "跟", "给", "对", "向", "被", "把", "让", "找", "比":
		return true
	}
	return false
}

// persons counts the pronouns that can only act, and those that cannot.
func (s *side) persons() (acts, suffers int) {
	for i := range s.words {
		w := &s.words[i]
		switch string(s.text[w.start:w.end]) {
		case "i", "he", "she", "we", "they", "howcani", "howdoi", "howshouldi", "howcouldi", "howwouldi":
			acts++
		case "me", "him", "us", "them":
			suffers++
		}
	}
	return acts, suffers
}

// ownerMoved says whether what owns here is owned there: the dog's owner, the
// owner's dog.
func (p *pair) ownerMoved() bool {
	for i := 0; i+1 < len(p.a.words); i++ {
		w, u := &p.a.words[i], &p.a.words[i+1]
		if p.a.raws[w.raw].owns && u.raw == w.raw+1 && u.match >= 0 && w.match == u.match+1 {
			if k := p.b.words[u.match].raw; p.b.raws[k].owns && p.b.words[w.match].raw == k+1 {
				return true
			}
		}
	}
	return false
}

// contentMoved says whether the words with a meaning come in another order.
func (p *pair) contentMoved() bool {
	last := int32(-1)
	for i := range p.a.words {
		w := &p.a.words[i]
		if w.match < 0 || p.b.words[w.match].match != int32(i) || !w.content() {
			continue
		}
		if w.match < last {
			return true
		}
		last = w.match
	}
	return false
}

// exchanged says whether words i and j of a, which are mi and mj of b, stand in
// each other's places.
func (p *pair) exchanged(i, j, mi, mj int32) bool {
	if j == i+1 && mi == mj+1 && p.a.classes(int(i)) && p.b.classes(int(mj)) {
		return true
	}
	if j == i+1 || mi == mj+1 || p.a.linked(i, j) && p.b.linked(mj, mi) {
		return false
	}
	if p.a.words[i].class&p.a.words[j].class&unit != 0 { // from miles to kilometers, however it is put
		return true
	}
	return p.samePlace(i, mj, j, mi) && p.samePlace(j, mi, i, mj)
}

// classes says whether a question asks if what word i names is what the word
// after it, its last, names: is a square a rectangle, are all cats mammals.
func (s *side) classes(i int) bool {
	if s.form != yesno || i+2 != len(s.words) {
		return false
	}
	switch string(s.rawText(int(s.words[i].raw) - 1)) {
	case "all", "every", "each", "most", "some", "any":
		return true
	case "a", "an":
		before := string(s.rawText(int(s.words[i+1].raw) - 1))
		return before == "a" || before == "an"
	}
	return false
}

// samePlace says whether word i of a and word k of b have the same word before
// or behind them, besides the two that may have been exchanged, or are the last.
func (p *pair) samePlace(i, k, otherA, otherB int32) bool {
	for _, d := range [2]int32{-1, 1} {
		x, y := i+d, k+d
		if d > 0 && x == int32(len(p.a.words)) && y == int32(len(p.b.words)) {
			return true
		}
		if x < 0 || y < 0 || x >= int32(len(p.a.words)) || y >= int32(len(p.b.words)) || x == otherA || y == otherB {
			continue
		}
		if p.a.words[x].concept == p.b.words[y].concept {
			return true
		}
	}
	return false
}

// linked says whether words i and j are of a list, whose order means nothing:
// "and", "or", "versus" and the like between them, and nothing that points.
func (s *side) linked(i, j int32) bool {
	linked := false
	persons := s.words[i].class&s.words[j].class&pronoun != 0
	for k := i + 1; k < j; k++ {
		w := &s.words[k]
		if persons && w.class&(asks|aux) != 0 { // 我怎么跟你, not 我跟你怎么
			return false
		}
		switch string(s.text[w.start:w.end]) {
		case "and", "or", "vs", "versus", "v", "plus", "+", "*", "和", "与", "跟", "同", "或", "还是", "以及", "或者", "及", "、":
			linked = true
		case "to", "into", "from", "than", "by", "minus", "-", "/", "比", "到", "换", "换成", "变成", "转", "给", "减", "除以":
			return false
		}
	}
	return linked
}
