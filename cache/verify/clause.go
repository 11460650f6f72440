// Clause: how the sentence of one side is built, as its small words tell.

package verify

// A clause is a side as a sentence: which word is its verb, its subject, what
// hangs on a preposition, what is a list, and where a small word says nothing.
type clause struct{ *side }

// ends says whether word i is the last of its clause.
func (s clause) ends(i int) bool {
	return i+1 == len(s.words) || s.words[i+1].clause
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
func (s clause) inversion() inversion {
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

// asksDeed says whether the main verb of a question is to do: at its end
// (English), if the other side has no such verb, or beside what (Chinese).
func (s clause) asksDeed() bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "do", "does", "did":
			if i > 1 && s.ends(i) && s.words[i].match < 0 {
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

// asksKind says whether a question asks if what word i names is what the word
// after it, its last, names: is a square a rectangle, are all cats mammals.
func (s clause) asksKind(i int) bool {
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

// isCopular says whether a Chinese question has the verb to be.
func (s clause) isCopular() bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "是", "是谁", "叫", "为", "当":
			return true
		}
	}
	return false
}

// linked says whether words i and j are of a list, whose order means nothing:
// "and", "or", "versus" and the like between them, and nothing that points.
func (s clause) linked(i, j int32) bool {
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

// articled says whether an article or the like follows raw i: to get a cold, not
// to get cold.
func (s clause) articled(i int) bool {
	switch string(s.rawText(i + 1)) {
	case "a", "an", "the", "my", "some":
		return true
	}
	return false
}
