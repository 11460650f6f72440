// Effects: what a decision changes in the body.

package proxy

import (
	"kvasir/classify"
	"kvasir/openai"
)

// applyDecision notes what the decision wants of the body. family is how the model
// that answers switches reasoning: models do so in different ways. It returns whether
// the decision's system prompt is in the body, and what became of reasoning; "": it
// is as the client asked.
func applyDecision(edit *openai.Splices, r *openai.Request, d *classify.Decision, family string) (injected bool, reasoning string) {
	injected = d.SystemPrompt != "" && openai.SetSystemPrompt(edit, r, d.SystemPrompt, d.InsertPrompt)
	if d.Reasoning != "" && openai.SetReasoning(edit, r, family, d.Reasoning) {
		reasoning = d.Reasoning
	}
	if d.MaxTokens > 0 {
		openai.CapTokens(edit, r, d.MaxTokens)
	}
	if d.MaxChoices > 0 {
		openai.CapChoices(edit, r, d.MaxChoices)
	}
	if d.CapTemperature {
		openai.CapTemperature(edit, r, d.MaxTemperature)
	}
	return injected, reasoning
}
