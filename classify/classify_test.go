// What tests of judging share: weights that find what the text says of itself.

package classify

import (
	"bytes"
	"testing"

	"kvasir/classify/encoder"
	"kvasir/classify/model"
	"kvasir/classify/pii"
)

// saying are weights that take a text's word for it: ATTACK is one, INDIRECT
// one in a document, MATHS is about maths, and a Name is somebody.
type saying struct{}

func (saying) newReader(stops) reader { return saying{} }

func (saying) attack(text []byte, _ bool) (s attackScores, _ error) {
	if bytes.Contains(text, []byte("ATTACK")) || bytes.Contains(text, []byte("AT\nTACK\n")) {
		s.attack = 0.99
	}
	if bytes.Contains(text, []byte("INDIRECT")) {
		s.indirect = 0.99
	}
	return s, nil
}

func (saying) whole() int { return maxWhole }

func (saying) openSecond() error { return nil }

func (saying) second([]byte, encoder.Reading) (float32, error) { panic("not asked for") }

func (s saying) suspicion(piece []byte) (attack, indirect float32) {
	found, _ := s.attack(piece, true)
	return found.attack, found.indirect
}

func (saying) embed(dst *[Dim]float32, text []byte) error {
	clear(dst[:])
	dst[len(text)%Dim] = 1
	return nil
}

func (saying) category(dst *[len(Categories)]float32, text []byte) error {
	clear(dst[:])
	dst[10] = 1 // other
	if bytes.Contains(text, []byte("MATHS")) {
		dst[10], dst[9] = 0.1, 0.9
	}
	return nil
}

func (saying) names(dst []pii.Span, text []byte) ([]pii.Span, error) {
	if i := bytes.Index(text, []byte("Name")); i >= 0 {
		dst = append(dst, pii.Span{Start: int32(i), End: int32(i) + 4, Type: pii.Person, Score: 0.9})
	}
	return dst, nil
}

func (saying) forget() {}

func (saying) batches() bool { return true }

func (s saying) together(list []model.Short) {
	for i := range list {
		t := &list[i]
		found, _ := s.attack(t.Text, false)
		t.Judged = true
		t.Scores = model.Scores{Attack: found.attack, Injection: found.injection, Indirect: found.indirect}
		s.embed(&t.Embedding, t.Text)
		s.category(&t.Category, t.Text)
	}
}

// newSaying is a classifier with such weights.
func newSaying(tb testing.TB, o Options) *Classifier {
	c, err := newWith(o, saying{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// said is a conversation, one message a text.
func said(texts ...string) *Request {
	r := &Request{Messages: len(texts), Turns: len(texts)}
	for i, t := range texts {
		r.Texts = append(r.Texts, Text{[]byte(t), User, int32(i)})
	}
	return r
}

// blocking are the options of one who blocks attacks and all personal data.
func blocking() Options {
	return Options{
		Jailbreak: GuardOptions{Action: Block},
		PII:       PIIOptions{GuardOptions: GuardOptions{Action: Block}},
	}
}
