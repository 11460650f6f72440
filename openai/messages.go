// Messages: the turns of a conversation and the parts they are made of.
package openai

// messages reads the array of messages at pos, each an object with a role.
func (r *textReader) messages() {
	if r.peek() != '[' {
		r.unlike("an array of messages")
		return
	}
	start := r.pos
	e := r.array()
	for r.element(&e) {
		r.message = int32(e.index)
		r.oneMessage()
	}
	r.message = -1
	r.fault.inElement(e.index)
	if e.index < 0 && !r.failed() {
		r.stop(faultOther, start, "Invalid 'messages': empty array. Expected an array with at least one message")
	}
}

func (r *textReader) oneMessage() {
	if r.peek() != '{' {
		r.unlike("an object with a role and content")
		return
	}
	start, mark := r.pos, len(r.Texts)
	var role []byte
	var content Span
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "role":
			role = r.roleName()
		case "content":
			at := r.pos
			r.content()
			content = Span{int32(at), int32(r.pos)}
		case "refusal", "reasoning_content", "reasoning", "thinking":
			r.anyText(RoleUser)
		case "function_call":
			r.callOrText()
		case "tool_calls":
			r.toolCalls()
		case "id", "tool_call_id":
			r.idText(RoleUser)
		case "audio", "annotations", "logprobs":
			r.skip()
		default: // templates are handed more than we know, such as a developer's tools
			r.unknownMember(&m, RoleUser)
		}
	}
	if r.failed() {
		r.fault.in(m.key)
		return
	}
	if role == nil {
		r.missing(start, "role")
		return
	}
	said := roleOf(role)
	r.setRole(mark, said)
	r.Turns.All++
	r.turn = Span{int32(start), int32(r.pos)}
	switch said {
	case RoleUser:
		r.Turns.User++
		r.userTurn = r.turn
	case RoleTool:
		r.Results++
	case RoleSystem:
		r.Systems = append(r.Systems, systemAt{Whole: r.turn, Content: content})
	}
}

// setRole gives the texts from mark on, whose role stood nowhere near them,
// the role of their message.
func (r *textReader) setRole(mark int, role textRole) {
	for i := mark; i < len(r.Texts); i++ {
		if r.Texts[i].Role == RoleUser {
			r.Texts[i].Role = role
		}
	}
}

func roleOf(name []byte) textRole {
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

// missing stops at an object that lacks a member.
func (r *textReader) missing(object int, name string) {
	r.stop(faultMissing, object, "")
	r.fault.param = name
}

// content reads what a message says: a string, null, or an array of parts.
func (r *textReader) content() {
	switch r.peek() {
	case '"':
		r.text(RoleUser)
	case 'n':
		r.skip()
	case '[':
		e := r.array()
		for r.element(&e) {
			r.part()
		}
		r.fault.inElement(e.index)
	default:
		r.unlike("a string or an array of content parts")
	}
}

// part reads one content part of chat, responses or Anthropic's messages.
func (r *textReader) part() {
	if r.peek() != '{' {
		r.unlike("a content part: an object with a type")
		return
	}
	start, mark := r.pos, len(r.Texts)
	var kind []byte
	hasText, readable := false, false
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			kind, _ = r.name()
		case "text":
			if hasText = r.peek() == '"'; hasText {
				r.text(RoleUser)
			} else if !r.null() {
				r.unlike("a string")
			}
		case "refusal", "thinking", "reasoning", "input", "title", "context":
			r.anyText(RoleUser)
		case "content":
			r.content()
		case "name":
			r.nameText(RoleUser)
		case "id", "tool_use_id":
			r.idText(RoleUser)
		case "source":
			readable = r.source()
		default:
			r.partMember(&m)
		}
	}
	if r.failed() {
		r.fault.in(m.key)
		return
	}
	r.checkPart(start, mark, kind, hasText, readable)
}

// partMember reads a member of a part that is none of its texts. What is known
// to be media, or to stay away from the model, is stepped over.
func (r *textReader) partMember(m *members) {
	switch string(m.key) {
	case "image_url", "image", "input_image", "image_embeds", "input_audio", "audio", "audio_url", "audio_embeds",
		"video", "video_url", "input_video", "file", "file_data", "file_id", "file_url", "filename", "url", "data",
		"uuid", "detail", "media_type", "format", "cache_control", "citations", "annotations", "logprobs", "signature",
		"encrypted_content", "extra_content":
		r.skip()
	default:
		r.unknownMember(m, RoleUser)
	}
}

// checkPart judges a part by its type, which may have stood behind its text. A
// part of another type cannot be read, whatever text comes with it.
func (r *textReader) checkPart(start, mark int, kind []byte, hasText, readable bool) {
	switch string(kind) {
	case "":
		r.missing(start, "type")
	case "image_url", "image", "input_image", "input_audio", "audio_url", "video_url", "image_embeds", "input_video":
		r.Media++
	case "text", "input_text", "output_text":
		if !hasText {
			r.missing(start, "text")
		}
	case "tool_result", "mcp_tool_result":
		r.Results++
		r.setRole(mark, RoleTool)
	case "tool_use", "server_tool_use", "mcp_tool_use", "thinking", "refusal", "reasoning_text", "summary_text":
		r.setRole(mark, RoleAssistant)
	case "search_result":
		r.setRole(mark, RoleDocument)
	case "document":
		r.setRole(mark, RoleDocument)
		if !readable {
			r.Unread++
		}
	default:
		r.Unread++
	}
}

// source reads where an Anthropic document or image comes from, and says
// whether it is text itself: of type text or content.
func (r *textReader) source() bool {
	if r.peek() != '{' {
		r.anyText(RoleUser)
		return false
	}
	mark := len(r.Texts)
	var kind []byte
	m := r.object()
	for r.member(&m) {
		switch string(m.key) {
		case "type":
			kind = r.nameIfString()
		case "data":
			r.anyText(RoleUser)
		case "content":
			r.content()
		default:
			if !r.otherCase(&m, memberNames) {
				r.skip()
			}
		}
	}
	r.fault.in(m.key)
	k := string(kind)
	readable := k == "text" || k == "content"
	if !r.failed() && !readable {
		r.Texts = r.Texts[:mark]
	}
	return readable
}

// nameIfString reads a string as name does and skips anything else.
func (r *textReader) nameIfString() []byte {
	if r.peek() == '"' {
		name, _ := r.name()
		return name
	}
	r.skip()
	return nil
}
