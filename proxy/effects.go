// Effects: what a decision changes in the body.

package proxy

import "kvasir/openai"

// effects notes what the decision wants of the body. It is asked again for each
// model that is tried, since models switch reasoning in different ways.
func (x *exchange) effects() {
	d := x.decision()
	if d == nil {
		return
	}
	j := &x.facts.judgement
	j.injected = d.SystemPrompt != "" && openai.SetSystemPrompt(&x.edit, &x.req, d.SystemPrompt, d.InsertPrompt)
	j.reasoning = ""
	if d.Reasoning != "" && openai.SetReasoning(&x.edit, &x.req, x.state.models[x.model].Reasoning, d.Reasoning) {
		j.reasoning = d.Reasoning
	}
	if d.MaxTokens > 0 {
		openai.CapTokens(&x.edit, &x.req, d.MaxTokens)
	}
	if d.MaxChoices > 0 {
		openai.CapChoices(&x.edit, &x.req, d.MaxChoices)
	}
	if d.CapTemperature {
		openai.CapTemperature(&x.edit, &x.req, d.MaxTemperature)
	}
}
