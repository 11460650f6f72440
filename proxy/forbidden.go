// Forbidden: what a client may not send though it is no prompt: chat templates, and adapters that its key may not have.
package proxy

import (
	"bytes"
	"slices"
)

// refuseTemplate refuses a chat template that comes from a client. It is a program
// that writes the prompt, and guards read only its source: a text that it puts
// together from pieces passes them.
func (r *request) refuseTemplate(allowed bool) *apiError {
	if allowed || !r.template.given() {
		return nil
	}
	return invalid("chat_template", "chat_template is not taken from clients here, at byte %d: the guards cannot read what a template makes. "+
		"Leave it out, or set guards.client_templates: allow in Kvasir's configuration", r.template.start)
}

// refuseAdapters refuses an adapter to a key that may have certain models only,
// unless one of them has its name: with another adapter the same model is another
// one. What is not named by strings alone, but by numbers or paths of files, is no
// name of a model.
func (x *exchange) refuseAdapters() *apiError {
	if x.key == nil || len(x.key.Models) == 0 {
		return nil
	}
	for i := range x.req.adapters {
		a := &x.req.adapters[i]
		if !a.namedIn(x.body, x.key.Models) {
			return &apiError{
				status: 404, kind: "invalid_request_error", code: "model_not_found", param: clip(a.name),
				message: "The adapter that " + clip(a.name) + " asks for does not exist or is not served here: your key is for certain models. " +
					"Leave " + clip(a.name) + " out; whoever runs this server can add the adapter's name to keys[].models",
			}
		}
	}
	return nil
}

// namedIn says whether the value names nothing but these models.
func (a *adapterAt) namedIn(body []byte, models []string) bool {
	value := a.value.of(body)
	if a.bare {
		return len(value) == 0 || slices.Contains(models, string(bytes.TrimSpace(value)))
	}
	w := replyWalker{b: value}
	if !w.enter('[') {
		return w.namesOne(models)
	}
	for w.element() {
		if !w.namesOne(models) {
			return false
		}
	}
	return !w.bad
}

// namesOne reads a value and says whether it is the name of one of the models, or
// null.
func (w *replyWalker) namesOne(models []string) bool {
	if w.peek() == 'n' {
		w.skip()
		return !w.bad
	}
	if w.peek() != '"' {
		return false
	}
	start := w.i
	w.skip()
	return !w.bad && slices.Contains(models, string(appendUnescaped(nil, w.b[start+1:w.i-1])))
}
