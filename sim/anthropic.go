// POST /v1/messages and /v1/messages/count_tokens: Anthropic's messages become the chat that vLLM
// makes of them (vllm/entrypoints/anthropic, 0.32), so that the same conversation meets the same
// blocks on either route.

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, readAnthropic, (*failure).anthropic)
}

// serveCountTokens counts a conversation's prompt tokens.
func (s *Server) serveCountTokens(w http.ResponseWriter, r *http.Request) {
	f := readBody(w, r)
	chat := anthropicChat(f)
	messages := readAnthropicMessages(f)
	chat.fail(f.failure)
	checkModel(chat, s.options.Model)
	prompt := render(s.options, chat, messages)
	if chat.failure != nil {
		writeJSON(w, chat.failure.status, chat.failure.anthropic())
		return
	}
	b := strconv.AppendInt([]byte(`{"input_tokens":`), int64(len(prompt)), 10)
	b = strconv.AppendInt(append(b, `,"context_management":{"original_input_tokens":`...), int64(len(prompt)), 10)
	writeJSON(w, http.StatusOK, append(b, "}}"...))
}

// readAnthropic reads a request of /v1/messages as a chat request.
func readAnthropic(d *dialect, o Options, f *fields, requestID string) *completion {
	f.require("messages")
	f.require("max_tokens")
	chat := anthropicChat(f)
	c := readConversation(d, o, chat, requestID, func(chat *fields) []message {
		messages := readAnthropicMessages(f)
		chat.fail(f.failure)
		return messages
	})
	f.fail(chat.failure)
	c.form = func(c *completion, _ int64) format { return &anthropicWire{c: c} }
	return c
}

// anthropicChat returns the fields of the chat request, without its messages.
func anthropicChat(f *fields) *fields {
	chat := f.rename(map[string]string{"model": "model", "max_tokens": "max_tokens", "stop_sequences": "stop", "stream": "stream",
		"temperature": "temperature", "top_p": "top_p", "cache_salt": "cache_salt"})
	if f.boolean("stream") {
		chat.raw["stream_options"] = json.RawMessage(`{"include_usage":true,"continuous_usage_stats":true}`)
	}
	if tools := anthropicTools(f); tools != nil {
		chat.raw["tools"] = tools
	}
	if choice := anthropicChoice(f); choice != nil {
		chat.raw["tool_choice"] = choice
	}
	var output struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	}
	if f.object("output_config", &output) && !isNull(output.Format.Schema) {
		chat.raw["response_format"] = schemaFormat(output.Format.Schema)
	}
	chat.failure = f.failure
	return chat
}

// schemaFormat returns a chat's response_format for a schema.
func schemaFormat(schema json.RawMessage) json.RawMessage {
	b := append([]byte(`{"type":"json_schema","json_schema":{"name":"json_schema","schema":`), schema...)
	return append(b, "}}"...)
}

