// Affix: un-, non-, over- and under-: what stands before a word and makes another
// of it.

package verify

// Affixes are the unmatched words of both sides, letter by letter.
type affixes struct{ *pair }

// any says whether an unmatched word of one side and one of the other are so.
func (p affixes) any(are func(w, u []byte) bool) bool {
	for _, i := range p.loose[0] {
		for _, j := range p.loose[1] {
			if (p.a.words[i].class|p.b.words[j].class)&(cjk|number|isCode) == 0 && are(p.a.word(int(i)), p.b.word(int(j))) {
				return true
			}
		}
	}
	return false
}

// prefixes turn a word into its contrary.
var prefixes = [...]string{"un", "in", "im", "il", "ir", "dis", "non", "mis", "a"}

// reversed says whether an unmatched word of one side is one of the other with
// such a prefix.
func (p affixes) reversed() bool {
	return p.any(func(long, short []byte) bool {
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

// contraries are pairs of prefixes that turn a word into two ends.
var contraries = [...][2]string{
	{"over", "under"}, {"pre", "post"}, {"hyper", "hypo"}, {"macro", "micro"}, {"inter", "intra"}, {"poly", "mono"},
	{"multi", "uni"}, {"multi", "mono"}, {"super", "sub"}, {"pro", "anti"}, {"maxi", "mini"}, {"up", "down"}, {"in", "out"}, {"homo", "hetero"},
}

// contrary says whether unmatched words of both sides are one word with two such
// prefixes: overpaid, underpaid.
func (p affixes) contrary() bool {
	return p.any(func(w, u []byte) bool {
		for _, x := range contraries {
			if endAlike(w, u, x[0], x[1]) || endAlike(w, u, x[1], x[0]) {
				return true
			}
		}
		return false
	})
}

// endAlike says whether two words are a prefix each and the same after it.
func endAlike(w, u []byte, x, y string) bool {
	return len(w) > len(x)+2 && len(u) > len(y)+2 && string(w[:len(x)]) == x && string(u[:len(y)]) == y && string(stem(w[len(x):])) == string(stem(u[len(y):]))
}

// apart says whether one side alone has a prefix that stands apart and makes
// another thing of what follows: non-EU, ex-wife, vice president, 半决赛. It is no
// negating word by itself, for a side may say it otherwise (nonlinear).
func (p affixes) apart() bool {
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
