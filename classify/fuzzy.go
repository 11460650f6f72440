// Fuzzy: words with slips of the pen.

package classify

import (
	"fmt"
	"unicode/utf8"

	"kvasir/typo"
)

// Bounds of a fuzzy keyword.
const (
	maxFuzzyWords   = 4
	maxFuzzyLetters = 48
)

// fuzzy finds keywords of up to four words with a few letters missing, added,
// exchanged or swapped. Keywords in scripts without spaces are found as they
// are written.
type fuzzy struct {
	words  [maxFuzzyWords + 1][]slip // by how many words a keyword has
	most   int                       // words of a keyword
	exact  *matcher                  // those of scripts without spaces
	origin []int                     // of exact's patterns: which keyword
	cased  bool
}

// A slip is one keyword and how many slips it may have.
type slip struct {
	keyword int
	letters []rune
	edits   int
}

func newFuzzy(o *SignalOptions) (finder, error) {
	threshold := o.Threshold
	if threshold == 0 {
		threshold = defaultFuzzy
	}
	if threshold < 0.5 || threshold > 1 {
		return nil, fmt.Errorf("threshold %v of equal letters is not within 0.5 and 1", o.Threshold)
	}
	f := &fuzzy{cased: o.CaseSensitive}
	var asWritten []string
	for i, k := range o.Keywords {
		w := window{cased: f.cased}
		spaceless := false
		for _, r := range k {
			spaceless = spaceless || unspaced(r)
			w.letter(r)
		}
		w.endWord()
		if spaceless {
			asWritten, f.origin = append(asWritten, k), append(f.origin, i)
			continue
		}
		letters := w.lastWords(w.count)
		if w.count == 0 || w.count > maxFuzzyWords || len(letters) > maxFuzzyLetters {
			return nil, fmt.Errorf("keyword %q is not of 1 to %d words and %d letters", k, maxFuzzyWords, maxFuzzyLetters)
		}
		edits := int((1-threshold)*float64(len(letters)) + 1e-9)
		f.words[w.count] = append(f.words[w.count], slip{i, append([]rune{}, letters...), edits})
		f.most = max(f.most, w.count)
	}
	var err error
	if len(asWritten) > 0 {
		f.exact, err = newMatcher(asWritten, f.cased)
	}
	return f, err
}

func (f *fuzzy) find(text []byte, h *hits) {
	if f.exact != nil {
		f.exact.search(text, true, nil, func(p int) bool { return h.hit(f.origin[p]) })
	}
	if f.most == 0 || h.enough() {
		return
	}
	w := window{cased: f.cased}
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
		}
		i += n
		if w.letter(r) && !f.at(&w, h) {
			return
		}
	}
	if w.endWord() {
		f.at(&w, h)
	}
}

// at compares the words that have just ended with the keywords; false: enough.
func (f *fuzzy) at(w *window, h *hits) bool {
	for n := 1; n <= f.most && n <= w.count; n++ {
		if len(f.words[n]) == 0 {
			continue
		}
		letters := w.lastWords(n)
		for i := range f.words[n] {
			s := &f.words[n][i]
			if !h.has(s.keyword) && typo.Within(s.letters, letters, s.edits) && !h.hit(s.keyword) {
				return false
			}
		}
	}
	return true
}

// A window holds the last words of a text, one space between two.
type window struct {
	cased   bool
	letters [2 * maxFuzzyWords * (maxFuzzyLetters + 2)]rune
	end     int                // of letters
	starts  [maxFuzzyWords]int // of the last words in letters
	count   int                // of starts
	word    int                // letters of the word under way
	long    bool               // the word under way is too long for any keyword
}

// letter takes one letter; true: a word has ended.
func (w *window) letter(r rune) bool {
	if !isWord(r) {
		return w.endWord()
	}
	if w.word == 0 {
		w.begin()
	}
	if w.word > maxFuzzyLetters {
		w.long = true
		return false
	}
	if !w.cased {
		r = caseless(r)
	}
	w.letters[w.end] = r
	w.end++
	w.word++
	return false
}

// begin makes room for a word.
func (w *window) begin() {
	if w.count == maxFuzzyWords {
		copy(w.starts[:], w.starts[1:])
		w.count--
	}
	if w.count == 0 {
		w.end = 0
	} else if w.end+maxFuzzyLetters+2 > len(w.letters) {
		from := w.starts[0]
		w.end = copy(w.letters[:], w.letters[from:w.end])
		for i := range w.count {
			w.starts[i] -= from
		}
	}
	if w.end > 0 {
		w.letters[w.end] = ' '
		w.end++
	}
	w.starts[w.count] = w.end
	w.count++
}

// endWord ends the word under way; true: there was one, and it may be compared.
func (w *window) endWord() bool {
	if w.word == 0 {
		return false
	}
	w.word = 0
	if w.long {
		w.long, w.count, w.end = false, 0, 0
		return false
	}
	return true
}

// lastWords are the letters of the last n words.
func (w *window) lastWords(n int) []rune {
	if n == 0 || n > w.count {
		return nil
	}
	return w.letters[w.starts[w.count-n]:w.end]
}
