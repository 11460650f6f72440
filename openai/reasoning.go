// Reasoning: how a body tells models of different families to think or not.

package openai

import "strconv"

// A reasoningFamily is how models of one family are told to think or not: by an
// argument of the chat template, or by an effort.
type reasoningFamily struct {
	argument string // of chat_template_kwargs; "": it goes by effort
	off      string // the effort that is nearest to none
}

// reasoningFamilies are those that SetReasoning knows.
var reasoningFamilies = map[string]reasoningFamily{
	"qwen3":    {argument: "enable_thinking"},
	"deepseek": {argument: "thinking"},
	"gpt-oss":  {off: "low"}, // its lowest: it always reasons
	"gpt":      {off: "minimal"},
}

// SetReasoning switches thinking on ("on", or an effort) or "off" for a model of
// the family: qwen3, deepseek, gpt-oss or gpt. It says whether the family and the
// route have a switch; if not, nothing is changed. Off is said, not left out:
// models that think by default would go on.
func SetReasoning(s *Splices, r *Request, family, want string) bool {
	f, ok := reasoningFamilies[family]
	switch {
	case !ok:
		return false
	case f.argument != "":
		return r.kind == KindChat && setTemplateArgument(s, r, f.argument, want != "off")
	}
	effort := want
	switch want {
	case "off":
		effort = f.off
	case "on":
		effort = "high"
	}
	return setEffort(s, r, AppendString(nil, effort))
}

// setEffort puts effort, a JSON string, where the route has it.
func setEffort(s *Splices, r *Request, effort []byte) bool {
	switch f := &r.Fields; {
	case r.kind == KindChat:
		setParameter(s, r, f.effort, "reasoning_effort", effort)
	case r.kind != KindResponses:
		return false
	case f.nestedEffort.Given():
		s.Replace(f.nestedEffort, effort)
	case f.reasoning.Given() && r.Body[f.reasoning.Start] == '{':
		insertMember(s, f.reasoning, "effort", effort)
	default:
		setParameter(s, r, f.reasoning, "reasoning", append(append([]byte(`{"effort":`), effort...), '}'))
	}
	return true
}

// setTemplateArgument sets an argument of the chat template, if the body has the
// arguments in a shape that engines take; if not, they will say so themselves.
func setTemplateArgument(s *Splices, r *Request, name string, on bool) bool {
	value := strconv.AppendBool(nil, on)
	given := r.Fields.enableThinking
	if name == "thinking" {
		given = r.Fields.thinking
	}
	switch at := r.Fields.templateArgs; {
	case given.Given():
		s.Replace(given, value)
	case at.Given() && r.Body[at.Start] == '{':
		insertMember(s, at, name, value)
	case at.Given() && r.Body[at.Start] != 'n':
		return false
	default:
		setParameter(s, r, at, "chat_template_kwargs", append(append([]byte(`{"`+name+`":`), value...), '}'))
	}
	return true
}
