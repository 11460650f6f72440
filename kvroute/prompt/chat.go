// A chat request as vLLM hands it to a chat template (vllm/renderers/chat_utils.py and hf.py, 0.32).

package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvasir/kvroute/template"
)

// chatRequest is what of a request the template sees.
type chatRequest struct {
	messages   []*template.Dict
	tools      *template.List // nil: none
	kwargs     *template.Dict // reasoning switches and whatever the client passes to the template
	documents  any
	generation bool // add_generation_prompt
	goesOn     bool // continue_final_message
	specials   bool // add_special_tokens
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrUnsupported)
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrRequest)
}

// flag is a field that is true or false.
func flag(d *template.Dict, name string, or bool) (bool, error) {
	v, ok := d.Get(name)
	if !ok {
		return or, nil
	}
	b, ok := v.(bool)
	if !ok {
		return false, unsupported("%s is neither true nor false", name)
	}
	return b, nil
}

// given tells whether a field is there and not null.
func given(d *template.Dict, name string) bool {
	v, _ := d.Get(name)
	return v != nil
}

// readChat takes a chat request apart. parts says that the template wants content in parts.
func readChat(d *template.Dict, engine string, parts bool) (*chatRequest, error) {
	for _, name := range []string{"chat_template", "truncate_prompt_tokens", "prompt_embeds", "prompt_token_ids", "input_ids", "mm_processor_kwargs"} {
		if given(d, name) {
			return nil, unsupported("a request with %s", name)
		}
	}
	c := &chatRequest{}
	var err error
	for _, switched := range [...]struct {
		name string
		to   *bool
		or   bool
	}{{"add_generation_prompt", &c.generation, true}, {"continue_final_message", &c.goesOn, false}, {"add_special_tokens", &c.specials, false}} {
		if *switched.to, err = flag(d, switched.name, switched.or); err != nil {
			return nil, err
		}
	}
	if _, asked := d.Get("add_generation_prompt"); c.goesOn && c.generation {
		if asked {
			return nil, refused("both continue_final_message and add_generation_prompt")
		}
		// The engine's own default is true, too; transformers refuses both.
		return nil, refused("continue_final_message needs add_generation_prompt false")
	}
	if err := c.readKwargs(d); err != nil {
		return nil, err
	}
	if err := c.readTools(d); err != nil {
		return nil, err
	}
	v, _ := d.Get("messages")
	l, ok := v.(*template.List)
	if !ok || len(l.Items) == 0 {
		return nil, refused("no messages")
	}
	c.messages = make([]*template.Dict, 0, len(l.Items))
	for i, item := range l.Items {
		m, ok := item.(*template.Dict)
		if !ok {
			return nil, refused("message %d is no object", i)
		}
		read, err := readMessage(m, parts)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		c.messages = append(c.messages, read)
	}
	if engine != "" {
		return c, c.onlyText(l, engine)
	}
	return c, nil
}

// onlyText refuses for other engines what they may hand to the template in another way than vLLM.
func (c *chatRequest) onlyText(messages *template.List, engine string) error {
	if c.tools != nil || c.documents != nil || c.goesOn {
		return unsupported("tools, documents and continued messages for the engine %s", engine)
	}
	for i, m := range messages.Items {
		m := m.(*template.Dict)
		role, _ := m.Get("role")
		content, _ := m.Get("content")
		if _, text := content.(string); !text || m.Len() > 2 || role != "system" && role != "user" && role != "assistant" {
			return unsupported("message %d for the engine %s", i, engine)
		}
	}
	return nil
}

// reserved are parameters of apply_chat_template that a client may not set through chat_template_kwargs
// without changing more than the text.
var reserved = []string{"conversation", "messages", "tools", "chat_template", "tokenize", "padding", "truncation", "max_length",
	"return_tensors", "return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs", "self"}

// efforts are the values of reasoning_effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// readKwargs reads what the template can be given by name. Values that are null or "auto" do not reach it.
func (c *chatRequest) readKwargs(d *template.Dict) error {
	c.kwargs = template.NewDict(4)
	v, _ := d.Get("chat_template_kwargs")
	thinks := false
	switch kwargs := v.(type) {
	case nil:
	case *template.Dict:
		for i := range kwargs.Len() {
			k, v := kwargs.At(i)
			name, _ := k.(string)
			if slices.Contains(reserved, name) {
				return unsupported("chat_template_kwargs with %s", name)
			}
			thinks = thinks || name == "enable_thinking"
			switch {
			case v == nil || v == "auto" || name == "add_generation_prompt" || name == "continue_final_message":
			case name == "documents":
				c.documents = v
			default:
				c.kwargs.Set(name, v)
			}
		}
	default:
		return refused("chat_template_kwargs is no object")
	}
	if v, _ := d.Get("documents"); v != nil {
		c.documents = v
	}
	if l, ok := c.documents.(*template.List); c.documents != nil && (!ok || slices.ContainsFunc(l.Items, func(v any) bool { return !isDict(v) })) {
		return refused("documents are no list of objects")
	}
	v, _ = d.Get("reasoning_effort")
	if v == nil {
		return nil
	}
	effort, ok := v.(string)
	if !ok || !slices.Contains(efforts, effort) {
		return unsupported("reasoning_effort %v", v)
	}
	c.kwargs.Set("reasoning_effort", effort)
	if !thinks {
		c.kwargs.Set("enable_thinking", effort != "none")
	}
	return nil
}

