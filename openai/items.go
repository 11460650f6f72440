// Items: the input of /v1/responses.
package openai

// input reads what /v1/responses is asked: a string or an array of items.
func (r *textReader) input() {
	switch r.peek() {
	case '"':
		r.text(RoleUser)
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
	start, mark := r.pos, len(r.Texts)
	var kind, role []byte
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			kind, _ = r.name()
		case "role":
			role = r.roleName()
		case "content", "summary":
			r.content()
		case "arguments", "input", "code", "results", "queries":
			r.anyText(RoleUser)
		case "output":
			r.output()
		case "id", "call_id":
			r.idText(RoleUser)
		case "encrypted_content", "result": // of an image_generation_call, an image
			r.skip()
		default:
			r.unknownMember(&m, RoleUser)
		}
	}
	switch {
	case r.failed():
		r.fault.in(m.key)
	case role != nil:
		r.itemBy(roleOf(role), mark, start)
		if kind != nil && string(kind) != "message" {
			r.Unread++
		}
	case kind == nil:
		r.missing(start, "type")
	default:
		said := roleOfItem(kind)
		r.itemBy(said, mark, start)
		if !isItem(kind) {
			r.Unread++
		}
	}
}

// itemBy notes whose item it was.
func (r *textReader) itemBy(said textRole, mark, start int) {
	r.setRole(mark, said)
	r.Turns.All++
	r.turn = Span{int32(start), int32(r.pos)}
	switch said {
	case RoleUser:
		r.Turns.User++
		r.userTurn = r.turn
	case RoleTool:
		r.Results++
	}
}

// isItem recognises the items whose texts all stand where they are read, or
// that refer to what was read before. A compaction is what the model wrote.
func isItem(kind []byte) bool {
	switch string(kind) {
	case "message", "reasoning", "item_reference", "compaction",
		"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
		"image_generation_call", "web_search_call", "file_search_call", "code_interpreter_call",
		"local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
		"mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response":
		return true
	}
	return false
}

// output reads the result of a call: content parts, or text in any shape.
func (r *textReader) output() {
	if r.peek() == '[' {
		r.content()
		return
	}
	r.anyText(RoleTool)
}

// roleOfItem is who says an item that has no role: the results of calls come
// from tools, everything else was said by the model.
func roleOfItem(kind []byte) textRole {
	if k := string(kind); len(k) > 7 && k[len(k)-7:] == "_output" {
		return RoleTool
	}
	return RoleAssistant
}
