// Features: what the pair model sees of two questions.

package verify

// The features of a pair. "Least" and "most" are those of the side where it is
// less or more, so that none depends on which question was stored.
const (
	cosine         = iota // of the embeddings; 1 where both sides say the same
	exactLeast            // share of the content, by weight, that the other side has
	exactMost             //
	softLeast             // the same, with unmatched words counted by their nearest
	softMost              //
	looseLeast            // weight of unmatched content
	looseMost             //
	countLeast            // unmatched content words
	countMost             //
	heaviestLeast         // weight of the heaviest unmatched word
	heaviestMost          //
	nearestLeast          // similarity of the unmatched word that is farthest from all others
	nearestMeanOf         // mean similarity of the unmatched words, by weight
	residue               // cosine of the sums of unmatched words
	allSmall              // share of function words that match
	pronounsDiffer        // unmatched pronouns of both
	auxDiffer             // unmatched auxiliary verbs of both
	smallLoose            // other unmatched function words of both
	trigrams              // Dice of character trigrams
	lengthRatio           // words of the shorter by those of the longer
	lengthLeast           // words
	weightLeast           // all content
	inversions            // share of neighbours among matched words whose order is turned
	neighbours            // share of matched neighbours that are neighbours on the other side
	firstSame             // first content words are matched with each other
	lastSame              // last content words are
	formsEqual            // 1: same form of question, 0.5: one is of no form or what, 0: neither
	whatHow               // one asks what, the other how
	yesOther              // one asks yes or no, the other not
	openOther             // one is no question
	chinese               //
	lightLoose            // unmatched words of little meaning
	oneSided              // unmatched content on one side only
	reworded              // matched words of another form
	spelled               // an unmatched pair that differs by a slip of spelling
	numbersShared         // numbers that match
	namesShared           // names that match
	features
)

// FeatureNames are the names of the model's inputs, in their order.
func FeatureNames() []string {
	return []string{
		"cosine", "exact least", "exact most", "soft least", "soft most", "loose least", "loose most",
		"count least", "count most", "heaviest least", "heaviest most", "nearest least", "nearest mean",
		"residue", "all small", "pronouns differ", "aux differ", "small loose", "trigrams", "length ratio",
		"length least", "weight least", "inversions", "neighbours", "first same", "last same", "forms equal",
		"what how", "yes other", "open other", "chinese", "light loose", "one sided", "reworded", "spelled",
		"numbers shared", "names shared",
	}
}

// Features appends the model's inputs for a pair to dst, for training: they are
// those that Compare uses. why is the rule that refuses the pair.
func (v *Verifier) Features(dst []float32, a, b []byte, similarity float64) (features []float32, why string) {
	p := v.scratch.Get().(*pair)
	defer v.scratch.Put(p)
	p.read(v, a[:min(len(a), MaxText)], b[:min(len(b), MaxText)], similarity)
	return append(dst, p.features[:]...), p.refused()
}