func isDict(v any) bool {
	_, ok := v.(*template.Dict)
	return ok
}

// readTools writes tools as vLLM's request model does: these fields, in this order.
func (c *chatRequest) readTools(d *template.Dict) error {
	v, _ := d.Get("tools")
	if v == nil {
		return nil
	}
	l, ok := v.(*template.List)
	if !ok || len(l.Items) == 0 {
		return refused("tools is no list with tools")
	}
	c.tools = template.NewList()
	for i, item := range l.Items {
		t, ok := item.(*template.Dict)
		if !ok {
			return refused("tool %d is no object", i)
		}
		kind, has := t.Get("type")
		f, _ := t.Get("function")
		function, ok := f.(*template.Dict)
		if has && kind != "function" || !ok || given(t, "defer_loading") {
			return unsupported("tool %d", i)
		}
		out := template.NewDict(4)
		for _, name := range []string{"name", "description", "parameters", "strict"} {
			v, _ := function.Get(name)
			good := v == nil && name != "name"
			switch v.(type) {
			case string:
				good = name == "name" || name == "description"
			case *template.Dict:
				good = name == "parameters"
			case bool:
				good = name == "strict"
			}
			if !good || given(function, "defer_loading") {
				return unsupported("tool %d: its %s", i, name)
			}
			if v != nil || name != "strict" {
				out.Set(name, v)
			}
		}
		tool := template.NewDict(2)
		tool.Set("type", "function")
		tool.Set("function", out)
		c.tools.Items = append(c.tools.Items, tool)
	}
	return nil
}

// readMessage writes a message as vLLM hands it over.
func readMessage(m *template.Dict, parts bool) (*template.Dict, error) {
	v, _ := m.Get("role")
	role, ok := v.(string)
	if !ok {
		return nil, refused("no role")
	}
	if !parts && (role == "user" || role == "assistant") && isPlain(m) {
		return m, nil
	}
	out := template.NewDict(4)
	out.Set("role", v)
	v, _ = m.Get("content")
	texts, err := readContent(v, role, parts)
	if err != nil {
		return nil, err
	}
	if parts && role != "tool" {
		out.Set("content", inTextParts(texts))
	} else {
		out.Set("content", strings.Join(texts, "\n"))
	}
	switch role {
	case "assistant":
		if err := readAssistant(m, out); err != nil {
			return nil, err
		}
	case "tool":
		if v, ok := m.Get("tool_call_id"); ok {
			out.Set("tool_call_id", v)
		}
	case "developer":
		if given(m, "tools") {
			return nil, unsupported("tools of a message")
		}
	}
	for _, name := range []string{"name", "task"} {
		if v, _ := m.Get(name); v != nil {
			if _, ok := v.(string); !ok {
				return nil, unsupported("its %s", name)
			}
			out.Set(name, v)
		}
	}
	if role == "developer" {
		out.Set("tools", nil)
	}
	return out, nil
}

// isPlain says that a message is a role and a text, in this order, and nothing else: as most are, and as
// they are handed over.
func isPlain(m *template.Dict) bool {
	if m.Len() != 2 {
		return false
	}
	first, _ := m.At(0)
	second, content := m.At(1)
	_, text := content.(string)
	return first == "role" && second == "content" && text
}

const billingHeader = "x-anthropic-billing-header"

// readContent is the content as texts.
func readContent(v any, role string, parts bool) ([]string, error) {
	var texts []string
	switch v := v.(type) {
	case nil:
	case string:
		texts = []string{v}
	case *template.List:
		for i, item := range v.Items {
			part, ok := item.(*template.Dict)
			if !ok {
				return nil, unsupported("part %d of the content", i)
			}
			kind, _ := part.Get("type")
			if kind != "text" && kind != "refusal" || given(part, "uuid") || parts && part.Len() != 2 {
				return nil, unsupported("part %d of the content, of type %v", i, kind)
			}
			s, _ := part.Get(kind.(string))
			text, ok := s.(string)
			if !ok {
				return nil, unsupported("part %d of the content: no text", i)
			}
			if text != "" || parts { // empty texts do not take part in the joined one
				texts = append(texts, text)
			}
		}
	default:
		return nil, refused("content is neither text nor a list")
	}
	if role != "system" {
		return texts, nil
	}
	kept := texts[:0]
	for _, s := range texts {
		if strings.HasPrefix(s, billingHeader) {
			if _, s, _ = strings.Cut(s, "\n"); s == "" {
				continue
			}
		}
		kept = append(kept, s)
	}
	return kept, nil
}

