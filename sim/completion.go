// POST /v1/completions: one prompt or several, as text or as tokens.

package sim

import (
	"encoding/json"
	"fmt"
)

// readPrompts reads a text completion request; if it cannot be served, f.failure says why.
func readPrompts(d *dialect, o Options, f *fields, requestID string) *completion {
	c := readCompletion(d, o, f, false, requestID)
	d.model(o, f, c)
	raw := f.get("prompt")
	if raw == nil {
		f.fail(refuse("Either prompt or prompt_embeds must be provided and non-empty.", ""))
		return c
	}
	prompts, ok := decodePrompts(raw)
	if !ok {
		f.complain("string_type", "prompt", "Input should be a valid string")
	}
	c.prompts = prompts
	for _, prompt := range prompts {
		if len(prompt) == 0 {
			f.fail(refuse("The decoder prompt cannot be empty", ""))
		}
	}
	if len(prompts) == 0 {
		f.fail(refuse("Either prompt or prompt_embeds must be provided and non-empty.", ""))
	}
	d.finish(o, f, c)
	c.checkSampling(d, f)
	if len(prompts)*c.choices > maxChoices {
		f.fail(refuse(fmt.Sprintf("%d prompts with n=%d are more than %d sequences.", len(prompts), c.choices, maxChoices), ""))
	}
	c.checkLength(d, o, f, 16, "max_tokens")
	if len(prompts) > 0 {
		c.fixed = readStructure(f, prompts[0])
	}
	return c
}

// decodePrompts reads a string, a list of strings, a list of tokens or a list of lists of tokens.
func decodePrompts(raw json.RawMessage) (prompts [][]uint32, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return [][]uint32{appendTokens(nil, text)}, true
	}
	var texts []string
	if json.Unmarshal(raw, &texts) == nil {
		for _, text := range texts {
			prompts = append(prompts, appendTokens(nil, text))
		}
		return prompts, true
	}
	var tokens []uint32
	if json.Unmarshal(raw, &tokens) == nil {
		return [][]uint32{tokens}, true
	}
	return prompts, json.Unmarshal(raw, &prompts) == nil
}
