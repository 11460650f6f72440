// Order: "from A to B" is not "from B to A", and a dog that bites a man is not a man that bites a
// dog.

package verify

// An order compares the positions of the matched words of both sides.
type order struct{ a, b *side }

// orderDiffers refuses pairs in which two words have changed places, and long pairs in which any
// word has moved.
func orderDiffers(p *pair) bool {
	a, b := p.sides()
	o := order{a, b}
	return o.numbersMoved() || len(a.words) > maxLoosely && (o.wordsMoved() || lettersMoved(a.text, b.text)) || o.wordsExchanged()
}

// maxLoosely is the length, in words, up to which the word order may differ. In a longer text,
// two exchanged words would hardly change the score.
const maxLoosely = 40

// mutual reports whether the match of word i of a is matched with word i in turn.
func (o order) mutual(i int) bool {
	m := o.a.words[i].match
	return m >= 0 && o.b.words[m].match == int32(i)
}

// moved reports whether the words for which `are` holds come in another order.
func (o order) moved(are func(*word) bool) bool {
	last := int32(-1)
	for i := range o.a.words {
		w := &o.a.words[i]
		if !o.mutual(i) || !are(w) {
			continue
		}
		if w.match < last {
			return true
		}
		last = w.match
	}
	return false
}

// contentMoved reports whether the content words come in another order.
func (o order) contentMoved() bool { return o.moved((*word).content) }

// wordsMoved reports whether words whose place matters come in another order.
func (o order) wordsMoved() bool {
	return o.moved(func(w *word) bool { return w.counts() || w.class&(number|isCode|operator) != 0 })
}

// numbersMoved reports whether two neighbouring numbers have changed places, except in a list.
func (o order) numbersMoved() bool {
	last := int32(-1)
	for i := range o.a.words {
		w := &o.a.words[i]
		if w.class&number == 0 || w.match < 0 {
			continue
		}
		if last >= 0 && w.match < o.a.words[last].match && !o.listed(last, int32(i), w.match, o.a.words[last].match) {
			return true
		}
		last = int32(i)
	}
	return false
}

// listed reports whether words i and j of a, which match k and l of b, are items of a list on
// both sides.
func (o order) listed(i, j, k, l int32) bool { return linked(o.a, i, j) && linked(o.b, k, l) }

// maxOrdered bounds the words whose order is compared, because every pair of them is checked.
const maxOrdered = 24

// wordsExchanged reports whether two words have changed places: each stands where the other
// stood, before or after the same word. Words that only moved (France's capital, the capital of
// France) have other neighbours.
func (o order) wordsExchanged() bool {
	var moved [maxOrdered]int32
	n := 0
	for i := range o.a.words {
		if n < maxOrdered && o.mutual(i) && o.a.words[i].counts() {
			moved[n] = int32(i)
			n++
		}
	}
	for k, i := range moved[:n] {
		for _, j := range moved[k+1 : n] {
			w, u := &o.a.words[i], &o.a.words[j]
			if w.match > u.match && w.concept != u.concept && o.exchanged(i, j, w.match, u.match) {
				return true
			}
		}
	}
	return false
}

// exchanged reports whether words i and j of a, which match mi and mj of b, stand in each other's
// places.
func (o order) exchanged(i, j, mi, mj int32) bool {
	if j == i+1 && mi == mj+1 && asksKind(o.a, int(i)) && asksKind(o.b, int(mj)) {
		return true
	}
	if j == i+1 || mi == mj+1 || o.listed(i, j, mj, mi) {
		return false
	}
	if o.a.words[i].class&o.a.words[j].class&unit != 0 { // from miles to kilometers, in any wording
		return true
	}
	return o.samePlace(i, mj, j, mi) && o.samePlace(j, mi, i, mj)
}

// samePlace reports whether word i of a and word k of b have the same word before or after them,
// not counting the two that may have been exchanged, or are the last.
func (o order) samePlace(i, k, otherA, otherB int32) bool {
	for _, d := range [2]int32{-1, 1} {
		x, y := i+d, k+d
		if d > 0 && x == int32(len(o.a.words)) && y == int32(len(o.b.words)) {
			return true
		}
		if x < 0 || y < 0 || x >= int32(len(o.a.words)) || y >= int32(len(o.b.words)) || x == otherA || y == otherB {
			continue
		}
		if o.a.words[x].concept == o.b.words[y].concept {
			return true
		}
	}
	return false
}

// neighbours returns two shares of the neighbouring matched pairs, each the mean of both sides:
// those in reversed order on the other side, and those that are neighbours there too.
func (o order) neighbours() (inverted, kept float32) {
	i, k := o.neighboursOfA()
	j, l := order{o.b, o.a}.neighboursOfA()
	return (i + j) / 2, (k + l) / 2
}

func (o order) neighboursOfA() (inverted, kept float32) {
	var pairs float32
	last, before := int32(-1), int32(-1)
	for i := range o.a.words {
		w := &o.a.words[i]
		if !o.mutual(i) || !w.counts() {
			continue
		}
		if last >= 0 {
			pairs++
			switch {
			case w.match == last+1, w.match == last-1 && isDay(&o.a.words[before], w), w.match == last-2 && o.belongs(before, int32(i), w.match, last), w.match < last && o.listed(before, int32(i), w.match, last):
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

// lettersMoved reports whether two texts have the same characters in another order, without
// spaces: a - b and b - a in the middle of a program.
func lettersMoved(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == ' ' || a[0] == '\n':
			a = a[1:]
		case b[0] == ' ' || b[0] == '\n':
			b = b[1:]
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
		default:
			return sameLetters(a, b)
		}
	}
	return false
}

// sameLetters reports whether two texts are the same characters, without spaces.
func sameLetters(a, b []byte) bool {
	var count [256]int
	for _, c := range a {
		count[c]++
	}
	for _, c := range b {
		count[c]--
	}
	count[' '], count['\n'] = 0, 0
	return count == [256]int{}
}

// belongs reports whether words i and j of a are neighbours, as words k and l of b are but for "of": aspirin's effects,
// the effects of aspirin.
func (o order) belongs(i, j, k, l int32) bool {
	return j == i+1 && l == k+2 && string(o.b.word(int(k)+1)) == "of"
}
