// Kept answers, told again in every form.

package answer

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"kvasir/openai"
	"kvasir/openai/answer/answertest"
)

var rewriteReplays = flag.Bool("rewrite-replays", false, "write the replies into testdata/replays.txt")

func kept() *Answer {
	return &Answer{
		Model: `a "b"`, Created: 1600000000, Text: []byte("It is 330\u00a0m tall.\n\n  \"Très\" haut: \U0001f5fc\u0001"),
		Reasoning: []byte("Paris \\ 1889\n"), ReasoningKey: "reasoning_content", Finish: "stop", Fingerprint: "fp_1",
		RawUsage: []byte(`{"prompt_tokens":7,"total_tokens":27,"completion_tokens":20}`),
	}
}

func usageOfKind(k openai.Kind) []byte {
	if k == openai.KindChat || k == openai.KindText {
		return []byte(`{"prompt_tokens":7,"total_tokens":27,"completion_tokens":20}`)
	}
	return []byte(`{"input_tokens":7,"output_tokens":20}`)
}

// A file of replies as they are sent, to be read by a person: rewritten with
// -rewrite-replays.
func TestRepliesAreThese(t *testing.T) {
	var b bytes.Buffer
	for _, c := range []struct {
		name   string
		kind   openai.Kind
		stream bool
		usage  bool
		change func(*Answer)
	}{
		{"chat", openai.KindChat, false, false, nil},
		{"chat, streamed, usage asked for", openai.KindChat, true, true, nil},
		{"chat, streamed in the worker's pieces", openai.KindChat, true, false, func(a *Answer) {
			a.Reasoning, a.Text, a.Pieces, a.Fingerprint = nil, []byte("One, two"), []int32{3, 4, 8}, ""
		}},
		{"chat that ends in calls", openai.KindChat, false, false, calling},
		{"chat that ends in calls, streamed", openai.KindChat, true, false, calling},
		{"completion", openai.KindText, false, false, nil},
		{"completion, streamed, usage asked for", openai.KindText, true, true, nil},
		{"response", openai.KindResponses, false, false, nil},
		{"response, streamed", openai.KindResponses, true, false, nil},
		{"response cut at its length", openai.KindResponses, false, false, func(a *Answer) { a.Finish, a.Reasoning, a.RawUsage = "length", nil, nil }},
		{"message", openai.KindMessages, false, false, nil},
		{"message, streamed", openai.KindMessages, true, false, nil},
	} {
		a := kept()
		a.RawUsage = usageOfKind(c.kind)
		if c.change != nil {
			c.change(a)
		}
		r := NewReplay(a, c.kind, "cache-0123456789abcdef", 1700000000, c.usage)
		b.WriteString("=== " + c.name + "\n")
		b.Write(bytes.TrimSuffix(r.AppendTo(nil, c.stream), []byte("\n")))
		b.WriteString("\n")
	}
	const file = "testdata/replays.txt"
	if *rewriteReplays {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the replies are not those of %s:\n%s", file, b.Bytes())
	}
}

func calling(a *Answer) {
	a.Text, a.Reasoning, a.Finish = nil, nil, "tool_calls"
	a.Calls = []byte(`[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}, {"index":1,"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]`)
}

// The text of a stream is the kept one, byte for byte, however it is cut.
func TestStreamsLoseNothing(t *testing.T) {
	for _, text := range []string{
		"", " ", "\n", "a", "one two", "  leading", "trailing  \n", "a\n\n\nb\t\tc \r\n d", strings.Repeat("x", 1000), "你好,世界。很高兴见到你!" + strings.Repeat("好", 50),
		"👩‍👩‍👧 🗼", strings.Repeat("word ", 20_000), strings.Repeat(" ", 100), strings.Repeat("\n", 100), "\"quoted\" \\ back\\slash \u2028 \x7f \x00",
	} {
		for _, k := range []openai.Kind{openai.KindChat, openai.KindText, openai.KindResponses, openai.KindMessages} {
			a := kept()
			a.Text, a.Reasoning, a.RawUsage = []byte(text), []byte(text+"?"), usageOfKind(k)
			if k == openai.KindText {
				a.Reasoning = nil
			}
			said, thought, events := told(t, a, k)
			if said != text || thought != string(a.Reasoning) {
				t.Errorf("kind %d says %q and thinks %q of %.40q", k, said, thought, text)
			}
			if most := 2*maxPieces + 100; events > 2*most {
				t.Errorf("kind %d: %d events", k, events)
			}
		}
	}
}

// told streams the answer and puts together what the events say.
func told(t *testing.T, a *Answer, k openai.Kind) (said, thought string, count int) {
	t.Helper()
	r := NewReplay(a, k, NewID(), 1700000000, true)
	events := r.AppendTo(nil, true)
	flow := NewFlow(k, false, nil)
	if pass, skip := flow.Scan(events); pass != len(events) || skip != 0 || !flow.Finished() || !flow.Done {
		t.Errorf("kind %d: the stream is not taken for a finished one: %d of %d bytes", k, pass, len(events))
	}
	for event := range strings.SplitSeq(strings.TrimSpace(string(events)), "\n\n") {
		count++
		_, data, _ := strings.Cut(event, "data: ")
		if data == "[DONE]" {
			continue
		}
		if !utf8.ValidString(data) || strings.ContainsAny(data, "\r\n") {
			t.Errorf("kind %d: %q", k, data)
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("kind %d: %v in %s", k, err, data)
		}
		take := func(to *string, path string) {
			if s, ok := answertest.At(e, path).(string); ok {
				*to += s
			}
		}
		take(&said, "choices 0 delta content")
		take(&said, "choices 0 text")
		take(&said, "delta text")
		take(&thought, "choices 0 delta reasoning_content")
		take(&thought, "delta thinking")
		switch e["type"] {
		case "response.output_text.delta":
			take(&said, "delta")
		case "response.reasoning_text.delta":
			take(&thought, "delta")
		}
	}
	return said, thought, count
}

