// Question: what a question asks for: a person, a time, a reason, a number, yes or no.

package verify

// A form is the form of a question.
type form uint8

const (
	noForm form = iota // an order, or words to search for
	yesno
	how
	why
	when
	where
	who
	whose
	howMany
	howLong
	howFar
	howOften
	howOld
	howBig
	what
	opinion
)

// forms maps sections of the lists to forms.
var forms = map[string]form{
	"yesno": yesno, "how": how, "why": why, "when": when, "where": where, "who": who, "whose": whose,
	"howmany": howMany, "howlong": howLong, "howfar": howFar, "howoften": howOften, "howold": howOld,
	"howbig": howBig, "what": what, "opinion": opinion,
}

// ask sets the form of a side, from its first question word or from a verb at the beginning.
func (r *reader) ask(f form, taken int) {
	if f != noForm && (r.form == noForm || r.form == yesno && f != yesno && r.words[0].class&aux == 0 && r.words[len(r.words)-1].clause) {
		r.form = f
		r.bare = f == what && (taken == 1 || taken == 2 && r.words[len(r.words)-1].class&cjk != 0)
	}
	if f == noForm && r.form == noForm && len(r.words) == 1 && r.words[0].class&aux != 0 && r.words[0].class&cjk == 0 {
		r.form = yesno
	}
}

// explains reports whether the dropped phrase at raw i asks for an explanation or a description.
func explains(s *side, i, taken int) bool {
	for k := i; k < i+taken && k < len(s.raws); k++ {
		switch string(s.rawText(k)) {
		case "explain", "describe", "through", "解", "介", "讲", "谈", "描", "说":
			return true
		}
	}
	return false
}

// toMe reports whether the text or a clause ends with "to me" at raw i.
func (r *reader) toMe(i int) bool {
	return string(r.rawText(i)) == "to" && string(r.rawText(i+1)) == "me" && (i+2 >= len(r.raws) || r.raws[i+2].kind == stop)
}

// aNotA reports whether a Chinese yes-or-no question of the form verb-not-verb begins at raw i:
// 好不好.
func (r *reader) aNotA(i int) bool {
	if i+2 >= len(r.raws) || r.raws[i].kind != ideograph || r.raws[i].hash != r.raws[i+2].hash {
		return false
	}
	p := &r.raws[i+1]
	text := string(r.text[p.start:p.end])
	return text == "不" || text == "没"
}

// polite reports whether raw i begins a phrase without meaning that is longer than such a verb:
// 能不能告诉我.
func (r *reader) polite(i int) bool {
	e, taken := r.v.words.longest(r.raws, i)
	return taken > 3 && e.class&(edge|dropped) != 0
}

// spokenOf reports whether the question is about the greeting or thanks at raw i instead of being
// polite: good night in French, 谢谢用日语, how to say sorry, translate: hello.
func (r *reader) spokenOf(i, taken int) bool {
	text := func(k int) string {
		if k < 0 || k >= len(r.raws) {
			return ""
		}
		return string(r.text[r.raws[k].start:r.raws[k].end])
	}
	switch text(i) {
	case "good", "hello", "hi", "hey", "thank", "thanks", "please", "sorry", "excuse", "cheers", "greetings", "你", "您", "谢", "多", "早", "晚", "下", "抱", "感", "不", "辛":
	default:
		return false
	}
	switch text(i + taken) {
	case "in", "mean", "means", "meaning", "用", "的", "翻", "译", "是", "和", "英", "日", "韩", "法", "德", "俄", "西":
		return true
	}
	switch text(i - 1) {
	case "say", "says", "said", "saying", "translate", "translating", "word", "write", "spell", "说", "译", "语", "文", "写", "复":
		return true
	}
	return i > 1 && r.raws[i-1].kind == stop && r.raws[i-1].colon && (text(i-2) == "translate" || text(i-2) == "译" || text(i-2) == "语" || text(i-2) == "文" || r.named(i-2))
}

// named reports whether raw i is the name of a language or country.
func (r *reader) named(i int) bool {
	e, ok := r.v.words.single(r.raws[i].hash)
	return ok && e.class&closed != 0
}

// questionDiffers refuses pairs that ask for different things.
func questionDiffers(p *pair) bool {
	a, b := p.a.form, p.b.form
	switch {
	case a == b:
		return a == howBig && p.a.hasUnmatched(asks) && p.b.hasUnmatched(asks)
	case a == how && p.b.bare, b == how && p.a.bare: // "what elephants eat", "how they eat"
		return true
	}
	return excludes(a, &p.b) && excludes(b, &p.a)
}

// excludes reports whether a question of form f can never be asked in the form of a side. "What"
// can ask for most things by their name (what place, what time), and "how" also answers whether
// one can do a thing.
func excludes(f form, s *side) bool {
	switch f {
	case noForm, opinion, howBig:
		return false
	case where, when, why:
		return s.form != what || s.bare && !s.hasLoose()
	case what:
		return true
	case how:
		return s.form != what && s.form != yesno
	case yesno:
		return s.form != what && s.form != how
	}
	return s.form != what
}
