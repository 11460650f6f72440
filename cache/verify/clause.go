// Clause: the sentence structure of one side, judged by its function words.

package verify

// endsClause reports whether word i is the last of its clause.
func endsClause(s *side, i int) bool {
	return i+1 == len(s.words) || s.words[i+1].clause
}

// An inversion is the word order of a question.
type inversion uint8

const (
	unclear  inversion = iota
	stated             // who paid the owner
	inverted           // whom did the owner pay
	either             // who will pay the owner, who will the owner pay
)

// inversionOf returns the word order of a question for a person or thing. A passive question
// (whom was it paid by) asks who acts, in either order.
func inversionOf(s *side) inversion {
	if s.form != who && s.form != what || len(s.words) < 3 || s.words[0].class&asks == 0 || s.words[0].class&cjk != 0 {
		return unclear
	}
	helped := false
	for i := range s.words {
		switch string(s.word(i)) {
		case "is", "are", "am", "was", "were", "be", "been", "being", "by", "mean", "means":
			return unclear
		case "do", "does", "did":
			if i > 2 || endsClause(s, i) {
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

// taken reports whether a question word is a phrase: what is, what are the.
func (w *word) taken() bool { return w.end-w.start > 5 }

// asksDeed reports whether the main verb of a question is "to do": in English unmatched at its
// end, in Chinese beside "what".
func asksDeed(s *side) bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "do", "does", "did":
			if i > 1 && endsClause(s, i) && s.words[i].match < 0 {
				return true
			}
		case "做", "干":
			if i+1 < len(s.words) && s.words[i+1].class&asks != 0 {
				return true
			}
		}
	}
	return false
}

// asksKind reports whether a question asks if word i is a kind of the word after it, its last
// one: is a square a rectangle, are all cats mammals.
func asksKind(s *side, i int) bool {
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

// isCopular reports whether a Chinese question has the verb "to be".
func isCopular(s *side) bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "是", "是谁", "叫", "为", "当":
			return true
		}
	}
	return false
}

// linked reports whether words i and j are items of a list, whose order means nothing: between
// them stand words such as "and", "or" or "versus", and none that gives a direction.
func linked(s *side, i, j int32) bool {
	linked := false
	persons := s.words[i].class&s.words[j].class&pronoun != 0
	for k := i + 1; k < j; k++ {
		if persons && s.words[k].class&(asks|aux) != 0 { // 我怎么跟你, not 我跟你怎么
			return false
		}
		switch string(s.word(int(k))) {
		case "and", "or", "vs", "versus", "v", "plus", "+", "*", "和", "与", "跟", "同", "或", "还是", "以及", "或者", "及", "、":
			linked = true
		case "to", "into", "from", "than", "by", "minus", "-", "/", "比", "到", "换", "换成", "变成", "转", "给", "减", "除以":
			return false
		}
	}
	return linked
}

// articled reports whether an article or a similar word follows raw i: "to get a cold", unlike
// "to get cold".
func articled(s *side, i int) bool {
	switch string(s.rawText(i + 1)) {
	case "a", "an", "the", "my", "some":
		return true
	}
	return false
}
