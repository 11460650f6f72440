// Gauge: how similar two questions are, as features.

package verify

import (
	"math"

	"kvasir/classify/model"
)

// measure computes the features, the inputs of the pair model.
func (p *pair) measure() {
	f := &p.features
	*f = [features]float32{}
	x, y := p.sides()
	a, b := sum(x, y), sum(y, x)
	f[inversions], f[neighbours] = order{x, y}.neighbours()
	f[cosine] = float32(p.similarity)
	if f[inversions] == 0 && p.alike() {
		f[cosine] = 1 // politeness and spelling change an embedding, but not the meaning
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
	f[trigrams] = dice(p.a.text, p.b.text)
	f[lengthLeast], f[lengthRatio] = ordered(a.words, b.words)
	f[lengthRatio] = share(f[lengthLeast], f[lengthRatio])
	f[weightLeast] = min(a.content, b.content)
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

// measureForms computes the features of the form of the questions.
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

// alike reports whether both sides have the same words, in any order: all content words match,
// and the function words too, except forms of "is" and "does".
func (p *pair) alike() bool {
	a, b := p.sides()
	if !sameForm(a.form, b.form) && !sameForm(b.form, a.form) && !explainsWork(a, b) && !explainsWork(b, a) && !(a.compares && b.compares) && !cooks(a, b) && !cooks(b, a) && !asksState(a, b) && !asksState(b, a) {
		return false
	}
	return len(a.words) > 0 && len(b.words) > 0 && isImpliedBy(a, b) && isImpliedBy(b, a)
}

// sameForm reports whether the forms are equal, or g has no form and f is one that may be asked
// without a question word or mark: the capital of France.
func sameForm(f, g form) bool {
	return f == g || g == noForm && (f == what || f == yesno || f == who)
}

// residue is the cosine between the sums of the two sides' unmatched words: 1 if there are none,
// 0 if only one side has some.
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
	ab, aa, bb := model.Dot(&total[0], &total[1]), model.Dot(&total[0], &total[0]), model.Dot(&total[1], &total[1])
	if aa <= 1e-9 || bb <= 1e-9 {
		return 0
	}
	return ab / float32(math.Sqrt(float64(aa)*float64(bb)))
}

// trigramSlots is the size of the trigram table. Long texts have more trigrams than slots, and
// share slots.
const trigramSlots = 2048

// dice is the Dice coefficient of the byte trigrams of both texts.
func dice(a, b []byte) float32 {
	var counts [trigramSlots]int16
	slot := func(t []byte, i int) *int16 {
		h := uint32(t[i]) | uint32(t[i+1])<<8 | uint32(t[i+2])<<16
		return &counts[h*2654435761>>21]
	}
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

func same(is bool) float32 {
	if is {
		return 1
	}
	return 0
}

func ordered(x, y float32) (least, most float32) { return min(x, y), max(x, y) }

// share returns part/whole, and 1 if whole is 0.
func share(part, whole float32) float32 {
	if whole <= 0 {
		return 1
	}
	return part / whole
}
