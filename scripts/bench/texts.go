//go:build linux

// The request and the answer: one 2 KB chat, one 1 KB completion.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

const sentence = "The quick brown fox jumps over the lazy dog while nine engines wait for their next token. "

// completion is about 1 KB, in the form of vLLM's answer. It has no apostrophe and no dollar, so
// that nginx can return it from its configuration.
var completion = `{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"plain","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"` + strings.Repeat(sentence, 8) + `","refusal":null,"tool_calls":[]},` +
	`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":420,"total_tokens":580,"completion_tokens":160}}`

const chatBytes = 2048

// chat2K is a request of exactly chatBytes bytes for model plain.
func chat2K() string {
	const start = `{"model":"plain","temperature":0.7,"max_tokens":160,"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"`
	const end = `"}]}`
	text := strings.Repeat(sentence, chatBytes/len(sentence)+1)
	return start + text[:chatBytes-len(start)-len(end)] + end
}

// chat is a short request.
func chat(model string, streamed bool, maxTokens int) string {
	return fmt.Sprintf(`{"model":%q,"stream":%t,"max_tokens":%d,"messages":[{"role":"user","content":"Tell me a story."}]}`,
		model, streamed, maxTokens)
}

func modelList() string {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int    `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []entry `json:"data"`
	}{Object: "list"}
	for _, model := range models {
		list.Data = append(list.Data, entry{model, "model", 1700000000, "bench"})
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot encode the list of models: %v", err))
	}
	return string(text)
}
