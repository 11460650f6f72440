// A worker at the level of bytes: it sends a given reply to each request, correct or broken, and
// records the requests.

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A rawWorker is an OpenAI server on a bare socket, so that a test says every byte of a reply. Its health and its list of
// models are those of a good one.
type rawWorker struct {
	url    string
	models []string
	answer func(rawRequest) rawReply

	mu    sync.Mutex // guards the rest
	asked []rawRequest
	open  map[net.Conn]bool // connections on which a POST came
}

// A rawRequest is what the worker was sent, byte for byte.
type rawRequest struct {
	head string // with the blank line that ends it
	body string
}

// A rawReply is the bytes of a reply, and how the connection ends.
type rawReply struct {
	bytes string
	again string // sent after bytes, over and over, until nobody reads it
	end   rawEnd
}

type rawEnd int

const (
	endClosed rawEnd = iota // the connection is closed
	endKept                 // and waits for the next request
	endReset                // the connection is reset: what is under way is lost, and the reader gets an error
	endSilent               // nothing more is sent, and the connection stays
)

// startRaw serves these models until the test ends.
func startRaw(t testing.TB, answer func(rawRequest) rawReply, models ...string) *rawWorker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &rawWorker{url: "http://" + listener.Addr().String(), models: models, answer: answer, open: map[net.Conn]bool{}}
	var group sync.WaitGroup
	var all sync.Map // connections
	group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			all.Store(c, nil)
			group.Go(func() {
				w.serve(c)
				all.Delete(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		group.Wait()
	})
	return w
}

// serve answers the requests of one connection, one after another.
func (w *rawWorker) serve(c net.Conn) {
	defer func() {
		w.mu.Lock()
		delete(w.open, c)
		w.mu.Unlock()
		_ = c.Close()
	}()
	for have := ""; ; {
		request, rest, err := readRaw(c, have)
		if err != nil {
			return
		}
		have = rest
		reply := w.probed(request)
		if reply == nil {
			w.mu.Lock()
			w.asked = append(w.asked, request)
			w.open[c] = true
			w.mu.Unlock()
			r := w.answer(request)
			reply = &r
		}
		if _, err := io.WriteString(c, reply.bytes); err != nil {
			return
		}
		for reply.again != "" {
			if _, err := io.WriteString(c, reply.again); err != nil {
				return
			}
		}
		switch reply.end {
		case endClosed:
			// Else what the client still sends resets the connection, and the reply is lost.
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
				_ = tcp.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = io.Copy(io.Discard, tcp)
			}
			return
		case endReset:
			time.Sleep(20 * time.Millisecond) // so that the bytes before it arrive
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			return
		case endSilent:
			_, _ = io.Copy(io.Discard, c)
			return
		case endKept:
		}
	}
}

