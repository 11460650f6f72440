// Second: the second stage of the guard against attacks. An encoder with attention judges the texts of which the cheap
// weights are not sure; it takes milliseconds, which they are spared for nearly all ordinary texts.

package classify

import (
	"math"

	"kvasir/classify/encoder"
)

// greyFrom is the score of the cheap weights from which the encoder is asked. Of ordinary texts 3 to 12 % lie above it
// (everyday questions 4 to 7, CLINC 12, GSM8K 3), of attacks of unknown sources 81 %; at 0.1 these are 33 to 75 % and 95 %. No
// score is so high that the encoder is not asked, since what applications send around documents scores highest.
const greyFrom = 0.3

// What the log odds of both come to, fitted by scripts/train/second.py on scores of texts of sources that neither had met:
// above the shipped threshold of 0.7 lie 0.5 % of the innocent texts, each source counting once. scripts/train/README.md has
// the figures.
const (
	secondFactor = 0.722
	firstFactor  = 0.307
	saidSummand  = -1.398
	readSummand  = -2.267 // of documents and tools' results
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
func (c *Classifier) grey(s attackScores, as encoder.Reading) bool {
	return c.second && cheapOf(s, as) >= greyFrom
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

// surer asks the encoder about a text that is grey, and returns what both say.
func (j *judging) surer(text []byte, as encoder.Reading, s attackScores) (attackScores, error) {
	if !j.c.grey(s, as) {
		return s, nil
	}
	if err := j.openSecond(); err != nil {
		return s, err
	}
	z, err := j.reader.second(text, as)
	if err != nil {
		return s, err
	}
	cheap := min(max(cheapOf(s, as), 1e-6), 1-1e-6)
	both := secondFactor*float64(z) + firstFactor*math.Log(cheap/(1-cheap))
	if as == encoder.AsDocument {
		s.attack, s.indirect = 0, logistic(both+readSummand)
	} else {
		s.attack = logistic(both + saidSummand)
	}
	return s, nil
}
