// Negation: not, without, un-; 不, 没有, 无.
package verify

// negationDiffers refuses pairs of which one side is turned round.
func negationDiffers(p *pair) bool {
	return p.a.negations() != p.b.negations() || p.prefixed() || p.saysNon() || p.negatesOther()
}

// negatesOther says whether a negation that both sides have turns another word
// round here than there.
func (p *pair) negatesOther() bool {
	for i := range p.a.words {
		w := &p.a.words[i]
		if w.class&negator == 0 || w.match < 0 {
			continue
		}
		if k := int(w.match); p.a.inverted(i) && p.b.behind(k) || p.a.behind(i) && p.b.inverted(k) {
			if !p.a.saysMore() && !p.b.saysMore() && !p.a.twoVerbs() {
				continue // why isn't it rising, why is it not rising
			}
		}
		mine, other := p.a.negated(i), p.b.negated(int(w.match))
		if (mine < 0) != (other < 0) {
			return true
		}
		if mine >= 0 && other >= 0 && p.a.words[mine].match >= 0 && p.b.words[other].match >= 0 && p.a.words[mine].match != int32(other) {
			return true
		}
	}
	return false
}

// negated returns the word that negation i turns round, -1: none.
func (s *side) negated(i int) int {
	for k := i + 1; k < len(s.words); k++ {
		if s.words[k].content() {
			return k
		}
	}
	return -1
}

// inverted says whether negation i stands behind the verb of a question, before
// its subject: what it turns round comes later.
func (s *side) inverted(i int) bool {
	return i > 0 && s.words[i-1].class&aux != 0 && (i == 1 || s.words[i-2].class&asks != 0)
}

// behind says whether negation i stands behind a subject, and not beside a verb
// of its own.
func (s *side) behind(i int) bool { return i > 1 && s.words[i-1].class&aux == 0 }

// twoVerbs says whether a question has two verbs that may each be negated.
func (s *side) twoVerbs() bool {
	n := 0
	for i := range s.words {
		switch w := &s.words[i]; string(s.text[w.start:w.end]) {
		case "but", "and", "while", "whereas", "yet", "or", "if", "when", "because":
			if i > 0 {
				return true
			}
		default:
			if w.class&aux != 0 {
				n++
			}
		}
	}
	return n > 1
}

// negations counts negating words. The one of a question that begins with its
// verb (isn't, can't) asks for the same as without it.
func (s *side) negations() int {
	n := 0
	for i := range s.words {
		w := &s.words[i]
		if w.class&negator == 0 {
			continue
		}
		if i > 0 && s.words[i-1].clause && s.words[i-1].class&aux != 0 && w.raw == s.words[i-1].raw+1 {
			if v := &s.words[i-1]; string(s.text[v.start:v.end]) != "do" {
				continue
			}
		}
		n++
	}
	return n
}

// prefixes turn a word into its contrary.
var prefixes = [...]string{"un", "in", "im", "il", "ir", "dis", "non", "mis", "a"}

// prefixed says whether an unmatched word of one side is one of the other with
// such a prefix.
func (p *pair) prefixed() bool {
	for _, i := range p.loose[0] {
		for _, j := range p.loose[1] {
			w, u := &p.a.words[i], &p.b.words[j]
			if (w.class|u.class)&(cjk|number|isCode) != 0 {
				continue
			}
			long, short := p.a.text[w.start:w.end], p.b.text[u.start:u.end]
			if len(long) < len(short) {
				long, short = short, long
			}
			for _, x := range prefixes {
				if len(short) >= 4 && len(long) > len(x)+2 && string(long[:len(x)]) == x && string(stem(long[len(x):])) == string(stem(short)) {
					return true
				}
			}
		}
	}
	return false
}

// contraries are pairs of prefixes that turn a word into two ends.
var contraries = [...][2]string{
	{"over", "under"}, {"pre", "post"}, {"hyper", "hypo"}, {"macro", "micro"}, {"inter", "intra"}, {"poly", "mono"},
	{"multi", "uni"}, {"multi", "mono"}, {"super", "sub"}, {"pro", "anti"}, {"maxi", "mini"}, {"up", "down"}, {"in", "out"}, {"homo", "hetero"},
}

// contrary says whether unmatched words of both sides are one word with two such
// prefixes: overpaid, underpaid.
func (p *pair) contrary() bool {
	for _, i := range p.loose[0] {
		for _, j := range p.loose[1] {
			if (p.a.words[i].class|p.b.words[j].class)&(cjk|number|isCode) != 0 {
				continue
			}
			w, u := p.a.word(int(i)), p.b.word(int(j))
			for _, x := range contraries {
				if endAlike(w, u, x[0], x[1]) || endAlike(w, u, x[1], x[0]) {
					return true
				}
			}
		}
	}
	return false
}

// endAlike says whether two words are a prefix each and the same after it.
func endAlike(w, u []byte, x, y string) bool {
	return len(w) > len(x)+2 && len(u) > len(y)+2 && string(w[:len(x)]) == x && string(u[:len(y)]) == y && string(stem(w[len(x):])) == string(stem(u[len(y):]))
}

// saysNon says whether one side alone has a prefix that stands apart and makes
// another thing of what follows: non-EU, ex-wife, vice president, 半决赛. It is no
// negating word by itself, for a side may say it otherwise (nonlinear).
func (p *pair) saysNon() bool {
	for n, s := range [...]*side{&p.a, &p.b} {
		for _, i := range p.loose[n] {
			switch string(s.word(int(i))) {
			case "non":
				return true
			case "semi", "ex", "vice", "deputy", "former", "anti", "pseudo", "quasi", "sub", "step", "half", "半", "副", "准", "前", "非", "反", "亚", "次", "伪":
				if k := int(i) + 1; k < len(s.words) && s.words[k].match >= 0 && s.words[k].content() && s.words[k].class&number == 0 && s.words[k].raw == s.words[i].raw+1 {
					return true
				}
			}
		}
	}
	return false
}