// probed answers what Kvasir asks of its own: nil for the requests of clients.
func (w *rawWorker) probed(r rawRequest) *rawReply {
	if !strings.HasPrefix(r.head, "GET ") {
		return nil
	}
	switch path := strings.Fields(r.head)[1]; {
	case path == "/v1/models":
		var list []map[string]any
		for _, model := range w.models {
			list = append(list, map[string]any{"id": model, "object": "model", "created": 1, "owned_by": "raw"})
		}
		body, _ := json.Marshal(map[string]any{"object": "list", "data": list})
		return &rawReply{bytes: withLength(string(body)), end: endKept}
	case path == "/health":
		return &rawReply{bytes: withLength(""), end: endKept}
	}
	return &rawReply{bytes: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", end: endKept}
}

// readRaw reads one request; have is what was read before, rest what was read beyond it.
func readRaw(c net.Conn, have string) (request rawRequest, rest string, err error) {
	buffer := make([]byte, 64<<10)
	more := func() error {
		n, err := c.Read(buffer)
		have += string(buffer[:n])
		return err
	}
	end := -1
	for end < 0 {
		if end = strings.Index(have, "\r\n\r\n"); end < 0 {
			if err := more(); err != nil {
				return request, "", err
			}
		}
	}
	request.head, have = have[:end+4], have[end+4:]
	length, _ := strconv.Atoi(request.header("Content-Length"))
	for len(have) < length {
		if err := more(); err != nil {
			return request, "", err
		}
	}
	request.body = have[:length]
	return request, have[length:], nil
}

// header is the value of the first line with this name, "" without one.
func (r rawRequest) header(name string) string {
	for _, line := range strings.Split(r.head, "\r\n")[1:] {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// streams is whether events are asked for.
func (r rawRequest) streams() bool {
	return strings.Contains(strings.ReplaceAll(r.body, " ", ""), `"stream":true`)
}

// question is the content of the last message.
func (r rawRequest) question() string {
	var body struct{ Messages []struct{ Content string } }
	if json.Unmarshal([]byte(r.body), &body) != nil || len(body.Messages) == 0 {
		return ""
	}
	return body.Messages[len(body.Messages)-1].Content
}

// requests is what clients' requests have come so far.
func (w *rawWorker) requests() []rawRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// connections is how many connections are open on which a client's request came.
func (w *rawWorker) connections() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

// Pieces of replies.

const (
	jsonHead  = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	eventHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	lastChunk = "0\r\n\r\n"
	doneEvent = "data: [DONE]\n\n"
)

// answerTo is what a right worker says to a question, and to no other one.
func answerTo(question string) string { return "the answer to <<" + question + ">>" }

// withLength is a reply of status 200 with this JSON.
func withLength(body string, lines ...string) string {
	return jsonHead + headerLines(lines) + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// withStatus is a reply of this status line's end, e.g. "500 Internal Server Error".
func withStatus(status, contentType, body string, lines ...string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s", status, contentType, headerLines(lines), len(body), body)
}

func headerLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\r\n") + "\r\n"
}

// completionOf is the JSON of a whole answer; more are members beside choices, e.g. `"usage":{}`.
func completionOf(text string, more ...string) string { return completionThat(text, `"stop"`, more...) }

// completionThat is completionOf with this finish_reason, as JSON.
func completionThat(text, finish string, more ...string) string {
	content, _ := json.Marshal(text)
	members := append([]string{fmt.Sprintf(
		`"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":%s}]`,
		content, finish)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

// deltaEvent is an event with this text.
func deltaEvent(text string) string {
	content, _ := json.Marshal(text)
	return chunkEvent(fmt.Sprintf(`{"content":%s}`, content), "null")
}

// finishEvent is the event that says why an answer ended.
func finishEvent(reason string) string { return chunkEvent("{}", strconv.Quote(reason)) }

// roleEvent is the event that begins an answer.
func roleEvent() string { return chunkEvent(`{"role":"assistant","content":""}`, "null") }

func chunkEvent(delta, reason string) string {
	return dataEvent(fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, reason))
}

func dataEvent(data string) string { return "data: " + data + "\n\n" }

// oneChunk frames bytes for Transfer-Encoding: chunked.
func oneChunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// chunksOf frames each piece, without the last chunk.
func chunksOf(pieces ...string) string {
	framed := ""
	for _, p := range pieces {
		framed += oneChunk(p)
	}
	return framed
}

// eventStream is a whole reply of these events.
func eventStream(events ...string) string { return eventHead + chunksOf(events...) + lastChunk }

// rightReply answers as a good worker does, in the form that was asked for.
func rightReply(r rawRequest) rawReply {
	text := answerTo(r.question())
	if !r.streams() {
		return rawReply{bytes: withLength(completionOf(text)), end: endKept}
	}
	half := len(text) / 2
	return rawReply{bytes: eventStream(roleEvent(), deltaEvent(text[:half]), deltaEvent(text[half:]), finishEvent("stop"), doneEvent), end: endKept}
}

// askModel is a chat request with this question for this model.
func askModel(model, question string, stream bool) string {
	body, _ := json.Marshal(map[string]any{
		"model": model, "stream": stream, "messages": []any{map[string]string{"role": "user", "content": question}},
	})
	return string(body)
}

// said is the text of a whole answer, streamed or not, and whether it is whole: it says why it ended, and its framing ends.
func said(got reply) (text string, whole bool) {
	type choice struct {
		Message, Delta struct{ Content string }
		FinishReason   *string `json:"finish_reason"`
	}
	finished := false
	read := func(data string) {
		var body struct{ Choices []choice }
		if json.Unmarshal([]byte(data), &body) != nil {
			return
		}
		for _, c := range body.Choices {
			text += c.Message.Content + c.Delta.Content
			finished = finished || c.FinishReason != nil && *c.FinishReason != ""
		}
	}
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
		read(string(got.body))
		return text, finished && got.end == nil && got.status == http.StatusOK
	}
	normal := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(got.body))
	for line := range strings.SplitSeq(normal, "\n") {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			read(strings.TrimSpace(data))
		}
	}
	return text, finished && got.end == nil && got.status == http.StatusOK
}

// namesOf are the keys of a table in order.
func namesOf[V any](table map[string]V) []string { return slices.Sorted(maps.Keys(table)) }
