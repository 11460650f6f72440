// Predicate: what a question wants to know of a thing: what it is, what it is
// made of, what it does, how it is.
package verify

import "bytes"

// predicateDiffers refuses pairs that want to know other things of the same.
func predicateDiffers(p *pair) bool {
	return p.composes(&p.a, &p.b) || p.composes(&p.b, &p.a) ||
		p.acts(&p.a, &p.b) || p.acts(&p.b, &p.a) ||
		p.evaluates(&p.a, &p.b) || p.evaluates(&p.b, &p.a) ||
		p.becomes(&p.a, &p.b) || p.becomes(&p.b, &p.a)
}

// composes says whether s alone asks what a thing consists of. What something is
// made of is a material, how it is made is a process, what it is a definition.
func (p *pair) composes(s, t *side) bool {
	for i := range s.words {
		if w := &s.words[i]; w.class&composition != 0 && w.match < 0 {
			return !t.saysOther("made", "make")
		}
	}
	return false
}

// acts says whether s asks what somebody does and t what something is.
func (p *pair) acts(s, t *side) bool {
	return s.form == what && t.form == what && s.asksDeed() && !t.asksDeed() && !t.saysOther()
}

// asksDeed says whether the main verb of a question is to do: at its end
// (English), if the other side has no such verb, or beside what (Chinese).
func (s *side) asksDeed() bool {
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

// evaluates says whether s asks how a thing is and t what it is, with the same
// words: how is the new office, what is the new office.
func (p *pair) evaluates(s, t *side) bool {
	if s.form != how || t.form != what || len(s.words) < 3 || string(s.word(0)) != "how" {
		return false
	}
	switch string(s.word(1)) {
	case "is", "are", "was", "were":
	default:
		return false
	}
	if s.saysOther() || t.saysOther() || !isWhatIs(t.word(0)) {
		return false
	}
	for i := range t.words {
		if i > 0 && t.words[i].class&asks != 0 { // asks that besides
			return false
		}
		switch string(t.word(i)) {
		case "like", "weather", "temperature", "climate", "traffic", "condition", "state", "status", "situation", "quality":
			return false
		}
	}
	for i := range s.words { // how is it different, what is the difference
		if w := &s.words[i]; w.match >= 0 && w.content() && string(s.word(i)) != string(t.word(int(w.match))) {
			return false
		}
	}
	return true
}

// isWhatIs says whether a phrase is "what is", "what are" and the like.
func isWhatIs(phrase []byte) bool {
	rest, ok := bytes.CutPrefix(phrase, []byte("what"))
	if !ok {
		return false
	}
	switch string(bytes.TrimLeft(rest, " ")) {
	case "is", "are", "isthe", "arethe", "isa", "isan":
		return true
	}
	return false
}

// becomes says whether s asks how to be somebody and t how to get or treat one:
// become a guide, hire a guide. The verb follows the question word.
func (p *pair) becomes(s, t *side) bool {
	if s.form != how || t.form != how || len(s.words) < 3 || len(t.words) < 3 || s.words[1].match >= 0 || t.words[1].match >= 0 {
		return false
	}
	switch string(s.word(1)) {
	case "be", "become":
	default:
		return false
	}
	switch string(t.word(1)) {
	case "find", "have", "hire", "choose", "pick", "meet", "attract", "date", "marry", "contact", "treat", "help", "make", "use", "know", "need":
		return true
	case "get":
		return t.articled(int(t.words[1].raw))
	}
	return false
}

// articled says whether an article or the like follows raw i: to get a cold, not
// to get cold.
func (s *side) articled(i int) bool {
	switch string(s.rawText(i + 1)) {
	case "a", "an", "the", "my", "some":
		return true
	}
	return false
}

// selfDiffers refuses pairs of which one speaks of the one who acts and the other
// of others: forgive yourself, forgive others.
func selfDiffers(p *pair) bool {
	return p.a.speaksOfSelf() != p.b.speaksOfSelf() && p.a.speaksOfOthers() != p.b.speaksOfOthers()
}

func (s *side) speaksOfSelf() bool {
	for i := range s.words {
		switch t := s.word(i); {
		case has(t, "self"), has(t, "selves"), string(t) == "自己", string(t) == "自我":
			return true
		}
	}
	return false
}

func (s *side) speaksOfOthers() bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "other", "others", "another", "else", "别人", "他人", "人家", "对方", "其他人", "另":
			return true
		}
	}
	return false
}
