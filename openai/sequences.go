// Sequences: whether a request is answered with one, and so can be handed over between workers.

package openai

// HandsOver says whether one worker can compute the prompt of the request and
// another one generate the answer. The protocols name the blocks of one sequence:
// of several, all but one would be computed from wrong blocks or not at all. And
// the log probabilities of a prompt are known only to the worker that computed it.
func (r *Request) HandsOver() bool {
	if r.kind != KindChat && r.kind != KindText || r.Crowded || !r.Whole.Given() {
		return false
	}
	if r.kind == KindText && !r.onePrompt() {
		return false
	}
	for _, p := range r.Parameters {
		key := p.Key.Of(r.Body)
		if HasEscape(key) {
			return false // a draft would not find it
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

// GeneratesOne says whether it is certain that one sequence is generated.
func (r *Request) GeneratesOne() bool {
	if r.kind == KindText {
		return r.HandsOver() // it looks at best_of and at the prompt, too
	}
	n := r.Fields.n.Of(r.Body)
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
