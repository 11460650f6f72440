// The official SDK for Go, unmodified: the table of scripts/sdk/python/check.py once more.

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

func TestGoSDK(t *testing.T) {
	t.Parallel()
	goSDK(t, simTarget(t))
}

// A goCheck is the table's state: one client, and what is known of the workers behind it.
type goCheck struct {
	target
	client openai.Client
}

func goSDK(t *testing.T, to target) {
	c := goCheck{to, openai.NewClient(option.WithBaseURL(to.baseURL), option.WithAPIKey("none"), option.WithMaxRetries(0))}
	for _, check := range []struct {
		name   string
		run    func(*testing.T, goCheck)
		faults bool // needs a worker with faults
	}{
		{"models-list", goModelsList, false},
		{"models-retrieve", goModelsRetrieve, false},
		{"chat", goChat, false},
		{"chat-stream", goChatStream, false},
		{"chat-stream-usage", goChatStreamUsage, false},
		{"completion", goCompletion, false},
		{"completion-stream", goCompletionStream, false},
		{"tools", goTools, false},
		{"tools-stream", goToolsStream, false},
		{"unknown-model", goUnknownModel, false},
		{"bad-request", goBadRequest, false},
		{"worker-bad-request", goWorkerBadRequest, false},
		{"request-id", goRequestID, false},
		{"parallel", goParallel, false},
		{"cancel-stream", goCancelStream, false},
		{"timeout", goTimeout, false},
		{"hang", goHang, true},
		{"interrupted", goInterrupted, true},
		{"error-503", goError503, true},
		{"retry-503", goRetry503, true},
	} {
		t.Run(check.name, func(t *testing.T) {
			if check.faults && !to.faults {
				t.Skip("needs a worker with faults")
			}
			check.run(t, c)
		})
	}
}

// params is a chat request; the caller changes what it needs.
func (c goCheck) params(maxTokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:     c.model,
		Messages:  []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Name three colours.")},
		MaxTokens: openai.Int(maxTokens),
	}
}

// freed is when a worker is free at the latest whose client has left: long before it would be at the end of long.
const freed = 8 * time.Second

// long is many seconds of work for a worker: time enough to leave in the middle.
func (c goCheck) long() (openai.ChatCompletionNewParams, option.RequestOption) {
	return c.params(6000), option.WithJSONSet("ignore_eos", true)
}

func (c goCheck) waitRunning(t *testing.T, want bool, limit time.Duration) {
	t.Helper()
	eventually(t, limit, fmt.Sprintf("a worker is busy: %t", want), func() bool {
		sum := 0.0
		for _, url := range c.workers {
			sum += metric(t, url+"/metrics", "vllm:num_requests_running")
		}
		return sum > 0 == want
	})
}

func goModelsList(t *testing.T, c goCheck) {
	page, err := c.client.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(page.Data, func(m openai.Model) bool { return m.ID == c.model }) {
		t.Errorf("%q is not among %+v", c.model, page.Data)
	}
}

func goModelsRetrieve(t *testing.T, c goCheck) {
	model, err := c.client.Models.Get(t.Context(), c.model)
	if err != nil || model.ID != c.model {
		t.Errorf("%+v, %v", model, err)
	}
	_, err = c.client.Models.Get(t.Context(), "no-such-model")
	wantStatus(t, err, http.StatusNotFound)
}

func goChat(t *testing.T, c goCheck) {
	reply, err := c.client.Chat.Completions.New(t.Context(), c.params(8))
	if err != nil {
		t.Fatal(err)
	}
	choice, usage := reply.Choices[0], reply.Usage
	if reply.Model != c.model || choice.Message.Content == "" || !ended(choice.FinishReason) {
		t.Errorf("reply %s", reply.RawJSON())
	}
	if usage.PromptTokens == 0 || usage.CompletionTokens > 8 || usage.TotalTokens != usage.PromptTokens+usage.CompletionTokens {
		t.Errorf("usage %+v", usage)
	}
}

func goChatStream(t *testing.T, c goCheck) {
	chunks := collect(t, c.client.Chat.Completions.NewStreaming(t.Context(), c.params(8)))
	text := ""
	for _, chunk := range chunks {
		if len(chunk.Choices) != 1 || chunk.JSON.Usage.Valid() || chunk.ID != chunks[0].ID {
			t.Fatalf("one choice, one id, and no usage that was not asked for: %s", chunk.RawJSON())
		}
		text += chunk.Choices[0].Delta.Content
	}
	if first := chunks[0].Choices[0].Delta; first.Role != "assistant" || text == "" {
		t.Errorf("first delta %s, text %q", first.RawJSON(), text)
	}
	if last := chunks[len(chunks)-1].Choices[0]; !ended(last.FinishReason) {
		t.Errorf("last choice %s", last.RawJSON())
	}
}

func goChatStreamUsage(t *testing.T, c goCheck) {
	params := c.params(8)
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	chunks := collect(t, c.client.Chat.Completions.NewStreaming(t.Context(), params))
	last := chunks[len(chunks)-1]
	if u := last.Usage; len(last.Choices) != 0 || u.TotalTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("last chunk %s", last.RawJSON())
	}
	for _, chunk := range chunks[:len(chunks)-1] {
		if chunk.JSON.Usage.Valid() {
			t.Errorf("usage before the end: %s", chunk.RawJSON())
		}
	}
}

