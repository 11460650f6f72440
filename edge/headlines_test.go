// Heads of requests: what is refused, and which lines of the others go on to workers.

package edge

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/upstream"
)

func newReader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

func TestCheckRequestHead(t *testing.T) {
	many := strings.Repeat("A: b\r\n", maxHeaderLines)
	for _, c := range []struct {
		raw     string
		status  int // 0: passes
		message string
	}{
		{raw: ""},
		{raw: "\r\n"},
		{raw: "Host: a\r\nContent-Length: 2\r\nX_y.z: \t é ü\t\r\nEmpty:\r\n\r\n"},
		{raw: "Content-Length: 2\r\nContent-Length: 2\r\n\r\n", status: 400,
			message: "the request head is refused: a second Content-Length; send one: readers differ in which one they take"},
		{raw: "Content-Type: a/b\r\nX: y\r\ncontent-type: a/b\r\n\r\n", status: 400,
			message: "the request head is refused: a second Content-Type; send one: readers differ in which one they take"},
		{raw: "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n", status: 400,
			message: "the request head is refused: a second Content-Encoding; send one: readers differ in which one they take"},
		{raw: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", status: 400,
			message: "the request head is refused: a second Transfer-Encoding; send one: readers differ in which one they take"},
		{raw: "Host: a\r\nHOST: a\r\n\r\n", status: 400,
			message: "the request head is refused: a second Host; send one: readers differ in which one they take"},
		{raw: "Content_Type: a/b\r\n\r\n", status: 400,
			message: `the request head is refused: "Content_Type" is Content-Type to some readers; write it with -`},
		{raw: "Content-Type: a/b\r\ncontent_type: a/b\r\n\r\n", status: 400,
			message: "the request head is refused: a second Content-Type; send one: readers differ in which one they take"},
		{raw: "Content-Typf: a\r\nContent-Typf: a\r\nHose: a\r\n\r\n"},
		{raw: "Transfer-Encoding: chunked\r\n\r\n"},
		{raw: many + "\r\n"},
		{raw: many + "A: b\r\n\r\n", status: 431, message: "the request has more than 200 header lines; send fewer"},
		{raw: "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", status: 400,
			message: "the request head is refused: Content-Length and Transfer-Encoding together; send one of them"},
		{raw: "transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n", status: 400,
			message: "the request head is refused: Content-Length and Transfer-Encoding together; send one of them"},
		{raw: "Content-Length: 2\r\nContent-Length: 3\r\n\r\n", status: 400,
			message: "the request head is refused: a second Content-Length; send one: readers differ in which one they take"},
		{raw: "A: b\r\n c\r\n\r\n", status: 400,
			message: `the request head is refused: a header line is folded (begins with a space or a tab): " c\r\n"`},
		{raw: " A: b\r\n\r\n", status: 400,
			message: `the request head is refused: a header line is folded (begins with a space or a tab): " A"`},
		{raw: "A : b\r\n\r\n", status: 400,
			message: `the request head is refused: a header name has a character that is not allowed: "A "`},
		{raw: "A[1]: b\r\n\r\n", status: 400,
			message: `the request head is refused: a header name has a character that is not allowed: "A[1]"`},
		{raw: ": b\r\n\r\n", status: 400,
			message: `the request head is refused: a header name has a character that is not allowed: ""`},
		{raw: "Ab\r\n\r\n", status: 400,
			message: `the request head is refused: a header line has no colon: "Ab\r\n"`},
		{raw: "Authorization: Bearer secret\x01\r\n\r\n", status: 400,
			message: `the request head is refused: a header value has a control character: "Authorization"`},
		{raw: "A: b\rc\r\n\r\n", status: 400,
			message: `the request head is refused: a header value has a control character: "A"`},
		{raw: "A: b\nHost: c\r\n\r\n", status: 400,
			message: `the request head is refused: a header line does not end in CRLF: "A"`},
		{raw: "A: b\r\n\n", status: 400,
			message: `the request head is refused: a header line has no colon: "\n"`},
	} {
		e := checkRequestHead([]byte(c.raw))
		switch {
		case c.status == 0 && e != nil:
			t.Errorf("%.60q: refused: %v", c.raw, e)
		case c.status != 0 && (e == nil || e.Status != c.status || e.Message != c.message || e.Type != "invalid_request_error"):
			t.Errorf("%.60q: %+v\nwant %d %s", c.raw, e, c.status, c.message)
		}
	}
}

