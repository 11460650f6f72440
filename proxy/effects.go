// Effects: what a decision changes in the body of a request.

package proxy

import (
	"fmt"

	"kvasir/classify"
	"kvasir/openai"
)

// effects are what decisions can change in a body, besides the model: a row for each,
// which splice applies and `kvasir explain` tells.
var effects = [...]struct {
	// apply notes the change, and in j what headers and log say of it. family is how the
	// model that answers switches reasoning: models do so in different ways.
	apply func(edit *openai.Splices, r *openai.Request, d *classify.Decision, family string, j *judgement)

	// tell is the effect in words; "": the decision does not ask for it.
	tell func(d *classify.Decision, family string) string
}{
	{injectPrompt, tellPrompt},
	{switchReasoning, tellReasoning},
	{capTokens, tellTokens},
	{capTemperature, tellTemperature},
	{capChoices, tellChoices},
}

// Effects says in words what a decision changes in the body of a request, besides the
// model that answers, which switches reasoning by its family (models[].reasoning).
func Effects(d *classify.Decision, family string) (told []string) {
	for i := range effects {
		if text := effects[i].tell(d, family); text != "" {
			told = append(told, text)
		}
	}
	return told
}

func injectPrompt(edit *openai.Splices, r *openai.Request, d *classify.Decision, _ string, j *judgement) {
	j.injected = d.SystemPrompt != "" && openai.SetSystemPrompt(edit, r, d.SystemPrompt, d.InsertPrompt)
}

func tellPrompt(d *classify.Decision, _ string) string {
	switch {
	case d.SystemPrompt == "":
		return ""
	case d.InsertPrompt:
		return "system prompt, before the client's: " + d.SystemPrompt
	}
	return "system prompt, in place of the client's: " + d.SystemPrompt
}

func switchReasoning(edit *openai.Splices, r *openai.Request, d *classify.Decision, family string, j *judgement) {
	j.reasoning = ""
	if d.Reasoning != "" && openai.SetReasoning(edit, r, family, d.Reasoning) {
		j.reasoning = d.Reasoning
	}
}

func tellReasoning(d *classify.Decision, family string) string {
	switch {
	case d.Reasoning == "":
		return ""
	case family == "" || family == "none":
		family = "none: the model has no switch (models[].reasoning)"
	}
	return fmt.Sprintf("reasoning %s, switched as %s", d.Reasoning, family)
}

func capTokens(edit *openai.Splices, r *openai.Request, d *classify.Decision, _ string, _ *judgement) {
	if d.MaxTokens > 0 {
		openai.CapTokens(edit, r, d.MaxTokens)
	}
}

func capTemperature(edit *openai.Splices, r *openai.Request, d *classify.Decision, _ string, _ *judgement) {
	if d.CapTemperature {
		openai.CapTemperature(edit, r, d.MaxTemperature)
	}
}

func capChoices(edit *openai.Splices, r *openai.Request, d *classify.Decision, _ string, _ *judgement) {
	if d.MaxChoices > 0 {
		openai.CapChoices(edit, r, d.MaxChoices)
	}
}

func tellTokens(d *classify.Decision, _ string) string {
	return tellCap("max_tokens", d.MaxTokens > 0, float64(d.MaxTokens))
}

func tellTemperature(d *classify.Decision, _ string) string {
	return tellCap("temperature", d.CapTemperature, d.MaxTemperature)
}

func tellChoices(d *classify.Decision, _ string) string {
	return tellCap("n", d.MaxChoices > 0, float64(d.MaxChoices))
}

func tellCap(what string, asked bool, most float64) string {
	if !asked {
		return ""
	}
	return fmt.Sprintf("%s at most %g", what, most)
}
