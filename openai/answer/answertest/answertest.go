// What tests of answers share: recorded replies of real engines, and a slow, plain reader of replies.

// Package answertest has what real engines replied, and reads replies as a
// plain client does: whole, with encoding/json. Tests compare with it what the
// proxy's own readers make of the same bytes.
//
//	for _, tr := range answertest.Transcripts(t) {
//		want := tr.Said(t)
//		got := ... // of tr.Body, read by what is tested
//	}
package answertest

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvasir/openai"
)

// A Transcript is one recorded exchange with a real engine.
type Transcript struct {
	Name     string      // "vllm/chat_stream"
	Kind     openai.Kind // of the route that was asked
	Response []byte      // exact bytes
	Head     int         // of them, blank line included
	Body     []byte      // decoded, as far as it came
	Cut      bool        // the body has no right end
}

// Transcripts returns every recorded exchange that has a reply. Bodies are
// decoded by net/http, not by what is tested. It fails the test if there are
// none.
func Transcripts(tb testing.TB) []Transcript {
	tb.Helper()
	var all []Transcript
	for _, dir := range []string{"vllm", "vllm/pd", "sglang"} {
		files, err := filepath.Glob(filepath.Join(root(tb), "testdata", "transcripts", dir, "*.response"))
		if err != nil || len(files) == 0 {
			tb.Fatalf("no transcripts in %s: %v", dir, err)
		}
		for _, file := range files {
			response, err := os.ReadFile(file)
			if err != nil {
				tb.Fatal(err)
			}
			if len(response) == 0 {
				continue
			}
			request, err := os.ReadFile(strings.TrimSuffix(file, "response") + "request")
			if err != nil {
				tb.Fatal(err)
			}
			t := Transcript{Name: dir + "/" + strings.TrimSuffix(filepath.Base(file), ".response"), Response: response}
			t.Kind = kindOf(strings.Fields(string(request[:bytes.IndexByte(request, '\r')]))[1])
			t.decode(tb)
			all = append(all, t)
		}
	}
	return all
}

// Find returns the transcript of this name. It fails the test if there is none.
func Find(tb testing.TB, name string) Transcript {
	tb.Helper()
	for _, t := range Transcripts(tb) {
		if t.Name == name {
			return t
		}
	}
	tb.Fatalf("no transcript %s", name)
	return Transcript{}
}

// root is the directory of the module: tests run in that of their package.
func root(tb testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

func kindOf(path string) openai.Kind {
	for _, r := range openai.Routes {
		if r.Path == path {
			return r.Kind
		}
	}
	return openai.KindOpaque
}

func (t *Transcript) decode(tb testing.TB) {
	head, body, ok := bytes.Cut(t.Response, []byte("\r\n\r\n"))
	if !ok {
		tb.Fatalf("%s has no head", t.Name)
	}
	t.Head = len(head) + 4
	if !bytes.Contains(head, []byte("transfer-encoding: chunked")) {
		t.Body = body
		return
	}
	decoded, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body)))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		tb.Fatalf("%s: %v", t.Name, err)
	}
	t.Body, t.Cut = decoded, err != nil
}

// Events are the events of a streamed body; nil if the body is no stream.
func (t Transcript) Events() []string {
	if !bytes.Contains(t.Response[:t.Head], []byte("text/event-stream")) {
		return nil
	}
	events := strings.SplitAfter(string(t.Body), "\n\n")
	return events[:len(events)-1]
}

// Said is what a client makes of the reply.
func (t Transcript) Said(tb testing.TB) Said {
	if t.Events() == nil {
		return SaidBy(tb, string(t.Body))
	}
	return SaidIn(tb, string(t.Body))
}

// OK says whether the transcript is a whole reply with status 200.
func (t Transcript) OK() bool {
	return !t.Cut && bytes.HasPrefix(t.Response, []byte("HTTP/1.1 200 "))
}

// Unfaithful are the transcripts that say what a recorded answer cannot, by
// their names: each with the flaw that a Recorder is to find.
var Unfaithful = map[string]string{
	"vllm/chat_n2": "choices", "vllm/chat_stream_n2": "choices", "sglang/chat_n2": "choices",
	"vllm/chat_logprobs": "logprobs", "vllm/chat_stream_logprobs": "logprobs", "sglang/chat_logprobs": "logprobs",
	"vllm/chat_return_token_ids": "token_ids", "vllm/chat_stream_return_token_ids": "prompt_token_ids", "vllm/emoji_split_stream": "prompt_token_ids",
	"vllm/completion_token_ids_prompt": "token_ids", "vllm/continue_final_message": "token_ids", "sglang/chat_return_token_ids": "prompt_token_ids",
	"vllm/chat_tools_named": "tool_calls", "vllm/chat_tools_required": "tool_calls",
	"vllm/chat_stream_tools_named": "tool_calls", "vllm/chat_stream_tools_required": "tool_calls",
	"vllm/pd/1_prefill": "kv_transfer_params", "vllm/pd/3_prefill": "kv_transfer_params", "vllm/pd/7_prefill_warm": "kv_transfer_params",
	"vllm/pd/12_prefill_longer": "kv_transfer_params", "vllm/pd/14_prefill_short": "kv_transfer_params", "vllm/pd/20_prefill_then_wait": "kv_transfer_params",
	"vllm/pd/24_decode_stream_kv_load_failure": "error", "vllm/pd/engine_killed_stream": "error",
}

// Unlimited is a body as if the answer in it, which was stopped at a length,
// had ended by itself: most of the transcripts were stopped so.
func Unlimited(body []byte) []byte {
	return []byte(strings.NewReplacer(
		`reason":"length"`, `reason":"stop"`, `reason":"max_tokens"`, `reason":"end_turn"`,
		`{"reason":"max_output_tokens"}`, `null`, `"status":"incomplete"`, `"status":"completed"`,
	).Replace(string(body)))
}
