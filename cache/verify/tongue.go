// Tongue: the language of a text.

package verify

import "strings"

// tongues lists, for each language, frequent words that no other of these languages has.
var tongues = [...]string{
	"the is are what how why does can which with of and should where when do",
	"der das ist und wie nicht ein eine warum welche wann kann mit von für auf ich kannst",
	"le les est une des comment pourquoi quel quelle dans avec pour où puis sont qui je peux",
	"el los es una qué cómo por para dónde cuál cuándo las del puedo que cuánto está son",
	"il gli è una che come perché dove quando per della sono posso quale di nel",
	"os uma como por que não onde quando qual são para posso você do da em",
	"het een hoe waarom wat niet van kan ik welke zijn waar wanneer voor met op",
	"hur vad är varför och att det inte kan jag en vilken var när för på",
}

func (x *lexicon) readLanguages() {
	for i, words := range tongues {
		for _, w := range strings.Fields(words) {
			folded := make([]rune, 0, len(w))
			for _, r := range w {
				folded = append(folded, x.simple.fold(r))
			}
			x.languages[x.hash([]byte(string(folded)))] |= 1 << i
		}
	}
}

// A tally counts, for each language of tongues, how many of its words a text has.
type tally [len(tongues)]int

func (t *tally) count(raws []raw, x *lexicon) {
	for i := range raws {
		mask := x.languages[raws[i].hash]
		for k := range t {
			t[k] += int(mask >> k & 1)
		}
	}
}

// surest returns the language that a text is certainly written in; -1: none.
func (t *tally) surest() int {
	best, second := 0, -1
	for k := 1; k < len(t); k++ {
		switch {
		case t[k] > t[best]:
			best, second = k, best
		case second < 0 || t[k] > t[second]:
			second = k
		}
	}
	if t[best] < 2 || t[best] < 2*t[second] {
		return -1
	}
	return best
}

// languageDiffers refuses pairs in two languages, because their answers are in two languages too.
func languageDiffers(p *pair) bool {
	if a, b := p.a.ideographs >= 2, p.b.ideographs >= 2; a != b {
		return p.a.ideographs == 0 || p.b.ideographs == 0
	}
	a, b := p.a.tongues.surest(), p.b.tongues.surest()
	return a >= 0 && b >= 0 && a != b
}