func readAssistant(m, out *template.Dict) error {
	v, _ := m.Get("tool_calls")
	switch calls := v.(type) {
	case nil:
	case *template.List:
		l := template.NewList()
		for i, item := range calls.Items {
			call, err := readCall(item)
			if err != nil {
				return fmt.Errorf("tool call %d: %w", i, err)
			}
			l.Items = append(l.Items, call)
		}
		if len(l.Items) > 0 {
			out.Set("tool_calls", l)
		}
	default:
		return refused("tool_calls is no list")
	}
	reasoning, _ := m.Get("reasoning")
	if reasoning == nil {
		reasoning, _ = m.Get("reasoning_content")
	}
	if reasoning == nil {
		return nil
	}
	if _, ok := reasoning.(string); !ok {
		return unsupported("its reasoning is no text")
	}
	out.Set("reasoning", reasoning)
	out.Set("reasoning_content", reasoning)
	return nil
}

// readCall is a tool call with its arguments as an object, the fields in the order of vLLM's model.
func readCall(v any) (*template.Dict, error) {
	call, ok := v.(*template.Dict)
	if !ok {
		return nil, refused("no object")
	}
	id, _ := call.Get("id")
	kind, _ := call.Get("type")
	f, _ := call.Get("function")
	function, ok := f.(*template.Dict)
	if _, text := id.(string); !text || !ok || kind != "function" {
		return nil, unsupported("its form")
	}
	name, _ := function.Get("name")
	s, _ := function.Get("arguments")
	written, ok := s.(string)
	if _, text := name.(string); !text || !ok {
		return nil, unsupported("its function's form")
	}
	arguments, err := readArguments(written)
	if err != nil {
		return nil, err
	}
	inner := template.NewDict(2)
	inner.Set("arguments", arguments)
	inner.Set("name", name)
	outer := template.NewDict(3)
	outer.Set("id", id)
	outer.Set("function", inner)
	outer.Set("type", kind)
	rest(inner, function)
	rest(outer, call)
	return outer, nil
}

// rest adds the fields that are not known, behind those that are.
func rest(out, in *template.Dict) {
	for i := range in.Len() {
		k, v := in.At(i)
		if name := k.(string); !has(out, name) {
			out.Set(name, v)
		}
	}
}

func has(d *template.Dict, name string) bool {
	_, ok := d.Get(name)
	return ok
}

// readArguments are the arguments of a call as an object; empty where they are none, as vLLM does so
// that one bad call does not end a conversation.
func readArguments(s string) (*template.Dict, error) {
	if s == "" {
		return template.NewDict(0), nil
	}
	v, err := template.Parse([]byte(s))
	if errors.Is(err, template.ErrUnsupported) {
		return nil, unsupported("its arguments: %v", err)
	}
	if d, ok := v.(*template.Dict); ok && err == nil {
		return d, nil
	}
	return template.NewDict(0), nil
}

// developers turns the role developer into system for a template that does not know it, and then all
// system messages into one at the front.
func (c *chatRequest) developers(source string) {
	found := false
	for _, m := range c.messages {
		role, _ := m.Get("role")
		found = found || role == "developer"
	}
	if !found || strings.Contains(source, `"developer"`) || strings.Contains(source, "'developer'") {
		return
	}
	var system []string
	var others []*template.Dict
	merge := false
	for i, m := range c.messages {
		role, _ := m.Get("role")
		if role == "developer" {
			m.Set("role", "system")
			m.Delete("tools")
		} else if role != "system" {
			others = append(others, m)
			continue
		}
		merge = merge || i > 0 || len(system) > 0
		if s := joined(m); s != "" {
			system = append(system, s)
		}
	}
	if !merge {
		return
	}
	first := template.NewDict(2)
	first.Set("role", "system")
	first.Set("content", strings.Join(system, "\n\n"))
	c.messages = append([]*template.Dict{first}, others...)
}

// joined is a message's content as one text.
func joined(m *template.Dict) string {
	v, _ := m.Get("content")
	l, ok := v.(*template.List)
	if !ok {
		s, _ := v.(string)
		return s
	}
	var texts []string
	for _, part := range l.Items {
		v, _ := part.(*template.Dict).Get("text")
		s, _ := v.(string)
		texts = append(texts, s)
	}
	return strings.Join(texts, "\n")
}
