// Recordings of what real engines said, and of what cannot be taken down.

package answer

import (
	"bytes"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"kvasir/openai"
	"kvasir/openai/answer/answertest"
)

// recordIn gives the recorder a body in reads that end anywhere.
func recordIn(k openai.Kind, tr answertest.Transcript, size func() int) *Recorder {
	r := NewRecorder(k, false)
	if tr.Events() == nil {
		r.Body(tr.Body)
		r.Seal()
		return r
	}
	s := NewFlow(k, false, nil)
	s.Recorder = r
	var held []byte
	for rest := tr.Body; len(rest) > 0; {
		n := min(size(), len(rest))
		held, rest = append(held, rest[:n]...), rest[n:]
		pass, skip := s.Scan(held)
		held = held[pass+skip:]
	}
	s.Last(held)
	r.Seal()
	return r
}

func TestEveryTranscriptIsRecorded(t *testing.T) {
	good, bad, stored := 0, 0, 0
	for _, tr := range answertest.Transcripts(t) {
		k := tr.Kind
		if rt := (openai.Route{Kind: k}); !rt.Recorded() || !tr.OK() {
			continue
		}
		random := rand.New(rand.NewSource(1))
		var first *Recorder
		for _, size := range []func() int{
			func() int { return len(tr.Body) }, func() int { return 1 }, func() int { return 7 }, func() int { return 1 + random.Intn(400) },
		} {
			r := recordIn(k, tr, size)
			if first == nil {
				first = r
			} else if !reflect.DeepEqual(r, first) {
				t.Errorf("%s: in pieces %+v\nin one %+v", tr.Name, r, first)
			}
		}
		if first.Flaw() != answertest.Unfaithful[tr.Name] {
			t.Errorf("%s: flaw %q, want %q", tr.Name, first.Flaw(), answertest.Unfaithful[tr.Name])
		}
		if first.Flaw() != "" {
			bad++
			continue
		}
		good++
		want := tr.Said(t)
		got := answertest.Said{
			Text: string(first.Answer().Text), Reasoning: string(first.Answer().Reasoning), Finish: first.Answer().Finish, Model: first.Answer().Model, Choices: want.Choices,
		}
		if got != want || !first.draft.over || first.Faithful() != (want.Finish == "stop" || want.Finish == "length") {
			t.Errorf("%s:\n got %+v\nwant %+v, faithful %v", tr.Name, got, want, first.Faithful())
		}
		if first.Storable() && want.Finish != "stop" {
			t.Errorf("%s: would be stored", tr.Name)
		}
		stopped := tr // all of them were stopped at a length
		stopped.Body = answertest.Unlimited(tr.Body)
		if r := recordIn(k, stopped, func() int { return 100 }); r.Storable() != (strings.TrimSpace(want.Text) != "") {
			t.Errorf("%s: stopped, storable %v", tr.Name, r.Storable())
		} else if r.Storable() {
			stored++
		}
		if again, err := Parse(first.Answer().AppendTo(nil)); err != nil || !reflect.DeepEqual(&again, first.Answer()) {
			t.Errorf("%s: kept as %+v, %v", tr.Name, again, err)
		}
		if first.Answer().RawUsage != nil && !bytes.Contains(tr.Body, first.Answer().RawUsage) {
			t.Errorf("%s: usage %s", tr.Name, first.Answer().RawUsage)
		}
	}
	if good < 40 || bad < 20 || stored < 40 {
		t.Errorf("%d good, %d of them to be stored, %d bad", good, stored, bad)
	}
}

// delta is one event of a chat stream.
func delta(content string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` + content + `"},"finish_reason":null}]}` + "\n\n"
}

const (
	roleEvent   = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	finishEvent = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent  = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"

	chatReply = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`
)

// choice is a chunk of chat with this choice.
func choice(members string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,` + members + `}]}` + "\n\n"
}

func recordEvents(r *Recorder, events ...string) *Recorder {
	for _, e := range events {
		r.Event([]byte(e))
	}
	r.Seal()
	return r
}

