// Prompts: the messages of a request, from the bytes of its body.

package content

import (
	"strconv"

	"kvasir/openai"
)

// newest is how many messages of a prompt are looked at: the last ones.
const newest = 256

// A prompt is a body that is read for what it asks.
type prompt struct {
	writer
	body   []byte
	hidden *openai.Splices
	within int // results of tools, in which the part at hand stands
}

// deepest is how many results may stand within one another: each level is walked through anew.
const deepest = 2

// promptOf makes the instructions that stand apart and the messages of a request; nil: there are
// none. It reads what a model reads as text, and calls of tools with their results; of images, files
// and documents it says that they are there.
func promptOf(r *openai.Request, k openai.Kind, hidden *openai.Splices) (system, input []byte) {
	p := &prompt{body: r.Body, hidden: hidden}
	room := PromptBytes
	apart := r.Fields.Instructions
	if k == openai.KindMessages {
		apart = r.Fields.System
	}
	if k != openai.KindChat && p.has(apart) {
		p.writer = writer{left: MessageBytes}
		p.dst = append(p.dst, '[')
		p.content(apart)
		system = append(p.dst, ']')
		room -= len(system)
	}
	at, message := r.MessagesAt, p.message
	switch k {
	case openai.KindResponses:
		at, message = r.AskedAt, p.item
	case openai.KindText:
		at, message = r.AskedAt, p.said
	}
	if !p.has(at) {
		return system, nil
	}
	if p.body[at.Start] == '"' || k == openai.KindText { // one prompt, or several, of one user
		p.writer = writer{left: MessageBytes}
		p.said(at)
		return system, append(append([]byte{'['}, p.dst...), ']')
	}
	return system, p.messages(at, message, room)
}

// has says whether there is a value other than null.
func (p *prompt) has(at openai.Span) bool { return at.Given() && p.body[at.Start] != 'n' }

// messages writes the last messages of the array at at, for which there is room.
func (p *prompt) messages(at openai.Span, message func(openai.Span), room int) []byte {
	last, all := p.last(at)
	var made []byte // the messages, the last one first
	var ends []int
	for n := len(last); n > 0 && len(made)+MessageBytes/4 <= room; n-- {
		p.writer = writer{dst: made, left: min(MessageBytes, room-len(made))}
		message(last[n-1])
		made = p.dst
		ends = append(ends, len(made))
	}
	out := append(make([]byte, 0, len(made)+len(ends)+128), '[')
	if before := all - len(ends); before > 0 {
		out = append(out, `{"role":"kvasir","parts":[{"type":"text","content":"`...)
		out = append(append(out, mark(strconv.Itoa(before)+" earlier messages")...), `"}]}`...)
	}
	for n := len(ends) - 1; n >= 0; n-- {
		begin := 0
		if n > 0 {
			begin = ends[n-1]
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, made[begin:ends[n]]...)
	}
	return append(out, ']')
}

// last finds the last elements of an array, and how many it has.
func (p *prompt) last(at openai.Span) (last []openai.Span, all int) {
	var ring [newest]openai.Span
	w := p.walk(at)
	if !w.Enter('[') {
		return nil, 0
	}
	for w.Element() {
		ring[all%newest] = w.Span()
		all++
	}
	for n := max(0, all-newest); n < all; n++ {
		last = append(last, ring[n%newest])
	}
	return last, all
}

func (p *prompt) walk(at openai.Span) openai.Walker {
	w := openai.Walk(p.body[:at.End])
	w.I = int(at.Start)
	return w
}

// members are what is read of a message, a part, an item or a call: where each value stands.
type members struct {
	kind, role, content, text, thinking, reasoning, refusal openai.Span
	id, callID, name, arguments, output                     openai.Span
	calls, call, function                                   openai.Span
}

func (p *prompt) read(at openai.Span) (m members) {
	w := p.walk(at)
	for ok := w.Enter('{'); ok && w.Key(); {
		to := m.of(w.Name)
		if to == nil {
			w.Skip()
			continue
		}
		if at := w.Span(); p.has(at) {
			*to = at
		}
	}
	return m
}

func (m *members) of(name []byte) *openai.Span {
	switch string(name) {
	case "type":
		return &m.kind
	case "role":
		return &m.role
	case "content", "summary":
		return &m.content
	case "text":
		return &m.text
	case "thinking":
		return &m.thinking
	case "reasoning_content", "reasoning":
		return &m.reasoning
	case "refusal":
		return &m.refusal
	case "id":
		return &m.id
	case "call_id", "tool_call_id", "tool_use_id":
		return &m.callID
	case "name":
		return &m.name
	case "arguments", "input":
		return &m.arguments
	case "output":
		return &m.output
	case "tool_calls":
		return &m.calls
	case "function_call":
		return &m.call
	case "function":
		return &m.function
	}
	return nil
}

// word is a string that is compared: without its quotes, as it is written.
func (p *prompt) word(at openai.Span) string {
	if !at.Given() || p.body[at.Start] != '"' {
		return ""
	}
	return string(p.body[at.Start+1 : at.End-1])
}

// message writes a message of a chat.
func (p *prompt) message(at openai.Span) {
	m := p.read(at)
	p.begin(m.role, "user")
	p.text("reasoning", m.reasoning)
	if role := p.word(m.role); role == "tool" || role == "function" {
		p.result(m.callID, m.content)
	} else {
		p.content(m.content)
	}
	p.text("text", m.refusal)
	w := p.walk(m.calls)
	for ok := m.calls.Given() && w.Enter('['); ok && w.Element() && !p.cut; {
		c := p.read(w.Span())
		f := p.read(c.function)
		p.toolCall(c.id, f.name, f.arguments)
	}
	if m.call.Given() {
		f := p.read(m.call)
		p.toolCall(openai.Span{}, f.name, f.arguments)
	}
	p.end()
}

