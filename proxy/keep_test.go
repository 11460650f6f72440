// Keeping: what is stored of answers, and that a store costs nobody anything.

package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/openai"
	"kvasir/openai/answer/answertest"
)

// A cut answer is for those who asked for the same cut, and for nobody later.
func TestAnswerCutAtALengthIsFollowedAndNotStored(t *testing.T) {
	w := startGated(t)
	p := startProxy(t, cachedSettings(t, w.url))
	leader := p.send(t, chatPath, plainChat)
	s := w.step(t)
	f := p.follow(t, chatPath, streamChat)[0]
	s.say(httpReply(200, "application/json", strings.Replace(chatReply, `"stop"`, `"length"`, 1)))
	leader.answer(t)
	if r := f.answer(t); says(t, r).Finish != "length" || r.Header.Get("x-kvasir-cache") != "wait" {
		t.Errorf("%q", r.body)
	}
	waitUntil(t, "the call is over", func() bool { return p.coalesced.Stats().Calls == 0 })
	again := p.send(t, chatPath, plainChat)
	w.step(t).say(httpReply(200, "application/json", chatReply))
	if got := again.answer(t).Header.Get("x-kvasir-cache"); got != "miss" {
		t.Errorf("it was stored: %s", got)
	}
}

// Every transcript that can be kept is given back as it came, in both forms.
func TestTranscriptsAreReplayedFromTheCache(t *testing.T) {
	kept := 0
	for _, tr := range answertest.Transcripts(t) {
		rt := openai.Route{Kind: tr.Kind}
		if !rt.Recorded() || !tr.OK() || answertest.Unfaithful[tr.Name] != "" {
			continue
		}
		want := tr.Said(t)
		if strings.TrimSpace(want.Text) == "" {
			continue
		}
		body := string(answertest.Unlimited(tr.Body))
		want.Finish, want.Choices = "stop", min(want.Choices, 1)
		var parts []string
		if tr.Events() == nil {
			reply := httpReply(200, "application/json", body)
			parts = []string{reply[:30], reply[30 : len(reply)-7], reply[len(reply)-7:]}
		} else {
			parts = append(parts, streamHead)
			for size := 1; len(body) > 0; size = size*3%101 + 1 {
				n := min(size, len(body))
				parts, body = append(parts, chunk(body[:n])), body[n:]
			}
			parts = append(parts, "0\r\n\r\n")
		}
		w := startWorker(t, func(c net.Conn, _ string) bool {
			_, err := io.WriteString(c, strings.Join(parts, ""))
			return err == nil
		})
		s := cachedSettings(t, w.url)
		p := startProxy(t, s)
		path, plain, stream := chatPath, plainChat, streamChat
		switch tr.Kind {
		case openai.KindText:
			path, plain, stream = "/v1/completions", `{"model":"m","prompt":"a"}`, `{"model":"m","prompt":"a","stream":true}`
		case openai.KindMessages:
			path = "/v1/messages"
			plain = strings.Replace(plainChat, `"m"`, `"m","max_tokens":9`, 1)
			stream = strings.Replace(plain, `"m"`, `"m","stream":true`, 1)
		case openai.KindResponses:
			path, plain, stream = "/v1/responses", `{"model":"m","input":"a"}`, `{"model":"m","input":"a","stream":true}`
		}
		if first := p.ask(t, path, plain); says(t, first) != want {
			t.Errorf("%s: %+v", tr.Name, says(t, first))
		}
		waitUntil(t, "it is stored", func() bool { return p.coalesced.Stats().Calls == 0 })
		for _, body := range []string{plain, stream} {
			again := p.ask(t, path, body)
			if got := says(t, again); got != want || again.Header.Get("x-kvasir-cache") != "hit" {
				t.Errorf("%s: %v\n got %+v\nwant %+v", tr.Name, again.Header, got, want)
			}
		}
		kept++
	}
	if kept < 40 {
		t.Errorf("only %d were kept", kept)
	}
}

// What is refused by the store costs nobody anything.
func TestStoreThatFails(t *testing.T) {
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
		return err == nil
	})
	s := cachedSettings(t, w.url)
	s.Cache = cache.New(cache.Options{Store: faultyStore{}, Verifier: onlyEqual{}})
	p := startProxy(t, s)
	for range 2 {
		if r := p.ask(t, chatPath, plainChat); says(t, r).Text != "hello" || r.Header.Get("x-kvasir-cache") != "miss" {
			t.Errorf("%v %q", r.Header, r.body)
		}
		waitUntil(t, "the call is over", func() bool { return p.coalesced.Stats().Calls == 0 })
	}
	if n := strings.Count(p.log.String(), "BUG: storing an answer"); n != 2 {
		t.Errorf("%d bugs are counted", n)
	}
}

type faultyStore struct{ cache.Store }

func (faultyStore) Equal(cache.Scope, []byte, time.Time) (*cache.Entry, error) { return nil, nil }

func (faultyStore) Nearest(dst []cache.Candidate, _ cache.Scope, _ *[cache.Dim]float32, _ int, _ float64, _ time.Time) ([]cache.Candidate, error) {
	return dst, nil
}

func (faultyStore) Stats() cache.Stats { return cache.Stats{} }
