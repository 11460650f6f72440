// Adapters and templates: what of a request is no text, and yet changes the answer.

package openai

import (
	"bytes"
	"slices"
)

// RefuseTemplate refuses a chat template that comes from a client. It is a program
// that writes the prompt, and guards read only its source: a text that it puts
// together from pieces passes them.
func (r *Request) RefuseTemplate(allowed bool) *Error {
	if allowed || !r.Content.template.Given() {
		return nil
	}
	return Invalid("chat_template", "chat_template is not taken from clients here, at byte %d: the guards cannot read what a template makes. "+
		"Leave it out, or set guards.client_templates: allow in Kvasir's configuration", r.Content.template.Start)
}

// An Adapter is a member that names an adapter of the model, or another model.
type Adapter struct {
	Name  string // of the member
	value Span
	bare  bool // a form's field
}

// maxAdapters is how many members may name adapters: a bound on what is kept.
const maxAdapters = 64

// NamedIn says whether the adapter's value names nothing but these models. A
// value that is neither a string nor an array of strings names something else.
func (a *Adapter) NamedIn(body []byte, models []string) bool {
	value := a.value.Of(body)
	if a.bare {
		return len(value) == 0 || slices.Contains(models, string(bytes.TrimSpace(value)))
	}
	w := Walk(value)
	if !w.Enter('[') {
		return namesOne(&w, models)
	}
	for w.Element() {
		if !namesOne(&w, models) {
			return false
		}
	}
	return !w.Bad
}

// namesOne reads a value and says whether it is the name of one of the models, or
// null.
func namesOne(w *Walker, models []string) bool {
	if w.Peek() == 'n' {
		w.Skip()
		return !w.Bad
	}
	if w.Peek() != '"' {
		return false
	}
	name := w.String()
	return !w.Bad && slices.Contains(models, string(AppendUnescaped(nil, name)))
}
