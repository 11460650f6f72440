// Signals: the one table of them. A signal more is a file, a row here and a
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
// There are two shapes. A signal with a value of its own has find and is; one
// that users make under a name has compile.
type signal struct {
	kind Kind
	cost int // rough, for the order in which a decision asks: microseconds for a short text

	find   func(*judging) error                            // the value, into the verdict; nil: it is in the request
	is     func(*judging, string) (score float64, ok bool) // whether it has this value
	values func() []string                                 // what a condition may ask for; nil: anything
	found  func(*judging) string                           // the value in words

	compile func(*Classifier, *SignalOptions) (test, error)
}

// A test says whether a signal of the user's own holds, and how clearly.
type test func(*judging) (score float64, holds bool, err error)

// The rows of signals that are asked for outside conditions.
const (
	rowJailbreak = iota
	rowPII
	rowCategory
	rowSentence
	rowLanguage
	rowComplexity
	rowContext
	rowKeyword
	rowEmbedding
	rowConversation
	rowStructure
	rowModel
	rows
)

// table is in no order that matters. It is a function: rows lead to judging,
// which leads back here.
func table() [rows]signal {
	return [rows]signal{
		rowJailbreak:    {kind: KindJailbreak, cost: 100, find: (*judging).findJailbreak, is: isJailbreak, found: foundJailbreak, values: jailbreakTypes},
		rowPII:          {kind: KindPII, cost: 50, find: (*judging).findPII, is: isPII, found: foundPII, values: piiTypes},
		rowCategory:     {kind: KindCategory, cost: 90, find: (*judging).findCategory, is: isCategory, found: foundCategory, values: categories},
		rowSentence:     {kind: KindSentence, cost: 80, find: (*judging).findSentence},
		rowLanguage:     {kind: KindLanguage, cost: 10, find: (*judging).findLanguage, is: isLanguage, found: foundLanguage, values: languageCodes},
		rowComplexity:   {kind: KindComplexity, cost: 5, find: (*judging).findComplexity, is: isComplexity, found: foundComplexity, values: complexities},
		rowContext:      {kind: KindContext, cost: 3, find: (*judging).findTokens, compile: newContext},
		rowKeyword:      {kind: KindKeyword, cost: 10, compile: newKeyword},
		rowEmbedding:    {kind: KindEmbedding, cost: 81, compile: newEmbedding},
		rowConversation: {kind: KindConversation, cost: 0, compile: newConversation},
		rowStructure:    {kind: KindStructure, cost: 4, find: (*judging).findShape, compile: newStructure},
		rowModel:        {kind: KindModel, cost: 0, is: isModel, found: foundModel},
	}
}

// Kinds are the kinds that a condition may ask for.
func Kinds() (kinds []Kind) {
	for _, s := range table() {
		if s.is != nil || s.compile != nil {
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

// An own is one signal of the user's making, ready to be asked.
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
		row := slices.IndexFunc(c.table[:], func(s signal) bool { return s.kind == o.Kind && s.compile != nil })
		if row < 0 {
			return fmt.Errorf("cannot use signal %q: there is no kind %q; kinds of signals are %s", o.Name, o.Kind, c.ownKinds())
		}
		t, err := c.table[row].compile(c, o)
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
		if s.compile != nil {
			kinds = append(kinds, string(s.kind))
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}
