//go:build linux

// The worker behind the proxies: an OpenAI server whose model name says how it
// behaves, so that any proxy can be put in front of it unchanged.

package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// What each model does with a chat completion.
const (
	modelPlain  = "plain"  // answers at once, not streamed
	modelTicks  = "ticks"  // max_tokens events, one every 2 ms, each with the time it was sent; then a proper end
	modelSilent = "silent" // never sends a byte
	modelHead   = "head"   // the reply's head, then nothing
	modelIdle   = "idle"   // head, a role event and a token, then nothing until POST /bench/finish
	modelFlow   = "flow"   // one event every 2 ms, for ever
	modelFlood  = "flood"  // events for ever, as fast as they are read
)

var models = []string{modelPlain, modelTicks, modelSilent, modelHead, modelIdle, modelFlow, modelFlood}

const tick = 2 * time.Millisecond

// worker serves on one listener. The hooks may be nil.
type worker struct {
	listener net.Listener
	begun    func(n int64)                   // the n-th endless request arrived
	closed   func(n int64, at time.Duration) // ... and its connection was closed
	endless  atomic.Int64                    // number of endless requests
	written  atomic.Int64                    // bytes of streams

	mu   sync.Mutex // guards held
	held map[net.Conn]bool
}

func listenWorker(address string) (*worker, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen as a worker: %w", err)
	}
	return &worker{listener: l, held: map[net.Conn]bool{}}, nil
}

// runWorker is the helper process `bench worker -listen A`.
func runWorker(args []string) error {
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	address := f.String("listen", "127.0.0.1:0", "address")
	if err := f.Parse(args); err != nil {
		return err
	}
	w, err := listenWorker(*address)
	if err != nil {
		return err
	}
	w.serve()
	return nil
}

// serve accepts until the listener is closed.
func (w *worker) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.serveConn(conn)
	}
}

func (w *worker) serveConn(conn net.Conn) {
	defer conn.Close()
	br := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
		if err != nil {
			return
		}
		if err := w.answer(conn, br, req, body); err != nil {
			return
		}
	}
}

func (w *worker) answer(conn net.Conn, br *bufio.Reader, req *http.Request, body []byte) error {
	switch req.URL.Path {
	case "/health":
		return reply(conn, 200, `{}`)
	case "/v1/models":
		return reply(conn, 200, modelList())
	case "/v1/chat/completions":
		return w.complete(conn, br, body)
	case "/bench/stats":
		return reply(conn, 200, fmt.Sprintf(`{"held":%d,"written":%d}`, w.holding(), w.written.Load()))
	case "/bench/finish":
		w.finish()
		return reply(conn, 200, `{}`)
	}
	return reply(conn, 404, `{"error":{"message":"no such route","type":"invalid_request_error"}}`)
}

func (w *worker) complete(conn net.Conn, br *bufio.Reader, body []byte) error {
	var asked struct {
		Model     string `json:"model"`
		MaxTokens int    `json:"max_tokens"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return reply(conn, 400, `{"error":{"message":"not JSON","type":"invalid_request_error"}}`)
	}
	switch asked.Model {
	case modelPlain:
		return reply(conn, 200, completion)
	case modelTicks:
		return w.ticks(conn, asked.MaxTokens)
	case modelSilent, modelHead, modelIdle, modelFlow, modelFlood:
		return w.hold(conn, br, asked.Model)
	}
	return reply(conn, 404, `{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}`)
}

// ticks writes n events at a fixed rate and ends the stream as an engine does.
func (w *worker) ticks(conn net.Conn, n int) error {
	if _, err := io.WriteString(conn, streamHead); err != nil {
		return err
	}
	var buf []byte
	next := time.Now()
	for range n {
		next = next.Add(tick)
		time.Sleep(time.Until(next))
		buf = appendEvent(buf[:0], now())
		if _, err := conn.Write(buf); err != nil {
			return err
		}
	}
	_, err := io.WriteString(conn, streamTail)
	return err
}

// hold begins an endless reply. It returns when the other side has closed the connection (an
// error) or, after a finish, has sent its next request on it.
func (w *worker) hold(conn net.Conn, br *bufio.Reader, model string) error {
	if model != modelSilent {
		if _, err := io.WriteString(conn, streamHead); err != nil {
			return err
		}
	}
	w.setHeld(conn, true)
	defer w.setHeld(conn, false)
	if model == modelIdle {
		if err := openIdle(conn); err != nil {
			return err
		}
	}
	fed := make(chan struct{})
	go w.feed(conn, model, fed)
	n := w.endless.Add(1)
	if w.begun != nil {
		w.begun(n)
	}
	_, err := br.Peek(1)
	at := now()
	if err != nil {
		conn.Close()
		if w.closed != nil {
			w.closed(n, at)
		}
	}
	<-fed
	return err
}

// openIdle begins a stream as engines do: a role event at once, the first token
// some time later, so that a proxy reads them one by one.
func openIdle(conn net.Conn) error {
	if _, err := io.WriteString(conn, chunk(roleEvent)); err != nil {
		return err
	}
	time.Sleep(5 * tick)
	_, err := conn.Write(appendEvent(nil, now()))
	return err
}

// feed writes the output of an endless model until the connection is gone.
func (w *worker) feed(conn net.Conn, model string, fed chan<- struct{}) {
	defer close(fed)
	var batch []byte
	n := 1
	if model == modelFlood {
		n = 64
	}
	for model == modelFlow || model == modelFlood {
		batch = batch[:0]
		for range n {
			batch = appendEvent(batch, now())
		}
		written, err := conn.Write(batch)
		w.written.Add(int64(written))
		if err != nil {
			return
		}
		if model == modelFlow {
			time.Sleep(tick)
		}
	}
}

func (w *worker) setHeld(conn net.Conn, held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if held {
		w.held[conn] = true
	} else {
		delete(w.held, conn)
	}
}

func (w *worker) holding() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

// finish gives every held stream its proper end.
func (w *worker) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.held {
		_, _ = io.WriteString(conn, streamTail) // if the stream is gone, its client notices
	}
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

const (
	eventStart = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"content":"`
	eventEnd   = `"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	roleEvent  = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	lastEvent  = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
)

var streamTail = chunk(lastEvent) + chunk(doneEvent) + "0\r\n\r\n"

func chunk(text string) string {
	return strconv.FormatInt(int64(len(text)), 16) + "\r\n" + text + "\r\n"
}

// stampDigits is the width of the time in an event, so that all events have the same length.
const stampDigits = 19

// appendEvent appends one chunk with one event that carries at.
func appendEvent(dst []byte, at time.Duration) []byte {
	dst = strconv.AppendInt(dst, int64(len(eventStart)+stampDigits+len(eventEnd)), 16)
	dst = append(dst, "\r\n"+eventStart...)
	var digits [stampDigits]byte
	for i, n := stampDigits-1, int64(at); i >= 0; i, n = i-1, n/10 {
		digits[i] = byte('0' + n%10)
	}
	dst = append(dst, digits[:]...)
	return append(dst, eventEnd+"\r\n"...)
}

func reply(conn net.Conn, status int, body string) error {
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
	return err
}
