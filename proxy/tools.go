// Tools: what a model may call, and the calls that it made.
package proxy

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
// input and what nobody knows are text, names and ids are not. Anything but an
// object is text.
func (r *textReader) callOrText() {
	if r.peek() != '{' {
		r.anyText(roleUser)
		return
	}
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "function", "custom":
			r.callOrText()
		case "arguments", "input", "text", "content":
			r.anyText(roleUser)
		case "id", "call_id", "type", "index":
			r.skip()
		default:
			r.looseText(roleUser)
		}
	}
	r.fault.in(m.key)
}

// tools reads the tools, or legacy functions, that the model may call.
func (r *textReader) tools() {
	r.objects("an array of tools", func(r *textReader) {
		r.toolCount++
		r.tool()
	})
}

// tool reads one tool, or the function within it. What gives access to a
// server is not shown to the model, anything else may be.
func (r *textReader) tool() {
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "function", "custom":
			if r.peek() == '{' {
				r.tool()
			} else if !r.null() {
				r.unlike("an object")
			}
		case "description":
			r.anyText(roleTools)
		case "server_url", "authorization", "headers":
			r.skip()
		default:
			r.looseText(roleTools)
		}
	}
	r.fault.in(m.key)
}
