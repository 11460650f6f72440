// Person: the persons that a sentence names, and which of them acts.

package verify

// asksOfWhom reports whether 谁的 and a thing stand in a side, or 谁 with no 的.
func asksOfWhom(s *side, owner bool) bool {
	for i := range s.raws {
		if string(s.rawText(i)) == "谁" && (string(s.rawText(i+1)) == "的") == owner && (!owner || s.rawText(i+2) != nil) {
			return true
		}
	}
	return false
}

// isGoverned reports whether a Chinese preposition stands before word i.
func isGoverned(s *side, i int) bool {
	if i == 0 || s.words[i-1].raw+1 != s.words[i].raw {
		return false
	}
	switch string(s.word(i - 1)) {
	case "跟", "给", "对", "向", "被", "把", "让", "找", "比":
		return true
	}
	return false
}

// personsIn counts the pronouns that can only be a subject, and those that cannot be one.
func personsIn(s *side) (acts, suffers int) {
	for i := range s.words {
		switch string(s.word(i)) {
		case "i", "he", "she", "we", "they", "howcani", "howdoi", "howshouldi", "howcouldi", "howwouldi":
			acts++
		case "me", "him", "us", "them":
			suffers++
		}
	}
	return acts, suffers
}

// lends reports whether a side lends or lets something to somebody.
func lends(s *side) bool {
	lends, to := false, false
	for i := range s.words {
		switch w := &s.words[i]; string(s.word(i)) {
		case "借", "租", "贷":
			lends = true
		case "借给", "租给", "贷给", "出借", "出租":
			return true
		case "给":
			to = to || w.match < 0
		}
	}
	return lends && to
}

// borrows reports whether a side borrows or hires something from somebody.
func borrows(s *side) bool {
	from := false
	for i := range s.words {
		switch string(s.word(i)) {
		case "借", "租", "贷":
			if from {
				return true
			}
		case "向", "跟", "找", "从", "问", "同", "和":
			from = true
		}
	}
	return false
}

// takesObject reports whether the words after the verb at raw i are its object. Without an
// article they may be its subject: bleeding gums.
func takesObject(s *side, i int) bool {
	switch string(s.rawText(i + 1)) {
	case "a", "an", "the", "my", "your", "his", "her", "their", "our", "its", "this", "that", "these", "those",
		"me", "you", "him", "us", "them", "it", "someone", "somebody", "anyone", "anybody", "everyone", "people", "others", "other":
		return true
	}
	return false
}

// speaksOfSelf reports whether somebody acts on himself or herself.
func speaksOfSelf(s *side) bool {
	for i := range s.words {
		switch t := s.word(i); {
		case has(t, "self"), has(t, "selves"), string(t) == "自己", string(t) == "自我":
			return true
		}
	}
	return false
}

// speaksOfOthers reports whether a side mentions persons other than the one who acts.
func speaksOfOthers(s *side) bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "other", "others", "another", "else", "别人", "他人", "人家", "对方", "其他人", "另":
			return true
		}
	}
	return false
}