func (c goCheck) story() openai.CompletionNewParams {
	return openai.CompletionNewParams{
		Model:     openai.CompletionNewParamsModel(c.model),
		Prompt:    openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once upon a time")},
		MaxTokens: openai.Int(8),
	}
}

func goCompletion(t *testing.T, c goCheck) {
	reply, err := c.client.Completions.New(t.Context(), c.story())
	if err != nil {
		t.Fatal(err)
	}
	if u := reply.Usage; reply.Choices[0].Text == "" || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("reply %s", reply.RawJSON())
	}
}

func goCompletionStream(t *testing.T, c goCheck) {
	chunks := collect(t, c.client.Completions.NewStreaming(t.Context(), c.story()))
	text := ""
	for _, chunk := range chunks {
		if chunk.JSON.Usage.Valid() {
			t.Errorf("usage was not asked for: %s", chunk.RawJSON())
		}
		text += chunk.Choices[0].Text
	}
	if last := chunks[len(chunks)-1].Choices[0]; text == "" || !ended(string(last.FinishReason)) {
		t.Errorf("text %q, last choice %s", text, last.RawJSON())
	}
}

// forced asks for a tool call. Temperature 0 and two cities: a model of random weights, too, comes to
// the end of its JSON.
func (c goCheck) forced() openai.ChatCompletionNewParams {
	params := c.params(64)
	params.Temperature = openai.Float(0)
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:        "get_weather",
		Description: openai.String("The weather in a city"),
		Parameters: shared.FunctionParameters{
			"type":                 "object",
			"properties":           map[string]any{"city": map[string]any{"type": "string", "enum": []string{"Oslo", "Rome"}}},
			"required":             []string{"city"},
			"additionalProperties": false,
		},
	})}
	params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(
		openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get_weather"})
	return params
}

func goTools(t *testing.T, c goCheck) {
	reply, err := c.client.Chat.Completions.New(t.Context(), c.forced())
	if err != nil {
		t.Fatal(err)
	}
	calls := reply.Choices[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].ID == "" || calls[0].Function.Name != "get_weather" || calls[0].Function.Arguments == "" {
		t.Errorf("reply %s", reply.RawJSON())
	}
}

func goToolsStream(t *testing.T, c goCheck) {
	name, arguments := "", ""
	for _, chunk := range collect(t, c.client.Chat.Completions.NewStreaming(t.Context(), c.forced())) {
		for _, call := range chunk.Choices[0].Delta.ToolCalls {
			name += call.Function.Name
			arguments += call.Function.Arguments
		}
	}
	if name != "get_weather" || arguments == "" {
		t.Errorf("name %q, arguments %q", name, arguments)
	}
}

func goUnknownModel(t *testing.T, c goCheck) {
	params := c.params(8)
	params.Model = "no-such-model"
	_, err := c.client.Chat.Completions.New(t.Context(), params)
	for _, err := range []error{err, c.client.Chat.Completions.NewStreaming(t.Context(), params).Err()} {
		if got := wantStatus(t, err, http.StatusNotFound); got.Code != "model_not_found" || got.Param != "model" ||
			got.Type != "invalid_request_error" || !strings.Contains(got.Message, "no-such-model") {
			t.Errorf("error %s", got.RawJSON())
		}
	}
}

func goBadRequest(t *testing.T, c goCheck) {
	params := c.params(8)
	params.Messages = []openai.ChatCompletionMessageParamUnion{}
	_, err := c.client.Chat.Completions.New(t.Context(), params)
	if got := wantStatus(t, err, http.StatusBadRequest); got.Type != "invalid_request_error" || got.Param != "messages" {
		t.Errorf("error %s", got.RawJSON())
	}
}

// goWorkerBadRequest: the request is well formed; the worker itself refuses the value.
func goWorkerBadRequest(t *testing.T, c goCheck) {
	params := c.params(8)
	params.Temperature = openai.Float(-1)
	_, err := c.client.Chat.Completions.New(t.Context(), params)
	if got := wantStatus(t, err, http.StatusBadRequest); got.Param != "temperature" || !strings.Contains(got.Message, "temperature") {
		t.Errorf("error %s", got.RawJSON())
	}
}

func goRequestID(t *testing.T, c goCheck) {
	var reply *http.Response
	own := option.WithHeader("X-Request-Id", "sdk-check-go")
	if _, err := c.client.Chat.Completions.New(t.Context(), c.params(4), own, option.WithResponseInto(&reply)); err != nil {
		t.Fatal(err)
	}
	if id := reply.Header.Get("X-Request-Id"); id != "sdk-check-go" {
		t.Errorf("the request's own id came back as %q", id)
	}
	if _, err := c.client.Chat.Completions.New(t.Context(), c.params(4), option.WithResponseInto(&reply)); err != nil {
		t.Fatal(err)
	}
	if reply.Header.Get("X-Request-Id") == "" {
		t.Error("no id was made")
	}
}

