// Structured outputs: answers that fit a JSON schema, a regular expression or a list of choices.

package sim

import (
	"encoding/json"
	"fmt"
)

// structure is what the text of an answer must be, of these the first that is given.
type structure struct {
	Schema  json.RawMessage `json:"json"` // a schema, or a string that holds one
	Regex   string          `json:"regex"`
	Choice  []string        `json:"choice"`
	Object  bool            `json:"json_object"`
	Grammar json.RawMessage `json:"grammar"`
	Tag     json.RawMessage `json:"structural_tag"`
}

// readStructure reads OpenAI's response_format, vLLM's structured_outputs and its older guided_
// fields, and makes the text that answers; nil: any text will do. What cannot be made is refused.
func readStructure(f *fields, prompt []uint32) []byte {
	var s structure
	f.object("structured_outputs", &s)
	if raw := f.get("guided_json"); raw != nil {
		s.Schema = raw
	}
	if raw := f.get("guided_choice"); raw != nil && json.Unmarshal(raw, &s.Choice) != nil {
		f.complain("list_type", "guided_choice", "Input should be a valid list")
	}
	if regex, ok := f.text("guided_regex"); ok {
		s.Regex = regex
	}
	if raw := f.get("guided_grammar"); raw != nil {
		s.Grammar = raw
	}
	readResponseFormat(f, &s)
	if f.failure != nil {
		return nil
	}
	text, err := s.make(prompt)
	if err != nil {
		f.fail(refuse("Grammar error: "+err.Error(), ""))
		return nil
	}
	return text
}

func readResponseFormat(f *fields, s *structure) {
	var format struct {
		Type   string `json:"type"`
		Schema *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if !f.object("response_format", &format) {
		return
	}
	switch format.Type {
	case "text":
	case "json_object":
		s.Object = true
	case "json_schema":
		if format.Schema == nil {
			f.fail(refuse("When response_format type is 'json_schema', the 'json_schema' field must be provided. "+
				"(parameter=response_format)", "response_format"))
			return
		}
		if s.Schema = format.Schema.Schema; isNull(s.Schema) {
			s.Object = true
		}
	default:
		f.fail(refuse(fmt.Sprintf("response_format type %.40q is none of text, json_object, json_schema. (parameter=response_format)",
			format.Type), "response_format"))
	}
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// make returns the text. A JSON object without a schema holds what an answer of the engine begins
// with.
func (s *structure) make(prompt []uint32) ([]byte, error) {
	switch {
	case !isNull(s.Schema):
		var text string
		if json.Unmarshal(s.Schema, &text) == nil {
			s.Schema = json.RawMessage(text)
		}
		return makeJSON(s.Schema)
	case s.Regex != "":
		text, ok := newMaker(nil).patternText("^(?:"+s.Regex+")$", 0, 0)
		if !ok {
			return nil, fmt.Errorf("the simulated engine has no text for the regular expression %.100q", s.Regex)
		}
		return []byte(text), nil
	case len(s.Choice) > 0:
		return []byte(s.Choice[hashTokens(0, prompt)%uint64(len(s.Choice))]), nil
	case s.Object:
		return fmt.Appendf(nil, `{"simulated": true, "answer": "%04x: This is a simulated answer, no model is behind it."}`,
			hashTokens(0, prompt)&0xffff), nil
	case !isNull(s.Grammar), !isNull(s.Tag):
		return nil, fmt.Errorf("the simulated engine reads no grammars and no structural tags, only JSON schemas, regular expressions and choices")
	}
	return nil, nil
}

// fixedAnswer returns an answer with this text.
func fixedAnswer(text []byte, reason string, l limits) answer {
	a := answer{tokens: append(appendTokens(nil, string(text)), imEnd), reason: reason}
	if len(a.tokens) > l.max {
		a.tokens, a.reason = a.tokens[:l.max], "length"
	}
	a.show(l)
	return a
}
