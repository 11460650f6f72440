// Sums: counts and weights of the words of one side.

package verify

// sums are the counts and weights of one side.
type sums struct {
	content, matched, soft  float32 // weights
	loose, heaviest         float32
	count, small, smallHeld float32
	pronouns, aux, others   float32
	light, reworded         float32
	simSum, farthest        float32
	words                   float32
	numbers, names          float32
	first, last             int32 // content words
}

// sum computes the sums of s, compared with t.
func sum(s, t *side) (u sums) {
	u.first, u.last, u.farthest = -1, -1, 1
	for i := range s.words {
		w := &s.words[i]
		u.words++
		if !w.content() {
			if w.match >= 0 || !isImplied(s, i, t) {
				u.addSmall(w)
			}
			continue
		}
		if u.first < 0 {
			u.first = int32(i)
		}
		u.last = int32(i)
		u.content += w.weight
		if w.match >= 0 {
			u.matched += w.weight
			u.soft += w.weight
			m := &t.words[w.match]
			if w.class&number == 0 && string(s.text[w.start:w.end]) != string(t.text[m.start:m.end]) {
				u.reworded++
			}
			if w.class&number != 0 {
				u.numbers++
			}
			if w.class&(closed|name) != 0 {
				u.names++
			}
			continue
		}
		u.soft += w.weight * w.sim
		u.simSum += w.weight * w.sim
		u.loose += w.weight
		u.heaviest = max(u.heaviest, w.weight)
		u.farthest = min(u.farthest, w.sim)
		if w.class&light != 0 {
			u.light++
		} else {
			u.count++
		}
	}
	return u
}

// addSmall counts a function word.
func (u *sums) addSmall(w *word) {
	if w.class&asks != 0 {
		return
	}
	u.small++
	switch {
	case w.match >= 0:
		u.smallHeld++
	case w.class&pronoun != 0:
		u.pronouns++
	case w.class&aux != 0:
		u.aux++
	default:
		u.others++
	}
}
