// Adapters and templates: what of a request is no text, and changes what answers it.
package openai

import (
	"bytes"
	"slices"
)

// RefuseTemplate refuses a chat template that comes from a client. It is a program
// that writes the prompt, and guards read only its source: a text that it puts
// together from pieces passes them.
func (r *Request) RefuseTemplate(allowed bool) *Error {
	if allowed || !r.template.Given() {
		return nil
	}
	return Invalid("chat_template", "chat_template is not taken from clients here, at byte %d: the guards cannot read what a template makes. "+
		"Leave it out, or set guards.client_templates: allow in Kvasir's configuration", r.template.Start)
}

// NamedIn says whether the value names nothing but these models.
func (a *adapterAt) NamedIn(body []byte, models []string) bool {
	value := a.value.Of(body)
	if a.bare {
		return len(value) == 0 || slices.Contains(models, string(bytes.TrimSpace(value)))
	}
	w := Walker{B: value}
	if !w.Enter('[') {
		return w.namesOne(models)
	}
	for w.Element() {
		if !w.namesOne(models) {
			return false
		}
	}
	return !w.Bad
}

// namesOne reads a value and says whether it is the name of one of the models, or
// null.
func (w *Walker) namesOne(models []string) bool {
	if w.Peek() == 'n' {
		w.Skip()
		return !w.Bad
	}
	if w.Peek() != '"' {
		return false
	}
	start := w.I
	w.Skip()
	return !w.Bad && slices.Contains(models, string(AppendUnescaped(nil, w.B[start+1:w.I-1])))
}
