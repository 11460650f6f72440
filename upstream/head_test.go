// Reply heads: real ones, bad ones, and net/http as the twin.

package upstream

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kvasir/header"
	"kvasir/openai/answer/answertest"
)

func newReader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

func TestReplyHeadOfEveryTranscript(t *testing.T) {
	for _, tr := range answertest.Transcripts(t) {
		want, err := http.ReadResponse(newReader(tr.Response), nil)
		if err != nil {
			t.Fatal(err)
		}
		var h Head
		for i := range tr.Head {
			if n, err := h.parse(tr.Response[:i]); n != 0 || err != nil {
				t.Fatalf("%s: %d bytes of the head: n %d, %v", tr.Name, i, n, err)
			}
		}
		n, err := h.parse(tr.Response)
		if n != tr.Head || err != nil {
			t.Fatalf("%s: n %d of %d, %v", tr.Name, n, tr.Head, err)
		}
		chunked := slices.Equal(want.TransferEncoding, []string{"chunked"})
		if h.Status != want.StatusCode || h.minor != want.ProtoMinor || h.Length != want.ContentLength ||
			h.chunked != chunked || h.close != want.Close || string(h.ContentType) != want.Header.Get("Content-Type") {
			t.Errorf("%s: %+v, net/http reads %+v", tr.Name, h, want)
		}
		if !bytes.Equal(h.lines, tr.Response[bytes.IndexByte(tr.Response, '\n')+1:tr.Head-2]) {
			t.Errorf("%s: lines %q", tr.Name, h.lines)
		}
	}
}

