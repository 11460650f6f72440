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

// callOrText reads a function call, or the object that wraps one: arguments
// and input are text, names and ids are not. Anything but an object is text.
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
		default:
			r.skip()
		}
	}
	r.fault.in(m.key)
}

// tools reads the tools, or legacy functions, that the model may call.
func (r *textReader) tools() { r.objects("an array of tools", (*textReader).tool) }

// tool reads one tool, or the function within it.
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
		case "parameters", "input_schema":
			r.descriptions()
		default:
			r.skip()
		}
	}
	r.fault.in(m.key)
}

// descriptions finds the descriptions at any depth of a JSON schema.
func (r *textReader) descriptions() {
	switch r.peek() {
	case '[':
		e := r.array()
		for r.element(&e) {
			r.descriptions()
		}
		r.fault.inElement(e.index)
	case '{':
		m := r.object()
		for r.member(&m) {
			if string(m.key) == "description" && r.peek() == '"' {
				r.text(roleTools)
			} else {
				r.descriptions()
			}
		}
		r.fault.in(m.key)
	default:
		r.skip()
	}
}
