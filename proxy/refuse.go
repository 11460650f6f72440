// Refusals as answers: what a guard says in the shape that a route's clients read.
package proxy

import (
	"strconv"

	"kvasir/openai"
)

// A refusal is an answer of our own that ends with content_filter.
type refusal struct {
	id    string // part of the answer's id
	model string
	text  string
}

// replay is the refusal on its way to the client. Its id is made as semantic
// routers make it.
func (f refusal) replay(k openai.Kind, now int64, counts bool) replay {
	return replay{
		answer: &answer{model: f.model, text: []byte(f.text), finish: "content_filter"},
		kind:   k, id: f.id + "-" + strconv.FormatInt(now, 10), at: now, counts: counts, joined: true,
	}
}
