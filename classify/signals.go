// Signals: the one table of them. To add a signal, add a file, a row here and a
// transcript.

package classify

import (
	"fmt"
	"slices"
	"strings"
)

// A signal is one kind of fact about a request. It is computed at most once a
// request, and only when a guard, a decision or a header asks for it.
//
// There are two sorts. A signal with a value of its own has find and is; one
// that users make under a name has a key, and either measure or compile.
type signal struct {
	kind Kind
	cost int // rough, for the order in which a decision asks: microseconds for a short text

	find   func(*judging) error                            // computes the value into the verdict; nil if the request holds it
	is     func(*judging, string) (score float64, ok bool) // whether it has this value
	values func() []string                                 // what a condition may ask for; nil: any value, or, of a kind with key, the names of users' signals
	found  func(*judging) string                           // the value in words
	report func(*Verdict) string                           // the same in full, for Verdict.Report; nil: the names that hold

	telling bool // it is listed by Telling
	embeds  bool // it needs the sentence embedding

	key      string                                          // of an element of `signals` in the configuration, which makes a signal of this kind
	measures []string                                        // what users may set bounds to; if one has the key's name, its bounds stand at the key itself
	measure  func(*judging, string) (float64, error)         // one of measures, by its name
	limit    float64                                         // the greatest that a measure can be; 0: there is none
	compile  func(*Classifier, *SignalOptions) (test, error) // for kinds that are configured by something other than bounds
}

// made says that users make signals of this kind.
func (s *signal) made() bool { return s.key != "" }

// A test says whether a signal of the user's own holds, and how clearly.
type test func(*judging) (score float64, holds bool, err error)

// table is in the order in which the configuration and Telling list signals. It
// is a function: a variable would be an initialisation cycle, since rows lead to judging,
// which reads the table.
func table() []signal {
	return []signal{
		{kind: KindJailbreak, cost: 100, find: searchAttacks, is: isJailbreak, values: jailbreakTypes, found: foundJailbreak, report: reportJailbreak},
		{kind: KindPII, cost: 50, find: searchPersonal, is: isPII, values: piiTypes, found: foundPII, report: reportPII},
		{kind: KindCategory, cost: 90, find: (*judging).findCategory, is: isCategory, values: categories, found: foundCategory, report: reportCategory, telling: true},
		{kind: KindSentence, cost: 80, find: (*judging).findSentence, report: reportSentence},
		{kind: KindLanguage, cost: 10, find: (*judging).findLanguage, is: isLanguage, values: languageCodes, found: foundLanguage, report: reportLanguage, telling: true},
		{kind: KindComplexity, cost: 5, find: (*judging).findComplexity, is: isComplexity, values: complexities, found: foundComplexity, report: reportComplexity, telling: true},
		{kind: KindKeyword, cost: 10, key: "keywords", compile: newKeyword},
		{kind: KindEmbedding, cost: 81, key: "phrases", embeds: true, compile: newEmbedding},
		{kind: KindContext, cost: 3, key: "tokens", measures: []string{"tokens"}, find: (*judging).findTokens, measure: measureContext, report: reportContext, telling: true},
		{kind: KindConversation, cost: 0, key: "conversation", measures: conversationCounts, measure: measureConversation},
		{kind: KindStructure, cost: 4, key: "structure", measures: structureCounts, find: (*judging).findShape, measure: measureStructure},
		{kind: KindReask, cost: 82, key: "reask", measures: []string{"reask"}, limit: 1, embeds: true, measure: measureReask},
		{kind: KindModel, cost: 0, is: isModel, found: foundModel},
	}
}

// Kinds are the kinds that a condition may ask for, sorted.
func Kinds() (kinds []Kind) {
	for _, s := range table() {
		if s.is != nil || s.made() {
			kinds = append(kinds, s.kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// Values are what a condition may ask of a kind; nil: the names of the signals
// of that kind, or, for a model, anything.
func Values(kind Kind) []string {
	for _, s := range table() {
		if s.kind == kind && s.values != nil {
			return s.values()
		}
	}
	return nil
}

// Telling are the kinds to compute, by Request.Also, when everything is to be shown, as
// `kvasir explain` does. The guards are not among them: their options say whether they
// judge.
func Telling() (kinds []Kind) {
	for _, s := range table() {
		if s.telling {
			kinds = append(kinds, s.kind)
		}
	}
	return kinds
}

// IsMade reports whether users make signals of a kind under names of their own, which are then
// what a condition asks for.
func IsMade(kind Kind) bool {
	return slices.ContainsFunc(table(), func(s signal) bool { return s.kind == kind && s.made() })
}

// A Making says by which key of the configuration users make signals of a kind.
type Making struct {
	Kind     Kind
	Key      string   // of an element of `signals`
	Measures []string // what Key sets bounds to, in SignalOptions.Features; a single one of Key's name is Key itself; nil: Key holds something else
}

// Makings are the kinds that users make signals of.
func Makings() (list []Making) {
	for _, s := range table() {
		if s.made() {
			list = append(list, Making{s.kind, s.key, s.measures})
		}
	}
	return list
}

// Report says what was found of a kind that was computed (see Took), in full,
// for people.
func (v *Verdict) Report(kind Kind) string {
	for _, s := range v.c.table {
		if s.kind == kind && s.report != nil {
			return s.report(v)
		}
	}
	var names []string
	for _, m := range v.Matched {
		if m.Kind == kind {
			names = append(names, fmt.Sprintf("%s %.2f", m.Name, m.Score))
		}
	}
	if len(names) == 0 {
		return "decided nothing"
	}
	return strings.Join(names, ", ")
}

// row is where a kind stands in the table; -1: nowhere.
func (c *Classifier) row(kind Kind) int {
	for i := range c.table {
		if c.table[i].kind == kind {
			return i
		}
	}
	return -1
}

// An own is one signal of the user's own making, ready to be asked.
type own struct {
	name string
	row  int
	test test
	step func(*judging) error // the test, its answer kept in the judging
}

// compileSignals makes c.own from the options.
func (c *Classifier) compileSignals(options []SignalOptions) error {
	for i := range options {
		o := &options[i]
		if o.Name == "" {
			return fmt.Errorf("cannot use signal %d: it has no name", i+1)
		}
		if slices.ContainsFunc(c.own, func(other own) bool { return other.name == o.Name }) {
			return fmt.Errorf("cannot use signal %q: there is another one of this name", o.Name)
		}
		row := c.row(o.Kind)
		if row < 0 || !c.table[row].made() {
			return fmt.Errorf("cannot use signal %q: there is no kind %q; kinds of signals are %s", o.Name, o.Kind, c.ownKinds())
		}
		compile := c.table[row].compile
		if compile == nil {
			compile = c.table[row].compileBounds
		}
		t, err := compile(c, o)
		if err != nil {
			return fmt.Errorf("cannot use signal %q: %w", o.Name, err)
		}
		c.own = append(c.own, own{o.Name, row, t, ownStep(i, t)})
	}
	return nil
}

func ownStep(i int, t test) func(*judging) error {
	return func(j *judging) error {
		score, holds, err := t(j)
		if err != nil {
			return err
		}
		j.own[i].score, j.own[i].holds = score, holds
		if holds {
			o := &j.c.own[i]
			j.v.Matched = append(j.v.Matched, Match{j.c.table[o.row].kind, o.name, score})
		}
		return nil
	}
}

func (c *Classifier) ownKinds() string {
	var kinds []string
	for _, s := range c.table {
		if s.made() {
			kinds = append(kinds, string(s.kind))
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}
