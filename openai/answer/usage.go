// Usage: the tokens that a worker counted, and where its replies say so.

package answer

import (
	"bytes"

	"kvasir/openai"
)

// A Usage is what a worker counted, in tokens. -1 says that it did not tell.
type Usage struct {
	Prompt     int
	Completion int // of several choices the sum
	Cached     int // of the prompt, found in the worker's prefix cache
}

// NoUsage is that of a reply that tells no count.
var NoUsage = Usage{-1, -1, -1}

// Total is what the request cost, in tokens: prompt and completion, 0 for what
// was not told.
func (u Usage) Total() int { return max(u.Prompt, 0) + max(u.Completion, 0) }

// add takes over the counts that a later event tells.
func (u *Usage) add(later Usage) {
	for _, c := range [...]struct{ mine, theirs *int }{
		{&u.Prompt, &later.Prompt}, {&u.Completion, &later.Completion}, {&u.Cached, &later.Cached},
	} {
		if *c.theirs >= 0 {
			*c.mine = *c.theirs
		}
	}
}

// read reads a usage object: by the names of chat and text, and by those of
// responses and messages. A count that is not there leaves the former one,
// since messages tell the prompt's first and the completion's last. It returns
// false if the next value is no object.
func (u *Usage) read(w *openai.Walker) bool {
	if !w.Enter('{') {
		w.Skip()
		return false
	}
	for w.Key() {
		switch string(w.Name) {
		case "prompt_tokens", "input_tokens":
			countInto(w, &u.Prompt)
		case "completion_tokens", "output_tokens":
			countInto(w, &u.Completion)
		case "cache_read_input_tokens":
			countInto(w, &u.Cached)
		case "prompt_tokens_details", "input_tokens_details":
			u.readDetails(w)
		default:
			w.Skip()
		}
	}
	return true
}

func (u *Usage) readDetails(w *openai.Walker) {
	if !w.Enter('{') {
		w.Skip()
		return
	}
	for w.Key() {
		if string(w.Name) == "cached_tokens" {
			countInto(w, &u.Cached)
		} else {
			w.Skip()
		}
	}
}

// countInto steps over the next value and stores it in n if it is a count.
func countInto(w *openai.Walker, n *int) {
	if c := w.Count(); c >= 0 {
		*n = c
	}
}

// UsageOf returns the counts of a whole JSON reply on a route of kind k.
//
// It looks for the "usage" member near the end of the body, where engines put
// it: walking the whole answer for it costs as much as parsing the request.
// Quotes inside strings are escaped, so that no text can hold the member. Where
// it is not found there the body is walked.
func UsageOf(k openai.Kind, body []byte) Usage {
	near := body[max(len(body)-tailLength, 0):]
	for {
		at := bytes.Index(near, usageMember)
		if at < 0 {
			return walkedUsage(k, body)
		}
		near = near[at+len(usageMember):]
		u := NoUsage
		w := openai.Walk(bytes.TrimLeft(near, " :"))
		if u.read(&w) && !w.Bad {
			return u
		}
	}
}

// Usage is what the worker counted that made the answer.
func (a *Answer) Usage() Usage {
	u := NoUsage
	if w := openai.Walk(a.RawUsage); len(a.RawUsage) == 0 || !u.read(&w) || w.Bad {
		return NoUsage
	}
	return u
}

var usageMember = []byte(`"usage"`)

// walkedUsage is UsageOf by one walk over the whole body.
func walkedUsage(k openai.Kind, body []byte) Usage {
	w := openai.Walk(body)
	o, ok := readObject(k, &w)
	if !ok {
		return NoUsage
	}
	return o.usage
}

// A Tail keeps the end of a body that is too large to hold, for the usage in
// it. The zero value is ready.
type Tail struct{ last []byte }

const tailLength = 1 << 10

// Add adds the next bytes of the body. They are copied.
func (t *Tail) Add(payload []byte) {
	if len(payload) >= tailLength {
		t.last = append(t.last[:0], payload[len(payload)-tailLength:]...)
		return
	}
	if over := len(t.last) + len(payload) - tailLength; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	t.last = append(t.last, payload...)
}

// Usage returns the counts that the body ends with.
func (t *Tail) Usage(k openai.Kind) Usage { return UsageOf(k, t.last) }
