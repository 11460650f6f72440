// Refusals: what a guard says, as an answer in the shape that a route's clients read.

package answer

import (
	"strconv"

	"kvasir/openai"
)

// A Refusal is an answer of our own that ends with content_filter.
type Refusal struct {
	ID    string // the first part of the answer's id
	Model string
	Text  string // what the client reads
}

// Replay is the refusal on its way to the client. Its id ends with now, in Unix
// seconds, and a stream of chat has it in one chunk, as semantic routers do.
func (f Refusal) Replay(k openai.Kind, now int64, usage bool) Replay {
	a := &Answer{Model: f.Model, Text: []byte(f.Text), Finish: "content_filter"}
	r := NewReplay(a, k, f.ID+"-"+strconv.FormatInt(now, 10), now, usage)
	r.joined = true
	return r
}
