//go:build real

// Placement as a client sees it: conversations that share long beginnings, and what headers and usage say of them.

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A placed is an answer and where it came from.
type placed struct {
	reply
	worker, prefill string // x-kvasir-worker, x-kvasir-prefill-worker
	overlap         int    // x-kvasir-overlap-blocks
	prompt, cached  int    // tokens, by the engine's usage
	text            string
}

// place asks one question, not streamed, and wants an answer.
func place(t testing.TB, url, body string, headers ...string) placed {
	t.Helper()
	p := placed{reply: post(t, url+chatRoute, body, headers...)}
	if p.status != http.StatusOK {
		t.Fatalf("status %d: %s", p.status, tail(string(p.body), 600))
	}
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			PromptTokens        int `json:"prompt_tokens"`
			PromptTokensDetails struct {
				CachedTokens int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal(p.body, &answer); err != nil || len(answer.Choices) == 0 {
		t.Fatalf("%s: %v", tail(string(p.body), 600), err)
	}
	p.text = answer.Choices[0].Message.Content
	p.prompt, p.cached = answer.Usage.PromptTokens, answer.Usage.PromptTokensDetails.CachedTokens
	p.worker, p.prefill = p.header.Get("x-kvasir-worker"), p.header.Get("x-kvasir-prefill-worker")
	p.overlap = -1
	if text := p.header.Get("x-kvasir-overlap-blocks"); text != "" {
		var err error
		if p.overlap, err = strconv.Atoi(text); err != nil {
			t.Fatalf("x-kvasir-overlap-blocks: %v", err)
		}
	}
	return p
}

// untilExact waits until Kvasir has read the model's tokenizer: what comes before is placed by its text. The first
// answers of an engine take long: it compiles, or makes its first connection to another one.
func untilExact(t testing.TB, k *kvasir, model string) {
	t.Helper()
	eventually(t, 2*time.Minute, "the tokens of "+model+" are known", func() bool {
		return place(t, k.url, chatAbout(model, "Hello.", "Who are you?", 1, false)).header.Get("x-kvasir-placement") == ""
	})
}

var nouns = strings.Fields("river stone window garden mountain letter winter bridge market candle harbour forest mirror silver engine " +
	"teacher village summer kitchen island doctor paper coffee morning ticket bottle machine picture station music")

// prose is made-up text of so many words, about one token each; another number, another text from its first word on.
func prose(number uint64, words int) string {
	random := rand.New(rand.NewPCG(number, 7))
	var b strings.Builder
	for range words {
		b.WriteString(nouns[random.IntN(len(nouns))])
		b.WriteByte(' ')
	}
	return b.String()
}

// chatAbout is a request whose prompt begins with the text and ends with the question.
func chatAbout(model, text, question string, maxTokens int, stream bool) string {
	content, err := json.Marshal(text + "\n\n" + question)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%s}],"max_tokens":%d,"temperature":0,"ignore_eos":true,"stream":%t}`,
		model, content, maxTokens, stream)
}
