// One model: from requests to tokens.

package prompt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"kvasir/kvroute/template"
)

// Model makes tokens of requests. Its methods may be called by many goroutines.
type Model struct {
	name    string
	source  string
	files   *files // nil: none
	trouble error
	ask     Asker // nil: none
	engine  string
	cache   *prefixCache

	differs atomic.Bool // Check has found that the files are not the worker's
	renders atomic.Int32
}

// Source says where the tokens come from: "directory /models/qwen", "Hugging Face cache, ORG/NAME",
// "the worker's own route".
func (m *Model) Source() string {
	if m.differs.Load() {
		return "the worker's own route"
	}
	return m.source
}

// Trouble is why files that were found are not used, or not for chats; nil if there is nothing.
func (m *Model) Trouble() error {
	if m.trouble == nil && m.files != nil {
		return m.files.trouble
	}
	return m.trouble
}

// Asks says whether tokens come from the worker alone.
func (m *Model) Asks() bool { return m.local() == nil }

// local are the files, nil where there are none to trust.
func (m *Model) local() *files {
	if m.differs.Load() {
		return nil
	}
	return m.files
}

// AppendToken appends the text of a token to dst as a reader sees it: what vocabularies
// write for a blank is one. It is not good where there are no files to trust, and for
// ids that are no token.
func (m *Model) AppendToken(dst []byte, id uint32) (text []byte, good bool) {
	f := m.local()
	if f == nil || int64(id) >= int64(f.tokenizer.Size()) {
		return dst, false
	}
	text = f.tokenizer.AppendText(dst, id)
	return text, len(text) > len(dst)
}

// Chat appends the tokens of a /v1/chat/completions request to dst. body is the request as the worker
// will get it; nothing of it is kept. ctx bounds asking the worker, where that is the source.
func (m *Model) Chat(ctx context.Context, dst []uint32, body []byte) ([]uint32, error) {
	w := takeWorkspace()
	defer w.giveBack()
	d, err := w.parseObject(body)
	if err != nil {
		return dst, err
	}
	return m.chat(ctx, dst, d, body, w)
}

// chat goes through the sources. body is the request where it is one of chat completions, else nil.
func (m *Model) chat(ctx context.Context, dst []uint32, d *template.Dict, body []byte, w *workspace) ([]uint32, error) {
	f := m.local()
	var err error
	if f != nil {
		var ids []uint32
		if ids, err = m.chatByFiles(dst, f, d, w); err == nil || errors.Is(err, ErrRequest) {
			return ids, err
		}
	}
	switch {
	case m.ask != nil:
	case err == nil:
		return dst, fmt.Errorf("model %q: %w", m.name, ErrNone)
	default:
		return dst, err
	}
	ids, failed := m.chatByWorker(ctx, dst, d, body)
	if failed != nil && f != nil {
		failed = fmt.Errorf("%w; and not by files: %w", failed, err)
	}
	return ids, failed
}

func (m *Model) chatByFiles(dst []uint32, f *files, d *template.Dict, w *workspace) ([]uint32, error) {
	if f.trouble != nil {
		return dst, f.trouble
	}
	c, err := readChat(d, m.engine, f.parts)
	if err != nil {
		return dst, err
	}
	if w.text, err = f.render(w.text[:0], c); err != nil {
		return dst, err
	}
	if c.specials {
		return f.tokenizer.Append(dst, w.text, true), nil
	}
	return m.cache.append(dst, f, w), nil
}

// Completion appends the tokens of a /v1/completions request to dst: of the first prompt where it has
// several. The others cost nothing, whatever their number.
func (m *Model) Completion(ctx context.Context, dst []uint32, body []byte) ([]uint32, error) {
	w := takeWorkspace()
	defer w.giveBack()
	d, err := w.parseObject(body)
	if err != nil {
		return dst, err
	}
	for _, name := range []string{"truncate_prompt_tokens", "prompt_embeds"} {
		if given(d, name) {
			return dst, unsupported("a request with %s", name)
		}
	}
	specials, err := flag(d, "add_special_tokens", true)
	if err != nil {
		return dst, err
	}
	v, _ := d.Get("prompt")
	if l, ok := v.(*template.List); ok {
		if len(l.Items) == 0 {
			return dst, refused("no prompt")
		}
		if _, whole := l.Items[0].(int64); !whole {
			v = l.Items[0]
		}
	}
	return m.prompt(ctx, dst, v, specials, w)
}

// prompt is one prompt: text, or tokens already.
func (m *Model) prompt(ctx context.Context, dst []uint32, v any, specials bool, w *workspace) ([]uint32, error) {
	switch v := v.(type) {
	case *template.List:
		for _, item := range v.Items {
			id, ok := item.(int64)
			if !ok || id < 0 || id > math.MaxUint32 {
				return dst, refused("a prompt of tokens with %v", item)
			}
			dst = append(dst, uint32(id))
		}
		return dst, nil
	case string:
		f := m.local()
		w.text = append(w.text[:0], v...)
		switch {
		case f != nil && !specials:
			return m.cache.append(dst, f, w), nil
		case f != nil && f.begins == nil:
			return f.tokenizer.Append(dst, w.text, true), nil
		case m.ask != nil:
			return m.textByWorker(ctx, dst, v, specials)
		case f != nil:
			return dst, f.begins
		}
		return dst, fmt.Errorf("model %q: %w", m.name, ErrNone)
	}
	return dst, refused("a prompt that is neither text nor tokens")
}
