// Forced tool calls: the call that a request demands, with invented arguments that fit its
// schema.

package sim

import (
	"bytes"
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
		return forced(tools[0], true)
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
	return forced(tools[i], false)
}

func refuseToolChoice(f *fields, message string) {
	f.fail(refuse(message+" (parameter=tool_choice)", "tool_choice"))
}

func forced(t tool, required bool) *toolCall {
	return &toolCall{t.Function.Name, example(nil, t.Function.Parameters, 0), required}
}

// answer returns the call's arguments as an answer of at most `most` tokens.
func (t *toolCall) answer(most int) answer {
	a := answer{tokens: append(appendTokens(nil, string(t.arguments)), imEnd), reason: "stop"}
	if t.required {
		a.reason = "tool_calls"
	}
	if len(a.tokens) > most {
		a.tokens, a.reason = a.tokens[:most], "length"
	}
	a.show(limits{min: len(a.tokens)})
	return a
}

// schema is the part of a JSON schema that example uses.
type schema struct {
	Type       json.RawMessage            `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	Minimum    *json.Number               `json:"minimum"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
}

// example appends a value that fits a JSON schema, as far as the schema is simple: the constant,
// the first of an enum, an object with its required properties, or else the simplest value of the
// type.
func example(dst []byte, raw json.RawMessage, depth int) []byte {
	var s schema
	if len(raw) == 0 || depth > 16 || json.Unmarshal(raw, &s) != nil {
		return append(dst, "{}"...)
	}
	switch {
	case s.Const != nil:
		return appendCompact(dst, s.Const)
	case len(s.Enum) > 0:
		return appendCompact(dst, s.Enum[0])
	case len(s.AnyOf) > 0:
		return example(dst, s.AnyOf[0], depth+1)
	}
	switch kind := firstType(s.Type); kind {
	case "string":
		return append(dst, `"simulated"`...)
	case "integer", "number":
		if s.Minimum != nil {
			return append(dst, s.Minimum.String()...)
		}
		return append(dst, '1')
	case "boolean":
		return append(dst, "false"...)
	case "array":
		return append(dst, "[]"...)
	case "null":
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	separator := ""
	for _, name := range s.Required {
		property, ok := s.Properties[name]
		if !ok {
			continue
		}
		delete(s.Properties, name) // a name that is listed again must not multiply the output at every level
		dst = append(appendString(append(dst, separator...), name), ':', ' ')
		dst = example(dst, property, depth+1)
		separator = ", "
	}
	return append(dst, '}')
}

// firstType reads "string" or ["string", "null"].
func firstType(raw json.RawMessage) (kind string) {
	var list []string
	if json.Unmarshal(raw, &kind) != nil && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return kind
}

func appendCompact(dst []byte, raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return append(dst, "null"...)
	}
	return append(dst, b.Bytes()...)
}
