// Answers: how many a request asks for, and how long they may be.

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
	w := Walk(r.AskedAt.Of(r.Body))
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

// AnswerBound is how many tokens an answer may have at most: the largest of the
// bounds that the body gives by a name of its route, -1 where it gives none. By
// the name of another route it bounds nothing: workers pass over that.
func (r *Request) AnswerBound() int {
	var bounds [2]Span
	switch r.kind {
	case KindChat:
		bounds = [2]Span{r.Fields.maxTokens, r.Fields.maxCompletion}
	case KindText, KindMessages:
		bounds[0] = r.Fields.maxTokens
	case KindResponses:
		bounds[0] = r.Fields.maxOutput
	}
	most := -1
	for _, at := range bounds {
		if n, ok := r.number(at); ok {
			most = max(most, n)
		}
	}
	return most
}

// maxChoices is the most answers that Choices reports, whatever a request asks for.
const maxChoices = 128

// Choices is how many answers are generated for each prompt.
func (r *Request) Choices() int {
	n, _ := r.number(r.Fields.n)
	of, _ := r.number(r.Fields.bestOf) // so many are generated, and n of them returned
	return min(max(n, of, 1), maxChoices)
}

// number is the number at at, at most 2^31-1; false unless there is one above zero.
// One in quotes is a number to vLLM and SGLang (pydantic).
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
