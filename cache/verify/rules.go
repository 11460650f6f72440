// Rules: each refuses pairs for a difference that changes the answer.
package verify

// rules are asked in this order; the first that refuses gives its name.
var rules = [...]struct {
	name    string
	refuses func(*pair) bool
}{
	{"language", languageDiffers},
	{"code", codeDiffers},
	{"quote", quoteDiffers},
	{"date", dateDiffers},
	{"number", numberDiffers},
	{"date", tenseDiffers},
	{"unit", unitDiffers},
	{"negation", negationDiffers},
	{"comparison", comparisonDiffers},
	{"antonym", antonymDiffers},
	{"antonym", selfDiffers},
	{"name", nameDiffers},
	{"name", letterDiffers},
	{"order", orderDiffers},
	{"order", frameDiffers},
	{"question", questionDiffers},
	{"question", predicateDiffers},
	{"word", wordDiffers},
}

// refused returns the name of the first rule that refuses the pair, "" if none.
func (p *pair) refused() string {
	for i := range rules {
		if rules[i].refuses(p) {
			return rules[i].name
		}
	}
	return ""
}

// hasUnmatched says whether a side has a word of a class that the other has not.
func hasUnmatched(s *side, c class) bool {
	for i := range s.words {
		if w := &s.words[i]; w.class&c != 0 && w.match < 0 {
			return true
		}
	}
	return false
}

// dateDiffers refuses pairs with another day, month, season or year.
func dateDiffers(p *pair) bool {
	return hasUnmatched(&p.a, date) || hasUnmatched(&p.b, date) || hasNumber(&p.a, true) || hasNumber(&p.b, true)
}

// codeDiffers refuses pairs with other code or arithmetic in them.
func codeDiffers(p *pair) bool {
	return hasUnmatched(&p.a, isCode|operator) || hasUnmatched(&p.b, isCode|operator)
}

// unitDiffers refuses pairs with other units. One may go without saying.
func unitDiffers(p *pair) bool {
	return hasUnmatched(&p.a, unit) && hasUnmatched(&p.b, unit)
}

// wordDiffers refuses pairs of which one side says much that the other does not,
// and long ones of which it says anything: one word among a hundred hardly
// changes the score, and may be all that the answer hangs on.
func wordDiffers(p *pair) bool {
	return p.features[softLeast] < leastShared || len(p.a.words) > maxLoosely && (p.a.saysMore() || p.b.saysMore())
}

// saysMore says whether a side has a word that counts and that the other has not.
func (s *side) saysMore() bool {
	for i := range s.words {
		if w := &s.words[i]; w.match < 0 && w.counts() {
			return true
		}
	}
	return false
}

// leastShared is the share of the meaning of each side that the other must have.
const leastShared = 0.4
