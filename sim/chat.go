// POST /v1/chat/completions: messages become one prompt through a fixed chat template.

package sim

import (
	"encoding/json"
	"fmt"
	"strings"
)

// message is one message of a chat request.
type message struct {
	Role      *string         `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// readChat reads a chat request; if it cannot be served, f.failure says why.
func readChat(d *dialect, o Options, f *fields, requestID string) *completion {
	return readConversation(d, o, f, requestID, readMessages)
}

// readConversation reads a chat request whose messages another function reads.
func readConversation(d *dialect, o Options, f *fields, requestID string, read func(*fields) []message) *completion {
	c := readCompletion(d, o, f, true, requestID)
	messages := read(f)
	choice := readToolChoice(f)
	d.model(o, f, c)
	if f.failure == nil && len(messages) == 0 {
		f.fail(d.noMessages)
	}
	c.prompts = [][]uint32{render(o, f, messages)}
	d.finish(o, f, c)
	c.checkSampling(d, f)
	c.checkLength(d, o, f, 0, "max_completion_tokens", "max_tokens")
	c.tool = choice
	if choice == nil {
		c.fixed = readStructure(f, c.prompts[0])
	}
	return c
}

func readMessages(f *fields) (messages []message) {
	f.require("messages")
	raw := f.raw["messages"]
	if f.failure != nil {
		return nil
	}
	if len(raw) == 0 || raw[0] != '[' {
		f.complain("list_type", "messages", "Input should be a valid list")
		return nil
	}
	var items []json.RawMessage
	_ = json.Unmarshal(raw, &items)
	messages = make([]message, len(items))
	for i, item := range items {
		loc := fmt.Sprintf("body.messages.%d", i)
		if item[0] != '{' || json.Unmarshal(item, &messages[i]) != nil {
			f.fail(invalid("model_attributes_type", loc,
				"Input should be a valid dictionary or object to extract fields from", describe(item), ""))
			return nil
		}
		if messages[i].Role == nil {
			f.fail(invalid("missing", loc+".role", "Field required", describe(item), ""))
			return nil
		}
	}
	return messages
}

// render turns a conversation into prompt tokens with a ChatML template: for each message a mark,
// the role, a line end, the text, a mark and a line end; the tools come first, in a system
// message; the opening of the answer comes last. Conversations with equal beginnings give equal
// leading tokens.
func render(o Options, f *fields, messages []message) []uint32 {
	var prompt []uint32
	if tools := f.get("tools"); tools != nil {
		prompt = appendMessage(prompt, "system", "# Tools\n"+string(tools))
	}
	for i, m := range messages {
		text := messageText(o, f, i, m.Content)
		if f.failure != nil {
			return nil
		}
		if len(m.ToolCalls) > 0 && string(m.ToolCalls) != "null" {
			text += "\n" + string(m.ToolCalls)
		}
		prompt = appendMessage(prompt, *m.Role, text)
	}
	return appendTokens(append(prompt, imStart), "assistant\n")
}

func appendMessage(prompt []uint32, role, text string) []uint32 {
	prompt = appendTokens(append(prompt, imStart), role+"\n")
	prompt = appendTokens(prompt, text)
	return append(prompt, imEnd, '\n')
}

// messageText is a message's content: a string, the text of its parts, or nothing.
func messageText(o Options, f *fields, i int, content json.RawMessage) (text string) {
	if len(content) == 0 || string(content) == "null" {
		return ""
	}
	loc := fmt.Sprintf("body.messages.%d.content", i)
	switch content[0] {
	case '"':
		_ = json.Unmarshal(content, &text)
		return text
	case '[':
		var parts []struct{ Type, Text string }
		if json.Unmarshal(content, &parts) != nil {
			f.fail(invalid("dict_type", loc, "Input should be a valid dictionary", describe(content), ""))
		}
		var all strings.Builder
		for _, part := range parts {
			if part.Type != "text" {
				f.fail(refuse(o.Model+" is not a multimodal model", ""))
			}
			all.WriteString(part.Text)
		}
		return all.String()
	}
	f.fail(invalid("string_type", loc, "Input should be a valid string", describe(content), ""))
	return ""
}
