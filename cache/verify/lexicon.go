// Lexicon: the word lists, as a tree of pieces that finds the longest phrase.

package verify

import (
	"bufio"
	"embed"
	"fmt"
	"hash/maphash"
	"iter"
	"strings"
	"unicode/utf8"
)

//go:embed lists/*.txt
var lists embed.FS

// A class is the set of kinds that a word belongs to.
type class uint32

const (
	dropped     class = 1 << iota // has no meaning
	edge                          // has no meaning at the beginning or end of a clause
	asks                          // question word
	small                         // function word
	light                         // has little meaning
	pronoun                       // of a person
	aux                           // auxiliary verb: carries the tense
	negator                       // negates the sentence
	date                          // day, month, season
	unit                          // of measure
	currency                      // of money
	closed                        // of a list of names: another name makes another question
	name                          // written with a capital
	number                        // in digits or words
	ordinal                       // a number that counts places
	isCode                        // compared letter by letter
	operator                      // of arithmetic or code
	opposite                      // has opposites
	slip                          // spelled nearly like one of the other side, and long
	composition                   // asks what a thing consists of
	cjk                           // of a script without spaces
)

// sections are the classes of the lists' sections.
var sections = map[string]class{
	"drop": dropped, "edge": edge,
	"how": asks, "yesno": asks, "why": asks, "when": asks, "where": asks, "who": asks, "whose": asks,
	"howmany": asks, "howlong": asks, "howfar": asks, "howoften": asks, "howold": asks, "howbig": asks,
	"what": asks, "opinion": asks,
	"aux": small | aux, "pronoun": small | pronoun, "function": small, "light": light,
	"negation": negator | small, "date": date | closed, "unit": unit, "currency": currency | unit,
	"place": closed, "language": closed, "program": closed, "brand": closed, "person": closed,
	"synonym": 0, "composition": composition, "spelling": 0, "plain": 0, "antonym": opposite, "comparison": opposite,
}

// files are the lists in reading order: if a word is in two, the first sets its concept.
var files = [...]string{"spelling", "phrases", "function", "negation", "time", "units", "places", "names", "synonyms", "plain", "antonyms"}

// An entry is what the lists contain about a phrase.
type entry struct {
	concept uint64
	class   class
	form    form // of question
}

// A lexicon holds all lists, read-only.
type lexicon struct {
	seed      maphash.Seed // random for each process, so that nobody can construct colliding words
	simple    simplified
	composed  accented
	nodes     map[uint64]uint32 // node and piece -> node
	entries   map[uint32]entry  // node -> the phrase that ends there
	opposites map[uint64][]int16
	compared  map[int16]bool // numbers of the opposites that are ends of a comparison
	contracts map[string]bool
	numerals  map[uint64]numeral
	languages map[uint64]uint8
	fillers   map[uint64]bool // have no meaning, not even within a phrase
}

// lines yields the lines of a list, without empty lines and comments.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		s := bufio.NewScanner(strings.NewReader(text))
		for s.Scan() {
			if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

func openLexicon() (*lexicon, error) {
	x := &lexicon{
		seed: maphash.MakeSeed(), simple: readSimplified(simplifiedList), composed: readComposed(composedList),
		nodes: make(map[uint64]uint32), entries: make(map[uint32]entry),
		opposites: make(map[uint64][]int16), compared: make(map[int16]bool),
		contracts: make(map[string]bool), numerals: make(map[uint64]numeral), languages: make(map[uint64]uint8),
		fillers: make(map[uint64]bool),
	}
	for _, w := range strings.Fields("what who where when how why that it there here he she let which whats") {
		x.contracts[w] = true
	}
	for _, w := range strings.Fields("exactly precisely literally actually basically simply really") {
		x.fillers[x.hash([]byte(w))] = true
	}
	x.readNumerals()
	x.readLanguages()
	for _, file := range files {
		text, err := lists.ReadFile("lists/" + file + ".txt")
		if err != nil {
			return nil, fmt.Errorf("cannot read list %q: %w", file, err)
		}
		if err := x.read(string(text)); err != nil {
			return nil, fmt.Errorf("cannot read list %q: %w", file, err)
		}
	}
	return x, nil
}

// read adds the lines of a list.
func (x *lexicon) read(text string) error {
	section := ""
	for line := range lines(text) {
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			if _, ok := sections[section]; !ok {
				return fmt.Errorf("%q is no section", section)
			}
			continue
		}
		if sections[section] == opposite {
			if err := x.addOpposites(line, section == "comparison"); err != nil {
				return err
			}
			continue
		}
		x.addLine(line, section)
	}
	return nil
}

