// Effects: what a decision changes in the body, spliced; the rest stays byte-exact.
package proxy

import (
	"strconv"

	"kvasir/classify"
	"kvasir/openai"
)

// effects notes what the decision wants of the body. It is asked again for each
// model that is tried, since models switch reasoning in different ways.
func (x *exchange) effects() {
	d := x.decision()
	if d == nil {
		return
	}
	w := writer{&x.req, &x.edit, x.route.Kind}
	j := &x.facts.judgement
	j.injected = d.SystemPrompt != "" && w.systemPrompt(d.SystemPrompt, d.InsertPrompt)
	j.reasoning = ""
	if d.Reasoning != "" && w.reasoning(x.state.models[x.model].Reasoning, d.Reasoning) {
		j.reasoning = d.Reasoning
	}
	w.caps(d)
}

// A writer splices values of ours into a request.
type writer struct {
	*openai.Request
	edit *openai.Splices
	kind openai.Kind
}

// member puts `"name":value` into object.
func (w writer) member(object openai.Span, name string, value []byte) {
	start := len(w.edit.Quoted)
	w.edit.Quoted = append(append(append(append(w.edit.Quoted, '"'), name...), `":`...), value...)
	w.edit.InsertMember(object, w.edit.Quoted[start:])
}

// set puts value where at stands, or into the body under name if it is nowhere.
func (w writer) set(at openai.Span, name string, value []byte) {
	if at.Given() {
		w.edit.Replace(at, value)
	} else {
		w.member(w.Whole, name, value)
	}
}

// systemPrompt makes the model read prompt first: in place of the client's own
// system prompt, or before it. It says whether the route has a place for one.
func (w writer) systemPrompt(prompt string, insert bool) bool {
	switch w.kind {
	case openai.KindChat:
		if len(w.Systems) == 0 {
			w.firstMessage(prompt)
			return true
		}
		first := w.Systems[0]
		if !first.Content.Given() {
			w.member(first.Whole, "content", openai.AppendString(nil, prompt))
		} else {
			w.write(first.Content, prompt, insert)
		}
		if !insert {
			for _, more := range w.Systems[1:] {
				w.edit.Remove(more.Whole)
			}
		}
	case openai.KindResponses:
		w.writeOr(w.Fields.Instructions, "instructions", prompt, insert)
	case openai.KindMessages:
		w.writeOr(w.Fields.System, "system", prompt, insert)
	default:
		return false
	}
	return true
}

// firstMessage puts a system message before all others.
func (w writer) firstMessage(prompt string) {
	at := w.MessagesAt.Start + 1
	w.edit.Replace(openai.Span{Start: at, End: at}, append(openai.AppendString([]byte(`{"role":"system","content":`), prompt), "},"...))
}

func (w writer) writeOr(at openai.Span, name, prompt string, insert bool) {
	if at.Given() {
		w.write(at, prompt, insert)
	} else {
		w.member(w.Whole, name, openai.AppendString(nil, prompt))
	}
}

// write puts prompt in the place of the text or parts at at, or before them.
func (w writer) write(at openai.Span, prompt string, insert bool) {
	inner := openai.Span{Start: at.Start + 1, End: at.Start + 1}
	switch first := w.Body[at.Start]; {
	case insert && first == '"' && at.End-at.Start > 2:
		quoted := openai.AppendString(nil, prompt+"\n\n")
		w.edit.Replace(inner, quoted[1:len(quoted)-1])
	case insert && first == '[':
		part := append(openai.AppendString([]byte(`{"type":"text","text":`), prompt), '}')
		if w.Body[openai.SkipSpace(w.Body, int(inner.Start))] != ']' {
			part = append(part, ',')
		}
		w.edit.Replace(inner, part)
	default:
		w.edit.Replace(at, openai.AppendString(nil, prompt))
	}
}

// A reasoningFamily is how models of one family are told to think or not.
type reasoningFamily struct {
	argument string // of the chat template; "": it goes by effort
	index    int    // of argument in request.args
	off      string // the effort that is nearest to none
}

// reasoningFamilies are the values of models[].reasoning.
var reasoningFamilies = map[string]reasoningFamily{
	"qwen3":    {argument: "enable_thinking", index: 0},
	"deepseek": {argument: "thinking", index: 1},
	"gpt-oss":  {off: "low"}, // its lowest: it always reasons
	"gpt":      {off: "minimal"},
}

