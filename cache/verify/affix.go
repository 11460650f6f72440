// Affix: prefixes that turn a word into another one: un-, non-, over-, under-.

package verify

// anyUnmatched reports whether `are` holds for some unmatched word of one side and some unmatched
// word of the other.
func anyUnmatched(p *pair, are func(w, u []byte) bool) bool {
	for _, i := range p.loose[0] {
		for _, j := range p.loose[1] {
			if (p.a.words[i].class|p.b.words[j].class)&(cjk|number|isCode) == 0 && are(p.a.word(int(i)), p.b.word(int(j))) {
				return true
			}
		}
	}
	return false
}

// prefixes turn a word into its opposite.
var prefixes = [...]string{"un", "in", "im", "il", "ir", "dis", "non", "mis", "a"}

// prefixReverses reports whether an unmatched word of one side is an unmatched word of the other
// with such a prefix.
func prefixReverses(p *pair) bool {
	return anyUnmatched(p, func(long, short []byte) bool {
		if len(long) < len(short) {
			long, short = short, long
		}
		for _, x := range prefixes {
			if len(short) >= 4 && endAlike(long, short, x, "") {
				return true
			}
		}
		return false
	})
}

// contraries are pairs of prefixes that turn a word into two opposites.
var contraries = [...][2]string{
	{"over", "under"}, {"pre", "post"}, {"hyper", "hypo"}, {"macro", "micro"}, {"inter", "intra"}, {"poly", "mono"},
	{"multi", "uni"}, {"multi", "mono"}, {"super", "sub"}, {"pro", "anti"}, {"maxi", "mini"}, {"up", "down"}, {"in", "out"}, {"homo", "hetero"},
}

// prefixesOppose reports whether unmatched words of both sides are the same word with two such
// prefixes: overpaid, underpaid.
func prefixesOppose(p *pair) bool {
	return anyUnmatched(p, func(w, u []byte) bool {
		for _, x := range contraries {
			if endAlike(w, u, x[0], x[1]) || endAlike(w, u, x[1], x[0]) {
				return true
			}
		}
		return false
	})
}

// endAlike reports whether the words are the prefixes x and y followed by the same letters.
func endAlike(w, u []byte, x, y string) bool {
	return len(w) > len(x)+2 && len(u) > len(y)+2 && string(w[:len(x)]) == x && string(u[:len(y)]) == y && string(stem(w[len(x):])) == string(stem(u[len(y):]))
}

// prefixApart reports whether only one side has a separate prefix that changes the meaning of the
// next word: non-EU, ex-wife, vice president, 半决赛. Such a prefix does not count as a negation,
// because the other side may write it as one word (nonlinear).
func prefixApart(p *pair) bool {
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
