// The worker as the source: vLLM's routes that render and tokenise a request.

package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"kvasir/kvroute/template"
)

// States of Model.renders: whether the worker has the route that takes a chat request as it is. It is
// registered everywhere and answers 403 but where it is switched on.
const (
	rendersUnknown = iota
	rendersNot
	rendersYes
)

const (
	renderPath   = "/v1/chat/completions/render"
	tokenizePath = "/tokenize"
)

// chatByWorker asks for a chat's tokens: the render route, which knows all fields, else /tokenize,
// which is given what it takes.
func (m *Model) chatByWorker(ctx context.Context, dst []uint32, d *template.Dict, body []byte) ([]uint32, error) {
	if m.engine != "" {
		return dst, unsupported("asking the engine %s", m.engine)
	}
	if body != nil && m.renders.Load() != rendersNot {
		answer, err := m.ask(ctx, renderPath, body)
		if err == nil {
			m.renders.Store(rendersYes)
			return rendered(dst, answer)
		}
		switch {
		case errors.Is(err, ErrNoRoute):
			m.renders.Store(rendersNot)
		case ctx.Err() != nil || m.renders.Load() == rendersYes:
			return dst, fmt.Errorf("cannot ask %s: %w", renderPath, err)
		}
	}
	if f := m.files; f != nil && errors.Is(f.trouble, ErrUnsupported) {
		return dst, f.trouble // /tokenize goes by the template, and so does not know
	}
	c, err := readChat(d, m.engine, false)
	if err != nil {
		return dst, err
	}
	asked, err := c.tokenizeRequest(d)
	if err != nil {
		return dst, err
	}
	return m.tokenize(ctx, dst, asked)
}

// textByWorker asks for the tokens of a text.
func (m *Model) textByWorker(ctx context.Context, dst []uint32, text string, specials bool) ([]uint32, error) {
	if m.engine != "" {
		return dst, unsupported("asking the engine %s", m.engine)
	}
	d := template.NewDict(2)
	d.Set("prompt", text)
	d.Set("add_special_tokens", specials)
	asked, err := template.AppendJSON(nil, d)
	if err != nil {
		return dst, err
	}
	return m.tokenize(ctx, dst, asked)
}

// tokenizeRequest is the body for /tokenize: messages and tools as they are, the switches by name.
func (c *chatRequest) tokenizeRequest(d *template.Dict) ([]byte, error) {
	out := template.NewDict(8)
	for _, name := range []string{"model", "messages", "tools"} {
		if v, _ := d.Get(name); v != nil {
			out.Set(name, v)
		}
	}
	if l, ok := firstList(d, "messages"); ok {
		messages := template.NewList()
		for _, item := range l.Items {
			messages.Items = append(messages.Items, oneReasoning(item.(*template.Dict)))
		}
		out.Set("messages", messages)
	}
	out.Set("add_generation_prompt", c.generation)
	out.Set("continue_final_message", c.goesOn)
	out.Set("add_special_tokens", c.specials)
	kwargs := c.kwargs
	if c.documents != nil {
		kwargs = kwargs.Clone()
		kwargs.Set("documents", c.documents)
	}
	if kwargs.Len() > 0 {
		out.Set("chat_template_kwargs", kwargs)
	}
	return template.AppendJSON(nil, out)
}

func firstList(d *template.Dict, name string) (*template.List, bool) {
	v, _ := d.Get(name)
	l, ok := v.(*template.List)
	return l, ok
}

// oneReasoning renames reasoning_content, which the chat route does and this one does not.
func oneReasoning(m *template.Dict) *template.Dict {
	v, ok := m.Get("reasoning_content")
	if !ok {
		return m
	}
	m = m.Clone()
	m.Delete("reasoning_content")
	if !given(m, "reasoning") && v != nil {
		m.Set("reasoning", v)
	}
	return m
}

func (m *Model) tokenize(ctx context.Context, dst []uint32, asked []byte) ([]uint32, error) {
	answer, err := m.ask(ctx, tokenizePath, asked)
	if err != nil {
		return dst, fmt.Errorf("cannot ask %s: %w", tokenizePath, err)
	}
	var said struct {
		Tokens []int64 `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || said.Tokens == nil {
		return dst, fmt.Errorf("cannot ask %s: its answer has no tokens: %w", tokenizePath, ErrUnsupported)
	}
	return checked(dst, said.Tokens)
}

// rendered reads {"token_ids": [...]}; what stands for pictures is not built.
func rendered(dst []uint32, answer []byte) ([]uint32, error) {
	var said struct {
		IDs      []int64 `json:"token_ids"`
		Features any     `json:"features"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || said.IDs == nil || said.Features != nil {
		return dst, fmt.Errorf("cannot ask %s: its answer is not of text alone: %w", renderPath, ErrUnsupported)
	}
	return checked(dst, said.IDs)
}

func checked(dst []uint32, ids []int64) ([]uint32, error) {
	dst = slices.Grow(dst, len(ids))
	for _, id := range ids {
		if id < 0 || id > math.MaxUint32 {
			return dst, fmt.Errorf("a worker's token %d: %w", id, ErrUnsupported)
		}
		dst = append(dst, uint32(id))
	}
	return dst, nil
}

// probes are the conversations of Check: what templates treat differently.
var probes = []string{
	`{"messages":[{"role":"user","content":"Hello, wie geht's? 你好"}]}`,
	`{"messages":[{"role":"system","content":" Be brief. "},{"role":"user","content":"1+1"},{"role":"assistant","content":"2\n"},{"role":"user","content":" 2+2 "}]}`,
	`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}}}}}]}`,
}

// Check compares the tokens of a few conversations with what the worker's tokenize route says
// (Hints.Ask). Where they differ the files are not what the worker runs: it returns why (ErrDiffers), and
// from then on the model goes by the worker's route. Where there are no files it asks the worker once,
// and returns ErrNone if it has no route for that. nil: they agree, or there is nothing to compare;
// errors of asking change nothing, and the caller asks again some time.
func (m *Model) Check(ctx context.Context) error {
	f := m.local()
	switch {
	case m.ask == nil:
		return nil
	case f == nil:
		return m.checkRoute(ctx)
	case f.trouble != nil || m.engine != "":
		return nil
	}
	w := takeWorkspace()
	defer w.giveBack()
	for _, probe := range probes {
		d, err := w.parseObject([]byte(probe))
		if err != nil {
			return err
		}
		ours, err := m.chatByFiles(nil, f, d, w)
		if err != nil {
			continue // this template does without system messages, or tools
		}
		d.Set("model", m.name)
		theirs, err := m.chatByWorker(ctx, nil, d, nil)
		if err != nil {
			return err
		}
		if !slices.Equal(ours, theirs) {
			m.differs.Store(true)
			return fmt.Errorf("%s: %w: for %s %d, the worker has %d, or others", m.source, ErrDiffers, probe, len(ours), len(theirs))
		}
	}
	return nil
}

// checkRoute asks the worker for the tokens of a text.
func (m *Model) checkRoute(ctx context.Context) error {
	ids, err := m.textByWorker(ctx, nil, "Hello", true)
	if err == nil && len(ids) == 0 {
		err = unsupported("a worker that has no tokens for a text")
	}
	if errors.Is(err, ErrNoRoute) || errors.Is(err, ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrNone, err)
		if m.trouble != nil {
			err = fmt.Errorf("%w; and its files cannot be used: %w", err, m.trouble)
		}
	}
	return err
}
