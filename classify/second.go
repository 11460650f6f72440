// Second: the second stage of the guard against attacks. An encoder with attention judges the texts of which the cheap
// weights are not sure; it takes milliseconds, which they are spared for nearly all ordinary texts.

package classify

import (
	"errors"
	"math"
	"unicode/utf8"

	"kvasir/classify/encoder"
)

// The scores of the cheap weights from which the encoder is asked. Of everyday questions, word problems, chats and requests to
// an assistant 2 to 14 % lie above the first; of what is only read more is asked about, since the cheap weights tell little of
// it. No score is so high that the encoder is not asked, since what applications send around documents scores highest.
const (
	greySaid = 0.42
	greyRead = 0.3 // of documents and tools' results
)

// What the log odds of both come to. The factors put both on one scale; the summands are fitted by scripts/train/second.py on
// scores of texts of sources that neither had met: above the shipped threshold of 0.7 lie 1 % of the innocent texts, each
// source counting once. Long texts need a higher score than short ones: prompts of applications with a document in them are
// long, and look like attacks more than what people write. scripts/train/README.md has the figures.
const (
	secondFactor = 0.45
	firstFactor  = 0.8
	shortSummand = -0.750 // of texts of shortLength or less
	longSummand  = -1.416 // of longLength or more; between the two it goes with the logarithm of the length
	readSummand  = -0.831 // of documents and tools' results, however long
	unasked      = -3     // what the encoder is taken to say of a text that it is not asked about: it says so of most innocent ones

	shortLength, longLength = 200, 500 // code points
)

func logistic(z float64) float32 { return float32(1 / (1 + math.Exp(-z))) }

// readingOf is how the encoder reads what a role says.
func readingOf(role Role) encoder.Reading {
	switch role {
	case Tool, Document:
		return encoder.AsDocument
	case System, ToolDefinition:
		return encoder.AsSystem
	}
	return encoder.AsUser
}

// grey says that the cheap weights leave open whether a text is an attack.
func grey(s attackScores, as encoder.Reading) bool {
	if as == encoder.AsDocument {
		return cheapOf(s, as) >= greyRead
	}
	return cheapOf(s, as) >= greySaid
}

// cheapOf is the score of the cheap weights, without the odds of the role.
func cheapOf(s attackScores, as encoder.Reading) float64 {
	if as == encoder.AsDocument {
		score, _ := worst(s, Document)
		return score
	}
	return float64(s.attack)
}

// openSecond opens the encoder, which the first text that needs it waits for, 0.3 s or more on a busy machine. That is not
// time that judging takes.
func (j *judging) openSecond() error {
	start := clock()
	err := j.reader.openSecond()
	if took := clock() - start; j.deadline != never {
		j.deadline += took
	}
	return err
}

// surer is what both say of a text. The encoder is asked if the cheap weights leave it open.
func (j *judging) surer(text []byte, as encoder.Reading, s attackScores) (attackScores, error) {
	if sure, ok := j.c.sure(text, s, as); ok {
		return sure, nil
	}
	if err := j.openSecond(); err != nil {
		return s, err
	}
	z, err := j.reader.second(text, as)
	if err == nil && math.IsNaN(float64(z)) {
		err = errors.New("the second stage of the guard gave no number") // which would pass every threshold
	}
	if err != nil {
		return s, err
	}
	return added(text, s, as, float64(z)), nil
}

// sure is what holds of a text without asking the encoder; not ok: it has to be asked.
func (c *Classifier) sure(text []byte, s attackScores, as encoder.Reading) (sure attackScores, ok bool) {
	switch {
	case !c.second:
		return s, true
	case grey(s, as):
		return s, false
	}
	return added(text, s, as, unasked), true
}

// added is what the cheap weights' scores of a text and the encoder's log odds z come to.
func added(text []byte, s attackScores, as encoder.Reading, z float64) attackScores {
	cheap := min(max(cheapOf(s, as), 1e-6), 1-1e-6)
	both := secondFactor*z + firstFactor*math.Log(cheap/(1-cheap)) + summand(text, as)
	if as == encoder.AsDocument {
		s.attack, s.indirect = 0, logistic(both)
	} else {
		s.attack = logistic(both)
	}
	return s
}

// summand is what is added to the log odds of a text of its length.
func summand(text []byte, as encoder.Reading) float64 {
	if as == encoder.AsDocument {
		return readSummand
	}
	n := utf8.RuneCount(text[:min(len(text), utf8.UTFMax*longLength)])
	long := math.Log(float64(max(n, shortLength))/shortLength) / math.Log(longLength/float64(shortLength))
	return shortSummand + (longSummand-shortSummand)*min(long, 1)
}