func TestRequestHeaders(t *testing.T) {
	const in = "Host: kvasir\r\nUser-Agent: openai\r\nContent-Type: application/json\r\nCONTENT-length: 12\r\nAccept: */*\r\n" +
		"Accept-Encoding: gzip\r\nContent-Encoding: gzip\r\nExpect: 100-continue\r\nConnection: keep-alive, X-Hop\r\nx-hop: 1\r\n" +
		"Keep-Alive: 5\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\nTrailer: a\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\n" +
		"X-Request-Id: r\r\nAuthorization: Bearer k\r\nx-api-key: k\r\napi-key: k\r\nCookie: a=b\r\nX-Data-Parallel-Rank: 3\r\n" +
		"x-prefiller-host-port: 10.0.0.1:1\r\nx-encoder-hosts-ports: a\r\nx-kv-cache-source-host-port: a\r\nx-data-parallel-host-port: a\r\n" +
		"X-Dynamo-Worker-Instance-Id: 7\r\nx-worker-instance-id: 7\r\nx-prefill-instance-id: 7\r\nx-dp-rank: 0\r\nx-prefill-dp-rank: 0\r\n" +
		"x-gateway-destination-endpoint-served: a\r\nX_Request_Id: r\r\nX_Dynamo-Worker_Instance_Id: 7\r\nX-Original-URL: /admin\r\n" +
		"X-HTTP-Method-Override: PUT\r\nx-sim-fault: die\r\nX-Stainless-Lang:  python \r\nOpenAI-Organization: o\r\n\r\nGET /smuggled"
	const want = "User-Agent: openai\r\nAccept: */*\r\nCookie: a=b\r\n" +
		"x-sim-fault: die\r\nX-Stainless-Lang:  python \r\nOpenAI-Organization: o\r\n"
	if got := header.AppendEndToEnd([]byte("POST / HTTP/1.1\r\n"), []byte(in), upstream.DroppedFromRequest); string(got) != "POST / HTTP/1.1\r\n"+want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// RawHeaders has the form that both functions expect: the lines as the client
// sent them, names as written, and the blank line.
func TestRawHeadersOfFasthttp(t *testing.T) {
	const lines = "hOST: a\r\nX-Fold: b\r\n c\r\nx-LAST:  d\r\n\r\n"
	var req fasthttp.RequestHeader
	if err := req.Read(newReader([]byte("GET / HTTP/1.1\r\n" + lines))); err != nil {
		t.Fatal(err)
	}
	if string(req.RawHeaders()) != lines {
		t.Fatalf("%q", req.RawHeaders())
	}
	if e := checkRequestHead(req.RawHeaders()); e == nil || e.Status != 400 {
		t.Errorf("a folded line passes: %v", e)
	}
}

// FuzzRequestHeaders: headers that pass the check come out as whole lines of the input, in order,
// without the ones that are dropped by name.
func FuzzRequestHeaders(f *testing.F) {
	f.Add([]byte("Host: a\r\nConnection: x\r\nX: 1\r\nContent-Length: 3\r\n\r\n"))
	f.Add([]byte("A: b\r\n c\r\n\r\n"))
	f.Add([]byte("Transfer-Encoding: chunked\r\ncontent-length: 1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := checkRequestHead(raw)
		out := header.AppendEndToEnd(nil, raw, upstream.DroppedFromRequest)
		if e != nil {
			if len(e.Message) > 1200 {
				t.Fatalf("a message of %d bytes", len(e.Message))
			}
			return
		}
		rest := raw
		for _, line := range bytes.SplitAfter(out, []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			i := bytes.Index(rest, line)
			if i < 0 {
				t.Fatalf("%q is no line of %q", line, raw)
			}
			rest = rest[i+len(line):]
			name, _, err := header.CutField(line)
			if err != nil || upstream.DroppedFromRequest(name) {
				t.Fatalf("%q went through: %v", line, err)
			}
		}
		if bytes.Contains(out, []byte("\r\n\r\n")) || len(out) > 0 && !bytes.HasSuffix(out, []byte("\r\n")) {
			t.Fatalf("no header lines: %q", out)
		}
	})
}

func TestRequestHeadersAllocs(t *testing.T) {
	raw := []byte("Host: a\r\nAuthorization: Bearer b\r\nContent-Type: application/json\r\nX-Stainless-Arch: x64\r\n\r\n")
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if checkRequestHead(raw) != nil {
			t.Fatal("refused")
		}
		dst = header.AppendEndToEnd(dst[:0], raw, upstream.DroppedFromRequest)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRequestHeaders(b *testing.B) {
	raw := []byte("Host: 127.0.0.1:8080\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nAccept: application/json\r\n" +
		"Content-Type: application/json\r\nUser-Agent: OpenAI/Python 3.3.1\r\nX-Stainless-Lang: python\r\nX-Stainless-Package-Version: 3.3.1\r\n" +
		"X-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\nX-Stainless-Runtime: CPython\r\nX-Stainless-Runtime-Version: 3.12.3\r\n" +
		"Authorization: Bearer sk-xxx\r\nX-Stainless-Async: false\r\nx-stainless-retry-count: 0\r\nx-stainless-read-timeout: 600\r\nContent-Length: 1234\r\n\r\n")
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if checkRequestHead(raw) != nil {
			b.Fatal("refused")
		}
		dst = header.AppendEndToEnd(dst[:0], raw, upstream.DroppedFromRequest)
	}
}
