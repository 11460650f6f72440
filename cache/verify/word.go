// Word: the units of comparison: phrases of the lists, stems, numbers, code, and pieces of
// scripts without spaces.

package verify

// A word is one or more raws.
type word struct {
	concept    uint64 // equal for words of the same meaning
	start, end int32  // in side.text
	raw        int32  // its first raw
	match      int32  // matching word of the other side; -1: none
	next       int32  // next word of the same concept; -1: none; set only in b
	class      class
	value      float64 // of a number
	weight     float32 // how much meaning it carries, 0..2
	token      int32   // its first token, -1: not looked up
	tokens     int32   // how many tokens
	sim        float32 // similarity of the best partner, if there is no match
	clause     bool    // it begins a clause
}

// content reports whether a word is a content word, not grammar.
func (w *word) content() bool { return w.class&(small|asks) == 0 || w.class&(negator|closed) != 0 }

// counts reports whether the position of a word among the others matters.
func (w *word) counts() bool { return w.content() || w.class&pronoun != 0 }

// reader makes words of raws.
type reader struct {
	*side
	v      *Verifier
	p      *pair
	lead   bool // only dropped words since the clause began
	begins bool // no word yet since the clause began
	gap    int  // first raw of a run of ideographs that no list has; -1: none
}

// read makes the words of a side.
func (s *side) read(v *Verifier, p *pair) {
	r := reader{side: s, v: v, p: p, lead: true, begins: true, gap: -1}
	for i := 0; i < len(s.raws); {
		i += r.next(i)
	}
	r.closeGap(len(s.raws))
	if s.explains = s.explains && s.form == noForm; s.explains {
		s.form = what
	}
	for i := range s.words {
		s.compares = s.compares || isDifference(s.word(i))
	}
}

// next makes the word that begins at raw i, and returns how many raws it takes.
func (r *reader) next(i int) int {
	p := &r.raws[i]
	if p.kind == stop {
		r.closeGap(i)
		r.lead, r.begins = true, true
		return 1
	}
	if r.explains && r.toMe(i) {
		r.closeGap(i)
		return 2
	}
	if sign := sumSign(r, i); sign != "" {
		r.closeGap(i)
		r.add(word{concept: r.v.words.hash([]byte(sign)), class: operator}, i, 1)
		return 1
	}
	if value, class, taken := readNumber(r, i); taken > 0 {
		r.closeGap(i)
		addNumber(r, i, taken, value, class)
		return taken
	}
	if r.aNotA(i) && !r.polite(i) {
		r.closeGap(i)
		if r.form == noForm {
			r.form = yesno
		}
		return 2
	}
	e, taken := r.entry(i)
	if taken == 1 && e.form == what && r.form == how && string(r.text[p.start:p.end]) == "define" {
		e = entry{} // "how do I define a macro" does not ask for a definition
	}
	if taken == 0 && p.kind == ideograph {
		if r.gap < 0 {
			r.gap = i
		}
		return 1
	}
	r.closeGap(i)
	switch {
	case p.kind == code:
		r.add(word{concept: p.hash, class: isCode}, i, 1)
	case p.kind == sign && taken == 0:
		r.add(word{concept: p.hash, class: operator}, i, 1)
	case taken == 0:
		r.add(word{concept: r.stemmed(p)}, i, 1)
		return 1
	case r.drops(e, i, taken):
		if p.kind == ideograph && string(r.text[p.start:p.end]) == "吗" && r.form == noForm {
			r.form = yesno
		}
		r.explains = r.explains || explains(r.side, i, taken)
	default:
		if e.concept == 0 {
			e.concept = r.stemmed(p)
			if taken > 1 && r.spokenOf(i, taken) { // good night is not good morning
				e.concept = r.v.words.hash(r.text[p.start:r.raws[i+taken-1].end])
			}
			e.class &^= dropped | edge
		}
		r.add(word{concept: e.concept, class: e.class &^ (dropped | edge)}, i, taken)
		r.ask(e.form, taken)
	}
	return max(taken, 1)
}

