// Person: whom one sentence speaks of, and who of them acts.

package verify

// ofWhom says whether 谁的 and a thing stand in a side, or 谁 with no 的.
func (s clause) ofWhom(owner bool) bool {
	for i := range s.raws {
		if string(s.rawText(i)) == "谁" && (string(s.rawText(i+1)) == "的") == owner && (!owner || s.rawText(i+2) != nil) {
			return true
		}
	}
	return false
}

// governed says whether a Chinese preposition stands before word i.
func (s clause) governed(i int) bool {
	if i == 0 || s.words[i-1].raw+1 != s.words[i].raw {
		return false
	}
	switch string(s.word(i - 1)) {
	case "跟", "给", "对", "向", "被", "把", "让", "找", "比":
		return true
	}
	return false
}

// persons counts the pronouns that can only act, and those that cannot.
func (s clause) persons() (acts, suffers int) {
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

// lends says whether a side lends or lets to somebody.
func (s clause) lends() bool {
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

// borrows says whether a side borrows or hires from somebody.
func (s clause) borrows() bool {
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

// takesObject says whether what follows the verb at raw i is who or what it is
// done to. Without an article it may be what does it: bleeding gums.
func (s clause) takesObject(i int) bool {
	switch string(s.rawText(i + 1)) {
	case "a", "an", "the", "my", "your", "his", "her", "their", "our", "its", "this", "that", "these", "those",
		"me", "you", "him", "us", "them", "it", "someone", "somebody", "anyone", "anybody", "everyone", "people", "others", "other":
		return true
	}
	return false
}

// speaksOfSelf says whether one acts on oneself.
func (s clause) speaksOfSelf() bool {
	for i := range s.words {
		switch t := s.word(i); {
		case has(t, "self"), has(t, "selves"), string(t) == "自己", string(t) == "自我":
			return true
		}
	}
	return false
}

// speaksOfOthers says whether others than the one who acts are spoken of.
func (s clause) speaksOfOthers() bool {
	for i := range s.words {
		switch string(s.word(i)) {
		case "other", "others", "another", "else", "别人", "他人", "人家", "对方", "其他人", "另":
			return true
		}
	}
	return false
}
