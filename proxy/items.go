// Items: the input of /v1/responses.
package proxy

// input reads what /v1/responses is asked: a string or an array of items.
func (r *textReader) input() {
	switch r.peek() {
	case '"':
		r.text(roleUser)
	case '[':
		e := r.array()
		for r.element(&e) {
			r.message = int32(e.index)
			r.item()
		}
		r.message = -1
		r.fault.inElement(e.index)
	default:
		r.unlike("a string or an array of input items")
	}
}

// item reads one input item: a message, a call, a result, reasoning ...
func (r *textReader) item() {
	if r.peek() != '{' {
		r.unlike("an input item: an object with a type or a role")
		return
	}
	start, mark := r.pos, len(r.texts)
	var kind, role []byte
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			kind, _ = r.name()
		case "role":
			role, _ = r.name()
		case "content", "summary":
			r.content()
		case "arguments", "input", "code", "results", "queries":
			r.anyText(roleUser)
		case "output":
			r.output()
		default:
			r.skip()
		}
	}
	switch {
	case r.failed():
		r.fault.in(m.key)
	case role != nil:
		r.setRole(mark, roleOf(role))
	case kind == nil:
		r.missing(start, "type")
	default:
		r.setRole(mark, roleOfItem(kind))
		if len(r.texts) == mark {
			r.unread++
		}
	}
}

// output reads the result of a call: content parts, or text in any shape.
func (r *textReader) output() {
	if r.peek() == '[' {
		r.content()
		return
	}
	r.anyText(roleTool)
}

// roleOfItem is who says an item that has no role: the results of calls come
// from tools, everything else was said by the model.
func roleOfItem(kind []byte) textRole {
	if k := string(kind); len(k) > 7 && k[len(k)-7:] == "_output" {
		return roleTool
	}
	return roleAssistant
}
