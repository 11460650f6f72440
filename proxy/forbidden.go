// Forbidden: what a client may not send though it is no prompt: chat templates, and adapters that its key may not have.

package proxy

import "kvasir/openai"

// refuseAdapters refuses a request that names an adapter, or what gateways take for another model
// or server, if its key may have certain models only and none of them has that name: a model with
// another adapter is another model. A number, or an object with a path in it, is no name of a
// model.
func refuseAdapters(r *openai.Request, key *keyState) *openai.Error {
	if len(key.Models) == 0 {
		return nil
	}
	for i := range r.Content.Adapters {
		a := &r.Content.Adapters[i]
		if !a.NamedIn(r.Body, key.Models) {
			return &openai.Error{
				Status: 404, Type: "invalid_request_error", Code: "model_not_found", Param: openai.Clip(a.Name),
				Message: "What " + openai.Clip(a.Name) + " asks for does not exist or is not served here: your key is for certain models. " +
					"Leave " + openai.Clip(a.Name) + " out; whoever runs this server can add an adapter's name to keys[].models",
			}
		}
	}
	return nil
}