// item writes an input item of responses as a message.
func (p *prompt) item(at openai.Span) {
	m := p.read(at)
	switch kind := p.word(m.kind); {
	case m.role.Given():
		p.begin(m.role, "")
		p.content(m.content)
	case len(kind) > 7 && kind[len(kind)-7:] == "_output":
		p.begin(openai.Span{}, "tool")
		p.result(m.callID, m.output)
	case kind == "reasoning":
		p.begin(openai.Span{}, "assistant")
		p.content(m.content)
	case m.name.Given():
		p.begin(openai.Span{}, "assistant")
		id := m.callID
		if !id.Given() {
			id = m.id
		}
		p.toolCall(id, m.name, m.arguments)
	default:
		p.begin(openai.Span{}, "assistant")
		p.other(m.kind)
	}
	p.end()
}

// said writes the prompts of completions as a message of the user's.
func (p *prompt) said(at openai.Span) {
	p.begin(openai.Span{}, "user")
	if p.body[at.Start] == '"' {
		p.text("text", at)
	} else {
		p.prompts(at)
	}
	p.end()
}

func (p *prompt) prompts(at openai.Span) {
	w := p.walk(at)
	for ok := w.Enter('['); ok && w.Element() && !p.cut; {
		if w.Peek() != '"' { // this one and, as they are of one sort, all others
			if p.open("token_ids") {
				p.close()
			}
			return
		}
		p.text("text", w.Span())
	}
}

func (p *prompt) begin(role openai.Span, otherwise string) {
	p.dst = append(p.dst, `{"role":`...)
	if role.Given() {
		p.short(role)
	} else {
		p.name([]byte(otherwise))
	}
	p.dst = append(p.dst, `,"parts":[`...)
}

func (p *prompt) end() { p.dst = append(p.dst, "]}"...) }

// content writes what a message says: a string, or parts.
func (p *prompt) content(at openai.Span) {
	if !at.Given() {
		return
	}
	if p.body[at.Start] != '[' {
		p.text("text", at)
		return
	}
	w := p.walk(at)
	for ok := w.Enter('['); ok && w.Element() && !p.cut; {
		p.part(w.Span())
	}
}

// part writes a part of a chat's content, of a response's, or of Anthropic's messages.
func (p *prompt) part(at openai.Span) {
	if p.body[at.Start] == '"' {
		p.text("text", at)
		return
	}
	m := p.read(at)
	switch p.word(m.kind) {
	case "text", "input_text", "output_text":
		p.text("text", m.text)
	case "refusal":
		p.text("text", m.refusal)
	case "thinking":
		p.text("reasoning", m.thinking)
	case "reasoning_text", "summary_text":
		p.text("reasoning", m.text)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		p.toolCall(m.id, m.name, m.arguments)
	case "tool_result", "mcp_tool_result":
		p.result(m.callID, m.content)
	default:
		p.other(m.kind)
	}
}

// other writes a part of which nothing is kept but that it was there.
func (p *prompt) other(kind openai.Span) {
	if p.open("other") {
		if kind.Given() {
			p.member("kind")
			p.short(kind)
		}
		p.close()
	}
}

// text writes a part that is text.
func (p *prompt) text(kind string, at openai.Span) {
	if at.Given() && p.open(kind) {
		p.member("content")
		p.string(at)
		p.close()
	}
}

func (p *prompt) toolCall(id, name, arguments openai.Span) {
	if !p.open("tool_call") {
		return
	}
	p.member("id")
	p.short(id)
	p.member("name")
	p.short(name)
	if arguments.Given() {
		p.member("arguments")
		if inside, all := p.seen(arguments); p.body[arguments.Start] == '"' {
			p.arguments(inside, all)
		} else {
			p.value(inside, all)
		}
	}
	p.close()
}

func (p *prompt) result(id, of openai.Span) {
	if !p.open("tool_call_response") {
		return
	}
	p.member("id")
	p.short(id)
	p.member("response")
	switch {
	case !of.Given():
		p.dst = append(p.dst, "null"...)
	case p.body[of.Start] == '"':
		p.string(of)
	case p.body[of.Start] == '[' && p.within < deepest:
		p.within++
		p.dst = append(p.dst, '[')
		p.content(of)
		p.dst = append(p.dst, ']')
		p.within--
	default:
		p.value(p.seen(of))
	}
	p.close()
}

// string writes a value as a string.
func (p *prompt) string(at openai.Span) {
	inside, all := p.seen(at)
	if p.body[at.Start] == '"' {
		p.str(inside, all)
	} else {
		p.value(inside, all)
	}
}

// short writes a name, or null.
func (p *prompt) short(at openai.Span) {
	if !at.Given() || p.body[at.Start] != '"' {
		p.dst = append(p.dst, "null"...)
		return
	}
	inside, _ := p.seen(at)
	p.name(inside)
}

// seen is what may be seen of a value: its beginning, as far as there is room and a little more, of
// a string what stands between its quotes; and how long all of it is.
func (p *prompt) seen(at openai.Span) (b []byte, all int) {
	if p.body[at.Start] == '"' {
		at.Start, at.End = at.Start+1, at.End-1
	}
	most := max(p.left, nameBytes) + 16 // clip looks no further
	b = p.hidden.AppendSpan(nil, p.body, at, most)
	if len(b) < most {
		return b, len(b)
	}
	return b, max(len(b), int(at.End-at.Start))
}
