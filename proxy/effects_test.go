package proxy

import (
	"strings"
	"testing"

	"kvasir/classify"
	"kvasir/openai"
)

// Every effect that a decision can have is told in words, and what is told changes the body.
// A temperature of at most 0 was not told.
func TestEffectsAreToldAndApplied(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":900,"temperature":1.5,"n":4}`
	rows := []struct {
		d    classify.Decision
		told string
	}{
		{classify.Decision{SystemPrompt: "Be brief."}, "system prompt, in place of the client's: Be brief."},
		{classify.Decision{SystemPrompt: "Be brief.", InsertPrompt: true}, "system prompt, before the client's: Be brief."},
		{classify.Decision{Reasoning: "on"}, "reasoning on, switched as qwen3"},
		{classify.Decision{MaxTokens: 100}, "max_tokens at most 100"},
		{classify.Decision{CapTemperature: true, MaxTemperature: 0}, "temperature at most 0"},
		{classify.Decision{MaxChoices: 2}, "n at most 2"},
		{classify.Decision{}, ""},
	}
	told := map[int]bool{}
	for _, row := range rows {
		if got := strings.Join(Effects(&row.d, "qwen3"), "; "); got != row.told {
			t.Errorf("told %q, want %q", got, row.told)
		}
		var r openai.Request
		if err := r.Parse(openai.Routes[0], []byte(body), nil); err != nil {
			t.Fatal(err.Message)
		}
		var edit openai.Splices
		var j judgement
		for i := range effects {
			before := edit.Len()
			effects[i].apply(&edit, &r, &row.d, "qwen3", &j)
			changed, says := edit.Len() > before, effects[i].tell(&row.d, "qwen3") != ""
			if changed != says {
				t.Errorf("effect %d of %+v: changes the body %v, is told %v", i, row.d, changed, says)
			}
			told[i] = told[i] || changed
		}
	}
	if len(told) != len(effects) {
		t.Errorf("%d of %d effects are tried: add a row for each", len(told), len(effects))
	}
	for i, tried := range told {
		if !tried {
			t.Errorf("effect %d is tried by no row", i)
		}
	}
}
