//go:build linux

// The client: one request per connection, its events read as they arrive.

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// call is one request under way on its own connection.
type call struct {
	tcp    *net.TCPConn
	conn   net.Conn // tcp, or TLS over it
	events *bufio.Reader
}

// ask connects and sends one chat completion, without waiting for the reply. secure is nil for
// plain HTTP.
func ask(address string, secure *tls.Config, body string) (*call, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	c := &call{tcp: conn.(*net.TCPConn), conn: conn}
	if secure != nil {
		c.conn = tls.Client(conn, secure)
	}
	_, err = fmt.Fprintf(c.conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		address, len(body), body)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("cannot send request: %w", err)
	}
	return c, nil
}

// head waits for the reply's head, which must be 200.
func (c *call) head() error {
	res, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
	if err != nil {
		return fmt.Errorf("cannot read reply: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return fmt.Errorf("cannot use reply: status %d: %s", res.StatusCode, text)
	}
	c.events = bufio.NewReader(res.Body)
	return nil
}

var errStreamEnd = errors.New("stream ended")

// event waits for the next token and returns when it was sent and when it arrived. After the
// proper end of the stream it returns errStreamEnd.
func (c *call) event() (sent, came time.Duration, err error) {
	for {
		line, err := c.events.ReadSlice('\n')
		came = now()
		if err != nil {
			return 0, 0, fmt.Errorf("cannot read event: %w", err)
		}
		if len(line) <= 1 || isLine(line, roleEvent) || isLine(line, lastEvent) {
			continue
		}
		if isLine(line, doneEvent) {
			return 0, 0, c.end()
		}
		sent, err := stamp(line)
		return sent, came, err
	}
}

// isLine reports whether line is the line of a one-line event.
func isLine(line []byte, event string) bool { return string(line) == event[:len(event)-1] }

// end returns an error if the stream was cut: the framing must end too.
func (c *call) end() error {
	rest, err := io.ReadAll(c.events)
	if err != nil {
		return fmt.Errorf("cannot read the end of the stream: %w", err)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return fmt.Errorf("cannot use stream: %q after its end", rest)
	}
	return errStreamEnd
}

// stamp reads the time in a line written by appendEvent.
func stamp(line []byte) (time.Duration, error) {
	if len(line) < len(eventStart)+stampDigits || string(line[:len(eventStart)]) != eventStart {
		return 0, fmt.Errorf("cannot use event %q: not as the worker sent it", line)
	}
	n, err := strconv.ParseInt(string(line[len(eventStart):][:stampDigits]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cannot use event %q: %w", line, err)
	}
	return time.Duration(n), nil
}

// leave closes cleanly: close_notify under TLS, then FIN.
func (c *call) leave() {
	c.conn.Close()
}

// reset closes like a crashed client: with RST, whatever is under way.
func (c *call) reset() {
	_ = c.tcp.SetLinger(0) // fails only on a closed socket
	c.tcp.Close()
}

// get fetches a small page.
func get(address, path string) (int, []byte, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	return res.StatusCode, text, err
}

// post sends a chat completion and returns status and body.
func post(address, body string) (int, string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post("http://"+address+"/v1/chat/completions", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, string(text), err
}
