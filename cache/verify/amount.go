// Amount: numbers, dates and units. Both sides must have the same ones.

package verify

// numberDiffers refuses pairs whose numbers differ, years excepted.
func numberDiffers(p *pair) bool {
	return hasNumber(&p.a, false) || hasNumber(&p.b, false)
}

// hasNumber reports whether a side has an unmatched number (with year: an unmatched year). The
// number one does not count: a mile is one mile.
func hasNumber(s *side, year bool) bool {
	for i := range s.words {
		w := &s.words[i]
		if w.class&number != 0 && w.match < 0 && w.class&light == 0 && isYear(w) == year {
			return true
		}
	}
	return false
}

// isYear reports whether a number is written like a year of the last centuries, or like a decade.
func isYear(w *word) bool {
	return w.end-w.start >= 4 && w.value >= 1000 && w.value < 2200 && w.class&cjk == 0
}

// dateDiffers refuses pairs whose day, month, season or year differs.
func dateDiffers(p *pair) bool {
	return p.a.hasUnmatched(date) || p.b.hasUnmatched(date) || hasNumber(&p.a, true) || hasNumber(&p.b, true)
}

// unitDiffers refuses pairs whose units differ. One side may leave the unit out.
func unitDiffers(p *pair) bool {
	return p.a.hasUnmatched(unit) && p.b.hasUnmatched(unit)
}

// isDay reports whether two words are a day and its month. Their order means nothing.
func isDay(w, u *word) bool {
	return w.class&number != 0 && u.class&date != 0 || w.class&date != 0 && u.class&number != 0
}