func TestReplyHead(t *testing.T) {
	long := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", maxReplyHead)
	for _, c := range []struct {
		in     string
		status int
		length int64
		marks  string // chunked, close, as set
		err    string
	}{
		{in: "HTTP/1.1 200 OK\r\n\r\n", status: 200, length: -1},
		{in: "HTTP/1.1 200\r\n\r\n", status: 200, length: -1},
		{in: "HTTP/1.1 200 \r\n\r\n", status: 200, length: -1},
		{in: "HTTP/1.1 503 Très occupé\r\ncontent-length:0\r\n\r\n", status: 503, length: 0},
		{in: "HTTP/1.0 200 OK\r\n\r\n", status: 200, length: -1, marks: "close"},
		{in: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n", status: 200, length: 2},
		{in: "HTTP/1.1 200 OK\r\nConnection: foo , CLOSE\r\nContent-Length: 2\r\n\r\n", status: 200, length: 2, marks: "close"},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 12 \r\nCONTENT-LENGTH:12\r\n\r\n", status: 200, length: 12},
		{in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", status: 200, length: -1, marks: "chunked"},
		{in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", status: 200, length: -1, marks: "chunked close"},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", status: 200, length: -1, marks: "chunked close"},
		{in: "HTTP/1.1 100 Continue\r\n\r\n", status: 100, length: -1},
		{in: "HTTP/1.1 200 OK\r\nX-Empty:\r\n\r\n", status: 200, length: -1},

		{in: "HTTP/1.1 101 Switching Protocols\r\n\r\n", err: "reply switches protocols, which was not asked for"},
		{in: "hello", err: "reply is no HTTP/1.0 or HTTP/1.1"},
		{in: "HTTP/2 200 OK\r\n\r\n", err: "reply is no HTTP/1.0 or HTTP/1.1"},
		{in: "HTTP/1.2 200 OK\r\n\r\n", err: "reply is no HTTP/1.0 or HTTP/1.1"},
		{in: "HTTP/1.10 200 OK\r\n\r\n", err: "reply is no HTTP/1.0 or HTTP/1.1"},
		{in: "HTTP/1.1\r\n\r\n", err: "reply is no HTTP/1.0 or HTTP/1.1"},
		{in: "HTTP/1.1 20x OK\r\n\r\n", err: `reply has no three-digit status: "HTTP/1.1 20x OK"`},
		{in: "HTTP/1.1 600 OK\r\n\r\n", err: `reply has a bad status line: "HTTP/1.1 600 OK"`},
		{in: "HTTP/1.1 099 OK\r\n\r\n", err: `reply has a bad status line: "HTTP/1.1 099 OK"`},
		{in: "HTTP/1.1 2000 OK\r\n\r\n", err: `reply has a bad status line: "HTTP/1.1 2000 OK"`},
		{in: "HTTP/1.1 200 O\x00K\r\n\r\n", err: `reply has a bad status line: "HTTP/1.1 200 O\x00K"`},
		{in: "HTTP/1.1 200 OK\n\n", err: errBareLF.Error()},
		{in: "HTTP/1.1 200 OK\r\nA: b\n", err: errBareLF.Error()},
		{in: "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", err: "reply head: " + header.ErrFolded.Error()},
		{in: "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", err: "reply head: " + header.ErrName.Error()},
		{in: "HTTP/1.1 200 OK\r\nA(b): c\r\n\r\n", err: "reply head: " + header.ErrName.Error()},
		{in: "HTTP/1.1 200 OK\r\n: c\r\n\r\n", err: "reply head: " + header.ErrName.Error()},
		{in: "HTTP/1.1 200 OK\r\nA b\r\n\r\n", err: "reply head: " + header.ErrNoColon.Error()},
		{in: "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n", err: "reply head: " + header.ErrValue.Error()},
		{in: "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", err: "reply head: " + header.ErrValue.Error()},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", err: `reply head: bad or second Content-Length "6"`},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", err: `reply head: bad or second Content-Length "5, 5"`},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", err: `reply head: bad or second Content-Length "+5"`},
		{in: "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", err: `reply head: bad or second Content-Length ""`},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", err: `reply head: bad or second Content-Length "99999999999999999999"`},
		{in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", err: `reply head: Transfer-Encoding "gzip, chunked" is not understood`},
		{in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", err: `reply head: Transfer-Encoding "chunked" is not understood`},
		{in: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", err: `reply head: Transfer-Encoding "chunked" is not understood`},
		{in: long, err: errHeadTooLong.Error()},
		{in: long + "\r\n\r\n", err: errHeadTooLong.Error()},
	} {
		var h Head
		n, err := h.parse([]byte(c.in))
		switch {
		case c.err != "":
			if n != 0 || err == nil || err.Error() != c.err {
				t.Errorf("%.60q: n %d, %v; want %s", c.in, n, err, c.err)
			}
			continue
		case err != nil || n != len(c.in):
			t.Errorf("%.60q: n %d, %v", c.in, n, err)
			continue
		}
		var marks []string
		if h.chunked {
			marks = append(marks, "chunked")
		}
		if h.close {
			marks = append(marks, "close")
		}
		if h.Status != c.status || h.Length != c.length || strings.Join(marks, " ") != c.marks {
			t.Errorf("%.60q: %d %d %q", c.in, h.Status, h.Length, marks)
		}
	}
}

// The largest head that is allowed, and one byte more.
func TestReplyHeadLimit(t *testing.T) {
	const frame = "HTTP/1.1 200 OK\r\nX: \r\n\r\n"
	head := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", maxReplyHead-len(frame)) + "\r\n\r\n"
	var h Head
	if n, err := h.parse([]byte(head + "body")); n != maxReplyHead || err != nil {
		t.Errorf("a head of 64 KiB: %d, %v", n, err)
	}
	h = Head{}
	if _, err := h.parse([]byte(strings.Replace(head, "X", "XX", 1))); err != errHeadTooLong {
		t.Errorf("one byte more: %v", err)
	}
}

func TestReplyHeadAfterInterim(t *testing.T) {
	const wire = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
		"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
	var h Head
	var statuses []int
	for b := []byte(wire); len(b) > 0; {
		n, err := h.parse(b)
		if n == 0 || err != nil {
			t.Fatal(n, err)
		}
		statuses = append(statuses, h.Status)
		b = b[n:]
	}
	if !slices.Equal(statuses, []int{100, 103, 429}) || string(h.RetryAfter) != "7" || string(h.coding) != "gzip" {
		t.Errorf("%v %+v", statuses, h)
	}
}

func TestReplyHeaders(t *testing.T) {
	const in = "HTTP/1.1 200 OK\r\nDate: now\r\nserver: uvicorn\r\nConnection: close, x-hop\r\nKeep-Alive: timeout=5\r\n" +
		"content-type:text/plain\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nTrailer: x\r\n" +
		"Upgrade: h2c\r\nProxy-Authenticate: Basic\r\nX-Hop: 1\r\nX-Request-ID: w\r\nx-kvasir-worker: me\r\n" +
		"Set-Cookie: a=b\r\nSet-Cookie:  c=d \r\nvary: Origin\r\n\r\n"
	const want = "x-first: 1\r\nDate: now\r\nserver: uvicorn\r\ncontent-type:text/plain\r\nvary: Origin\r\n"
	var h Head
	if _, err := h.parse([]byte(in)); err != nil {
		t.Fatal(err)
	}
	if got := h.AppendHeaders([]byte("x-first: 1\r\n")); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReplyHeadAllocs(t *testing.T) {
	head := []byte("HTTP/1.1 200 OK\r\ndate: Sat, 21 Nov 2026 12:19:16 GMT\r\nserver: uvicorn\r\ncontent-length: 287\r\ncontent-type: application/json\r\nConnection: keep-alive, x\r\n\r\n")
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		var h Head
		if n, err := h.parse(head); n == 0 || err != nil {
			t.Fatal(err)
		}
		dst = h.AppendHeaders(dst[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzReplyHead: what is accepted is a head to net/http too, with the same
// status and length, and no shorter piece of it is a head or an error.
func FuzzReplyHead(f *testing.F) {
	for _, tr := range answertest.Transcripts(f)[:8] {
		f.Add(tr.Response[:tr.Head])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Head
		n, err := h.parse(b)
		if n == 0 {
			return
		}
		if err != nil || n > len(b) || n > maxReplyHead {
			t.Fatalf("n %d of %d, %v", n, len(b), err)
		}
		var slow Head
		for i := range n {
			if m, err := slow.parse(b[:i]); m != 0 || err != nil {
				t.Fatalf("%d of %d bytes: %d, %v", i, n, m, err)
			}
		}
		h.AppendHeaders(nil)
		if bytes.Contains(bytes.ToLower(h.lines), []byte("trailer")) {
			return // net/http refuses some Trailer lines; they are dropped here
		}
		resp, err := http.ReadResponse(newReader(b), nil)
		if err != nil {
			t.Fatalf("net/http: %v", err)
		}
		if resp.StatusCode != h.Status || h.Length >= 0 && h.Status >= 200 && h.Status != 204 && h.Status != 304 && resp.ContentLength != h.Length {
			t.Fatalf("status %d length %d, net/http %d %d", h.Status, h.Length, resp.StatusCode, resp.ContentLength)
		}
	})
}

func BenchmarkReplyHead(b *testing.B) {
	head := answertest.Find(b, "vllm/chat_stream").Response
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		var h Head
		if n, err := h.parse(head); n == 0 || err != nil {
			b.Fatal(err)
		}
		dst = h.AppendHeaders(dst[:0])
	}
}