// addLine adds the phrases of a line, which share one concept.
func (x *lexicon) addLine(line, section string) {
	concept := x.known(line, section)
	for phrase := range strings.SplitSeq(line, ",") {
		node := x.path(strings.TrimSpace(phrase))
		e, known := x.entries[node]
		if !known || e.concept == 0 {
			e.concept = concept
		}
		if sections[section]&(dropped|edge) != 0 && !known {
			e.concept = 0
		}
		if f, ok := forms[section]; ok && e.form == 0 {
			e.form = f
		}
		e.class |= sections[section]
		x.entries[node] = e
	}
}

// known returns the concept of a line: that of the first phrase that has one already, or else a
// new one named after the first phrase.
func (x *lexicon) known(line, section string) uint64 {
	for phrase := range strings.SplitSeq(line, ",") {
		if e := x.entries[x.path(strings.TrimSpace(phrase))]; e.concept != 0 {
			return e.concept
		}
	}
	first, _, _ := strings.Cut(line, ",")
	if sections[section]&(closed|unit) != 0 { // https is not a form of http
		return x.hash([]byte(strings.TrimSpace(first)))
	}
	return x.conceptOf(strings.TrimSpace(first))
}

// addOpposites adds a line "a, b | c, d".
func (x *lexicon) addOpposites(line string, compared bool) error {
	left, right, ok := strings.Cut(line, "|")
	if !ok {
		return fmt.Errorf("%q has no other side", line)
	}
	id := int16(len(x.compared) + 1)
	x.compared[id] = compared
	for _, side := range []struct {
		text string
		id   int16
	}{{left, id}, {right, -id}} {
		for phrase := range strings.SplitSeq(side.text, ",") {
			phrase = strings.TrimSpace(phrase)
			node := x.path(phrase)
			e := x.entries[node]
			if e.concept == 0 {
				e.concept = x.conceptOf(phrase)
			}
			e.class |= opposite
			x.entries[node] = e
			x.opposites[e.concept] = append(x.opposites[e.concept], side.id)
		}
	}
	return nil
}

// conceptOf names the concept whose first form is phrase.
func (x *lexicon) conceptOf(phrase string) uint64 {
	if phrase[0] < utf8.RuneSelf && !strings.Contains(phrase, " ") {
		return x.hash(stem([]byte(phrase)))
	}
	return x.hash([]byte(phrase))
}

// path adds the nodes of a phrase and returns the last one.
func (x *lexicon) path(phrase string) uint32 {
	node := uint32(0)
	for _, piece := range pieces(phrase) {
		key := edgeKey(node, x.hash([]byte(piece)))
		next, ok := x.nodes[key]
		if !ok {
			next = uint32(len(x.nodes) + 1)
			x.nodes[key] = next
		}
		node = next
	}
	return node
}

// pieces cuts a phrase of a list as scan cuts a text.
func pieces(phrase string) []string {
	var cut []string
	for _, field := range strings.Fields(phrase) {
		from := 0
		last := kind(255)
		for i, r := range field {
			k := letters
			switch {
			case isIdeograph(r):
				k = ideograph
			case isDigit(r):
				k = digits
			}
			if i > 0 && (k != last || k == ideograph) {
				cut = append(cut, field[from:i])
				from = i
			}
			last = k
		}
		cut = append(cut, field[from:])
	}
	return cut
}

func (x *lexicon) hash(text []byte) uint64 { return maphash.Bytes(x.seed, text) | 1 }

func edgeKey(node uint32, piece uint64) uint64 {
	return (piece ^ uint64(node)*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
}

// longest finds the longest phrase that begins at raws[from], and how many raws it takes; 0:
// none. It skips fillers: "what actually causes" is "what causes".
func (x *lexicon) longest(raws []raw, from int) (e entry, taken int) {
	node := uint32(0)
	for i := from; i < len(raws); i++ {
		h := raws[i].hash
		if raws[i].kind == stop || raws[i].kind == code {
			break
		}
		next, ok := x.nodes[edgeKey(node, h)]
		if !ok && i > from && x.fillers[h] {
			continue
		}
		if !ok {
			break
		}
		node = next
		if found, ok := x.entries[node]; ok {
			e, taken = found, i-from+1
		}
	}
	return e, taken
}

// single finds the entry of a single piece.
func (x *lexicon) single(hash uint64) (entry, bool) {
	node, ok := x.nodes[edgeKey(0, hash)]
	if !ok {
		return entry{}, false
	}
	e, ok := x.entries[node]
	return e, ok
}

// isSmall reports whether a word is one that only headings capitalise.
func (x *lexicon) isSmall(hash uint64) bool {
	e, ok := x.single(hash)
	return ok && e.class&(small|asks|light|dropped) != 0 && e.class&closed == 0
}
