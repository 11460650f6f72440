// Following: who waits for whom, and what they get.

package proxy

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvasir/coalesce"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/openai/answer/answertest"
)

const chatPath = "/v1/chat/completions"

var helloWorld = answertest.Said{Text: "hello world", Finish: "stop", Model: "m", Choices: 1}

// Both forms follow both forms.
func TestFollowersGetTheAnswerInTheirForm(t *testing.T) {
	usage := strings.Replace(streamChat, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	for name, lead := range map[string]string{"a stream": streamChat, "a body": plainChat} {
		t.Run("behind "+name, func(t *testing.T) {
			w := startGated(t)
			p := startProxy(t, cachedSettings(t, w.url))
			leader := p.send(t, chatPath, lead)
			s := w.step(t)
			followers := p.follow(t, chatPath, plainChat, streamChat, usage)
			if lead == streamChat {
				s.say(streamHead+chunk(roleEvent), chunk(delta("hel")), chunk(delta("lo wo")+delta("rld")+finishEvent), chunk(usageEvent+doneEvent)+"0\r\n\r\n")
			} else {
				s.say(httpReply(200, "application/json", strings.Replace(chatReply, "hello", "hello world", 1)))
			}
			if got := says(t, leader.answer(t)); got != helloWorld {
				t.Errorf("the leader got %+v", got)
			}
			for i, f := range followers {
				r := f.answer(t)
				if got := says(t, r); got != helloWorld || r.StatusCode != 200 || r.Header.Get("x-kvasir-cache") != "wait" {
					t.Errorf("follower %d: %d %v %+v", i, r.StatusCode, r.Header, got)
				}
				if counted := strings.Contains(r.body, `"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`); counted != (i != 1) {
					t.Errorf("follower %d: usage %v in %q", i, counted, r.body)
				}
				if r.Header.Get("x-kvasir-worker") != "" {
					t.Error("a follower names a worker")
				}
			}
			waitUntil(t, "the call is over", func() bool { return p.coalesced.Stats().Calls == 0 })
			after := p.ask(t, chatPath, plainChat)
			if got := says(t, after); got != helloWorld || after.Header.Get("x-kvasir-cache") != "hit" {
				t.Errorf("after: %v %+v", after.Header, got)
			}
			if n := len(w.seen()); n != 1 {
				t.Errorf("the worker was asked %d times", n)
			}
			waitUntil(t, "all are booked", func() bool {
				log := p.log.String()
				return strings.Count(log, `"cache":"wait"`) == 3 && strings.Count(log, `"end":"ok"`) == 5
			})
		})
	}
}

// What comes is passed on when it comes.
func TestFollowersStreamAlong(t *testing.T) {
	w := startGated(t)
	p := startProxy(t, cachedSettings(t, w.url))
	leader := p.send(t, chatPath, streamChat)
	s := w.step(t)
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, post(chatPath, streamChat))
	waitUntil(t, "it follows", func() bool { return p.waiting() == 1 })
	s.say(streamHead+chunk(roleEvent), chunk(delta("one")))
	readUntil(t, c, `"content":"one"`)
	late := dial(t, p.addr)
	_, _ = io.WriteString(late, post(chatPath, streamChat))
	readUntil(t, late, `"content":"one"`)
	s.say(chunk(delta(" two")))
	readUntil(t, c, `"content":" two"`)
	readUntil(t, late, `"content":" two"`)
	s.say(chunk(finishEvent+usageEvent+doneEvent) + "0\r\n\r\n")
	readUntil(t, c, doneEvent+"\r\n0\r\n\r\n")
	readUntil(t, late, doneEvent+"\r\n0\r\n\r\n")
	if got := says(t, leader.answer(t)); got.Text != "one two" {
		t.Errorf("%+v", got)
	}
}

// A leader without followers is stopped as every request is, and a follower
// that hangs up leaves alone.
func TestFollowerHangsUpAlone(t *testing.T) {
	w := startGated(t)
	p := startProxy(t, cachedSettings(t, w.url))
	leader := p.send(t, chatPath, streamChat)
	s := w.step(t)
	follower := p.follow(t, chatPath, streamChat)[0]
	s.say(streamHead + chunk(roleEvent+delta("hello ")))
	_ = follower.Close()
	waitUntil(t, "it has left", func() bool { return p.waiting() == 0 })
	s.say(chunk(delta("world")+finishEvent+usageEvent+doneEvent) + "0\r\n\r\n")
	if got := says(t, leader.answer(t)); got != helloWorld {
		t.Errorf("%+v", got)
	}
	other := p.send(t, chatPath, strings.Replace(streamChat, "hi", "ho", 1))
	s = w.step(t)
	_ = other.Close()
	<-s.lost
	waitUntil(t, "the call is over", func() bool { return p.coalesced.Stats().Calls == 0 })
}

