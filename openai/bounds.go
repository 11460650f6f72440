// Bounds: how many answers a request asks for, and how long they may be.
package openai

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// Prompts is how many prompts a body has that each get an answer of their own: a
// text completion takes an array of them.
func (r *Request) Prompts() int {
	if r.kind != KindText {
		return 1
	}
	w := Walker{B: r.AskedAt.Of(r.Body)}
	if !w.Enter('[') {
		return 1
	}
	n := 0
	for w.Element() {
		if c := w.Peek(); c != '"' && c != '[' {
			return 1 // the token ids of one
		}
		w.Skip()
		n++ // an empty one gets an answer, too
	}
	return max(n, 1)
}

// AnswerBound is the most tokens that an answer may have, by the largest of the
// bounds that the route heeds, -1 where none is named. A bound of another route
// bounds nothing: workers pass over it.
func (r *Request) AnswerBound() int {
	var bounds [2]Span
	switch r.kind {
	case KindChat:
		bounds = [2]Span{r.Fields.MaxTokens, r.Fields.MaxCompletion}
	case KindText, KindMessages:
		bounds[0] = r.Fields.MaxTokens
	case KindResponses:
		bounds[0] = r.Fields.MaxOutput
	}
	most := -1
	for _, at := range bounds {
		if n, ok := r.number(at); ok {
			most = max(most, n)
		}
	}
	return most
}

// maxChoices is how many answers a request may ask for and be believed.
const maxChoices = 128

// Choices is how many answers are asked for.
func (r *Request) Choices() int {
	n, _ := r.number(r.Fields.N)
	of, _ := r.number(r.Fields.bestOf) // so many are made, whatever n leaves of them
	return min(max(n, of, 1), maxChoices)
}

// number is the number at at, at most 2^31-1; false: there is none above zero. One
// in quotes is a number to vLLM and SGLang (pydantic).
func (r *Request) number(at Span) (int, bool) {
	if !at.Given() {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(bytes.Trim(at.Of(r.Body), `" `)), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || v <= 0 {
		return 0, false
	}
	return int(min(v, math.MaxInt32)), true
}