// anthropicTools returns tools in a chat's form.
func anthropicTools(f *fields) json.RawMessage {
	var tools []struct {
		Name        string          `json:"name"`
		Description json.RawMessage `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
	}
	raw := f.get("tools")
	if raw == nil {
		return nil
	}
	if json.Unmarshal(raw, &tools) != nil {
		f.complain("list_type", "tools", "Input should be a valid list")
		return nil
	}
	b := []byte("[")
	for i, t := range tools {
		if isNull(t.Schema) {
			f.fail(invalid("missing", fmt.Sprintf("body.tools.%d.input_schema", i), "Field required", t.Name, ""))
			return nil
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFunction(b, t.Name, t.Description, t.Schema)
	}
	return append(b, ']')
}

// appendFunction appends a tool in a chat's form.
func appendFunction(b []byte, name string, description, parameters json.RawMessage) []byte {
	b = appendString(append(b, `{"type":"function","function":{"name":`...), name)
	if !isNull(description) {
		b = append(append(b, `,"description":`...), description...)
	}
	if !isNull(parameters) {
		b = append(append(b, `,"parameters":`...), parameters...)
	}
	return append(b, "}}"...)
}

// anthropicChoice returns tool_choice in a chat's form.
func anthropicChoice(f *fields) json.RawMessage {
	var choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if !f.object("tool_choice", &choice) {
		return nil
	}
	switch choice.Type {
	case "auto", "none":
		return appendString(nil, choice.Type)
	case "any":
		return json.RawMessage(`"required"`)
	case "tool":
		return append(appendString([]byte(`{"type":"function","function":{"name":`), choice.Name), "}}"...)
	}
	f.fail(invalid("literal_error", "body.tool_choice.type", "Input should be 'auto', 'any', 'tool' or 'none'", choice.Type, ""))
	return nil
}

// contentPart is a part of the content of one of Anthropic's messages.
type contentPart struct {
	raw     json.RawMessage
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
}

// readAnthropicMessages returns the chat: the system prompt first, results of tools as messages of
// their own before what the user says beside them.
func readAnthropicMessages(f *fields) (chat []message) {
	messages := readMessages(f)
	if f.failure != nil {
		return nil
	}
	system := anthropicSystem(f, "body.system", f.get("system"))
	for i, m := range messages {
		if *m.Role == "system" {
			system += anthropicSystem(f, fmt.Sprintf("body.messages.%d.content", i), m.Content)
		}
	}
	if system != "" {
		chat = append(chat, textMessage("system", system))
	}
	for i, m := range messages {
		switch role := *m.Role; {
		case role == "system":
		case len(m.Content) > 0 && m.Content[0] == '[':
			chat = appendBlocks(f, chat, role, readBlocks(f, fmt.Sprintf("body.messages.%d.content", i), m.Content))
		default:
			chat = append(chat, message{Role: &role, Content: m.Content})
		}
	}
	return chat
}

// textMessage returns a message of one text.
func textMessage(role, text string) message {
	return message{Role: &role, Content: appendString(nil, text)}
}

func readBlocks(f *fields, loc string, raw json.RawMessage) (blocks []contentPart) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		f.fail(invalid("list_type", loc, "Input should be a valid list", describe(raw), ""))
		return nil
	}
	blocks = make([]contentPart, len(items))
	for i, item := range items {
		if item[0] != '{' || json.Unmarshal(item, &blocks[i]) != nil {
			f.fail(invalid("model_attributes_type", fmt.Sprintf("%s.%d", loc, i),
				"Input should be a valid dictionary or object to extract fields from", describe(item), ""))
			return nil
		}
		blocks[i].raw = item
	}
	return blocks
}

// anthropicSystem returns a system prompt: a text, or the texts of its blocks but for the header by
// which Claude Code names its bills, which is another one with each request.
func anthropicSystem(f *fields, loc string, raw json.RawMessage) (text string) {
	if isNull(raw) {
		return ""
	}
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &text)
		return text
	}
	for _, b := range readBlocks(f, loc, raw) {
		if b.Type == "text" && !strings.HasPrefix(b.Text, "x-anthropic-billing-header") {
			text += b.Text
		}
	}
	return text
}

// appendBlocks appends what one message of blocks becomes.
func appendBlocks(f *fields, chat []message, role string, blocks []contentPart) []message {
	var parts, calls []byte
	for _, b := range blocks {
		switch b.Type {
		case "text", "image":
			parts = append(appendComma(parts), b.raw...)
		case "tool_use":
			calls = appendCall(appendComma(calls), b.ID, b.Name, orEmptyObject(b.Input))
		case "tool_result":
			result := blockText(f, b.Content)
			if role == "user" {
				chat = append(chat, textMessage("tool", result))
				continue
			}
			parts = append(appendString(append(appendComma(parts), `{"type":"text","text":`...), "Tool result: "+result), '}')
		case "thinking", "redacted_thinking", "tool_reference": // the template shows none
		default:
			f.fail(invalid("literal_error", "body.messages", "Input should be 'text', 'image', 'tool_use' or 'tool_result'", b.Type, ""))
		}
	}
	m := message{Role: &role}
	if parts != nil {
		m.Content = append(append([]byte{'['}, parts...), ']')
	}
	if calls != nil {
		m.ToolCalls = append(append([]byte{'['}, calls...), ']')
	}
	if role == "user" && parts == nil {
		return chat
	}
	return append(chat, m)
}

func appendComma(b []byte) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	return b
}

func orEmptyObject(raw json.RawMessage) string {
	if isNull(raw) {
		return "{}"
	}
	return string(raw)
}

// appendCall appends a call of a function in a chat's form.
func appendCall(b []byte, id, name, arguments string) []byte {
	b = appendString(append(b, `{"id":`...), id)
	b = appendString(append(b, `,"type":"function","function":{"name":`...), name)
	return append(appendString(append(b, `,"arguments":`...), arguments), "}}"...)
}

// blockText returns a tool's result: a text, or its blocks of text as lines.
func blockText(f *fields, raw json.RawMessage) (text string) {
	if isNull(raw) || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var lines []string
	for _, b := range readBlocks(f, "body.messages", raw) {
		if b.Type == "text" {
			lines = append(lines, b.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// anthropic returns the failure as vLLM's JSON on Anthropic's routes.
func (f *failure) anthropic() []byte {
	if f.kind == "" || f.kind == "Bad Request" { // the framework's own come before the route
		return f.body()
	}
	b := appendString([]byte(`{"type":"error","error":{"type":`), f.kind)
	return append(appendString(append(b, `,"message":`...), f.message), "}}"...)
}