// Whoever has begun an answer that breaks off is told so; it is not begun anew.
func TestFollowerThatHasBegunIsInterrupted(t *testing.T) {
	w := startGated(t)
	s := cachedSettings(t, w.url)
	s.Retry.Attempts = 0
	p := startProxy(t, s)
	leader := p.send(t, chatPath, streamChat)
	first := w.step(t)
	c := p.follow(t, chatPath, plainChat)[0]
	streaming := dial(t, p.addr)
	_, _ = io.WriteString(streaming, post(chatPath, streamChat))
	waitUntil(t, "it follows", func() bool { return p.waiting() == 2 })
	first.say(streamHead + chunk(roleEvent+delta("hel")))
	r := bufio.NewReader(streaming)
	head, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4096)
	n, _ := head.Body.Read(got)
	close(first.next)
	rest, err := io.ReadAll(head.Body)
	if body := string(got[:n]) + string(rest); err == nil || !strings.Contains(body, "hel") || !strings.Contains(body, `"code":"stream_interrupted"`) || strings.Contains(body, "[DONE]") {
		t.Errorf("%v %q", err, body)
	}
	w.step(t).say(httpReply(200, "application/json", chatReply))
	if got := says(t, c.answer(t)); got.Text != "hello" {
		t.Errorf("%+v", got)
	}
	leader.answer(t)
	waitUntil(t, "both are booked", func() bool { return strings.Count(p.log.String(), `"end":"interrupted"`) == 2 })
}

// An answer that is for nobody else sends all on their way at once.
func TestAnswersForNobodyElse(t *testing.T) {
	event := func(members string) string { return streamHead + chunk(roleEvent+choice(members)) }
	for name, first := range map[string]string{
		"a call":           event(`"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":""}}]}`),
		"a refusal":        event(`"delta":{"refusal":"no"}`),
		"a member":         event(`"delta":{"content":"a","sound":[1]}`),
		"a wrong request":  httpReply(400, "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`),
		"not implemented":  httpReply(501, "application/json", `{"error":{"message":"no","type":"invalid_request_error"}}`),
		"filtered":         httpReply(200, "application/json", strings.Replace(chatReply, `"stop"`, `"content_filter"`, 1)),
		"no JSON":          httpReply(200, "text/plain", "hello"),
		"of unknown shape": httpReply(200, "application/json", `{"hello":"world"}`),
		"no content":       "HTTP/1.1 204 No Content\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := startGated(t)
			p := startProxy(t, cachedSettings(t, w.url))
			p.send(t, chatPath, streamChat)
			s := w.step(t)
			followers := p.follow(t, chatPath, plainChat, streamChat, plainChat)
			s.say(first)
			for range followers {
				w.step(t).say(httpReply(200, "application/json", strings.Replace(chatReply, "hello", "hello world", 1)))
			}
			for i, f := range followers {
				if r := f.answer(t); says(t, r) != helloWorld || r.Header.Get("x-kvasir-cache") != "miss" {
					t.Errorf("follower %d got %v %q", i, r.Header, r.body)
				}
			}
			close(s.next)
		})
	}
}

// An answer that a filter ended is whole for who has begun with it; the others
// ask for themselves.
func TestFilteredAnswerIsForWhoHasBegun(t *testing.T) {
	w := startGated(t)
	p := startProxy(t, cachedSettings(t, w.url))
	leader := p.send(t, chatPath, streamChat)
	s := w.step(t)
	plain := p.follow(t, chatPath, plainChat)[0]
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, post(chatPath, streamChat))
	waitUntil(t, "it follows", func() bool { return p.waiting() == 2 })
	s.say(streamHead + chunk(roleEvent+delta("hel")))
	readUntil(t, c, `"content":"hel"`)
	s.say(chunk(choice(`"delta":{"content":"lo"},"finish_reason":"content_filter"`)+doneEvent) + "0\r\n\r\n")
	readUntil(t, c, doneEvent)
	w.step(t).say(httpReply(200, "application/json", strings.Replace(chatReply, "hello", "hello world", 1)))
	if got := says(t, plain.answer(t)); got != helloWorld {
		t.Errorf("%+v", got)
	}
	if got := says(t, leader.answer(t)); got.Finish != "content_filter" {
		t.Errorf("%+v", got)
	}
}

