// Tools: what a model may call, and the calls that it made.
package openai

import "slices"

// toolCalls reads the calls that an earlier answer made; the arguments are text.
func (r *textReader) toolCalls() { r.objects("an array of tool calls", (*textReader).callOrText) }

// objects reads an array of objects, one after another; null stands for none.
func (r *textReader) objects(what string, read func(*textReader)) {
	if r.null() {
		return
	}
	if r.peek() != '[' {
		r.unlike(what)
		return
	}
	e := r.array()
	for r.element(&e) {
		if r.peek() != '{' {
			r.unlike("an object")
			break
		}
		read(r)
	}
	r.fault.inElement(e.index)
}

// callOrText reads a function call, or the object that wraps one: arguments,
// input and what nobody knows are text, what is written as a name or an id is
// not. Anything but an object is text.
func (r *textReader) callOrText() {
	if r.peek() != '{' {
		r.anyText(RoleUser)
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "function", "custom":
			r.callOrText()
		case "arguments", "input", "text", "content":
			r.anyText(RoleUser)
		case "id", "call_id":
			r.idText(RoleUser)
		default:
			r.unknownMember(&m, RoleUser)
		}
	}
	r.fault.in(m.key)
}

// tools reads the tools, or legacy functions, that the model may call.
func (r *textReader) tools() {
	r.objects("an array of tools", func(r *textReader) {
		r.ToolCount++
		r.tool()
	})
}

// accessMembers is how many members of a tool give access to a server.
const accessMembers = 3

// tool reads one tool. What gives access to an MCP server is not shown to the
// model; in a tool of any other type a template may dump it with the rest.
func (r *textReader) tool() {
	var access [accessMembers]struct{ from, to int } // texts
	n := 0
	var kind []byte
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			if r.peek() == '"' {
				start := r.pos
				kind = r.nameIfString()
				r.pos = start
			}
			r.looseText(RoleTools)
		case "server_url", "authorization", "headers":
			from := len(r.Texts)
			r.anyText(RoleTools)
			access[n].from, access[n].to = from, len(r.Texts)
			n++
		default:
			r.toolMember(&m)
		}
	}
	r.fault.in(m.key)
	if r.failed() || string(kind) != "mcp" {
		return
	}
	for n--; n >= 0; n-- {
		r.Texts = slices.Delete(r.Texts, access[n].from, access[n].to)
	}
}

// toolMember reads a member of a tool, or of the function within it.
func (r *textReader) toolMember(m *members) {
	switch string(m.key) {
	case "function", "custom":
		if r.peek() == '{' {
			in := r.object()
			for r.member(&in) {
				r.toolMember(&in)
			}
			r.fault.in(in.key)
		} else if !r.null() {
			r.unlike("an object")
		}
	case "description":
		r.anyText(RoleTools)
	default:
		if r.otherCase(m, memberNames) {
			return
		}
		r.keyText(m, RoleTools)
		r.looseText(RoleTools)
	}
}
