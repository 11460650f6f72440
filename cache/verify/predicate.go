// Predicate: what a question asks about a thing: what it is, what it is made of, what it does,
// how it is.

package verify

import "bytes"

// A predicate compares what s asks about a thing with what t asks.
type predicate struct{ s, t *side }

// predicateDiffers refuses pairs that ask different things about the same thing.
func predicateDiffers(p *pair) bool {
	a, b := p.sides()
	return predicate{a, b}.differs() || predicate{b, a}.differs()
}

func (q predicate) differs() bool {
	return q.composes() || q.acts() || q.evaluates() || q.becomes()
}

// composes reports whether only s asks what a thing consists of. "What is it made of" asks for a
// material, "how is it made" for a process, "what is it" for a definition.
func (q predicate) composes() bool {
	return q.s.hasUnmatched(composition) && !q.t.saysOther("made", "make")
}

// acts reports whether s asks what somebody does and t what something is.
func (q predicate) acts() bool {
	s, t := q.s, q.t
	return s.form == what && t.form == what && asksDeed(s) && !asksDeed(t) && !t.saysOther()
}

// evaluates reports whether s asks how a thing is and t what it is, with the same words: how is
// the new office, what is the new office.
func (q predicate) evaluates() bool {
	s, t := q.s, q.t
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
		if i > 0 && t.words[i].class&asks != 0 { // it also asks what
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

// isWhatIs reports whether a phrase is "what is", "what are" or similar.
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

// becomes reports whether s asks how to be somebody and t how to get or treat one: become a
// guide, hire a guide. The verb follows the question word.
func (q predicate) becomes() bool {
	s, t := q.s, q.t
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
		return articled(t, int(t.words[1].raw))
	}
	return false
}

// asksState reports whether s asks how a thing is and t what it is like: how is the weather, what is the weather like.
func asksState(s, t *side) bool {
	if s.form != how || t.form != what || string(s.word(0)) != "how" {
		return false
	}
	switch string(s.word(1)) {
	case "is", "are", "was", "were":
	default:
		return false
	}
	return t.says("like") || t.says("weather") || t.says("temperature") || t.says("climate") || t.says("traffic")
}
