// Features: the pair model's inputs, computed from two questions.

package verify

// The features of a pair. "Least" is the smaller and "most" the larger of the two sides' values,
// so that swapping the questions changes nothing. "Small" words are function words.
const (
	cosine         = iota // of the embeddings; 1 where both sides are the same
	exactLeast            // share of the content words, by weight, that the other side has too
	exactMost             //
	softLeast             // the same, with an unmatched word counted by its similarity to the nearest word
	softMost              //
	looseLeast            // weight of unmatched content
	looseMost             //
	countLeast            // unmatched content words
	countMost             //
	heaviestLeast         // weight of the heaviest unmatched word
	heaviestMost          //
	nearestLeast          // similarity of the least similar unmatched word to its nearest word
	nearestMeanOf         // mean similarity of the unmatched words, by weight
	residue               // cosine of the sums of unmatched words
	allSmall              // share of function words that match
	pronounsDiffer        // unmatched pronouns of both
	auxDiffer             // unmatched auxiliary verbs of both
	smallLoose            // other unmatched function words of both
	trigrams              // Dice of character trigrams
	lengthRatio           // word count of the shorter divided by that of the longer
	lengthLeast           // words
	weightLeast           // all content
	inversions            // share of neighbouring matched pairs in reversed order
	neighbours            // share of neighbouring matched words that are neighbours on the other side too
	firstSame             // the first content words match each other
	lastSame              // the last content words match each other
	formsEqual            // 1: same form of question; 0.5: one has no form or asks what; 0: different forms
	whatHow               // one asks what, the other how
	yesOther              // one is a yes-or-no question, the other not
	openOther             // one is not a question
	chinese               //
	lightLoose            // unmatched words of little meaning
	oneSided              // unmatched content on one side only
	reworded              // matched words whose forms differ
	spelled               // an unmatched pair that differs by a spelling mistake
	numbersShared         // numbers that match
	namesShared           // names that match
	features
)

// FeatureNames returns the names of the model's inputs, in their order.
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

// Features appends the model's inputs for a pair to dst, for training: the same ones that Compare
// uses. why is the rule that refuses the pair.
func (v *Verifier) Features(dst []float32, a, b []byte, similarity float64) (features []float32, why string) {
	p := v.scratch.Get().(*pair)
	defer v.scratch.Put(p)
	p.read(v, a[:min(len(a), MaxText)], b[:min(len(b), MaxText)], similarity)
	return append(dst, p.features[:]...), p.refused()
}
