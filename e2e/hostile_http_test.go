// HTTP/1.1 as written: the 33 checks of h1spec, which servers in front of which other software stands must pass.

package e2e

import (
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"
)

// httpChecks has the request and a pattern of the statuses that are right. "waits": the server waits for the rest of it.
// What it would have echoed is here a chat completion, which echoes its question.
var httpChecks = []struct{ name, request, right string }{
	{"fragmented method", "G", "waits"},
	{"fragmented target 1", "GET ", "waits"},
	{"fragmented target 2", "GET /hello", "waits"},
	{"fragmented target 3", "GET /hello ", "waits"},
	{"fragmented version", "GET /hello HTTP", "waits"},
	{"fragmented request line", "GET /hello HTTP/1.1", "waits"},
	{"fragmented end of the request line 1", "GET /hello HTTP/1.1\r", "waits"},
	{"fragmented end of the request line 2", "GET /hello HTTP/1.1\r\n", "waits"},
	{"fragmented name", "GET /hello HTTP/1.1\r\nHos", "waits"},
	{"fragmented value 1", "GET /hello HTTP/1.1\r\nHost:", "waits"},
	{"fragmented value 2", "GET /hello HTTP/1.1\r\nHost: ", "waits"},
	{"fragmented value 3", "GET /hello HTTP/1.1\r\nHost: localhost", "waits"},
	{"fragmented value 4", "GET /hello HTTP/1.1\r\nHost: localhost\r", "waits"},
	{"fragmented request", "GET /hello HTTP/1.1\r\nHost: localhost\r\n", "waits"},
	{"fragmented end of the head", "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r", "waits"},
	{"no version", "GET / \r\n\r\n", "[45].."},
	{"Expect without a body", "GET /health HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\n\r\n", "100|2.."},
	{"GET", "GET /health HTTP/1.1\r\nHost: example.com\r\n\r\n", "2.."},
	{"odd but right headers", "GET /health HTTP/1.1\r\nhoSt:\texample.com\r\nempty:\r\n\r\n", "2.."},
	{"a name that is no token", "GET /health HTTP/1.1\r\nHost: example.com\r\nX-Invalid[]: test\r\n\r\n", "4.."},
	{"no host", "GET /health HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "4.."},
	{"two hosts", "GET /health HTTP/1.1\r\nHost: example.com\r\nHost: example.org\r\n\r\n", "4.."},
	{"a negative length that overflows", "GET /health HTTP/1.1\r\nHost: example.com\r\nContent-Length: -123456789123456789123456789\r\n\r\n", "4.."},
	{"a negative length", "GET /health HTTP/1.1\r\nHost: example.com\r\nContent-Length: -1234\r\n\r\n", "4.."},
	{"a length that is no number", "GET /health HTTP/1.1\r\nHost: example.com\r\nContent-Length: abc\r\n\r\n", "4.."},
	{"an empty value", "GET /health HTTP/1.1\r\nHost: example.com\r\nX-Empty-Header: \r\n\r\n", "2.."},
	{"a control character in a value", "GET /health HTTP/1.1\r\nHost: example.com\r\nX-Bad-Control-Char: test\x07\r\n\r\n", "4.."},
	{"an unknown version", "GET /health HTTP/9.9\r\nHost: example.com\r\n\r\n", "[45].."},
	{"words before the request", "Extra lineGET /health HTTP/1.1\r\nHost: example.com\r\n\r\n", "[45].."},
	{"a line that begins with CR", "GET /health HTTP/1.1\r\nHost: example.com\r\n\rSome-Header: Test\r\n\r\n", "4.."},
	{"POST with a body", "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 57\r\n\r\n" + smallChat, "2.."},
	{"chunks", "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n39\r\n" + smallChat + "\r\n0\r\n\r\n", "2.."},
	{"length and chunks in odd cases", "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\ncontent-LengtH: 5\r\nTransFer-Encoding: chunked\r\n\r\n39\r\n" + smallChat + "\r\n0\r\n\r\n", "4.."},
}

const smallChat = `{"model":"m","messages":[{"role":"user","content":"HI"}]}`

// TestHostileHTTPIsReadLoosely sends each on a connection of its own.
func TestHostileHTTPIsReadLoosely(t *testing.T) {
	t.Parallel()
	w := startRaw(t, rightReply, "m")
	k := serve(t, behind(map[string]string{"raw": w.url}), "m")
	for _, check := range httpChecks {
		t.Run(check.name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, check.request); err != nil {
				t.Fatal(err)
			}
			wait := patience
			if check.right == "waits" {
				wait = 500 * time.Millisecond // as h1spec waits: an early answer would be there by then
			}
			_ = c.SetReadDeadline(time.Now().Add(wait))
			buffer := make([]byte, 4096)
			n, err := c.Read(buffer)
			if check.right == "waits" {
				if n != 0 || err == nil || err == io.EOF {
					t.Errorf("it did not wait: %q %v", buffer[:n], err)
				}
				return
			}
			status := statusLine.FindStringSubmatch(string(buffer[:n]))
			if status == nil || !regexp.MustCompile("^("+check.right+")$").MatchString(status[1]) {
				t.Errorf("got %q (%v), want %s", buffer[:n], err, check.right)
			}
			if strings.HasPrefix(check.request, "POST") && check.right == "2.." && !strings.Contains(string(buffer[:n]), "HI") {
				t.Errorf("no echo: %q", buffer[:n])
			}
		})
	}
	if len(httpChecks) != 33 {
		t.Errorf("%d checks, h1spec has 33", len(httpChecks))
	}
}