// What is alike but not the same is asked apart.
func TestWhoDoesNotFollow(t *testing.T) {
	w := startGated(t)
	p := startProxy(t, cachedSettings(t, w.url))
	tools := `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"hi"}]}`
	bodies := []string{
		plainChat, strings.Replace(plainChat, "hi", "ho", 1), strings.Replace(plainChat, `"m"`, `"m","max_tokens":5`, 1),
		strings.Replace(plainChat, `"messages":[`, `"messages":[{"role":"system","content":"x"},`, 1), tools, tools,
	}
	clients := []*client{}
	for _, b := range bodies {
		clients = append(clients, p.send(t, chatPath, b))
	}
	for _, h := range []string{"Cache-Control: no-cache", "Cache-Control: no-store", "x-kvasir-cache: bypass", "Authorization: Bearer other"} {
		clients = append(clients, p.send(t, chatPath, plainChat, h))
	}
	steps := []*step{}
	for range clients {
		steps = append(steps, w.step(t))
	}
	for _, s := range steps {
		s.say(httpReply(200, "application/json", chatReply))
	}
	for _, c := range clients {
		if got := c.answer(t).Header.Get("x-kvasir-cache"); got == "wait" || got == "hit" {
			t.Error(got)
		}
	}
}

// White space is a part of a prompt that is to be continued, and of code: what
// the cache holds apart is not coalesced.
func TestWhiteSpaceIsNotCoalesced(t *testing.T) {
	w := startGated(t)
	p := startProxy(t, cachedSettings(t, w.url))
	const code = `{"model":"m","messages":[{"role":"user","content":"    x = 1\ny = 2"}]}`
	for path, bodies := range map[string][]string{
		"/v1/completions": {`{"model":"m","prompt":"def f(x):"}`, `{"model":"m","prompt":"def f(x):\n    "}`},
		chatPath:          {code, strings.Replace(code, "    x", "x", 1)},
	} {
		var clients []*client
		for _, body := range bodies {
			clients = append(clients, p.send(t, path, body))
		}
		for _, s := range []*step{w.step(t), w.step(t)} { // each asks for itself
			s.say(httpReply(400, "application/json", `{}`))
		}
		for _, c := range clients {
			_ = c.answer(t)
		}
	}
}

// A follower's patience has an end.
func TestFollowerIsNotPatientForEver(t *testing.T) {
	w := startGated(t)
	s := cachedSettings(t, w.url)
	s.Routing.Queue = false
	p := startProxy(t, s)
	p.send(t, chatPath, plainChat)
	w.step(t)
	impatient := *s
	impatient.Timeouts.FirstByte = 20 * time.Millisecond // of those who come now; the leader has its own
	if err := p.Apply(&impatient); err != nil {
		t.Fatal(err)
	}
	if r := p.ask(t, chatPath, plainChat); r.StatusCode != 504 || !strings.Contains(r.body, "an equal request") {
		t.Errorf("%d %q", r.StatusCode, r.body)
	}
	if p.waiting() != 0 {
		t.Error("it has not left")
	}
}

// What a follower does next, in each phase of the call.
func TestFollowerSteps(t *testing.T) {
	const running, leaderless, completed, forStarted, abandoned = coalesce.Running, coalesce.Leaderless, coalesce.Completed, coalesce.CompletedForStarted, coalesce.Abandoned
	begun := follower{stream: true, began: true, attempt: 1, said: 2}
	for _, tt := range []struct {
		name  string
		f     follower
		phase coalesce.Phase
		text  string
		want  followStep
		sent  string // in its events
	}{
		{"a body waits for all of it", follower{}, running, "he", followWait, ""},
		{"a stream waits for the first word", follower{stream: true}, running, "", followWait, ""},
		{"a stream begins", follower{stream: true}, running, "he", followSend, `"content":"he"`},
		{"a stream goes on", begun, running, "hello", followSend, `"content":"llo"`},
		{"a stream has nothing new", begun, running, "he", followWait, ""},
		{"a stream ends", begun, completed, "hello", followEnd, "[DONE]"},
		{"a stream that has begun ends with what is for no other", begun, forStarted, "hello", followEnd, "[DONE]"},
		{"a stream that has not begun is sent all", follower{stream: true}, completed, "hello", followWhole, ""},
		{"a body is sent all", follower{}, completed, "hello", followWhole, ""},
		{"it leads", follower{}, leaderless, "he", followTakeOver, ""},
		{"a stream that has begun does not lead", begun, leaderless, "he", followBroken, ""},
		{"a stream that has begun is abandoned", begun, abandoned, "he", followBroken, ""},
		{"one of another attempt", follower{stream: true, began: true, attempt: 2}, running, "he", followBroken, ""},
		{"what is for no other", follower{stream: true}, forStarted, "he", followAlone, ""},
		{"one that is abandoned", follower{}, abandoned, "he", followAlone, ""},
	} {
		f := tt.f
		f.replay = answer.NewReplay(&f.answer, openai.KindChat, answer.NewID(), 0, false)
		step, events := f.next(&coalesceSnapshot{Phase: tt.phase, Attempt: 1, Value: made{Answer: answer.Answer{Model: "m", Text: []byte(tt.text), Finish: "stop"}}})
		if step != tt.want || !strings.Contains(string(events), tt.sent) || (len(events) > 0) != (tt.sent != "") {
			t.Errorf("%s: step %d, want %d; %q", tt.name, step, tt.want, events)
		}
	}
}
