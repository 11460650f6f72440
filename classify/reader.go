// Reader: what judging needs of weights.

package classify

import (
	"kvasir/classify/encoder"
	"kvasir/classify/model"
	"kvasir/classify/pii"
)

// Dim is the length of the sentence embedding.
const Dim = model.Dim

// weights are those of a classifier: read-only, shared by all threads.
type weights interface {
	newReader(s stops) reader // the memory of a thread
	// batches says that texts judged together cost less than one by one.
	batches() bool
}

// stops are asked where a text takes long, and their error ends the reading; nil: nothing does. soon may let other
// requests have the thread for a while, late may not.
type stops struct{ soon, late func() error }

// A reader reads texts with the weights; it is the memory of one thread. Texts
// are folded ones.
type reader interface {
	// attack gives calibrated probabilities that there is an attack in a text. read says that the
	// text is a document or a tool's result; then indirect is computed as well.
	attack(text []byte, read bool) (attackScores, error)
	// openSecond waits until second can be asked.
	openSecond() error
	// second gives the log odds of an attack, by an encoder with attention, for what attack leaves open.
	second(text []byte, as encoder.Reading) (float32, error)
	// whole is how long a text is, in bytes, that attack reads whole.
	whole() int
	// suspicion says how much the words of a piece suggest an attack, and instructions
	// to its reader. The values serve to compare pieces with each other.
	suspicion(piece []byte) (attack, indirect float32)
	// embed makes the sentence embedding, of length 1.
	embed(dst *[Dim]float32, text []byte) error
	// category gives calibrated probabilities, in the order of Categories.
	category(dst *[len(Categories)]float32, text []byte) error
	// together does what attack, embed and category do, for short texts at once.
	together(list []model.Short)
	// names appends names of people, places and organisations to dst.
	names(dst []pii.Span, text []byte) ([]pii.Span, error)
	// forget lets go of texts between two requests.
	forget()
}

// attackScores are probabilities.
type attackScores struct {
	attack    float32 // that it attacks the model: to drop its rules, to play a role without rules, to tell secrets
	injection float32 // if it is an attack, that it hides in a task or pretends to be somebody else
	indirect  float32 // that a document or a tool's result gives instructions to the model that reads it
}
