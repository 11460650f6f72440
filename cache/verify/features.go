// Features: what the pair model sees of two questions.
package verify

import (
	"math"

	"kvasir/classify/model"
)

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

// sums are what one side is counted to.
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

func (s *side) sum(t *side) (u sums) {
	u.first, u.last, u.farthest = -1, -1, 1
	for i := range s.words {
		w := &s.words[i]
		u.words++
		if !w.content() {
			if w.match >= 0 || !s.implied(i, t) {
				s.sumSmall(w, &u)
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

func (s *side) sumSmall(w *word, u *sums) {
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

// measure fills the features.
func (p *pair) measure() {
	f := &p.features
	*f = [features]float32{}
	a, b := p.a.sum(&p.b), p.b.sum(&p.a)
	f[cosine] = float32(p.similarity)
	if p.alike() {
		f[cosine] = 1 // politeness and spelling move an embedding, and mean nothing
	}
	f[exactLeast], f[exactMost] = ordered(share(a.matched, a.content), share(b.matched, b.content))
	f[softLeast], f[softMost] = ordered(share(a.soft, a.content), share(b.soft, b.content))
	f[looseLeast], f[looseMost] = ordered(a.loose, b.loose)
	f[countLeast], f[countMost] = ordered(a.count, b.count)
	f[heaviestLeast], f[heaviestMost] = ordered(a.heaviest, b.heaviest)
	f[nearestLeast] = min(a.farthest, b.farthest)
	f[nearestMeanOf] = share(a.simSum+b.simSum, a.loose+b.loose)
	f[residue] = p.residue()
	f[allSmall] = share(a.smallHeld+b.smallHeld, a.small+b.small)
	f[pronounsDiffer] = a.pronouns + b.pronouns
	f[auxDiffer] = a.aux + b.aux
	f[smallLoose] = a.others + b.others
	f[trigrams] = p.trigrams()
	f[lengthLeast], f[lengthRatio] = ordered(a.words, b.words)
	f[lengthRatio] = share(f[lengthLeast], f[lengthRatio])
	f[weightLeast] = min(a.content, b.content)
	f[inversions], f[neighbours] = p.orders()
	f[firstSame] = same(a.first >= 0 && p.a.words[max(a.first, 0)].match == b.first)
	f[lastSame] = same(a.last >= 0 && p.a.words[max(a.last, 0)].match == b.last)
	p.measureForms()
	f[chinese] = same(p.a.ideographs >= 2 && p.b.ideographs >= 2)
	f[lightLoose] = a.light + b.light
	f[oneSided] = same((a.count == 0) != (b.count == 0))
	f[reworded] = max(a.reworded, b.reworded)
	f[spelled] = same(f[nearestLeast] >= 0.8 && f[countLeast] > 0)
	f[numbersShared] = min(a.numbers, b.numbers)
	f[namesShared] = min(a.names, b.names)
}

// alike says whether both sides say the same: all that is more than grammar, in
// the same order, and the same grammar but for is and does.
func (p *pair) alike() bool {
	if !sameForm(p.a.form, p.b.form) && !sameForm(p.b.form, p.a.form) {
		return false
	}
	for n, s := range [2]*side{&p.a, &p.b} {
		other := [2]*side{&p.b, &p.a}[n]
		for i := range s.words {
			if w := &s.words[i]; w.match < 0 && !s.silent(w) && !s.implied(i, other) {
				return false
			}
		}
	}
	inverted, _ := p.orders()
	return len(p.a.words) > 0 && len(p.b.words) > 0 && inverted == 0
}

// sameForm says whether a question of form f may be put without a question word
// or mark, if it is not of the same form: the capital of France.
func sameForm(f, g form) bool { return f == g || g == noForm && (f == what || f == yesno) }

// silent says whether a word is grammar that a question has or has not by the
// order of its words.
func (s *side) silent(w *word) bool {
	if w.class&asks != 0 || w.class&number != 0 && w.class&light != 0 { // a mile, one mile
		return true
	}
	if w.class&small == 0 || w.class&negator != 0 {
		return false
	}
	switch string(s.text[w.start:w.end]) {
	case "is", "are", "am", "do", "does", "did", "it", "that", "there", "got", "是", "会", "有", "由", "个", "一个":
		return true
	}
	return false
}

func (p *pair) measureForms() {
	f, x, y := &p.features, p.a.form, p.b.form
	either := func(k form) bool { return (x == k) != (y == k) }
	switch {
	case x == y:
		f[formsEqual] = 1
	case either(noForm) || either(what):
		f[formsEqual] = 0.5
	}
	f[whatHow] = same(either(what) && either(how))
	f[yesOther] = same(either(yesno))
	f[openOther] = same(either(noForm))
}

func same(is bool) float32 {
	if is {
		return 1
	}
	return 0
}

func ordered(x, y float32) (least, most float32) { return min(x, y), max(x, y) }

// share is 1 where there is nothing to share.
func share(part, whole float32) float32 {
	if whole <= 0 {
		return 1
	}
	return part / whole
}

// residue is the cosine of the sums of both sides' unmatched words: 1 where
// there are none, 0 where only one side has some.
func (p *pair) residue() float32 {
	if len(p.loose[0]) == 0 && len(p.loose[1]) == 0 {
		return 1
	}
	if len(p.loose[0]) == 0 || len(p.loose[1]) == 0 {
		return 0
	}
	var total [2][model.Dim]float32
	for n, s := range [2]*side{&p.a, &p.b} {
		for k, i := range p.loose[n] {
			if !p.known[n][k] {
				continue
			}
			weight := s.words[i].weight
			for d, v := range p.vectors[n][k] {
				total[n][d] += weight * v
			}
		}
	}
	ab, aa, bb := dot(&total[0], &total[1]), dot(&total[0], &total[0]), dot(&total[1], &total[1])
	if aa <= 1e-9 || bb <= 1e-9 {
		return 0
	}
	return ab / float32(math.Sqrt(float64(aa)*float64(bb)))
}

// orders compares the order of the matched words: the means of both sides.
func (p *pair) orders() (inverted, kept float32) {
	i, k := p.a.orders(&p.b)
	j, l := p.b.orders(&p.a)
	return (i + j) / 2, (k + l) / 2
}

// orders gives the shares of the neighbours among a side's matched words that
// stand the other way round in t, and that are neighbours there.
func (s *side) orders(t *side) (inverted, kept float32) {
	var pairs float32
	last, before := int32(-1), int32(-1)
	for i := range s.words {
		w := &s.words[i]
		if w.match < 0 || !w.counts() || t.words[w.match].match != int32(i) {
			continue
		}
		if last >= 0 {
			pairs++
			switch {
			case w.match == last+1, w.match == last-1 && isDay(&s.words[before], w), w.match < last && s.linked(before, int32(i)) && t.linked(w.match, last):
				kept++
			case w.match < last:
				inverted++
			}
		}
		last, before = w.match, int32(i)
	}
	if pairs == 0 {
		return 0, 1
	}
	return inverted / pairs, kept / pairs
}

// trigramSlots is the size of the table of trigrams; texts of many more share
// its slots.
const trigramSlots = 2048

// trigrams is the Dice coefficient of the bytes of both texts, three by three.
func (p *pair) trigrams() float32 {
	var counts [trigramSlots]int16
	slot := func(t []byte, i int) *int16 {
		h := uint32(t[i]) | uint32(t[i+1])<<8 | uint32(t[i+2])<<16
		return &counts[h*2654435761>>21]
	}
	a, b := p.a.text, p.b.text
	for i := 0; i+2 < len(a); i++ {
		*slot(a, i)++
	}
	both := 0
	for i := 0; i+2 < len(b); i++ {
		if c := slot(b, i); *c > 0 {
			*c--
			both++
		}
	}
	n := max(len(a)-2, 0) + max(len(b)-2, 0)
	if n == 0 {
		return same(string(a) == string(b))
	}
	return 2 * float32(both) / float32(n)
}
