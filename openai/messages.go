// Messages: the turns of a conversation and the parts they are made of.

package openai

// A turnReader reads the turns of a conversation: messages, or the input items of
// /v1/responses, with their parts, calls and results, and the tools on offer. What
// it finds out of turns goes into a Turns, what they say into the Content of its
// textReader.
type turnReader struct {
	json  *scanner
	texts *textReader
	into  *Turns
}

// messages reads the array of messages at pos, each an object with a role.
func (t *turnReader) messages() {
	if t.json.peek() != '[' {
		t.json.unlike("an array of messages")
		return
	}
	start := t.json.pos
	e := t.json.array()
	for t.json.element(&e) {
		t.texts.message = int32(e.index)
		t.oneMessage()
	}
	t.texts.message = -1
	if e.index < 0 && !t.json.failed() {
		t.json.stop(faultOther, start, "Invalid 'messages': empty array. Expected an array with at least one message")
	}
}

func (t *turnReader) oneMessage() {
	if t.json.peek() != '{' {
		t.json.unlike("an object with a role and content")
		return
	}
	start, mark := t.json.pos, len(t.texts.into.Texts)
	var role []byte
	var content Span
	m := t.json.object()
	for t.json.member(&m) {
		switch string(m.key) {
		case "role":
			role = t.texts.roleName()
		case "content":
			at := t.json.pos
			t.content()
			content = t.json.since(at)
		case "refusal", "reasoning_content", "reasoning", "thinking":
			t.texts.anyText(RoleUser)
		case "function_call":
			t.callOrText()
		case "tool_calls":
			t.toolCalls()
		case "id", "tool_call_id":
			t.texts.idText(RoleUser)
		case "audio", "annotations", "logprobs":
			t.json.skip()
		default: // templates are handed more than we know, such as a developer's tools
			t.texts.unknownMember(&m, RoleUser)
		}
	}
	if t.json.failed() {
		return
	}
	if role == nil {
		t.json.missing(start, "role")
		return
	}
	said := roleOf(role)
	t.noteTurn(said, mark, start)
	if said == RoleSystem {
		t.into.systems = append(t.into.systems, systemAt{whole: t.into.last, content: content})
	}
}

// noteTurn notes who said the message or item just read, which began at start
// and has the texts from mark on.
func (t *turnReader) noteTurn(said Role, mark, start int) {
	t.texts.setRole(mark, said)
	t.into.All++
	t.into.last = t.json.since(start)
	switch said {
	case RoleUser:
		t.into.User++
		t.into.lastUser = t.into.last
	case RoleTool:
		t.into.Results++
	}
}

func roleOf(name []byte) Role {
	switch string(name) {
	case "user":
		return RoleUser
	case "system", "developer":
		return RoleSystem
	case "assistant":
		return RoleAssistant
	case "tool", "function":
		return RoleTool
	}
	return RoleOther
}

// content reads what a message says: a string, null, or an array of parts.
func (t *turnReader) content() {
	switch t.json.peek() {
	case '"':
		t.texts.text(RoleUser)
	case 'n':
		t.json.skip()
	case '[':
		e := t.json.array()
		for t.json.element(&e) {
			t.part()
		}
	default:
		t.json.unlike("a string or an array of content parts")
	}
}

// part reads one content part of chat, responses or Anthropic's messages.
func (t *turnReader) part() {
	if t.json.peek() != '{' {
		t.json.unlike("a content part: an object with a type")
		return
	}
	start, mark := t.json.pos, len(t.texts.into.Texts)
	var kind []byte
	hasText, readable := false, false
	m := t.json.object()
	for t.json.member(&m) {
		switch string(m.key) {
		case "type":
			kind, _ = t.json.name()
		case "text":
			if hasText = t.json.peek() == '"'; hasText {
				t.texts.text(RoleUser)
			} else if !t.json.null() {
				t.json.unlike("a string")
			}
		case "refusal", "thinking", "reasoning", "input", "title", "context":
			t.texts.anyText(RoleUser)
		case "content":
			t.content()
		case "name":
			t.texts.nameText(RoleUser)
		case "id", "tool_use_id":
			t.texts.idText(RoleUser)
		case "source":
			readable = t.source()
		default:
			t.partMember(&m)
		}
	}
	if t.json.failed() {
		return
	}
	t.checkPart(start, mark, kind, hasText, readable)
}

// partMember reads a member of a part that is none of its texts. What is known
// to be media, or to stay away from the model, is stepped over.
func (t *turnReader) partMember(m *members) {
	switch string(m.key) {
	case "image_url", "image", "input_image", "image_embeds", "input_audio", "audio", "audio_url", "audio_embeds",
		"video", "video_url", "input_video", "file", "file_data", "file_id", "file_url", "filename", "url", "data",
		"uuid", "detail", "media_type", "format", "cache_control", "citations", "annotations", "logprobs", "signature",
		"encrypted_content", "extra_content":
		t.json.skip()
	default:
		t.texts.unknownMember(m, RoleUser)
	}
}

// checkPart judges a part by its type, which may have stood behind its text. A
// part of another type cannot be read, whatever text comes with it.
func (t *turnReader) checkPart(start, mark int, kind []byte, hasText, readable bool) {
	switch string(kind) {
	case "":
		t.json.missing(start, "type")
	case "image_url", "image", "input_image", "input_audio", "audio_url", "video_url", "image_embeds", "input_video":
		t.texts.into.Media++
	case "text", "input_text", "output_text":
		if !hasText {
			t.json.missing(start, "text")
		}
	case "tool_result", "mcp_tool_result":
		t.into.Results++
		t.texts.setRole(mark, RoleTool)
	case "tool_use", "server_tool_use", "mcp_tool_use", "thinking", "refusal", "reasoning_text", "summary_text":
		t.texts.setRole(mark, RoleAssistant)
	case "search_result":
		t.texts.setRole(mark, RoleDocument)
	case "document":
		t.texts.setRole(mark, RoleDocument)
		if !readable {
			t.texts.into.Unread++
		}
	default:
		t.texts.into.Unread++
	}
}

// source reads where an Anthropic document or image comes from, and says
// whether it is text itself: of type text or content.
func (t *turnReader) source() bool {
	if t.json.peek() != '{' {
		t.texts.anyText(RoleUser)
		return false
	}
	mark := len(t.texts.into.Texts)
	var kind []byte
	m := t.json.object()
	for t.json.member(&m) {
		switch string(m.key) {
		case "type":
			kind = t.json.nameIfString()
		case "data":
			t.texts.anyText(RoleUser)
		case "content":
			t.content()
		default:
			skipUnknown(t.json, &m)
		}
	}
	k := string(kind)
	readable := k == "text" || k == "content"
	if !t.json.failed() && !readable {
		t.texts.into.Texts = t.texts.into.Texts[:mark]
	}
	return readable
}
