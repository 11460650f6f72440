// POST /v1/responses: OpenAI's responses become the chat that vLLM makes of them
// (vllm/entrypoints/openai/responses, 0.32), and go on from one another where they are stored.

package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

func (s *Server) serveResponses(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, s.readResponse, s.dialect.failure)
}

// readResponse reads a request of /v1/responses as a chat request.
func (s *Server) readResponse(d *dialect, o Options, f *fields, requestID string) *completion {
	f.require("input")
	ask := &responseAsk{fields: f, id: orDefault(readText(f, "request_id"), newID("resp_")), model: o.Model}
	if f.boolean("background") {
		f.fail(refuse("the simulated engine makes no responses in the background (parameter=background)", "background"))
	}
	previous := s.previous(f)
	chat := responseChat(f, o.MaxModelLen)
	var messages []message
	c := readConversation(d, o, chat, requestID, func(chat *fields) []message {
		if text, ok := f.text("instructions"); ok && text != "" {
			messages = append(messages, textMessage("system", text))
		}
		messages = append(append(messages, previous...), readInput(f)...)
		chat.fail(f.failure)
		return messages
	})
	f.fail(chat.failure)
	c.id, c.usage = ask.id, true
	ask.most = c.limits.max
	c.form = func(c *completion, created int64) format { return newResponseWire(c, ask, created) }
	if f.raw["store"] == nil || f.boolean("store") {
		c.finished = func(c *completion) { s.responses.put(ask.id, conversation(messages, c, ask)) }
	}
	return c
}

// responseAsk is what a response tells of its request.
type responseAsk struct {
	fields *fields
	id     string
	model  string
	most   int    // tokens of the answer
	callID string // of the call that answers
}

// previous returns the conversation that a request goes on from.
func (s *Server) previous(f *fields) []message {
	id, ok := f.text("previous_response_id")
	if !ok {
		return nil
	}
	messages, ok := s.responses.get(id)
	if !ok {
		f.fail(&failure{http.StatusNotFound, "invalid_request_error", "Response with id '" + id + "' not found.", "response_id"})
	}
	return messages
}

// conversation returns what a later request goes on from: all but the instructions, which it
// brings itself.
func conversation(messages []message, c *completion, ask *responseAsk) (out []message) {
	for _, m := range messages {
		if *m.Role != "system" {
			out = append(out, m)
		}
	}
	if c.tool == nil {
		return append(out, textMessage("assistant", string(c.answers[0].text)))
	}
	role := "assistant"
	call := appendCall([]byte{'['}, ask.callID, c.tool.name, string(c.answers[0].text))
	return append(out, message{Role: &role, ToolCalls: append(call, ']')})
}

// responseChat returns the fields of the chat request, without its messages.
func responseChat(f *fields, context int) *fields {
	chat := f.rename(map[string]string{"model": "model", "stream": "stream", "temperature": "temperature", "top_p": "top_p", "seed": "seed",
		"stop": "stop", "cache_salt": "cache_salt", "ignore_eos": "ignore_eos", "max_output_tokens": "max_tokens",
		"structured_outputs": "structured_outputs"})
	if n, ok := f.integer("max_output_tokens"); ok && n > context { // cut, not refused
		chat.raw["max_tokens"] = fmt.Append(nil, context)
	}
	if tools := responseTools(f); tools != nil {
		chat.raw["tools"] = tools
	}
	if choice := responseChoice(f); choice != nil {
		chat.raw["tool_choice"] = choice
	}
	var text struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	}
	if f.object("text", &text) {
		switch text.Format.Type {
		case "json_schema":
			chat.raw["response_format"] = schemaFormat(orJSON(text.Format.Schema, "null"))
		case "", "text":
		default:
			chat.raw["response_format"] = append(appendString([]byte(`{"type":`), text.Format.Type), '}')
		}
	}
	chat.failure = f.failure
	return chat
}

func orJSON(raw json.RawMessage, standard string) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(standard)
	}
	return raw
}