// entry finds the longest phrase at raw i: as written, as an acronym, or in its dictionary form.
func (r *reader) entry(i int) (entry, int) {
	x, p := r.v.words, &r.raws[i]
	if p.acronym && !r.shouted {
		upper := append(r.p.scratch[:0], '^')
		for _, b := range r.text[p.start:p.end] {
			if 'a' <= b && b <= 'z' {
				b -= 'a' - 'A'
			}
			upper = append(upper, b)
		}
		r.p.scratch = upper
		if e, ok := x.single(x.hash(upper)); ok {
			return e, 1
		}
	}
	e, taken := x.longest(r.raws, i)
	if taken > 0 || p.kind != letters || p.end-p.start > 40 || p.end-p.start < 4 {
		return e, taken
	}
	bases(r.text[p.start:p.end], r.p.base[:0], func(base []byte) bool {
		found, ok := x.single(x.hash(base))
		if ok && found.class&(dropped|edge|asks|negator) == 0 {
			e, taken = found, 1
			return true
		}
		return false
	})
	return e, taken
}

// drops reports whether a phrase has no meaning where it stands.
func (r *reader) drops(e entry, i, taken int) bool {
	if e.class&dropped != 0 {
		return !r.raws[i].capital || r.titled || r.shouted // vitamin A
	}
	if e.class&edge == 0 {
		return false
	}
	if r.spokenOf(i, taken) {
		return false
	}
	after := i + taken
	return r.lead || after >= len(r.raws) || r.raws[after].kind == stop
}

// stemmed returns the concept of a word that no list has. Spellings in -ise and -ize are equal.
func (r *reader) stemmed(p *raw) uint64 {
	if p.kind != letters {
		return p.hash
	}
	s := stem(r.text[p.start:p.end])
	if n := len(s); n >= 5 && (has(s, "is") || has(s, "isation")) {
		b := append(r.p.base[:0], s[:min(n, cap(r.p.base))]...)
		if has(b, "isation") {
			b[len(b)-6] = 'z'
		} else {
			b[len(b)-1] = 'z'
		}
		return r.v.words.hash(b)
	}
	return r.v.words.hash(s)
}

// add appends a word of n raws.
func (r *reader) add(w word, i, n int) {
	first, last := &r.raws[i], &r.raws[i+n-1]
	w.start, w.end, w.raw = first.start, last.end, int32(i)
	w.match, w.next, w.token = -1, -1, -1
	w.clause = r.begins
	r.lead, r.begins = false, false
	if first.kind == ideograph {
		w.class |= cjk
	}
	if !r.titled && !r.shouted && w.class&(small|asks|isCode) == 0 {
		for k := i; k < i+n; k++ {
			if r.raws[k].capital || r.raws[k].acronym {
				w.class |= name
			}
		}
	}
	if w.class&date != 0 && r.isModal(first, i) {
		w.class = w.class&^(date|closed|name) | small | aux
	}
	if w.class&date != 0 {
		w.class &^= small | aux
	}
	r.weigh(&w)
	r.words = append(r.words, w)
}

// isModal reports whether the name of a month is the verb "may".
func (r *reader) isModal(p *raw, i int) bool {
	if string(r.text[p.start:p.end]) != "may" || p.capital {
		return false
	}
	if i+1 < len(r.raws) && r.raws[i+1].kind == digits {
		return false
	}
	if i == 0 {
		return true
	}
	q := &r.raws[i-1]
	switch string(r.text[q.start:q.end]) {
	case "in", "of", "since", "until", "by", "every", "last", "next", "from", "to", "and", "th":
		return false
	}
	return q.kind != digits
}

// closeGap turns the ideographs since the gap began into words: the pieces that the tokenizer
// knows.
func (r *reader) closeGap(to int) {
	if r.gap < 0 {
		return
	}
	from := r.gap
	r.gap = -1
	base := r.raws[from].start
	text := r.text[base:r.raws[to-1].end]
	r.p.tokens = r.v.tokens.Tokenize(r.p.tokens[:0], text, &r.p.model)
	at := from
	for _, t := range r.p.tokens {
		if t.Start == t.End {
			continue
		}
		begin := at
		for at < to && r.raws[at].start < base+t.End {
			at++
		}
		if at == begin {
			continue
		}
		w := word{concept: r.v.words.hash(r.text[r.raws[begin].start:r.raws[at-1].end])}
		if e, ok := r.v.words.single(w.concept); ok {
			w.class = e.class &^ (dropped | edge)
		}
		r.add(w, begin, at-begin)
	}
}
