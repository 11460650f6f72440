package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvasir/classify"
	"kvasir/kvroute"
	"kvasir/tokenize"
)

// tokenizerDir is a model's directory with one of the tokenizers of kvroute's tests.
func tokenizerDir(t *testing.T, name string) (dir string, read *tokenize.Tokenizer) {
	t.Helper()
	dir = t.TempDir()
	data, err := os.ReadFile(filepath.Join("..", "tokenize", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if read, err = tokenize.Read(data); err != nil {
		t.Fatal(err)
	}
	return dir, read
}

// Token ids of a model whose tokenizer is known are judged as the text that they
// stand for, and refused where they are none of it, or where another model may
// come to read them.
func TestTokenIDsAreJudgedAsText(t *testing.T) {
	for _, name := range []string{"gpt2", "llama"} {
		t.Run(name, func(t *testing.T) {
			dir, read := tokenizerDir(t, name)
			ids := func(text string) string {
				return "[" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(read.Append(nil, []byte(text), false))), ","), "[]") + "]"
			}
			innocent, card := ids("hello there, how are you?"), ids("my card is 4111 1111 1111 1111, ok?")
			const chat = `{"model":"m","messages":[{"role":"user","content":"hi"}],`
			for _, c := range []struct {
				what, path, body string
				change           func(*Settings)
				code             string // "": it passes
			}{
				{"an innocent prompt", "/v1/completions", `{"model":"m","prompt":` + innocent + `}`, nil, ""},
				{"two of them", "/v1/completions", `{"model":"m","prompt":[` + innocent + ` , ` + innocent + `]}`, nil, ""},
				{"with blanks", "/v1/completions", `{"model":"m","prompt": ` + strings.ReplaceAll(innocent, ",", " ,\n ") + `}`, nil, ""},
				{"a card", "/v1/completions", `{"model":"m","prompt":` + card + `}`, nil, "CREDIT_CARD"},
				{"a card in the second", "/v1/completions", `{"model":"m","prompt":[` + innocent + `,` + card + `]}`, nil, "CREDIT_CARD"},
				{"a card in a chat", "/v1/chat/completions", chat + `"prompt_token_ids":` + card + `}`, nil, "CREDIT_CARD"},
				{"a card as SGLang has it", "/v1/chat/completions", chat + `"input_ids":` + card + `}`, nil, "CREDIT_CARD"},
				{"to embed", "/v1/embeddings", `{"model":"m","input":` + card + `}`, nil, "CREDIT_CARD"},
				{"no ids", "/v1/completions", `{"model":"m","prompt":[1.5]}`, nil, "unjudged_content"},
				{"ids of no token", "/v1/completions", `{"model":"m","prompt":[99999999]}`, nil, "unjudged_content"},
				{"negative ones", "/v1/completions", `{"model":"m","prompt":[-1]}`, nil, "unjudged_content"},
				{"truth for a number", "/v1/completions", `{"model":"m","prompt":[true]}`, nil, "unjudged_content"},
				{"in an unknown member", "/v1/chat/completions", chat + `"turbo":[1,2,3,4,5,6,7,8,9]}`, nil, "unjudged_content"},
				{"another model may answer", "/v1/completions", `{"model":"m","prompt":` + innocent + `}`, func(s *Settings) {
					s.Models[0].Fallback = []string{"n"}
				}, "unjudged_content"},
				{"the model is ours to choose", "/v1/completions", `{"model":"auto","prompt":` + innocent + `}`, nil, "unjudged_content"},
				{"values would be replaced", "/v1/completions", `{"model":"m","prompt":` + innocent + `}`, func(s *Settings) {
					s.Classify.PII.Action = classify.Redact
				}, "unjudged_content"},
			} {
				w := goodWorker(t)
				s := guarded(classify.Block, w.url)
				s.Classify.Jailbreak.Action = classify.Off
				s.Routing.Policy, s.Models[0].Tokenizer = kvroute.Predict, dir
				if c.change != nil {
					c.change(s)
				}
				p := startProxy(t, s)
				p.waitForTokens(t)
				a := p.ask(t, c.path, c.body)
				if passed := len(w.seen()) == 1; passed != (c.code == "") || !strings.Contains(a.body, c.code) {
					t.Errorf("%s: %d %s", c.what, a.StatusCode, a.body)
				}
			}
		})
	}
}

func TestAppendTextOfTokens(t *testing.T) {
	for name, text := range map[string]string{"gpt2": "hello there, ok?", "llama": "hello there, ok?", "bert": "hello there ok"} {
		_, read := tokenizerDir(t, name)
		var got []byte
		for _, id := range read.Append(nil, []byte(text), false) {
			got = read.AppendText(got, id)
		}
		if strings.TrimSpace(string(got)) != text {
			t.Errorf("%s: %q", name, got)
		}
	}
}
