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
	{"name", keywordDiffers},
	{"order", orderDiffers},
	{"order", rolesDiffer},
	{"question", questionDiffers},
	{"question", predicateDiffers},
	{"word", wordDiffers},
	{"sign", signsDiffer},
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

// wordDiffers refuses pairs of which one side says much that the other does not,
// and long ones of which it says anything: one word among a hundred hardly
// changes the score, and may be all that the answer hangs on.
func wordDiffers(p *pair) bool {
	return p.features[softLeast] < leastShared || len(p.a.words) > maxLoosely && (p.a.saysMore() || p.b.saysMore())
}

// leastShared is the share of the meaning of each side that the other must have.
const leastShared = 0.4
