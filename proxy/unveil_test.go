// Values put back into answers, however their placeholders are cut.
package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kvasir/openai"
)

func testVeil() *veil {
	v := &veil{}
	v.placeholder(nil, "EMAIL_ADDRESS", []byte("ann@example.org"))
	v.placeholder(nil, "EMAIL_ADDRESS", []byte("bob@example.org"))
	v.placeholder(nil, "PERSON", []byte("Ann Müller"))
	v.placeholder(nil, "PERSON", []byte(`Bob "B" O\Neil`)) // stays hidden: JSON would escape it
	return v
}

const (
	veiledText   = "Dear [PERSON], write to [EMAIL_ADDRESS] or [EMAIL_ADDRESS_2], not to [PERSON_2]. [x] [EMAIL_ [[PERSON]] [PERS"
	unveiledText = "Dear Ann Müller, write to ann@example.org or bob@example.org, not to [PERSON_2]. [x] [EMAIL_ [Ann Müller] [PERS"
)

func TestUnveilBody(t *testing.T) {
	body, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": veiledText}}}})
	got := newUnveiler(testVeil(), openai.KindChat).body(body)
	var back any
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if text := at(back, "choices 0 message content"); text != unveiledText {
		t.Errorf("got  %q\nwant %q", text, unveiledText)
	}
}

// However the text is cut into events, and the events into reads, the client
// puts together the same text, in the end all of it.
func TestUnveilEventsHoweverCut(t *testing.T) {
	kinds := []struct {
		kind  openai.Kind
		event func(s string) string
		end   string
		path  string
	}{
		{openai.KindChat, func(s string) string {
			return `data: {"id":"c","choices":[{"index":0,"delta":{"content":` + s + `},"finish_reason":null}]}`
		},
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + doneText, "choices 0 delta content"},
		{openai.KindChat, func(s string) string {
			return `data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":` + s + `}}]},"finish_reason":null}]}`
		}, doneText, "choices 0 delta tool_calls 0 function arguments"},
		{openai.KindText, func(s string) string { return `data: {"choices":[{"text":` + s + `,"index":0,"finish_reason":null}]}` }, doneText, "choices 0 text"},
		{openai.KindResponses, func(s string) string {
			return "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":" + s + "}"
		}, `data: {"type":"response.completed","response":{}}` + "\n\n", "delta"},
		{openai.KindMessages, func(s string) string {
			return "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":" + s + "}}"
		}, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n", "delta text"},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, k := range kinds {
		for round := range 200 {
			u := newUnveiler(testVeil(), k.kind)
			var got bytes.Buffer
			for rest := veiledText; rest != ""; {
				n := min(len(rest), 1+random.IntN(1+round%12))
				quoted, _ := json.Marshal(rest[:n])
				rest = rest[n:]
				got.Write(u.events([]byte(k.event(string(quoted)) + "\n\n")))
			}
			if round%2 == 0 {
				got.Write(u.events([]byte(k.end)))
			}
			got.Write(u.last())
			if text := textOf(t, got.String(), k.path); text != unveiledText {
				t.Fatalf("kind %d, round %d:\ngot  %q\nwant %q", k.kind, round, text, unveiledText)
			}
		}
	}
}

func textOf(t *testing.T, stream, path string) string {
	t.Helper()
	var all strings.Builder
	for event := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		_, data, _ := strings.Cut(event, "data: ")
		if data == "[DONE]" {
			continue
		}
		var e any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v in %q", err, data)
		}
		if s, ok := at(e, path).(string); ok {
			all.WriteString(s)
		}
	}
	return all.String()
}

// The texts of two choices do not run into each other.
func TestUnveilTellsChoicesApart(t *testing.T) {
	u := newUnveiler(testVeil(), openai.KindChat)
	var got bytes.Buffer
	for _, part := range []string{"0 [PER", "1 [EMAIL_", "0 SON]", "1 ADDRESS]"} {
		index, text, _ := strings.Cut(part, " ")
		got.Write(u.events(fmt.Appendf(nil, "data: {\"choices\":[{\"index\":%s,\"delta\":{\"content\":%q}}]}\n\n", index, text)))
	}
	for _, want := range []string{`{"index":0,"delta":{"content":"Ann Müller"}}`, `{"index":1,"delta":{"content":"ann@example.org"}}`} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%s is not in\n%s", want, got.String())
		}
	}
}

func FuzzUnveilEvents(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"[PERSON]\"}}]}\n\ndata: [DONE]\n\n"), 3)
	f.Add([]byte("data: {\"delta\":\"a\\\"[\",\"x"), 1)
	f.Add([]byte("event: e\r\rdata: \"[PERSON"), 0)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		for k := openai.KindOpaque; k <= openai.KindForm; k++ {
			u := newUnveiler(testVeil(), k)
			cut := min(max(cut, 0), len(b))
			n := len(u.events(b[:cut])) + len(u.events(b[cut:])) + len(u.last())
			if n > 64+40*len(b)+20*len(b)*len(b) {
				t.Errorf("%d bytes became %d", len(b), n)
			}
		}
	})
}
