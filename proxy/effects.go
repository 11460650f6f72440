// Effects: what a decision changes in the body, spliced; the rest stays byte-exact.
package proxy

import (
	"strconv"

	"kvasir/classify"
)

// effects notes what the decision wants of the body. It is asked again for each
// model that is tried, since models switch reasoning in different ways.
func (x *exchange) effects() {
	d := x.decision()
	if d == nil {
		return
	}
	w := writer{&x.req, &x.edit, x.route.kind}
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
	*request
	edit *splices
	kind kind
}

// member puts `"name":value` into object.
func (w writer) member(object span, name string, value []byte) {
	start := len(w.edit.quoted)
	w.edit.quoted = append(append(append(append(w.edit.quoted, '"'), name...), `":`...), value...)
	w.edit.insertMember(object, w.edit.quoted[start:])
}

// set puts value where at stands, or into the body under name if it is nowhere.
func (w writer) set(at span, name string, value []byte) {
	if at.given() {
		w.edit.replace(at, value)
	} else {
		w.member(w.whole, name, value)
	}
}

// systemPrompt makes the model read prompt first: in place of the client's own
// system prompt, or before it. It says whether the route has a place for one.
func (w writer) systemPrompt(prompt string, insert bool) bool {
	switch w.kind {
	case kindChat:
		if len(w.systems) == 0 {
			w.firstMessage(prompt)
			return true
		}
		first := w.systems[0]
		if !first.content.given() {
			w.member(first.whole, "content", appendJSONString(nil, prompt))
		} else {
			w.write(first.content, prompt, insert)
		}
		if !insert {
			for _, more := range w.systems[1:] {
				w.edit.remove(more.whole)
			}
		}
	case kindResponses:
		w.writeOr(w.fields.instructions, "instructions", prompt, insert)
	case kindMessages:
		w.writeOr(w.fields.system, "system", prompt, insert)
	default:
		return false
	}
	return true
}

// firstMessage puts a system message before all others.
func (w writer) firstMessage(prompt string) {
	at := w.messagesAt.start + 1
	w.edit.replace(span{at, at}, append(appendJSONString([]byte(`{"role":"system","content":`), prompt), "},"...))
}

func (w writer) writeOr(at span, name, prompt string, insert bool) {
	if at.given() {
		w.write(at, prompt, insert)
	} else {
		w.member(w.whole, name, appendJSONString(nil, prompt))
	}
}

// write puts prompt in the place of the text or parts at at, or before them.
func (w writer) write(at span, prompt string, insert bool) {
	inner := span{at.start + 1, at.start + 1}
	switch first := w.body[at.start]; {
	case insert && first == '"' && at.end-at.start > 2:
		quoted := appendJSONString(nil, prompt+"\n\n")
		w.edit.replace(inner, quoted[1:len(quoted)-1])
	case insert && first == '[':
		part := append(appendJSONString([]byte(`{"type":"text","text":`), prompt), '}')
		if w.body[skipSpace(w.body, int(inner.start))] != ']' {
			part = append(part, ',')
		}
		w.edit.replace(inner, part)
	default:
		w.edit.replace(at, appendJSONString(nil, prompt))
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
		return w.kind == kindChat && w.templateArgument(f, want != "off")
	}
	effort := want
	switch want {
	case "off":
		effort = f.off
	case "on":
		effort = "high"
	}
	value := appendJSONString(nil, effort)
	switch {
	case w.kind == kindChat:
		w.set(w.fields.effort, "reasoning_effort", value)
	case w.kind != kindResponses:
		return false
	case w.effortAt.given():
		w.edit.replace(w.effortAt, value)
	case w.fields.reasoning.given() && w.body[w.fields.reasoning.start] == '{':
		w.member(w.fields.reasoning, "effort", value)
	default:
		w.set(w.fields.reasoning, "reasoning", append(append([]byte(`{"effort":`), value...), '}'))
	}
	return true
}

func (w writer) templateArgument(f reasoningFamily, on bool) bool {
	value := strconv.AppendBool(nil, on)
	switch at := w.fields.templateArgs; {
	case w.args[f.index].given():
		w.edit.replace(w.args[f.index], value)
	case at.given() && w.body[at.start] == '{':
		w.member(at, f.argument, value)
	case at.given() && w.body[at.start] != 'n':
		return false // not what any engine takes: it will say so itself
	default:
		w.set(at, "chat_template_kwargs", append(append([]byte(`{"`+f.argument+`":`), value...), '}'))
	}
	return true
}

// caps holds parameters down to what the decision allows.
func (w writer) caps(d *classify.Decision) {
	f := &w.fields
	if d.MaxTokens > 0 {
		w.capTokens(d.MaxTokens)
	}
	if d.MaxChoices > 0 {
		w.cap(f.n, float64(d.MaxChoices), strconv.AppendInt(nil, int64(d.MaxChoices), 10))
	}
	if d.CapTemperature && w.generates() {
		limit := strconv.AppendFloat(nil, d.MaxTemperature, 'f', -1, 64)
		if !w.cap(f.temperature, d.MaxTemperature, limit) && d.MaxTemperature < 1 { // engines' default is 1
			w.set(f.temperature, "temperature", limit)
		}
	}
}

// capTokens caps the length of the answer by every name, and sets it where the
// route's own name has no number: engines pass over the names of other routes.
func (w writer) capTokens(most int) {
	f := &w.fields
	limit := strconv.AppendInt(nil, int64(most), 10)
	tokens := w.cap(f.maxTokens, float64(most), limit)
	completion := w.cap(f.maxCompletion, float64(most), limit)
	output := w.cap(f.maxOutput, float64(most), limit)
	name := maxTokensOf(w.kind)
	switch {
	case name == "max_output_tokens" && !output:
		w.set(f.maxOutput, name, limit)
	case name != "max_tokens" || tokens || completion && w.kind == kindChat:
	case w.kind == kindChat && !f.maxTokens.given() && f.maxCompletion.given(): // null
		w.edit.replace(f.maxCompletion, limit)
	default:
		w.set(f.maxTokens, name, limit)
	}
}

func (w writer) generates() bool { return maxTokensOf(w.kind) != "" }

// cap replaces the number at at by limit if it is above it, or below 0, which
// some engines take for no limit at all. It says whether there is a number.
func (w writer) cap(at span, most float64, limit []byte) bool {
	if !at.given() || w.body[at.start] == 'n' {
		return false
	}
	if v, err := strconv.ParseFloat(string(at.of(w.body)), 64); err != nil || v > most || v < 0 {
		w.edit.replace(at, limit)
	}
	return true
}

// maxTokensOf is what a route calls the limit of its answer; "": it has none.
func maxTokensOf(k kind) string {
	switch k {
	case kindChat, kindText, kindMessages:
		return "max_tokens"
	case kindResponses:
		return "max_output_tokens"
	}
	return ""
}
