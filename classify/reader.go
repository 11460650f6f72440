// Reader: what judging needs of the embedded weights.

package classify

import (
	"kvasir/classify/model"
	"kvasir/classify/pii"
)

// Dim is the length of the sentence embedding.
const Dim = model.Dim

// weights are the embedded weights: read-only, shared by all threads.
type weights interface {
	newReader() reader
	// sociable says that texts judged together cost less than one by one.
	sociable() bool
}

// A reader reads texts with the weights; it is the memory of one thread. Texts
// are folded ones.
type reader interface {
	// attack gives calibrated probabilities that there is an attack in a text. read: it is a document or
	// a tool's result, of which indirect is asked too.
	attack(text []byte, read bool) attackScores
	// suspicion says how much the words of a piece speak against it, as an
	// attack and as instructions to whom reads it: for comparing pieces.
	suspicion(piece []byte) (attack, indirect float32)
	// embed makes the sentence embedding, of length 1.
	embed(dst *[Dim]float32, text []byte)
	// category gives calibrated probabilities, in the order of Categories.
	category(dst *[len(Categories)]float32, text []byte)
	// together does what attack, embed and category do, for short texts at once.
	together(list []model.Short)
	// names appends names of people, places and organisations to dst.
	names(dst []pii.Span, text []byte) []pii.Span
	// forget lets go of texts between two requests.
	forget()
}

// attackScores are probabilities.
type attackScores struct {
	attack    float32 // on whom it is said to: rules are to be dropped, a role played that has none, secrets told
	injection float32 // if it is an attack, that it hides in a task or speaks with a false voice
	indirect  float32 // as a document or a tool's result, it instructs who is only to read it
}
