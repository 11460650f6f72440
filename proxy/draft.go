// Drafts: the bodies of a hand-over's two requests, each written over the client's own.
package proxy

// An original is a request's body with all its splices made, and where the
// members of its top-level object stand. The drafts of both legs share it.
type original struct {
	body    []byte
	whole   span // the object, braces included
	members []memberAt
}

// A memberAt is one member: its name as written, where its key begins, and its value.
type memberAt struct {
	name  []byte
	key   int32
	value span
}

// readOriginal finds the members of body, which begins with one JSON object;
// false when it does not. A key that is written with escapes keeps them.
func readOriginal(body []byte) (*original, bool) {
	o := &original{body: body}
	w := replyWalker{b: body}
	if !w.enter('{') {
		return nil, false
	}
	o.whole.start = int32(w.i) - 1
	for w.key() {
		key := offset(body, w.name) - 1
		value := w.span()
		o.members = append(o.members, memberAt{w.name, int32(key), value})
	}
	o.whole.end = int32(w.i)
	return o, !w.bad
}

// member returns the named member; nil: there is none.
func (o *original) member(name string) *memberAt {
	for i := range o.members {
		if m := &o.members[i]; string(m.name) == name {
			return m
		}
	}
	return nil
}

// A draft is the original and edits of its own.
type draft struct {
	*original
	edit splices
}

// set makes value the named member's, whether it was there or not.
func (d *draft) set(name string, value []byte) {
	if m := d.member(name); m != nil {
		d.edit.replace(m.value, value)
		return
	}
	d.add(append([]byte(`"`+name+`":`), value...))
}

// setIfGiven is set for a member that is there.
func (d *draft) setIfGiven(name string, value []byte) {
	if d.member(name) != nil {
		d.set(name, value)
	}
}

// add puts a member, `"name":value`, behind all others. It is kept, not copied.
func (d *draft) add(member []byte) { d.edit.insertMember(d.whole, member) }

// drop takes a member out, if it is there.
func (d *draft) drop(name string) {
	if m := d.member(name); m != nil {
		d.edit.remove(span{m.key, m.value.end})
	}
}

// unstream asks for the answer as one body: vLLM's events never tell where the
// blocks are.
func (d *draft) unstream() {
	d.setIfGiven("stream", []byte("false"))
	d.drop("stream_options") // an error without a stream
}

// oneToken asks for one token, and for no more by any other name: a prefill
// worker that goes on would answer for nobody. vLLM heeds max_completion_tokens
// before max_tokens.
func (d *draft) oneToken() {
	one := []byte("1")
	d.set("max_tokens", one)
	d.setIfGiven("max_completion_tokens", one)
	d.drop("min_tokens")
	d.drop("min_completion_tokens")
}

// appendTo appends the body with the edits made.
func (d *draft) appendTo(dst []byte) []byte {
	for _, piece := range d.edit.segments(nil, d.body) {
		dst = append(dst, piece...)
	}
	return dst
}

// handsOver says whether the answer to the request can be begun by one worker
// and told by another. The protocols name the blocks of one sequence: where there
// are several, all but one of them would be computed from wrong blocks or not
// at all. The logarithms of a prompt's probabilities are known only to who
// computed it.
func (r *request) handsOver() bool {
	if r.kind != kindChat && r.kind != kindText || r.crowded || !r.whole.given() {
		return false
	}
	if r.kind == kindText && !r.onePrompt() {
		return false
	}
	for _, p := range r.parameters {
		key := r.body[p.key+1:]
		for i, c := range key {
			if c == '\\' {
				return false // a key that a draft would not find
			}
			if c == '"' {
				key = key[:i]
				break
			}
		}
		switch value := p.value.of(r.body); string(key) {
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

// generatesOne says whether the answer is certain to be of one sequence.
func (r *request) generatesOne() bool {
	if r.kind == kindText {
		return r.handsOver() // it looks at best_of and at the prompt, too
	}
	n := r.fields.n.of(r.body)
	return len(n) == 0 || string(n) == "1" || n[0] == 'n' // null
}

// onePrompt says whether the prompt is one text, or the tokens of one.
func (r *request) onePrompt() bool {
	prompt := r.askedAt.of(r.body)
	if len(prompt) == 0 {
		return false
	}
	if prompt[0] != '[' {
		return prompt[0] == '"'
	}
	first := prompt[skipSpace(prompt, 1)]
	return first >= '0' && first <= '9'
}
