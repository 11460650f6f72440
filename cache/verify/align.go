// Align: matching the words of one side with those of the other.

package verify

import "kvasir/classify/model"

// align finds the match of each word on the other side, and for each unmatched word the nearest
// one in meaning.
func (p *pair) align() {
	p.match()
	p.matchBecoming()
	p.compound(&p.a, &p.b)
	p.compound(&p.b, &p.a)
	p.collect()
	p.soften()
}

// match pairs equal words, in order.
func (p *pair) match() {
	size := 16
	for size < 2*len(p.b.words) {
		size *= 2
	}
	if cap(p.slots) < size {
		p.slots = make([]slot, size)
	}
	p.slots = p.slots[:size]
	clear(p.slots)
	for i := range p.b.words {
		s := p.slots.find(p.b.words[i].concept)
		if s.concept == 0 {
			*s = slot{p.b.words[i].concept, int32(i), int32(i)}
			continue
		}
		p.b.words[s.last].next = int32(i)
		s.last = int32(i)
	}
	for i := range p.a.words {
		w := &p.a.words[i]
		if s := p.slots.find(w.concept); s.concept != 0 && s.first >= 0 {
			u := &p.b.words[s.first]
			w.match, u.match, s.first = s.first, int32(i), u.next
		}
	}
	p.repeat(p.a.words, false)
	p.repeat(p.b.words, true)
}

// A table finds the words of b by their concept. Its length is a power of two.
type table []slot

// A slot holds the words of b with one concept, linked by their field next.
type slot struct {
	concept     uint64
	first, last int32 // the first without a match, -1: none; the last
}

// find returns the slot of a concept, or the empty slot where it belongs.
func (t table) find(concept uint64) *slot {
	mask := uint64(len(t) - 1)
	at := concept >> 7 & mask
	for t[at].concept != 0 && t[at].concept != concept {
		at = (at + 1) & mask
	}
	return &t[at]
}

// repeat matches extra occurrences of a word: words of one side (a, or b if second) that the
// other side has too, but less often. They match a word that already has a match. Numbers,
// negations and operators are left unmatched, because each occurrence counts.
func (p *pair) repeat(words []word, second bool) {
	for i := range words {
		w := &words[i]
		if w.match >= 0 || w.class&(number|negator|operator|isCode) != 0 {
			continue
		}
		s := p.slots.find(w.concept)
		if s.concept == 0 {
			continue
		}
		if !second {
			w.match = s.last
		} else if before := p.firstOf(s, int32(i)); before >= 0 {
			w.match = p.b.words[before].match
		}
	}
}

// firstOf returns a matched word of b with the concept of word i of a; -1: none. Words are
// matched in order, so the word before the first unmatched one has a match; the match of a
// repeated word is that one's.
func (p *pair) firstOf(s *slot, i int32) int32 {
	for k := range min(i, 64) {
		if u := &p.b.words[i-1-k]; u.concept == s.concept && u.match >= 0 {
			return i - 1 - k
		}
	}
	return -1
}

// compound pairs a word of s with two adjacent words of t: database, data base. Both words of t
// count as matched.
func (p *pair) compound(s, t *side) {
	for i := range s.words {
		w := &s.words[i]
		if w.match >= 0 || w.class&(cjk|number) != 0 || w.end-w.start < 4 || w.end-w.start > 40 {
			continue
		}
		text := s.text[w.start:w.end]
		for k := 0; k+1 < len(t.words) && k < 64; k++ {
			u, v := &t.words[k], &t.words[k+1]
			if u.match >= 0 || v.match >= 0 || int(u.end-u.start+v.end-v.start) != len(text) {
				continue
			}
			if string(text[:u.end-u.start]) == string(t.text[u.start:u.end]) && string(text[u.end-u.start:]) == string(t.text[v.start:v.end]) {
				w.match, u.match, v.match = int32(k), int32(i), int32(i)
				break
			}
		}
	}
}

// matchBecoming matches "to be" with "to become" in a question with how: both ask how one becomes
// it.
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

// collect gathers the unmatched content words of both sides.
func (p *pair) collect() {
	for n, s := range [2]*side{&p.a, &p.b} {
		p.loose[n] = p.loose[n][:0]
		for i := range s.words {
			if w := &s.words[i]; w.match < 0 && w.content() && len(p.loose[n]) < maxLoose {
				p.loose[n] = append(p.loose[n], int32(i))
			}
		}
	}
}

// soften finds for each unmatched word the unmatched word of the other side that is nearest in
// meaning. Names, numbers and code get no such partner, except a word of nearly the same
// spelling.
func (p *pair) soften() {
	if len(p.loose[0]) > 0 && len(p.loose[1]) > 0 {
		for n, s := range [2]*side{&p.a, &p.b} {
			for k, i := range p.loose[n] {
				p.known[n][k] = p.vector(&p.vectors[n][k], &s.words[i])
			}
		}
	}
	for k, i := range p.loose[0] {
		w := &p.a.words[i]
		for l, j := range p.loose[1] {
			u := &p.b.words[j]
			var sim float32
			if p.known[0][k] && p.known[1][l] {
				sim = max(0, model.Dot(&p.vectors[0][k], &p.vectors[1][l]))
			}
			if w.class&cjk == 0 && u.class&cjk == 0 && nearlySpelled(p.a.text[w.start:w.end], p.b.text[u.start:u.end]) {
				sim = max(sim, 0.8)
				if min(w.end-w.start, u.end-u.start) >= 8 && (w.class|u.class)&closed == 0 {
					w.class |= slip
					u.class |= slip
				}
			}
			if isDerived(p.a.text[w.start:w.end], p.b.text[u.start:u.end]) {
				sim = max(sim, 0.85)
			}
			w.sim, u.sim = max(w.sim, sim), max(u.sim, sim)
		}
	}
}

// nearlySpelled reports whether two words differ by one typing error: a letter inserted, left out
// or replaced, or two exchanged.
func nearlySpelled(a, b []byte) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 5 || len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	j := 0
	for j < len(a)-i && a[len(a)-1-j] == b[len(b)-1-j] {
		j++
	}
	rest := len(a) - i - j
	return rest <= 0 || rest == 1 || rest == 2 && len(a) == len(b) && a[i] == b[i+1] && a[i+1] == b[i]
}
