// Values put back into answers, however their placeholders are cut.

package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kvasir/openai"
	"kvasir/openai/answer/answertest"
)

func testVeil() *Veil {
	v := &Veil{}
	v.Placeholder(nil, "EMAIL_ADDRESS", []byte("ann@example.org"))
	v.Placeholder(nil, "EMAIL_ADDRESS", []byte("bob@example.org"))
	v.Placeholder(nil, "PERSON", []byte("Ann Müller"))
	v.Placeholder(nil, "PERSON", []byte(`Bob "B" O\Neil`)) // stays hidden: JSON would escape it
	return v
}

const (
	veiledText   = "Dear [PERSON], write to [EMAIL_ADDRESS] or [EMAIL_ADDRESS_2], not to [PERSON_2]. [x] [EMAIL_ [[PERSON]] [PERS"
	unveiledText = "Dear Ann Müller, write to ann@example.org or bob@example.org, not to [PERSON_2]. [x] [EMAIL_ [Ann Müller] [PERS"
)

func TestUnveilBody(t *testing.T) {
	body, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": veiledText}}}})
	got := NewUnveiler(testVeil(), openai.KindChat).Body(body)
	var back any
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if text := answertest.At(back, "choices 0 message content"); text != unveiledText {
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
			u := NewUnveiler(testVeil(), k.kind)
			var got bytes.Buffer
			for rest := veiledText; rest != ""; {
				n := min(len(rest), 1+random.IntN(1+round%12))
				quoted, _ := json.Marshal(rest[:n])
				rest = rest[n:]
				got.Write(u.Events([]byte(k.event(string(quoted)) + "\n\n")))
			}
			if round%2 == 0 {
				got.Write(u.Events([]byte(k.end)))
			}
			got.Write(u.Last())
			if text := answertest.TextAt(t, got.String(), k.path); text != unveiledText {
				t.Fatalf("kind %d, round %d:\ngot  %q\nwant %q", k.kind, round, text, unveiledText)
			}
		}
	}
}

// The texts of two choices do not run into each other.
func TestUnveilTellsChoicesApart(t *testing.T) {
	u := NewUnveiler(testVeil(), openai.KindChat)
	var got bytes.Buffer
	for _, part := range []string{"0 [PER", "1 [EMAIL_", "0 SON]", "1 ADDRESS]"} {
		index, text, _ := strings.Cut(part, " ")
		got.Write(u.Events(fmt.Appendf(nil, "data: {\"choices\":[{\"index\":%s,\"delta\":{\"content\":%q}}]}\n\n", index, text)))
	}
	for _, want := range []string{`{"index":0,"delta":{"content":"Ann Müller"}}`, `{"index":1,"delta":{"content":"ann@example.org"}}`} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%s is not in\n%s", want, got.String())
		}
	}
}

// The rest of one choice was sent in the shape of its last event, with the texts
// of the other choices in it a second time.
func TestUnveilSendsNothingTwice(t *testing.T) {
	u := NewUnveiler(testVeil(), openai.KindChat)
	var got strings.Builder
	for _, event := range []string{
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":"one"}},{"index":1,"delta":{"content":"two [PER"}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call","type":"function","function":{"name":"f","arguments":"[PER"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`[DONE]`,
	} {
		got.Write(u.Events([]byte("data: " + event + "\n\n")))
	}
	all := got.String() + string(u.Last())
	for _, once := range []string{`"one"`, `"two `, `"call"`, `"f"`, `"assistant"`} {
		if strings.Count(all, once) != 1 {
			t.Errorf("%s comes %d times in\n%s", once, strings.Count(all, once), all)
		}
	}
	if strings.Count(all, "[PER") != 2 {
		t.Errorf("what was held is not there:\n%s", all)
	}
}

// The calls of two choices have the same index, and their pieces ran together.
func TestUnveilTellsCallsOfChoicesApart(t *testing.T) {
	u := NewUnveiler(testVeil(), openai.KindChat)
	var got strings.Builder
	for _, part := range []string{"0 [PER", "1 [EMAIL_", "0 SON]", "1 ADDRESS]"} {
		index, text, _ := strings.Cut(part, " ")
		got.Write(u.Events([]byte(`data: {"choices":[{"index":` + index + `,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + text + `"}}]}}]}` + "\n\n")))
	}
	got.Write(u.Last())
	for _, want := range []string{"Ann Müller", "ann@example.org"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("%s is not in\n%s", want, got.String())
		}
	}
}

// An event that came in pieces, as one over 16 KiB does, was taken for several:
// what was held of one piece broke the next.
func TestUnveilLongEventsInPieces(t *testing.T) {
	long := strings.Repeat("x", 40<<10)
	event := `data: {"choices":[{"index":0,"delta":{"content":"` + long + `[PERSON] and [PER"}}]}` + "\n\n"
	rest := `data: {"choices":[{"index":0,"delta":{"content":" end"}}]}` + "\n\n" + doneText
	for cut := len(event) - 40; cut < len(event); cut++ {
		u := NewUnveiler(testVeil(), openai.KindChat)
		var got strings.Builder
		got.Write(u.Events([]byte(event[:cut])))
		got.Write(u.Events([]byte(event[cut:])))
		got.Write(u.Events([]byte(rest)))
		got.Write(u.Last())
		text := answertest.TextAt(t, got.String(), "choices 0 delta content")
		if text != long+"[PERSON] and [PER end" && text != long+"Ann Müller and [PER end" {
			t.Fatalf("cut at %d: %.60q", cut, strings.TrimLeft(text, "x"))
		}
	}
}

// Some engines write a choice's index behind its text: all choices were one.
func TestUnveilFindsIndicesBehindTexts(t *testing.T) {
	u := NewUnveiler(testVeil(), openai.KindText)
	var got strings.Builder
	for _, part := range []string{"0 [PER", "1 [EMAIL_", "0 SON]", "1 ADDRESS]"} {
		index, text, _ := strings.Cut(part, " ")
		got.Write(u.Events([]byte(`data: {"choices":[{"text":"` + text + `","logprobs":null,"index":` + index + `}]}` + "\n\n")))
	}
	for _, want := range []string{`"Ann Müller","logprobs":null,"index":0`, `"ann@example.org","logprobs":null,"index":1`} {
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
			u := NewUnveiler(testVeil(), k)
			cut := min(max(cut, 0), len(b))
			n := len(u.Events(b[:cut])) + len(u.Events(b[cut:])) + len(u.Last())
			if n > 64+40*len(b)+20*len(b)*len(b) {
				t.Errorf("%d bytes became %d", len(b), n)
			}
		}
	})
}

func TestPlaceholdersTellValuesApart(t *testing.T) {
	var v Veil
	var got []string
	for _, value := range []string{"PERSON Ann", "PERSON Bob", "PERSON Ann", "GPE Oslo", "PERSON Cem"} {
		kind, value, _ := strings.Cut(value, " ")
		got = append(got, string(v.Placeholder(nil, kind, []byte(value))))
	}
	if want := "[PERSON] [PERSON_2] [PERSON] [GPE] [PERSON_3]"; strings.Join(got, " ") != want {
		t.Errorf("placeholders are %s, want %s", strings.Join(got, " "), want)
	}
}