func TestRecordedStreams(t *testing.T) {
	const stop = `"delta":{},"finish_reason":"stop"`
	for _, c := range []struct {
		name   string
		events []string
		want   Answer
	}{
		{"escapes, characters and pieces", []string{
			roleEvent, choice(`"delta":{"content":"a\u00e9\n"}`), choice(`"delta":{"content":""}`), choice(`"delta":{"content":"\ud83d\ude00世"}`), choice(stop), doneEvent,
		}, Answer{Model: "m", Created: 1, Text: []byte("aé\n😀世"), Pieces: []int32{4, 11}, Finish: "stop"}},
		{"reasoning", []string{
			choice(`"delta":{"role":"assistant","reasoning":"hm"}`), choice(`"delta":{"reasoning":"\n"}`), choice(`"delta":{"content":"b","reasoning":null}`), choice(stop), doneEvent,
		}, Answer{Model: "m", Created: 5, Text: []byte("b"), Pieces: []int32{1}, Reasoning: []byte("hm\n"), ReasoningKey: "reasoning", Finish: "stop"}},
		{"usage with every event, the last one counts", []string{
			`data: {"model":"m","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}` + "\n\n", choice(stop), usageEvent, doneEvent,
		}, Answer{Model: "m", Created: 5, Text: []byte("a"), Pieces: []int32{1}, Finish: "stop", RawUsage: []byte(`{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`)}},
		{"comments, and an event over two lines", []string{
			": keep-alive\n\n", "data: {\"model\":\"org\\/m\",\ndata: \"usage\":{\ndata: },\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n", doneEvent,
		}, Answer{Model: "org/m", Text: []byte("a"), Pieces: []int32{1}, Finish: "stop"}},
		{"calls in pieces", []string{
			choice(`"delta":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","index":0,"function":{"name":"f"}}]}`),
			choice(`"delta":{"tool_calls":[{"function":{"arguments":"{\"a\\n"},"index":0}]}`),
			choice(`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}},{"index":1,"id":"y","function":{"name":"g","arguments":"{}"}}]}`),
			choice(`"delta":{},"finish_reason":"tool_calls"`), doneEvent,
		}, Answer{Model: "m", Created: 5, Finish: "tool_calls", Calls: []byte(
			`[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\\n\":1}"}},{"id":"y","type":"function","function":{"name":"g","arguments":"{}"}}]`)}},
	} {
		r := recordEvents(NewRecorder(openai.KindChat, true), c.events...)
		if !reflect.DeepEqual(*r.Answer(), c.want) || !r.Storable() {
			t.Errorf("%s: flaw %q, storable %v\n got %+v\nwant %+v", c.name, r.Flaw(), r.Storable(), r.Answer(), c.want)
		}
	}
}

