// Drafts: the bodies of a hand-over's two requests, each written over the client's own.

package openai

// An Original is a request's body with all its splices made, and where the
// members of its top-level object stand. The drafts of both legs share it.
type Original struct {
	Body    []byte
	Members []Member // in the body's order
	whole   Span     // the object, braces included
}

// A Member is where one member of an object stands.
type Member struct {
	Name  []byte // as written
	Start int32  // of the member: its key's quote
	Value Span
}

// ReadOriginal finds the members of the JSON object that body begins with; false
// when it begins with none. A key that is written with escapes keeps them.
func ReadOriginal(body []byte) (*Original, bool) {
	o := &Original{Body: body}
	w := Walk(body)
	if !w.Enter('{') {
		return nil, false
	}
	o.whole.Start = int32(w.I) - 1
	for w.Key() {
		key := cap(body) - cap(w.Name) - 1 // the name is a part of the body
		value := w.Span()
		o.Members = append(o.Members, Member{w.Name, int32(key), value})
	}
	o.whole.End = int32(w.I)
	return o, !w.Bad
}

// Member returns the named member; nil: there is none.
func (o *Original) Member(name string) *Member {
	for i := range o.Members {
		if m := &o.Members[i]; string(m.Name) == name {
			return m
		}
	}
	return nil
}

// A Draft is the original and edits of its own:
//
//	d := openai.Draft{Original: o}
//	d.Unstream()
//	body := d.AppendTo(nil)
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

// SetIfGiven is Set for a member that is there.
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
		d.Edit.Remove(Span{m.Start, m.Value.End})
	}
}

// Unstream asks for the answer as one body: vLLM's events never tell where the
// blocks are.
func (d *Draft) Unstream() {
	d.SetIfGiven("stream", []byte("false"))
	d.Drop("stream_options") // an error without a stream
}

// OneToken asks for one token, and for no more by any other name: nobody reads
// what a prefill worker generates after it. vLLM heeds max_completion_tokens
// before max_tokens.
func (d *Draft) OneToken() {
	one := []byte("1")
	d.Set("max_tokens", one)
	d.SetIfGiven("max_completion_tokens", one)
	d.Drop("min_tokens")
	d.Drop("min_completion_tokens")
}

// AppendTo appends the body with the edits made.
func (d *Draft) AppendTo(dst []byte) []byte { return d.Edit.AppendTo(dst, d.Body) }