// responseTools returns tools in a chat's form. Only functions are known.
func responseTools(f *fields) json.RawMessage {
	var tools []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description json.RawMessage `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	raw := f.get("tools")
	if raw == nil {
		return nil
	}
	if json.Unmarshal(raw, &tools) != nil {
		f.complain("list_type", "tools", "Input should be a valid list")
		return nil
	}
	var b []byte
	for _, t := range tools {
		if t.Type != "function" {
			f.fail(refuse(fmt.Sprintf("the simulated engine has no tool of type %.40q, only functions (parameter=tools)", t.Type), "tools"))
			return nil
		}
		b = appendFunction(appendComma(b), t.Name, t.Description, t.Parameters)
	}
	if b == nil {
		return nil
	}
	return append(append([]byte{'['}, b...), ']')
}

// responseChoice returns tool_choice in a chat's form.
func responseChoice(f *fields) json.RawMessage {
	raw := f.get("tool_choice")
	if raw == nil || raw[0] != '{' {
		if string(raw) == `"auto"` && responseTools(f) == nil {
			return nil // SDKs send it with no tools at all
		}
		return raw
	}
	var choice struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(raw, &choice)
	return append(appendString([]byte(`{"type":"function","function":{"name":`), choice.Name), "}}"...)
}

// inputItem is an item of input.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// readInput returns the chat that input is: a text of the user, or items.
func readInput(f *fields) (chat []message) {
	raw := f.raw["input"]
	if f.failure != nil {
		return nil
	}
	var items []json.RawMessage
	switch {
	case len(raw) > 0 && raw[0] == '"':
		role := "user"
		return []message{{Role: &role, Content: raw}}
	case len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &items) != nil:
		f.complain("string_type", "input", "Input should be a valid string")
		return nil
	}
	for i, raw := range items {
		var item inputItem
		loc := fmt.Sprintf("body.input.%d", i)
		if raw[0] != '{' || json.Unmarshal(raw, &item) != nil {
			f.fail(invalid("model_attributes_type", loc, "Input should be a valid dictionary or object to extract fields from", describe(raw), ""))
			return nil
		}
		chat = appendItem(f, chat, item, loc)
	}
	return chat
}

// appendItem appends what an item becomes; a call belongs to what the assistant said before it.
func appendItem(f *fields, chat []message, item inputItem, loc string) []message {
	switch item.Type {
	case "", "message":
		if item.Role == "" {
			f.fail(invalid("missing", loc+".role", "Field required", "<dict>", ""))
			return nil
		}
		return append(chat, textMessage(item.Role, itemText(f, item.Content, loc+".content")))
	case "function_call":
		call := appendCall(nil, item.CallID, item.Name, item.Arguments)
		last := len(chat) - 1
		if last < 0 || *chat[last].Role != "assistant" {
			role := "assistant"
			chat = append(chat, message{Role: &role})
			last++
		}
		before := bytes.TrimSuffix(bytes.Clone(chat[last].ToolCalls), []byte{']'})
		if before == nil {
			before = []byte{'['}
		} else {
			before = append(before, ',')
		}
		chat[last].ToolCalls = append(append(before, call...), ']')
		return chat
	case "function_call_output":
		return append(chat, textMessage("tool", itemText(f, item.Output, loc+".output")))
	case "reasoning": // the template shows none
		return chat
	}
	f.fail(refuse(fmt.Sprintf("the simulated engine does not know the input item type %.40q (parameter=input)", item.Type), "input"))
	return nil
}

// itemText returns the text of an item: a string, or its parts of text.
func itemText(f *fields, raw json.RawMessage, loc string) (text string) {
	if isNull(raw) || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var all strings.Builder
	for _, part := range readBlocks(f, loc, raw) {
		switch part.Type {
		case "input_text", "output_text", "text":
			all.WriteString(part.Text)
		case "refusal":
		default:
			f.fail(refuse(fmt.Sprintf("the simulated engine reads no %.40q, only text (parameter=input)", part.Type), "input"))
		}
	}
	return all.String()
}

func readText(f *fields, name string) string {
	text, _ := f.text(name)
	return text
}

// Bounds of the stored conversations of a worker; the oldest go first.
const (
	maxResponses     = 1000
	maxResponseBytes = 64 << 20 // of messages, those that conversations share counted with each
)

// responses are the conversations that later requests may go on from. vLLM keeps them with
// VLLM_ENABLE_RESPONSES_API_STORE=1, each server its own, as here.
type responses struct {
	mu    sync.Mutex
	byID  map[string][]message
	order []string // oldest first
	bytes int
}

func (r *responses) get(id string) ([]message, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages, ok := r.byID[id]
	return messages, ok
}

// put keeps a conversation, unless it alone is over the bound.
func (r *responses) put(id string, messages []message) {
	size := sizeOf(messages)
	if size > maxResponseBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string][]message{}
	}
	if old, ok := r.byID[id]; ok { // its client chose the id
		r.bytes += size - sizeOf(old)
		r.byID[id] = messages
	} else {
		r.byID[id] = messages
		r.order = append(r.order, id)
		r.bytes += size
	}
	for len(r.order) > maxResponses || r.bytes > maxResponseBytes {
		oldest := r.order[0]
		r.bytes -= sizeOf(r.byID[oldest])
		delete(r.byID, oldest)
		r.order = r.order[1:]
	}
}

func sizeOf(messages []message) (bytes int) {
	for _, m := range messages {
		bytes += 64 + len(m.Content) + len(m.ToolCalls)
	}
	return bytes
}
