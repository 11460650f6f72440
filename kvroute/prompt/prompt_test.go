// Models from directories, from Hugging Face's cache and from a worker; files that change or are bad.

package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvasir/kvroute/template"
	"kvasir/tokenize"
)

const chatML = `{% for m in messages %}{{ '<s>' + m.role + '\n' + m.content + '</s>' }}{% endfor %}{% if add_generation_prompt %}<s>assistant
{% endif %}{% if tools %}{{ tools|tojson }}{% endif %}{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}`

// aModel writes a directory with a small tokenizer and a template.
func aModel(tb testing.TB, dir, source string) string {
	tb.Helper()
	tokenizer, err := os.ReadFile("../../tokenize/testdata/cl100k.json")
	if err != nil {
		tb.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"chat_template": source, "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>"})
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	write(tb, filepath.Join(dir, "tokenizer.json"), tokenizer)
	write(tb, filepath.Join(dir, "tokenizer_config.json"), config)
	return dir
}

func write(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		tb.Fatal(err)
	}
}

func model(tb testing.TB, l *Library, setting string, h Hints) *Model {
	tb.Helper()
	m, err := l.Model("m", setting, h)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// spelled is what the tokens of a request stand for.
func spelled(t *testing.T, m *Model, body string) string {
	t.Helper()
	ids, err := m.Chat(context.Background(), nil, []byte(body))
	if err != nil {
		return "error: " + err.Error()
	}
	return spell(m.files.tokenizer, ids)
}

func spell(t *tokenize.Tokenizer, ids []uint32) string {
	var b []byte
	for _, id := range ids {
		b = t.AppendBytes(b, id)
	}
	return string(b)
}

func TestChat(t *testing.T) {
	m := model(t, NewLibrary(Options{HubCache: t.TempDir()}), aModel(t, t.TempDir(), chatML), Hints{})
	hi := `"messages":[{"role":"user","content":"hi"}]`
	for _, c := range []struct{ body, want string }{
		{`{` + hi + `}`, "<s>user\nhi</s><s>assistant\n"},
		{`{` + hi + `,"add_generation_prompt":false}`, "<s>user\nhi</s>"},
		{`{` + hi + `,"chat_template_kwargs":{"enable_thinking":false,"x":1}}`, "<s>user\nhi</s><s>assistant\nFalse"},
		{`{` + hi + `,"reasoning_effort":"low"}`, "<s>user\nhi</s><s>assistant\nTrue"},
		{`{` + hi + `,"tools":[{"function":{"parameters":{"b":1,"a":2},"name":"f"}}]}`,
			"<s>user\nhi</s><s>assistant\n" + `[{"type": "function", "function": {"name": "f", "description": null, "parameters": {"b": 1, "a": 2}}}]`},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]}]}`, "<s>user\na\nb</s><s>assistant\n"},
		{`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"so far "}],"continue_final_message":true,"add_generation_prompt":false}`,
			"<s>user\nq</s><s>assistant\nso far "},
		{`{"messages":[{"role":"user","content":"q"},{"role":"developer","content":"d"},{"role":"system","content":"s"}]}`, "<s>system\nd\n\ns</s><s>user\nq</s><s>assistant\n"},
		{`{"messages":[{"role":"system","content":"x-anthropic-billing-header: 1\nrest"}]}`, "<s>system\nrest</s><s>assistant\n"},
		{`{` + hi + `,"chat_template":"x"}`, "error: a request with chat_template: not supported"},
		{`{` + hi + `,"truncate_prompt_tokens":5}`, "error: a request with truncate_prompt_tokens: not supported"},
		{`{` + hi + `,"tools":[]}`, "error: tools is no list with tools: bad request"},
		{`{` + hi + `,"continue_final_message":true}`, "error: continue_final_message needs add_generation_prompt false: bad request"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "error: message 0: part 0 of the content, of type image_url: not supported"},
		{`{"messages":[]}`, "error: no messages: bad request"},
		{`[`, "error: no JSON: at byte 1: bad request"},
	} {
		if got := spelled(t, m, c.body); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.body, got, c.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	m := model(t, NewLibrary(Options{HubCache: t.TempDir()}), aModel(t, t.TempDir(), chatML), Hints{})
	for _, c := range []struct {
		body string
		want string
	}{
		{`{"prompt":"hello"}`, `hello <nil>`},
		{`{"prompt":["a","b"],"add_special_tokens":false}`, `a <nil>`},
		{`{"prompt":[66,67]}`, `ab <nil>`},
		{`{"prompt":[[66,67],[68]]}`, `ab <nil>`},
		{`{"prompt":[]}`, ` no prompt: bad request`},
		{`{"prompt":[66,-2]}`, `a a prompt of tokens with -2: bad request`},
		{`{"prompt":{}}`, ` a prompt that is neither text nor tokens: bad request`},
	} {
		ids, err := m.Completion(context.Background(), nil, []byte(c.body))
		if got := fmt.Sprintf("%s %v", spell(m.files.tokenizer, ids), err); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.body, got, c.want)
		}
	}
}

func TestSources(t *testing.T) {
	hub, dir := t.TempDir(), filepath.Join(t.TempDir(), "local")
	l := NewLibrary(Options{HubCache: hub})
	base := filepath.Join(hub, "models--org--name")
	aModel(t, filepath.Join(base, "snapshots", "abc"), chatML)
	if err := os.MkdirAll(filepath.Join(base, "refs"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "refs", "main"), []byte("abc\n"))
	aModel(t, dir, chatML)
	ask := func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("not today") }
	for _, c := range []struct {
		setting string
		hints   Hints
		want    string
	}{
		{"auto", Hints{Root: "org/name"}, "Hugging Face cache, org/name"},
		{"", Hints{Root: dir}, "directory " + dir},
		{dir, Hints{Root: "org/name"}, "directory " + dir},
		{"auto", Hints{Root: "org/other", Ask: ask}, "the worker's own route"},
		{"worker", Hints{Root: dir, Ask: ask}, "the worker's own route"},
		{"auto", Hints{Root: "../../etc"}, `model "m": no source of tokens`},
		{"none", Hints{Root: dir, Ask: ask}, `model "m": no source of tokens`},
		{"auto", Hints{}, `model "m": no source of tokens`},
	} {
		m, err := l.Model("m", c.setting, c.hints)
		got := fmt.Sprint(err)
		if err == nil {
			got = m.Source()
		}
		if got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.setting, c.hints.Root, got, c.want)
		}
	}
	if _, err := l.Model("m", filepath.Join(dir, "nothing"), Hints{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// The same files are read once, and anew when they change.
func TestReload(t *testing.T) {
	dir := aModel(t, t.TempDir(), chatML)
	l := NewLibrary(Options{HubCache: t.TempDir()})
	first := model(t, l, dir, Hints{})
	if model(t, l, dir, Hints{}) != first {
		t.Error("read twice")
	}
	write(t, filepath.Join(dir, "chat_template.jinja"), []byte("new{{ messages[0].content }}"))
	body := `{"messages":[{"role":"user","content":"x"}]}`
	if got := spelled(t, model(t, l, dir, Hints{}), body); got != "newx" {
		t.Error(got)
	}
	write(t, filepath.Join(dir, "chat_template.jinja"), []byte("{% bad %}"))
	m := model(t, l, dir, Hints{})
	if _, err := m.Chat(context.Background(), nil, []byte(body)); !errors.Is(err, ErrTemplate) || !errors.Is(m.Trouble(), ErrTemplate) {
		t.Error(err, m.Trouble())
	}
	if _, err := m.Completion(context.Background(), nil, []byte(`{"prompt":"x"}`)); err != nil {
		t.Error("a bad template stops completions:", err)
	}
	write(t, filepath.Join(dir, "tokenizer.json"), []byte("{"))
	if _, err := l.Model("m", dir, Hints{}); err == nil || !strings.Contains(err.Error(), "tokenizer") {
		t.Error(err)
	}
}

// worker answers as vLLM does, by the template that it has.
func worker(t *testing.T, its *Model, asked *[]string) Asker {
	return func(ctx context.Context, path string, body []byte) ([]byte, error) {
		*asked = append(*asked, path)
		if path != tokenizePath {
			return nil, ErrNoRoute
		}
		d, err := new(workspace).parseObject(body)
		if err != nil {
			t.Error(err)
		}
		var ids []uint32
		if has(d, "prompt") {
			ids, err = its.Completion(ctx, nil, body)
			if err != nil {
				return nil, err
			}
		} else if ids, err = its.Chat(ctx, nil, body); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"count": len(ids), "tokens": ids})
	}
}

func TestWorker(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	its, err := l.Model("its", aModel(t, t.TempDir(), chatML), Hints{})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	m := model(t, l, "worker", Hints{Ask: worker(t, its, &asked)})
	for range 2 {
		body := []byte(`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"x","reasoning_content":"r"}],"reasoning_effort":"none","top_p":1}`)
		got, err := m.Chat(context.Background(), nil, body)
		want, _ := its.Chat(context.Background(), nil, body)
		if err != nil || !slices.Equal(got, want) {
			t.Error(got, want, err)
		}
	}
	ids, err := m.Completion(context.Background(), nil, []byte(`{"prompt":["text","another"]}`))
	if err != nil || spell(its.files.tokenizer, ids) != "text" {
		t.Error(ids, err)
	}
	if want := []string{renderPath, tokenizePath, tokenizePath, tokenizePath}; !slices.Equal(asked, want) {
		t.Error("asked", asked)
	}
}

// A worker with another template than the files gets its own way.
// The route that renders is given up where the worker says that it has none, and only there: one that was down when it
// was asked first has it the next time, and one that was started anew without it is asked by the other route.
func TestRenderRoute(t *testing.T) {
	var problem error
	m := model(t, NewLibrary(Options{HubCache: t.TempDir()}), "worker", Hints{Ask: func(_ context.Context, path string, _ []byte) ([]byte, error) {
		if path == renderPath && problem == nil {
			return []byte(`{"token_ids":[1]}`), nil
		}
		if path == tokenizePath && errors.Is(problem, ErrNoRoute) {
			return []byte(`{"tokens":[2]}`), nil
		}
		return nil, problem
	}})
	for i, c := range []struct {
		problem error
		want    []uint32
	}{{errors.New("down"), nil}, {nil, []uint32{1}}, {errors.New("down"), nil}, {nil, []uint32{1}}, {ErrNoRoute, []uint32{2}}} {
		problem = c.problem
		got, err := m.Chat(context.Background(), nil, []byte(`{"messages":[{"role":"user","content":"hi"}]}`))
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%d: %v %v", i, got, err)
		}
	}
}

// A template that takes more than a rendering may have is known for it from the start: it does not cost each request
// as much before the worker is asked.
func TestEndlessTemplate(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	dir := aModel(t, t.TempDir(), `{% for m in messages %}{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}{{ m.content }}{% endfor %}`)
	asked := 0
	m := model(t, l, dir, Hints{Ask: func(context.Context, string, []byte) ([]byte, error) {
		asked++
		return []byte(`{"token_ids":[1]}`), nil
	}})
	if err := m.Trouble(); !errors.Is(err, template.ErrLimit) {
		t.Error(err)
	}
	if ids, err := m.Chat(context.Background(), nil, []byte(`{"messages":[{"role":"user","content":"x"}]}`)); err != nil || len(ids) != 1 || asked != 1 {
		t.Errorf("%v %v, asked %d times", ids, err, asked)
	}
}

// What a worker without the route cannot say is not known, and why its files are of no use is said as well.
func TestNoRoute(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokenizer.json"), []byte("{"))
	gone := func(context.Context, string, []byte) ([]byte, error) { return nil, ErrNoRoute }
	for _, engine := range []string{"", "sglang"} {
		m := model(t, l, dir, Hints{Ask: gone, Engine: engine})
		if err := m.Check(context.Background()); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "tokenizer.json") {
			t.Errorf("%s: %v", engine, err)
		}
	}
	m := model(t, l, "worker", Hints{Ask: func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("down") }})
	if err := m.Check(context.Background()); err == nil || errors.Is(err, ErrNone) {
		t.Error("a worker that is down:", err)
	}
}

// What is wrong with files is what is wrong now.
func TestTroubleIsTheLatest(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	dir := t.TempDir()
	ask := func(context.Context, string, []byte) ([]byte, error) { return []byte(`{"tokens":[1]}`), nil }
	for text, says := range map[string]string{"{": "byte 1", `{"model":{}}`: "there is no"} {
		write(t, filepath.Join(dir, "tokenizer.json"), []byte(text))
		if err := model(t, l, dir, Hints{Ask: ask}).Trouble(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A template for tools that is written anew is read anew.
func TestToolTemplateIsReadAnew(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	dir := aModel(t, t.TempDir(), "{{ messages[0].content }}")
	tools := filepath.Join(dir, "additional_chat_templates", "tool_use.jinja")
	if err := os.Mkdir(filepath.Dir(tools), 0o755); err != nil {
		t.Fatal(err)
	}
	var before []uint32
	for _, text := range []string{"one {{ messages[0].content }}", "and two {{ messages[0].content }}"} {
		write(t, tools, []byte(text))
		ids, err := model(t, l, dir, Hints{}).Chat(context.Background(), nil, []byte(`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`))
		if err != nil || slices.Equal(ids, before) {
			t.Errorf("%q: %v %v", text, ids, err)
		}
		before = ids
	}
}

// A template that fails over a conversation, rather than to refuse it, leaves it to the worker: what fails may be here.
func TestFailedTemplateIsAsked(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	dir := aModel(t, t.TempDir(), `{% if messages[0].content == "no" %}{{ raise_exception("never") }}{% endif %}{{ messages[0].content + 1 }}`)
	asked := 0
	m := model(t, l, dir, Hints{Ask: func(_ context.Context, path string, _ []byte) ([]byte, error) {
		asked++
		return []byte(`{"token_ids":[1]}`), nil
	}})
	for text, want := range map[string]error{"no": ErrRequest, "yes": nil} {
		ids, err := m.Chat(context.Background(), nil, []byte(`{"messages":[{"role":"user","content":"`+text+`"}]}`))
		if !errors.Is(err, want) || want == nil && !slices.Equal(ids, []uint32{1}) {
			t.Errorf("%s: %v %v", text, ids, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestCheck(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	same := aModel(t, t.TempDir(), chatML)
	var asked []string
	its, err := l.Model("its", aModel(t, t.TempDir(), "own "+chatML), Hints{})
	if err != nil {
		t.Fatal(err)
	}
	m := model(t, l, same, Hints{Ask: worker(t, model(t, l, same, Hints{}), &asked)})
	if err := m.Check(context.Background()); err != nil || len(asked) != len(probes) {
		t.Error(err, asked)
	}
	m, err = l.Model("other", same, Hints{Ask: worker(t, its, &asked)})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(context.Background()); !errors.Is(err, ErrDiffers) || m.Source() != "the worker's own route" {
		t.Error(err, m.Source())
	}
	ids, err := m.Chat(context.Background(), nil, []byte(`{"messages":[{"role":"user","content":"hi"}]}`))
	if got := spell(its.files.tokenizer, ids); err != nil || got != "own <s>user\nhi</s><s>assistant\n" {
		t.Error(got, err)
	}
}

// Whatever was seen before, the tokens are those of the whole text.
func TestCache(t *testing.T) {
	models := map[string]*Model{"small": model(t, NewLibrary(Options{HubCache: t.TempDir()}), aModel(t, t.TempDir(), chatML), Hints{})}
	for _, name := range []string{"qwen3", "gemma3"} {
		if _, err := os.Stat(filepath.Join(realFiles, name)); err == nil {
			models[name] = realModel(t, name)
		}
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			m.cache = newPrefixCache(2 << 20) // so small that texts go
			talks := []*template.List{aTalk(r, 1), aTalk(r, 1), aTalk(r, 30)}
			for range 120 {
				i := r.IntN(len(talks))
				switch r.IntN(12) {
				case 0: // another conversation
					talks[i] = aTalk(r, 1+r.IntN(60))
				case 1: // a branch from the middle
					old := talks[i].Items
					talks[i] = template.NewList(append(slices.Clone(old[:r.IntN(len(old))]), aTalk(r, 20).Items...)...)
				case 2:
				default:
					talks[i] = template.NewList(append(slices.Clone(talks[i].Items), aTalk(r, 1+r.IntN(6)).Items...)...)
				}
				same(t, m, encode(t, dict("messages", talks[i])))
			}
			if m.cache.bytes > m.cache.limit {
				t.Error(m.cache.bytes, "bytes")
			}
		})
	}
}

// same compares with the tokens of the rendered text.
func same(t *testing.T, m *Model, body []byte) {
	t.Helper()
	got, err := m.Chat(context.Background(), []uint32{7}, body)
	d, failed := new(workspace).parseObject(body)
	if failed != nil {
		t.Fatal(failed)
	}
	var text []byte
	c, failed := readChat(d, "", m.files.parts)
	if failed == nil {
		text, failed = m.files.render(nil, c)
	}
	if failed != nil {
		if err == nil {
			t.Fatal(failed)
		}
		return
	}
	if want := m.files.tokenizer.Append([]uint32{7}, text, false); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v; %.2000s", err, text)
	}
}

// A new turn costs its own text: what lies before the last mark is not tokenised again.
func TestCacheCovers(t *testing.T) {
	m := model(t, NewLibrary(Options{HubCache: t.TempDir()}), aModel(t, t.TempDir(), chatML), Hints{})
	talk := longTalk(100 << 10)
	same(t, m, encode(t, dict("messages", talk)))
	talk.Items = append(talk.Items, dict("role", "assistant", "content", "Yes."), dict("role", "user", "content", "Why?"))
	c, err := readChat(dict("messages", talk), "", false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.files.render(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	_, ids, from, _ := m.cache.find(m.files, text, m.files.appendKeys(nil, text))
	if len(text)-from > 100 || len(ids) == 0 {
		t.Errorf("%d of %d bytes are tokenised again", len(text)-from, len(text))
	}
	other := &files{tokenizer: m.files.tokenizer}
	if _, _, from, _ := m.cache.find(other, text, m.files.appendKeys(nil, text)); from != 0 {
		t.Error("another model's tokens are taken")
	}
}

// Models that are asked the same, one after the other, each find what they have seen. (Both wrote their texts under the
// same keys, and each found the other's.)
func TestCacheOfTwoModels(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	talk := longTalk(30 << 10)
	body := encode(t, dict("messages", talk))
	var all []*Model
	for _, name := range []string{"a", "b"} {
		m, err := l.Model(name, aModel(t, t.TempDir(), chatML), Hints{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
		if _, err := m.Chat(context.Background(), nil, body); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range all {
		c, err := readChat(dict("messages", talk), "", false)
		if err != nil {
			t.Fatal(err)
		}
		text, err := m.files.render(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, from, _ := m.cache.find(m.files, text, m.files.appendKeys(nil, text)); from != len(text) {
			t.Errorf("%s: %d of %d bytes are known", m.name, from, len(text))
		}
	}
}

// FuzzCache: two texts with a common beginning, one after the other.
func FuzzCache(f *testing.F) {
	dir := aModel(f, f.TempDir(), chatML)
	tokenizer, err := tokenize.Open(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("<s>user\nhello</s><s>"), []byte("assistant\n"), []byte("<s"), uint16(400))
	f.Fuzz(func(t *testing.T, part, a, b []byte, times uint16) {
		its := &files{tokenizer: tokenizer}
		c := newPrefixCache(16 << 20)
		begin := bytes.Repeat(append(part, "</s>"...), int(times%2048)+1)
		for _, text := range [][]byte{slices.Concat(begin, a), slices.Concat(begin, b), slices.Concat(begin, a), slices.Concat(begin, a, b)} {
			want := tokenizer.Append(nil, text, false)
			if got := c.append(nil, its, &workspace{text: slices.Clone(text)}); !slices.Equal(got, want) {
				t.Fatalf("%q, %q, %q", part, a, b)
			}
		}
	})
}

// FuzzChat: no request is too strange.
func FuzzChat(f *testing.F) {
	m := model(f, NewLibrary(Options{HubCache: f.TempDir()}), aModel(f, f.TempDir(), chatML), Hints{})
	r := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		f.Add(encode(f, aRequest(r)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, err := m.Chat(context.Background(), nil, body)
		if err != nil && strings.Contains(err.Error(), "BUG") {
			t.Fatal(err)
		}
		_, _ = m.Completion(context.Background(), nil, body)
	})
}