func TestRecordedCallsOfABody(t *testing.T) {
	const calls = `[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
	body := `{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":` + calls + `},"finish_reason":"tool_calls"}]}`
	r := NewRecorder(openai.KindChat, true)
	r.Body([]byte(body))
	if r.Seal(); !r.Storable() || string(r.Answer().Calls) != calls {
		t.Errorf("flaw %q, %s", r.Flaw(), r.Answer().Calls)
	}
	r = NewRecorder(openai.KindChat, false)
	r.Body([]byte(body))
	if r.Seal(); r.Flaw() != "tool_calls" || r.Storable() {
		t.Errorf("though calls are not to be stored: flaw %q", r.Flaw())
	}
}

// What must never be stored, and why not.
func TestNeverStored(t *testing.T) {
	hello, stop := choice(`"delta":{"content":"hello"}`), choice(`"delta":{},"finish_reason":"stop"`)
	long := choice(`"delta":{"content":"` + strings.Repeat("a", RecordLimit/3) + `"}`)
	for _, c := range []struct {
		name     string
		events   []string
		flaw     string
		faithful bool // others may follow it all the same
	}{
		{"without its end mark", []string{hello, stop}, "", true},
		{"without a finish_reason", []string{hello, doneEvent}, "", false},
		{"cut at a length", []string{hello, choice(`"delta":{},"finish_reason":"length"`), doneEvent}, "", true},
		{"filtered", []string{hello, choice(`"delta":{},"finish_reason":"content_filter"`), doneEvent}, "", false},
		{"aborted", []string{hello, choice(`"delta":{},"finish_reason":"abort"`), doneEvent}, "", false},
		{"without a word", []string{choice(`"delta":{"content":" \n"}`), stop, doneEvent}, "", true},
		{"an error event", []string{hello, "data: {\"error\":{\"message\":\"x\"}}\n\n", doneEvent}, "error", false},
		{"a named error event", []string{hello, "event: error\ndata: {}\n\n", doneEvent}, "error", false},
		{"a refusal", []string{choice(`"delta":{"refusal":"no"}`), stop, doneEvent}, "refusal", false},
		{"a call", []string{hello, choice(`"delta":{"tool_calls":[{"index":0}]}`), stop, doneEvent}, "tool_calls", false},
		{"an old call", []string{hello, choice(`"delta":{"function_call":{"name":"f"}}`), stop, doneEvent}, "tool_calls", false},
		{"audio", []string{hello, choice(`"delta":{"audio":{"id":"a"}}`), stop, doneEvent}, "audio", false},
		{"annotations", []string{hello, choice(`"delta":{"annotations":[{"type":"url_citation"}]}`), stop, doneEvent}, "annotations", false},
		{"logprobs", []string{choice(`"delta":{"content":"a"},"logprobs":{"content":[]}`), stop, doneEvent}, "logprobs", false},
		{"content in parts", []string{choice(`"delta":{"content":[{"type":"text"}]}`), stop, doneEvent}, "content", false},
		{"another choice", []string{hello, `data: {"choices":[{"index":1,"delta":{"content":"b"}}]}` + "\n\n", stop, doneEvent}, "choices", false},
		{"two choices at once", []string{`data: {"choices":[{"index":0},{"index":1}]}` + "\n\n", stop, doneEvent}, "choices", false},
		{"two ends", []string{hello, stop, choice(`"delta":{},"finish_reason":"length"`), doneEvent}, "finish_reason", false},
		{"more behind the end", []string{hello, stop, doneEvent, hello}, "more", false},
		{"citations", []string{hello, stop, `data: {"choices":[],"citations":["x"]}` + "\n\n", doneEvent}, "member", false},
		{"half a character", []string{choice(`"delta":{"content":"\ud83d"}`), choice(`"delta":{"content":"\ude00"}`), stop, doneEvent}, "string", false},
		{"no UTF-8", []string{choice(`"delta":{"content":"` + "\xff" + `"}`), stop, doneEvent}, "string", false},
		{"broken JSON", []string{hello, `data: {"choices":[{"index":0` + "\n\n", stop, doneEvent}, "data", false},
		{"no JSON", []string{hello, "data: hi\n\n", stop, doneEvent}, "data", false},
		{"longer than is stored", []string{long, stop, doneEvent}, "", true},
		{"longer than is followed", []string{long, long, long, hello, stop, doneEvent}, "length", false},
		{"reasoning in two members", []string{choice(`"delta":{"reasoning":"a","reasoning_content":"a"}`), hello, stop, doneEvent}, "reasoning", false},
	} {
		r := recordEvents(NewRecorder(openai.KindChat, false), c.events...)
		if r.Flaw() != c.flaw || r.Faithful() != c.faithful || r.Storable() {
			t.Errorf("%s: flaw %q, faithful %v, storable %v", c.name, r.Flaw(), r.Faithful(), r.Storable())
		}
	}
	whole := recordEvents(NewRecorder(openai.KindChat, false), hello, stop, doneEvent)
	if whole.sealed = false; whole.Faithful() || whole.Storable() {
		t.Error("stored although its framing was cut")
	}
	big := NewRecorder(openai.KindChat, false)
	big.Spoil("length")
	if recordEvents(big, hello, stop, doneEvent); big.Storable() || len(big.Answer().Text) > 0 {
		t.Error("goes on after a flaw")
	}
}

// The end of an event whose beginning went on in pieces is no event.
func TestEventInPiecesIsNotRecorded(t *testing.T) {
	r := NewRecorder(openai.KindChat, false)
	s := NewFlow(openai.KindChat, false, nil)
	s.Recorder = r
	event := []byte(delta("first") + delta(strings.Repeat("a", holdLimit)))
	pass, _ := s.Scan(event[:len(event)-2])
	pass, _ = s.Scan(event[pass : len(event)-2])
	s.Scan(event[len(event)-2:])
	if s.Scan([]byte(finishEvent + doneEvent)); pass == 0 || r.Flaw() != "length" {
		t.Errorf("passed %d, flaw %q", pass, r.Flaw())
	}
}

// FuzzRecorder: whatever a worker sends, what is storable can be kept and read.
func FuzzRecorder(f *testing.F) {
	f.Add(byte(openai.KindChat), []byte(roleEvent+delta("a")+finishEvent+usageEvent+doneEvent))
	f.Add(byte(openai.KindChat), []byte(chatReply))
	f.Fuzz(func(t *testing.T, k byte, data []byte) {
		r := NewRecorder(openai.Kind(k%6), true)
		if bytes.HasPrefix(data, []byte("{")) {
			r.Body(data)
		} else {
			s := NewFlow(openai.Kind(k%6), false, nil)
			s.Recorder = r
			for rest := data; ; {
				pass, skip := s.Scan(rest)
				if rest = rest[pass+skip:]; pass+skip == 0 {
					s.Last(rest)
					break
				}
			}
		}
		if r.Seal(); !r.Storable() {
			return
		}
		again, err := Parse(r.Answer().AppendTo(nil))
		if err != nil || !reflect.DeepEqual(&again, r.Answer()) {
			t.Fatalf("%+v is kept as %+v, %v", r.Answer(), again, err)
		}
	})
}

// An event that is taken down costs what its text costs.
func TestAllocationsOfARecordedEvent(t *testing.T) {
	event := []byte(delta("abc"))
	r := NewRecorder(openai.KindChat, false)
	a := r.Answer()
	a.Text, a.Pieces = make([]byte, 0, 1<<20), make([]int32, 0, 1<<18)
	r.Event(event)
	if n := testing.AllocsPerRun(1000, func() { r.Event(event) }); n > 0 || r.Flaw() != "" {
		t.Errorf("%.1f allocations an event, flaw %q", n, r.Flaw())
	}
}

func BenchmarkRecordedEvent(b *testing.B) {
	event := []byte(delta("abc"))
	b.ReportAllocs()
	for b.Loop() {
		r := NewRecorder(openai.KindChat, false)
		for range 100 {
			r.Event(event)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
}

// Many calls, each small enough, are together too much to be held.
func TestCallsAreBoundedTogether(t *testing.T) {
	r := NewRecorder(openai.KindChat, true)
	for i := range 8 {
		r.Event(fmt.Appendf(nil, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":"f","arguments":"%s"}}]},"finish_reason":null}]}`+"\n\n",
			i, i, strings.Repeat("a", callsLimit/4)))
	}
	if r.Flaw() != "length" || r.draft.calls.bytes > callsLimit {
		t.Errorf("flaw %q, %d bytes are held", r.Flaw(), r.draft.calls.bytes)
	}
}

// Readers of JSON do not agree on which of two members of one name counts: such
// an answer is for nobody else.
func TestTwiceIsNeverStored(t *testing.T) {
	usage := `"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`
	chat := func(members string) string {
		return `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` + members + `,"finish_reason":"stop"}],` + usage + `}`
	}
	message := func(text string) string {
		return `{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"text",` + text + `}],"stop_reason":"end_turn"}`
	}
	response := func(part, more string) string {
		return `{"id":"a","object":"response","status":"completed","model":"m","output":[{"type":"message","role":"assistant","content":[{"type":"output_text",` + part + `}]}]` + more + `}`
	}
	call := func(members string) string {
		return `{"choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"x","type":"function","function":{` + members + `}}]},"finish_reason":"tool_calls"}]}`
	}
	for _, c := range []struct {
		kind  openai.Kind
		body  string
		twice bool
	}{
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a"}`), false},
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a","content":"b"}`), true},
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a","Content":""}`), true},
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a","c\u006fntent":""}`), true},
		{openai.KindChat, chat(`"message":{"role":"a","content":"a"},"message":{"content":"b"}`), true},
		{openai.KindChat, chat(`"message":{"content":"a","role":"assistant","role":"user"}`), true},
		{openai.KindChat, strings.Replace(chat(`"message":{"content":"a"}`), usage, usage+`,"choices":[]`, 1), true},
		{openai.KindChat, strings.Replace(chat(`"message":{"content":"a"}`), usage, usage+`,"id":"b"`, 1), true},
		{openai.KindChat, strings.Replace(chat(`"message":{"content":"a"}`), usage, `"usage":{"prompt_tokens":1,"prompt_tokens":9}`, 1), true},
		{openai.KindText, `{"choices":[{"index":0,"text":"a","text":"b","finish_reason":"stop"}]}`, true},
		{openai.KindMessages, message(`"text":"a"`), false},
		{openai.KindMessages, message(`"text":"a","text":"b"`), true},
		{openai.KindResponses, response(`"text":"a"`, ``), false},
		{openai.KindResponses, response(`"text":"a","text":"b"`, ``), true},
		{openai.KindResponses, response(`"text":"a"`, `,"instructions":"a","Instructions":"b"`), true},
		{openai.KindChat, call(`"name":"f","arguments":"{}"`), false},
		{openai.KindChat, call(`"name":"f","arguments":"{}","name":"g"`), true},
	} {
		r := NewRecorder(c.kind, true)
		r.Body([]byte(c.body))
		r.Seal()
		if (r.Flaw() != "") != c.twice || r.Storable() == c.twice || r.Faithful() == c.twice {
			t.Errorf("%s: flaw %q, storable %v", c.body, r.Flaw(), r.Storable())
		}
	}
	stop := choice(`"delta":{},"finish_reason":"stop"`)
	for _, event := range []string{
		choice(`"delta":{"content":"a","content":"b"}`), choice(`"delta":{"content":"a"},"delta":{"content":"b"}`),
		"data: {\"model\":\"m\",\ndata: \"choices\":[{\"delta\":{\"content\":\"a\"}}],\"choices\":[]}\n\n",
	} {
		if r := recordEvents(NewRecorder(openai.KindChat, false), event, stop, doneEvent); r.Flaw() != flawTwice || r.Faithful() {
			t.Errorf("%s: flaw %q", event, r.Flaw())
		}
	}
	if r := recordEvents(NewRecorder(openai.KindChat, false), choice(`"delta":{"content":"a"}`), choice(`"delta":{"content":"a"}`), stop, doneEvent); !r.Storable() {
		t.Errorf("one event after the other is no member twice: flaw %q", r.Flaw())
	}
}
