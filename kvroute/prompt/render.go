// From a chat request to the text that the engine tokenises.

package prompt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"kvasir/kvroute/template"
)

// render appends the text of a request to dst.
func (f *files) render(dst []byte, c *chatRequest) ([]byte, error) {
	t, err := f.template(c.tools != nil)
	if err != nil {
		return nil, err
	}
	c.developers(t.Source())
	vars := template.NewDict(16)
	for i := range f.specials.Len() {
		k, v := f.specials.At(i)
		vars.Set(k.(string), v)
	}
	for i := range c.kwargs.Len() {
		if k, v := c.kwargs.At(i); t.Reads(k.(string)) {
			vars.Set(k.(string), v)
		}
	}
	tag := ""
	if c.goesOn {
		if tag, err = c.open(); err != nil {
			return nil, err
		}
	}
	messages := &template.List{Items: make([]any, len(c.messages))}
	for i, m := range c.messages {
		messages.Items[i] = m
	}
	vars.Set("messages", messages)
	vars.Set("tools", nil)
	if c.tools != nil {
		vars.Set("tools", c.tools)
	}
	vars.Set("documents", c.documents)
	vars.Set("add_generation_prompt", c.generation)
	for _, name := range f.unsaid {
		if !has(vars, name) && t.Reads(name) {
			return nil, fmt.Errorf("tokenizer_config.json does not say %s, which the template reads: %w", name, ErrTemplate)
		}
	}
	text, err := t.Render(dst, vars)
	if err != nil {
		kind := ErrTemplate
		if errors.Is(err, template.ErrRaised) {
			kind = ErrRequest // the engine's template refuses it as well
		}
		return nil, fmt.Errorf("%w: %w", kind, err)
	}
	if c.goesOn {
		return closeAt(text, tag)
	}
	return text, nil
}

// continueTag marks the end of the message that goes on, as transformers' render_jinja_template does.
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// open puts the tag behind the last message, and returns that message's text.
func (c *chatRequest) open() (string, error) {
	m := c.messages[len(c.messages)-1].Clone()
	c.messages[len(c.messages)-1] = m
	v, _ := m.Get("content")
	switch content := v.(type) {
	case string:
		m.Set("content", content+continueTag)
		return content, nil
	case *template.List:
		if n := len(content.Items); n > 0 {
			last := content.Items[n-1].(*template.Dict).Clone()
			v, _ := last.Get("text")
			s, _ := v.(string)
			last.Set("text", s+continueTag)
			m.Set("content", template.NewList(append(append([]any(nil), content.Items[:n-1]...), any(last))...))
			return s, nil
		}
	}
	return "", refused("the last message has nothing to go on from")
}

// closeAt cuts the text behind the message that goes on.
func closeAt(text []byte, message string) ([]byte, error) {
	tag := strings.TrimRight(continueTag, " ")
	at := bytes.LastIndex(text, []byte(tag))
	if at < 0 || !bytes.Contains(text, []byte(strings.TrimFunc(message, space))) {
		return nil, refused("the template changes the message that is to go on")
	}
	if bytes.HasPrefix(text[at:], []byte(continueTag)) {
		return text[:at], nil
	}
	return bytes.TrimRightFunc(text[:at], space), nil
}

// space is Python's str.isspace.
func space(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
