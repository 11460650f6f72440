// Wanted: a thing is not what it is. Short questions about one word are told apart by the words that ask.

package verify

import "bytes"

// asksBy reports whether a word or phrase that asks, written as one word, begins with one of starts.
func (s *side) asksBy(starts ...string) bool {
	for i := range s.words {
		for _, start := range starts {
			if s.words[i].class&asks != 0 && bytes.HasPrefix(s.word(i), []byte(start)) {
				return true
			}
		}
	}
	return false
}

// listingDiffers refuses pairs in which one wants things listed and the other asks of no number of them: list the
// planets, what is a planet.
func listingDiffers(p *pair) bool {
	return p.a.lists() && p.b.asksOfOne() || p.b.lists() && p.a.asksOfOne() ||
		p.a.asksBy("whatarethe", "whicharethe") && p.b.asksBy("whatisa") || p.b.asksBy("whatarethe", "whicharethe") && p.a.asksBy("whatisa")
}

func (s *side) lists() bool {
	return s.asksBy("list", "name", "givemealist", "givealist", "providealist", "givemesome", "列举")
}

func (s *side) asksOfOne() bool {
	return s.explains || s.asksBy("whatisa", "define", "describewhat", "explainwhat", "什么是", "是什么", "的概念", "的定义", "定义")
}

// makingDiffers refuses pairs in which one wants a thing and the other asks what that is: tell me a joke, what is a joke.
func makingDiffers(p *pair) bool {
	return p.a.wantsOne() && (p.b.form == what || p.b.explains) || p.b.wantsOne() && (p.a.form == what || p.a.explains)
}

// wantsOne reports whether the text wants one thing of a kind, and says little more of it.
func (s *side) wantsOne() bool {
	if s.form != noForm || s.explains || len(s.words) > 2 {
		return false
	}
	for i := 1; i < len(s.raws); i++ {
		if at := string(s.rawText(i)); at != "a" && at != "an" && at != "some" {
			continue
		}
		switch string(s.rawText(i - 1)) {
		case "me", "need", "want", "like", "provide", "for":
			return true
		}
	}
	return false
}

// isRelation reports whether a word asks for something about a thing instead of for the thing: what is in it, what has it.
func isRelation(word []byte) bool {
	switch string(word) {
	case "in", "has", "have", "had", "make", "makes", "made", "need", "needs", "contain", "contains", "else", "up", "on", "with", "without",
		"by", "can", "should":
		return true
	}
	return false
}

// relationDiffers refuses pairs of short questions in which one has such a word and the other has not.
func relationDiffers(p *pair) bool {
	return p.a.form == what && p.b.form == what && (p.a.relates() || p.b.relates())
}

func (s *side) relates() bool {
	if len(s.words) > 4 {
		return false
	}
	for i := range s.words {
		if s.words[i].match < 0 && isRelation(s.word(i)) {
			return true
		}
	}
	return false
}

// workingDiffers refuses pairs in which one asks how a thing works and the other how to work on it.
func workingDiffers(p *pair) bool {
	return p.a.form == how && p.b.form == how && p.a.says("work") && p.b.says("work") && p.a.endsWith("work") != p.b.endsWith("work")
}

// momentDiffers refuses pairs in which one asks for what is so now and the other for what that is: what is the time,
// what is time.
func momentDiffers(p *pair) bool {
	a, b := &p.a, &p.b
	if a.form != what || b.form != what || len(a.words) > 2 || len(b.words) > 2 || a.asksBy("whatisthe", "whatsthe") == b.asksBy("whatisthe", "whatsthe") {
		return false
	}
	switch string(a.word(len(a.words) - 1)) {
	case "time", "weather", "date", "day", "temperature", "news", "traffic", "matter", "score":
		return true
	}
	return false
}
