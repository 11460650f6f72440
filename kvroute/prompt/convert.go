// Requests of the other two routes as the chat requests that vLLM makes of them, where they are plain.

package prompt

import (
	"context"
	"slices"
	"strings"

	"kvasir/kvroute/template"
)

// Fields that leave the prompt as it is. What else is given, and not null, makes a request one that is
// not known here.
var (
	messagesFields = []string{"model", "messages", "system", "max_tokens", "metadata", "stop_sequences", "stream", "temperature",
		"top_k", "top_p", "cache_salt", "chat_template_kwargs", "service_tier"}
	responsesFields = []string{"model", "input", "instructions", "max_output_tokens", "metadata", "stream", "stream_options", "temperature",
		"top_p", "top_logprobs", "cache_salt", "chat_template_kwargs", "service_tier", "store", "user", "include", "parallel_tool_calls",
		"prompt_cache_key", "safety_identifier"}
)

// Messages appends the tokens of a /v1/messages request of texts to dst
// (vllm/entrypoints/anthropic/serving.py, 0.32). Tools, thinking and pictures are ErrUnsupported.
func (m *Model) Messages(ctx context.Context, dst []uint32, body []byte) ([]uint32, error) {
	w := takeWorkspace()
	defer w.giveBack()
	d, err := m.plainRequest(w, body, messagesFields)
	if err != nil {
		return dst, err
	}
	chat := template.NewList()
	v, _ := d.Get("system")
	system, err := systemText(v)
	if err != nil {
		return dst, err
	}
	if system != "" {
		chat.Items = append(chat.Items, message("system", system))
	}
	l, ok := firstList(d, "messages")
	if !ok {
		return dst, refused("no messages")
	}
	for i, item := range l.Items {
		role, content := roleAndContent(item)
		if role != "user" && role != "assistant" {
			return dst, unsupported("message %d", i)
		}
		if parts, ok := content.(*template.List); ok {
			texts, ok := textsOf(parts, "text")
			texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
			if !ok || len(texts) == 0 {
				return dst, unsupported("the content of message %d", i)
			}
			content = inParts(texts)
		}
		chat.Items = append(chat.Items, message(role, content))
	}
	return m.chat(ctx, dst, chatOf(d, chat), nil, w)
}

// Responses appends the tokens of a /v1/responses request of texts to dst
// (vllm/entrypoints/openai/responses/utils.py, 0.32). Tools, reasoning, pictures and what goes on from an
// earlier response are ErrUnsupported.
func (m *Model) Responses(ctx context.Context, dst []uint32, body []byte) ([]uint32, error) {
	w := takeWorkspace()
	defer w.giveBack()
	d, err := m.plainRequest(w, body, responsesFields)
	if err != nil {
		return dst, err
	}
	chat := template.NewList()
	switch v, _ := d.Get("instructions"); v := v.(type) {
	case nil:
	case string:
		if v != "" {
			chat.Items = append(chat.Items, message("system", v))
		}
	default:
		return dst, unsupported("instructions that are no text")
	}
	switch v, _ := d.Get("input"); v := v.(type) {
	case string:
		chat.Items = append(chat.Items, message("user", v))
	case *template.List:
		for i, item := range v.Items {
			one, ok := inputMessage(item)
			if !ok || i == len(v.Items)-1 && isAssistant(one) { // which may be one to go on with
				return dst, unsupported("input %d", i)
			}
			chat.Items = append(chat.Items, one)
		}
	default:
		return dst, refused("no input")
	}
	return m.chat(ctx, dst, chatOf(d, chat), nil, w)
}

// plainRequest reads a body that has these fields and no others.
func (m *Model) plainRequest(w *workspace, body []byte, fields []string) (*template.Dict, error) {
	if m.engine != "" {
		return nil, unsupported("this route of the engine %s", m.engine)
	}
	d, err := w.parseObject(body)
	if err != nil {
		return nil, err
	}
	for i := range d.Len() {
		k, v := d.At(i)
		if name, _ := k.(string); v != nil && !slices.Contains(fields, name) {
			return nil, unsupported("a request with %.40s", name)
		}
	}
	return d, nil
}

// chatOf is a chat request of these messages.
func chatOf(d *template.Dict, messages *template.List) *template.Dict {
	chat := template.NewDict(3)
	for _, name := range []string{"model", "chat_template_kwargs"} {
		if v, _ := d.Get(name); v != nil {
			chat.Set(name, v)
		}
	}
	chat.Set("messages", messages)
	return chat
}

func message(role string, content any) *template.Dict {
	d := template.NewDict(2)
	d.Set("role", role)
	d.Set("content", content)
	return d
}

func isAssistant(d *template.Dict) bool {
	role, _ := d.Get("role")
	return role == "assistant"
}

// roleAndContent takes a message apart that has nothing else; "" where it is none.
func roleAndContent(item any) (role string, content any) {
	d, _ := item.(*template.Dict)
	v, _ := d.Get("role")
	role, _ = v.(string)
	content, _ = d.Get("content")
	if _, text := content.(string); !text {
		if _, ok := content.(*template.List); !ok {
			return "", nil
		}
	}
	return role, content
}

// systemText joins what stands in `system`.
func systemText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case *template.List:
		if texts, ok := textsOf(v, "text"); ok {
			return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.HasPrefix(s, billingHeader) }), ""), nil
		}
	}
	return "", unsupported("a system prompt that is no text")
}

// inputMessage is an item of `input` that is a message of texts.
func inputMessage(item any) (*template.Dict, bool) {
	d, _ := item.(*template.Dict)
	if kind, given := d.Get("type"); given && kind != "message" {
		return nil, false
	}
	role, content := roleAndContent(item)
	parts, split := content.(*template.List)
	switch role {
	case "system", "developer", "user":
		if split {
			texts, ok := textsOf(parts, "input_text")
			if !ok || len(texts) == 0 {
				return nil, false
			}
			content = inTextParts(texts)
		}
	case "assistant":
		if split { // of several, the engine takes the first
			texts, ok := textsOf(parts, "output_text")
			if !ok || len(texts) != 1 {
				return nil, false
			}
			content = texts[0]
		}
	default:
		return nil, false
	}
	return message(role, content), true
}

// textsOf are the texts of parts that are all of one kind.
func textsOf(parts *template.List, kind string) (texts []string, ok bool) {
	for _, item := range parts.Items {
		d, _ := item.(*template.Dict)
		is, _ := d.Get("type")
		v, _ := d.Get("text")
		text, ok := v.(string)
		if is != kind || !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// inParts is a content of texts, of one text as it is.
func inParts(texts []string) any {
	if len(texts) == 1 {
		return texts[0]
	}
	return inTextParts(texts)
}

func inTextParts(texts []string) *template.List {
	l := template.NewList()
	for _, s := range texts {
		part := template.NewDict(2)
		part.Set("type", "text")
		part.Set("text", s)
		l.Items = append(l.Items, part)
	}
	return l
}
