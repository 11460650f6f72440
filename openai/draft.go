// Drafts: the bodies of a hand-over's two requests, each written over the client's own.
package openai

// An Original is a request's body with all its splices made, and where the
// members of its top-level object stand. The drafts of both legs share it.
type Original struct {
	Body    []byte
	whole   Span // the object, braces included
	Members []memberAt
}

// A memberAt is one member: its name as written, where its key begins, and its value.
type memberAt struct {
	name  []byte
	Key   int32
	Value Span
}

// ReadOriginal finds the members of body, which begins with one JSON object;
// false when it does not. A key that is written with escapes keeps them.
func ReadOriginal(body []byte) (*Original, bool) {
	o := &Original{Body: body}
	w := Walker{B: body}
	if !w.Enter('{') {
		return nil, false
	}
	o.whole.Start = int32(w.I) - 1
	for w.Key() {
		key := cap(body) - cap(w.Name) - 1 // the name is a part of the body
		value := w.Span()
		o.Members = append(o.Members, memberAt{w.Name, int32(key), value})
	}
	o.whole.End = int32(w.I)
	return o, !w.Bad
}

// Member returns the named member; nil: there is none.
func (o *Original) Member(name string) *memberAt {
	for i := range o.Members {
		if m := &o.Members[i]; string(m.name) == name {
			return m
		}
	}
	return nil
}

// A Draft is the original and edits of its own.
type Draft struct {
	*Original
	Edit Splices
}

// Set makes value the named member's, whether it was there or not.
func (d *Draft) Set(name string, value []byte) {
	if m := d.Member(name); m != nil {
		d.Edit.Replace(m.Value, value)
		return
	}
	d.Add(append([]byte(`"`+name+`":`), value...))
}

// SetIfGiven is set for a member that is there.
func (d *Draft) SetIfGiven(name string, value []byte) {
	if d.Member(name) != nil {
		d.Set(name, value)
	}
}

// Add puts a member, `"name":value`, behind all others. It is kept, not copied.
func (d *Draft) Add(member []byte) { d.Edit.InsertMember(d.whole, member) }

// Drop takes a member out, if it is there.
func (d *Draft) Drop(name string) {
	if m := d.Member(name); m != nil {
		d.Edit.Remove(Span{m.Key, m.Value.End})
	}
}

// Unstream asks for the answer as one body: vLLM's events never tell where the
// blocks are.
func (d *Draft) Unstream() {
	d.SetIfGiven("stream", []byte("false"))
	d.Drop("stream_options") // an error without a stream
}

// OneToken asks for one token, and for no more by any other name: a prefill
// worker that goes on would answer for nobody. vLLM heeds max_completion_tokens
// before max_tokens.
func (d *Draft) OneToken() {
	one := []byte("1")
	d.Set("max_tokens", one)
	d.SetIfGiven("max_completion_tokens", one)
	d.Drop("min_tokens")
	d.Drop("min_completion_tokens")
}

// AppendTo appends the body with the edits made.
func (d *Draft) AppendTo(dst []byte) []byte {
	for _, piece := range d.Edit.Segments(nil, d.Body) {
		dst = append(dst, piece...)
	}
	return dst
}

// HandsOver says whether the answer to the request can be begun by one worker
// and told by another. The protocols name the blocks of one sequence: where there
// are several, all but one of them would be computed from wrong blocks or not
// at all. The logarithms of a prompt's probabilities are known only to who
// computed it.
func (r *Request) HandsOver() bool {
	if r.kind != KindChat && r.kind != KindText || r.Crowded || !r.Whole.Given() {
		return false
	}
	if r.kind == KindText && !r.onePrompt() {
		return false
	}
	for _, p := range r.Parameters {
		key := r.Body[p.key+1:]
		for i, c := range key {
			if c == '\\' {
				return false // a key that a draft would not find
			}
			if c == '"' {
				key = key[:i]
				break
			}
		}
		switch value := p.Value.Of(r.Body); string(key) {
		case "n", "best_of":
			if string(value) != "1" && string(value) != "null" {
				return false
			}
		case "echo", "use_beam_search":
			if string(value) != "false" && string(value) != "null" {
				return false
			}
		case "prompt_logprobs", "prompt_embeds":
			if string(value) != "null" {
				return false
			}
		}
	}
	return true
}

// GeneratesOne says whether the answer is certain to be of one sequence.
func (r *Request) GeneratesOne() bool {
	if r.kind == KindText {
		return r.HandsOver() // it looks at best_of and at the prompt, too
	}
	n := r.Fields.N.Of(r.Body)
	return len(n) == 0 || string(n) == "1" || n[0] == 'n' // null
}

// onePrompt says whether the prompt is one text, or the tokens of one.
func (r *Request) onePrompt() bool {
	prompt := r.AskedAt.Of(r.Body)
	if len(prompt) == 0 {
		return false
	}
	if prompt[0] != '[' {
		return prompt[0] == '"'
	}
	first := prompt[SkipSpace(prompt, 1)]
	return first >= '0' && first <= '9'
}
