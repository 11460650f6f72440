// Forced tool calls: the call that a request demands, with invented arguments that fit its
// schema.

package sim

import (
	"encoding/json"
	"slices"
)

// toolCall is the answer to a request with a forced tool_choice.
type toolCall struct {
	name      string
	arguments []byte // JSON
	required  bool   // tool_choice is "required", and the finish_reason is tool_calls; for a named function it is stop, as in vLLM
}

// tool is one function in the tools of a request.
type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// readToolChoice returns the forced call; nil: the worker may answer in text, and does.
func readToolChoice(f *fields) *toolCall {
	raw := f.get("tool_choice")
	var tools []tool
	if listed := f.get("tools"); listed != nil && json.Unmarshal(listed, &tools) != nil {
		f.complain("list_type", "tools", "Input should be a valid list")
		return nil
	}
	switch string(raw) {
	case "", `"none"`, `"auto"`:
		if len(tools) == 0 && string(raw) == `"auto"` {
			refuseToolChoice(f, "When using `tool_choice`, `tools` must be set.")
		}
		return nil
	}
	if len(tools) == 0 {
		refuseToolChoice(f, "When using `tool_choice`, `tools` must be set.")
		return nil
	}
	if string(raw) == `"required"` {
		return forced(f, tools[0], true)
	}
	var named tool
	if raw[0] != '{' || json.Unmarshal(raw, &named) != nil || named.Function.Name == "" {
		refuseToolChoice(f, "Invalid value for `tool_choice`: "+describe(raw)+"! Only named tools, \"none\", \"auto\" or \"required\" are supported.")
		return nil
	}
	i := slices.IndexFunc(tools, func(t tool) bool { return t.Function.Name == named.Function.Name })
	if i < 0 {
		refuseToolChoice(f, "The tool specified in `tool_choice` does not match any of the specified `tools`")
		return nil
	}
	return forced(f, tools[i], false)
}

func refuseToolChoice(f *fields, message string) {
	f.fail(refuse(message+" (parameter=tool_choice)", "tool_choice"))
}

func forced(f *fields, t tool, required bool) *toolCall {
	arguments := []byte("{}")
	if !isNull(t.Function.Parameters) {
		var err error
		if arguments, err = makeJSON(t.Function.Parameters); err != nil {
			f.fail(refuse("Grammar error: "+err.Error(), ""))
		}
	}
	return &toolCall{t.Function.Name, arguments, required}
}

// answer returns the call's arguments as an answer of at most `most` tokens.
func (t *toolCall) answer(most int) answer {
	reason := "stop"
	if t.required {
		reason = "tool_calls"
	}
	return fixedAnswer(t.arguments, reason, limits{max: most})
}
