// Items: the input of /v1/responses.

package openai

// input reads what /v1/responses is asked: a string or an array of items.
func (t *turnReader) input() {
	switch t.json.peek() {
	case '"':
		t.texts.text(RoleUser)
	case '[':
		e := t.json.array()
		for t.json.element(&e) {
			t.texts.message = int32(e.index)
			t.item()
		}
		t.texts.message = -1
	default:
		t.json.unlike("a string or an array of input items")
	}
}

// item reads one input item: a message, a call, a result, reasoning ...
func (t *turnReader) item() {
	if t.json.peek() != '{' {
		t.json.unlike("an input item: an object with a type or a role")
		return
	}
	start, mark := t.json.pos, len(t.texts.into.Texts)
	var kind, role []byte
	m := t.json.object()
	for t.json.member(&m) {
		switch string(m.key) {
		case "type":
			kind, _ = t.json.name()
		case "role":
			role = t.texts.roleName()
		case "content", "summary":
			t.content()
		case "arguments", "input", "code", "results", "queries":
			t.texts.anyText(RoleUser)
		case "output":
			t.output()
		case "id", "call_id":
			t.texts.idText(RoleUser)
		case "encrypted_content", "result": // of an image_generation_call, an image
			t.json.skip()
		default:
			t.texts.unknownMember(&m, RoleUser)
		}
	}
	switch {
	case t.json.failed():
	case role != nil:
		t.noteTurn(roleOf(role), mark, start)
		if kind != nil && string(kind) != "message" {
			t.texts.into.Unread++
		}
	case kind == nil:
		t.json.missing(start, "type")
	default:
		said := roleOfItem(kind)
		t.noteTurn(said, mark, start)
		if !isItem(kind) {
			t.texts.into.Unread++
		}
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
func (t *turnReader) output() {
	if t.json.peek() == '[' {
		t.content()
		return
	}
	t.texts.anyText(RoleTool)
}

// roleOfItem is who says an item that has no role: the results of calls come
// from tools, everything else was said by the model.
func roleOfItem(kind []byte) Role {
	if k := string(kind); len(k) > 7 && k[len(k)-7:] == "_output" {
		return RoleTool
	}
	return RoleAssistant
}