func goParallel(t *testing.T, c goCheck) {
	var (
		mu    sync.Mutex // guards ids
		ids   = map[string]bool{}
		group sync.WaitGroup
	)
	for i := range 32 {
		group.Go(func() {
			params := c.params(8)
			params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(fmt.Sprintf("Count to %d.", i))}
			id, text, err := c.ask(t.Context(), params, i%2 == 0)
			if err != nil || text == "" {
				t.Errorf("request %d: text %q, %v", i, text, err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[id] = true
		})
	}
	group.Wait()
	if len(ids) != 32 {
		t.Errorf("%d different ids in 32 replies", len(ids))
	}
}

// ask returns the id and the text of an answer, streamed or not.
func (c goCheck) ask(ctx context.Context, params openai.ChatCompletionNewParams, stream bool) (id, text string, err error) {
	if !stream {
		reply, err := c.client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", "", err
		}
		return reply.ID, reply.Choices[0].Message.Content, nil
	}
	chunks := c.client.Chat.Completions.NewStreaming(ctx, params)
	for chunks.Next() {
		id = chunks.Current().ID
		text += chunks.Current().Choices[0].Delta.Content
	}
	return id, text, errors.Join(chunks.Err(), chunks.Close())
}

func goCancelStream(t *testing.T, c goCheck) {
	c.waitRunning(t, false, patience)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	params, ignoreEOS := c.long()
	stream := c.client.Chat.Completions.NewStreaming(ctx, params, ignoreEOS)
	for range 3 {
		if !stream.Next() {
			t.Fatalf("the stream ended: %v", stream.Err())
		}
	}
	c.waitRunning(t, true, freed)
	cancel()
	c.waitRunning(t, false, freed)
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
}

func goTimeout(t *testing.T, c goCheck) {
	c.waitRunning(t, false, patience)
	params, ignoreEOS := c.long()
	_, err := c.client.Chat.Completions.New(t.Context(), params, ignoreEOS, option.WithRequestTimeout(500*time.Millisecond))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a timeout", err)
	}
	c.waitRunning(t, false, freed)
}

func goHang(t *testing.T, c goCheck) {
	c.waitRunning(t, false, patience)
	for _, stream := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		var err error
		if hang := option.WithHeader("X-Sim-Fault", "hang"); stream {
			chunks := c.client.Chat.Completions.NewStreaming(ctx, c.params(8), hang)
			for chunks.Next() {
				t.Errorf("a worker that hangs said %s", chunks.Current().RawJSON())
			}
			err = chunks.Err()
		} else {
			_, err = c.client.Chat.Completions.New(ctx, c.params(8), hang)
		}
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stream %t: error %v, want a timeout", stream, err)
		}
		c.waitRunning(t, false, freed)
	}
}

func goInterrupted(t *testing.T, c goCheck) {
	params, ignoreEOS := c.long()
	stream := c.client.Chat.Completions.NewStreaming(t.Context(), params, ignoreEOS, option.WithHeader("X-Sim-Fault", "die-after=3"))
	seen := 0
	for stream.Next() {
		seen++
	}
	var broken *ssestream.StreamError
	if err := stream.Err(); !errors.As(err, &broken) || !bytes.Contains(broken.Event.Data, []byte(`"stream_interrupted"`)) {
		t.Errorf("error %v, want stream_interrupted", err)
	}
	if seen == 0 {
		t.Error("the tokens before the cut did not arrive")
	}
}

func goError503(t *testing.T, c goCheck) {
	_, err := c.client.Chat.Completions.New(t.Context(), c.params(8), option.WithHeader("X-Sim-Fault", "status=503"))
	if got := wantStatus(t, err, http.StatusServiceUnavailable); got.Message == "" {
		t.Errorf("error without a message: %s", got.RawJSON())
	}
}

func goRetry503(t *testing.T, c goCheck) {
	var attempts []string
	first503 := func(request *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		attempts = append(attempts, request.Header.Get("X-Stainless-Retry-Count"))
		if len(attempts) == 1 {
			request.Header.Set("X-Sim-Fault", "status=503")
		} else {
			request.Header.Del("X-Sim-Fault")
		}
		return next(request)
	}
	_, err := c.client.Chat.Completions.New(t.Context(), c.params(8), option.WithMaxRetries(2), option.WithMiddleware(first503))
	if err != nil || !slices.Equal(attempts, []string{"0", "1"}) {
		t.Errorf("attempts %q, error %v", attempts, err)
	}
}

func collect[T any](t *testing.T, stream *ssestream.Stream[T]) []T {
	t.Helper()
	var chunks []T
	for stream.Next() {
		chunks = append(chunks, stream.Current())
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || len(chunks) == 0 {
		t.Fatalf("%d chunks, error %v", len(chunks), err)
	}
	return chunks
}

func wantStatus(t *testing.T, err error, status int) *openai.Error {
	t.Helper()
	var got *openai.Error
	if !errors.As(err, &got) || got.StatusCode != status {
		t.Fatalf("error %v, want status %d", err, status)
	}
	return got
}

func ended(reason string) bool { return reason == "length" || reason == "stop" }
