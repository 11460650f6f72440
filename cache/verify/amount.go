// Amount: numbers, dates and units, none of which may be another one.

package verify

// numberDiffers refuses pairs with other numbers in them, but years.
func numberDiffers(p *pair) bool {
	return hasNumber(&p.a, false) || hasNumber(&p.b, false)
}

// hasNumber says whether a side has a number, a year or not, that the other has
// not. One is none: a mile is one mile.
func hasNumber(s *side, year bool) bool {
	for i := range s.words {
		w := &s.words[i]
		if w.class&number != 0 && w.match < 0 && w.class&light == 0 && isYear(w) == year {
			return true
		}
	}
	return false
}

// isYear says whether a number is written like a year of the last centuries, or
// a decade.
func isYear(w *word) bool {
	return w.end-w.start >= 4 && w.value >= 1000 && w.value < 2200 && w.class&cjk == 0
}

// dateDiffers refuses pairs with another day, month, season or year.
func dateDiffers(p *pair) bool {
	return p.a.hasUnmatched(date) || p.b.hasUnmatched(date) || hasNumber(&p.a, true) || hasNumber(&p.b, true)
}

// unitDiffers refuses pairs with other units. One may go without saying.
func unitDiffers(p *pair) bool {
	return p.a.hasUnmatched(unit) && p.b.hasUnmatched(unit)
}

// isDay says whether two words are a day and its month, whose order means
// nothing.
func isDay(w, u *word) bool {
	return w.class&number != 0 && u.class&date != 0 || w.class&date != 0 && u.class&number != 0
}