// Pieces are the worker's own where they can be; ends that lie are not followed.
func TestPiecesFollowTheWorker(t *testing.T) {
	for _, c := range []struct {
		text string
		ends []int32
		want string // with bars between
	}{
		{"one two", []int32{1, 5, 7}, "o|ne t|wo"},
		{"one two", nil, "one| two"},
		{"one two", []int32{3}, "one| two"},
		{"one two", []int32{5, 3, -1, 99}, "one t|wo"},
		{"é!", []int32{1, 3}, "é!"},
		{"a\n\nb  c ", nil, "a|\n\n|b|  c| "},
		{"0123456789abcdefghij", nil, "0123456789abcdef|ghij"},
		{"好好好好好好", nil, "好好好好好好"},
	} {
		var got []string
		for p := PiecesOf([]byte(c.text), c.ends, 0); p.More(); {
			got = append(got, string(p.Next()))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q by %v: %s, want %s", c.text, c.ends, strings.Join(got, "|"), c.want)
		}
	}
}

// JSON and stream say the same.
func TestBodiesSayWhatStreamsSay(t *testing.T) {
	for k, paths := range map[openai.Kind][3]string{
		openai.KindChat:      {"choices 0 message content", "choices 0 message reasoning_content", "choices 0 finish_reason"},
		openai.KindText:      {"choices 0 text", "", "choices 0 finish_reason"},
		openai.KindResponses: {"", "output 0 content 0 text", "status"},
		openai.KindMessages:  {"", "content 0 thinking", "stop_reason"},
	} {
		a := kept()
		a.RawUsage = usageOfKind(k)
		r := NewReplay(a, k, NewID(), 1700000000, false)
		var body any
		if err := json.Unmarshal(r.AppendTo(nil, false), &body); err != nil {
			t.Fatal(err)
		}
		said, thought, _ := told(t, a, k)
		if paths[0] != "" && answertest.At(body, paths[0]) != said {
			t.Errorf("kind %d says %q, streams %q", k, answertest.At(body, paths[0]), said)
		}
		if paths[1] != "" && answertest.At(body, paths[1]) != thought {
			t.Errorf("kind %d thinks %q, streams %q", k, answertest.At(body, paths[1]), thought)
		}
		if end := answertest.At(body, paths[2]); end != "stop" && end != "completed" && end != "end_turn" {
			t.Errorf("kind %d ends with %q", k, end)
		}
		if got := answertest.At(body, "usage"); got == nil {
			t.Errorf("kind %d has no usage", k)
		}
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte("One, two.\n"), []byte("hm"), []byte{3, 1})
	f.Add([]byte("好 \\ \""), []byte{}, []byte{1, 1, 1})
	f.Fuzz(func(t *testing.T, text, reasoning, lengths []byte) {
		if !utf8.Valid(text) || !utf8.Valid(reasoning) {
			return
		}
		a := kept()
		a.Text, a.Reasoning, a.Pieces = text, reasoning, nil
		end := int32(0)
		for _, n := range lengths {
			end += int32(n)
			a.Pieces = append(a.Pieces, end)
		}
		for _, k := range []openai.Kind{openai.KindChat, openai.KindResponses, openai.KindMessages} {
			if said, thought, _ := told(t, a, k); said != string(text) || thought != string(reasoning) {
				t.Errorf("kind %d says %q and thinks %q", k, said, thought)
			}
		}
	})
}

func TestReplayAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	a := kept()
	a.Text, a.Reasoning = []byte(strings.Repeat("The tower is 330 m tall. ", 200)), nil
	for _, stream := range []bool{false, true} {
		dst := make([]byte, 0, 1<<20)
		if allocs := testing.AllocsPerRun(100, func() {
			r := NewReplay(a, openai.KindChat, NewID(), 1700000000, false)
			dst = r.AppendTo(dst[:0], stream)
		}); allocs > 2 { // the id, and the beginning of each chunk
			t.Errorf("stream %v: %v allocations", stream, allocs)
		}
		r := NewReplay(a, openai.KindChat, NewID(), 1700000000, false)
		if size := r.Size(stream); size < len(dst) {
			t.Errorf("stream %v: %d bytes, guessed %d", stream, len(dst), size)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	a := kept()
	a.Text, a.Reasoning = []byte(strings.Repeat("The tower is 330 m tall. ", 40)), nil
	for name, stream := range map[string]bool{"body": false, "stream": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]byte, 0, 1<<20)
			for b.Loop() {
				r := NewReplay(a, openai.KindChat, NewID(), 1700000000, false)
				dst = r.AppendTo(dst[:0], stream)
			}
			b.SetBytes(int64(len(dst)))
		})
	}
}
