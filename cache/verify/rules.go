// Rules: each refuses pairs for one kind of difference that changes the answer.

package verify

// rules run in this order; the first that refuses a pair gives its name.
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
	{"question", shareDiffers},
	{"question", mannerDiffers},
	{"question", meaningDiffers},
	{"question", useDiffers},
	{"question", othersDiffer},
	{"question", listingDiffers},
	{"question", makingDiffers},
	{"question", relationDiffers},
	{"question", workingDiffers},
	{"question", momentDiffers},
	{"question", comparedDiffer},
	{"word", wordDiffers},
	{"sign", signsDiffer},
}

// refused returns the name of the first rule that refuses the pair; "": none.
func (p *pair) refused() string {
	for i := range rules {
		if rules[i].refuses(p) {
			return rules[i].name
		}
	}
	return ""
}

// wordDiffers refuses pairs in which one side has many unmatched words, and long pairs with any:
// one word among a hundred hardly changes the score, but the whole answer may depend on it.
func wordDiffers(p *pair) bool {
	return p.features[softLeast] < leastShared || len(p.a.words) > maxLoosely && (p.a.saysMore() || p.b.saysMore())
}

// leastShared is the share of each side's content, by weight, that the other must have.
const leastShared = 0.4
