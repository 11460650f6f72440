// Tools: what a model may call, and the calls that it made.

package openai

import "slices"

// toolCalls reads the calls that an earlier answer made; the arguments are text.
func (t *turnReader) toolCalls() { t.objects("an array of tool calls", t.callOrText) }

// objects reads an array of objects, each of them by read; null stands for none.
func (t *turnReader) objects(what string, read func()) {
	if t.json.null() {
		return
	}
	if t.json.peek() != '[' {
		t.json.unlike(what)
		return
	}
	e := t.json.array()
	for t.json.element(&e) {
		if t.json.peek() != '{' {
			t.json.unlike("an object")
			continue // to the loop's end, which says in which element
		}
		read()
	}
}

// callOrText reads a function call, or the object that wraps one: arguments,
// input and what nobody knows are text, what is written as a name or an id is
// not. Anything but an object is text.
func (t *turnReader) callOrText() {
	if t.json.peek() != '{' {
		t.texts.anyText(RoleUser)
		return
	}
	m := t.json.object()
	for t.json.member(&m) {
		switch string(m.key) {
		case "function", "custom":
			t.callOrText()
		case "arguments", "input", "text", "content":
			t.texts.anyText(RoleUser)
		case "id", "call_id":
			t.texts.idText(RoleUser)
		default:
			t.texts.unknownMember(&m, RoleUser)
		}
	}
}

// tools reads the tools, or legacy functions, that the model may call.
func (t *turnReader) tools() {
	t.objects("an array of tools", func() {
		t.texts.into.Tools++
		t.tool()
	})
}

// accessMembers is how many members of a tool give access to a server.
const accessMembers = 3

// tool reads one tool. What gives access to an MCP server is not shown to the
// model; in a tool of any other type a template may dump it with the rest.
func (t *turnReader) tool() {
	var access [accessMembers]struct{ from, to int } // texts
	n := 0
	var kind []byte
	m := t.json.object()
	for t.json.member(&m) {
		switch string(m.key) {
		case "type":
			if t.json.peek() == '"' {
				start := t.json.pos
				kind = t.json.nameIfString()
				t.json.pos = start
			}
			t.texts.looseText(RoleTools)
		case "server_url", "authorization", "headers":
			from := len(t.texts.into.Texts)
			t.texts.anyText(RoleTools)
			access[n].from, access[n].to = from, len(t.texts.into.Texts)
			n++
		default:
			t.toolMember(&m)
		}
	}
	if t.json.failed() || string(kind) != "mcp" {
		return
	}
	for n--; n >= 0; n-- {
		t.texts.into.Texts = slices.Delete(t.texts.into.Texts, access[n].from, access[n].to)
	}
}

// toolMember reads a member of a tool, or of the function within it.
func (t *turnReader) toolMember(m *members) {
	switch string(m.key) {
	case "function", "custom":
		if t.json.peek() == '{' {
			in := t.json.object()
			for t.json.member(&in) {
				t.toolMember(&in)
			}
		} else if !t.json.null() {
			t.json.unlike("an object")
		}
	case "description":
		t.texts.anyText(RoleTools)
	default:
		if memberNames.refuse(t.json, m) {
			return
		}
		t.texts.keyText(m, RoleTools)
		t.texts.looseText(RoleTools)
	}
}