// reasoning switches thinking on ("on", or an effort) or off, and says whether
// the model and the route have a switch. Off is said, not left out: models that
// think by default would go on.
func (w writer) reasoning(family, want string) bool {
	f, ok := reasoningFamilies[family]
	switch {
	case !ok:
		return false
	case f.argument != "":
		return w.kind == openai.KindChat && w.templateArgument(f, want != "off")
	}
	effort := want
	switch want {
	case "off":
		effort = f.off
	case "on":
		effort = "high"
	}
	value := openai.AppendString(nil, effort)
	switch {
	case w.kind == openai.KindChat:
		w.set(w.Fields.Effort, "reasoning_effort", value)
	case w.kind != openai.KindResponses:
		return false
	case w.EffortAt.Given():
		w.edit.Replace(w.EffortAt, value)
	case w.Fields.Reasoning.Given() && w.Body[w.Fields.Reasoning.Start] == '{':
		w.member(w.Fields.Reasoning, "effort", value)
	default:
		w.set(w.Fields.Reasoning, "reasoning", append(append([]byte(`{"effort":`), value...), '}'))
	}
	return true
}

func (w writer) templateArgument(f reasoningFamily, on bool) bool {
	value := strconv.AppendBool(nil, on)
	switch at := w.Fields.TemplateArgs; {
	case w.Args[f.index].Given():
		w.edit.Replace(w.Args[f.index], value)
	case at.Given() && w.Body[at.Start] == '{':
		w.member(at, f.argument, value)
	case at.Given() && w.Body[at.Start] != 'n':
		return false // not what any engine takes: it will say so itself
	default:
		w.set(at, "chat_template_kwargs", append(append([]byte(`{"`+f.argument+`":`), value...), '}'))
	}
	return true
}

// caps holds parameters down to what the decision allows.
func (w writer) caps(d *classify.Decision) {
	f := &w.Fields
	if d.MaxTokens > 0 {
		w.capTokens(d.MaxTokens)
	}
	if d.MaxChoices > 0 {
		w.cap(f.N, float64(d.MaxChoices), strconv.AppendInt(nil, int64(d.MaxChoices), 10))
	}
	if d.CapTemperature && w.generates() {
		limit := strconv.AppendFloat(nil, d.MaxTemperature, 'f', -1, 64)
		if !w.cap(f.Temperature, d.MaxTemperature, limit) && d.MaxTemperature < 1 { // engines' default is 1
			w.set(f.Temperature, "temperature", limit)
		}
	}
}

// capTokens caps the length of the answer by every name, and sets it where the
// route's own name has no number: engines pass over the names of other routes.
func (w writer) capTokens(most int) {
	f := &w.Fields
	limit := strconv.AppendInt(nil, int64(most), 10)
	tokens := w.cap(f.MaxTokens, float64(most), limit)
	completion := w.cap(f.MaxCompletion, float64(most), limit)
	output := w.cap(f.MaxOutput, float64(most), limit)
	name := maxTokensOf(w.kind)
	switch {
	case name == "max_output_tokens" && !output:
		w.set(f.MaxOutput, name, limit)
	case name != "max_tokens" || tokens || completion && w.kind == openai.KindChat:
	case w.kind == openai.KindChat && !f.MaxTokens.Given() && f.MaxCompletion.Given(): // null
		w.edit.Replace(f.MaxCompletion, limit)
	default:
		w.set(f.MaxTokens, name, limit)
	}
}

func (w writer) generates() bool { return maxTokensOf(w.kind) != "" }

// cap replaces the number at at by limit if it is above it, or below 0, which
// some engines take for no limit at all. It says whether there is a number.
func (w writer) cap(at openai.Span, most float64, limit []byte) bool {
	if !at.Given() || w.Body[at.Start] == 'n' {
		return false
	}
	if v, err := strconv.ParseFloat(string(at.Of(w.Body)), 64); err != nil || v > most || v < 0 {
		w.edit.Replace(at, limit)
	}
	return true
}

// maxTokensOf is what a route calls the limit of its answer; "": it has none.
func maxTokensOf(k openai.Kind) string {
	switch k {
	case openai.KindChat, openai.KindText, openai.KindMessages:
		return "max_tokens"
	case openai.KindResponses:
		return "max_output_tokens"
	}
	return ""
}
