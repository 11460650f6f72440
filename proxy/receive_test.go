// Receiving: where heads end, memory that follows what has come, and a budget that is always given back.

package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	brrr "github.com/molecule-man/go-brrr"
	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/wire"
)

// TestLiarsCostNothing: a Content-Length was believed, and 90 bytes cost 32 MiB.
func TestLiarsCostNothing(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	const liars = 50
	for range liars {
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, chatHead+"Content-Length: 33554432\r\n\r\n"+strings.Repeat("x", 5000))
		defer c.Close()
	}
	waitUntil(t, "the bodies begin", func() bool { return p.bodies.held.Load() >= liars*8<<10 })
	if held := p.bodies.held.Load(); held > liars*16<<10 {
		t.Errorf("%d bytes are held for bodies of which %d have come", held, liars*5000)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 200 {
		t.Errorf("meanwhile: %d %q", a.StatusCode, a.body)
	}
}

func TestBodiesBeyondTheBudget(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.BodyMemory = 4 << 20
	p := startProxy(t, s)
	held := dial(t, p.addr) // 2 MiB of 3 for large bodies
	_, _ = io.WriteString(held, chatHead+"Content-Length: 4000000\r\n\r\n"+strings.Repeat("x", 1<<20+1))
	waitUntil(t, "it has come", func() bool { return p.bodies.held.Load() == 2<<20 })
	large := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a ", 1<<20) + `"}]}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, large)
	_ = z.Close()
	for name, a := range map[string]received{
		"as it is": p.ask(t, "/v1/chat/completions", large),
		"packed":   p.ask(t, "/v1/chat/completions", packed.String(), "Content-Encoding: gzip"),
	} {
		if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.body, "server.body_memory") {
			t.Errorf("%s: %d %q", name, a.StatusCode, a.body)
		}
		checkErrorShape(t, a.body)
	}
	small := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a ", 20<<10) + `"}]}`
	if a := p.ask(t, "/v1/chat/completions", small); a.StatusCode != 200 {
		t.Errorf("an ordinary prompt: %d %q", a.StatusCode, a.body)
	}
	_ = held.Close()
	waitUntil(t, "all is given back", func() bool { return p.bodies.held.Load() == 0 })
}

// TestBudgetComesBack: whichever way a request ends.
func TestBudgetComesBack(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.MaxBody = 1 << 20
	p := startProxy(t, s)
	large := func(end string) string {
		return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a ", 50<<10) + end
	}
	pack := func(coding, text string) string { return string(packedBy(t, coding, text)) }
	for _, tc := range []struct {
		name, path, body, coding string
		status                   int
	}{
		{"answered", "/v1/chat/completions", large(`"}]}`), "", 200},
		{"no JSON", "/v1/chat/completions", large(`"}`), "", 400},
		{"no route", "/v1/nothing", large(`"}]}`), "", 404},
		{"gzip", "/v1/chat/completions", pack("gzip", large(`"}]}`)), "gzip", 200},
		{"deflate", "/v1/chat/completions", pack("deflate", large(`"}]}`)), "deflate", 200},
		{"br", "/v1/chat/completions", pack("br", large(`"}]}`)), "br", 200},
		{"zstd", "/v1/chat/completions", pack("zstd", large(`"}]}`)), "zstd", 200},
		{"no zstd", "/v1/chat/completions", large(`"}]}`), "zstd", 400},
		{"grows too large", "/v1/chat/completions", pack("zstd", strings.Repeat("a", 2<<20)), "zstd", 413},
		{"zstd with a window of 512 MiB", "/v1/chat/completions", "\x28\xb5\x2f\xfd\x00\x98\x01\x00\x00", "zstd", 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lines []string
			if tc.coding != "" {
				lines = append(lines, "Content-Encoding: "+tc.coding)
			}
			if a := p.ask(t, tc.path, tc.body, lines...); a.StatusCode != tc.status {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
			waitUntil(t, "all is given back", func() bool { return p.bodies.held.Load() == 0 })
		})
	}
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, chatHead+"Content-Length: 200000\r\n\r\n"+large(""))
	waitUntil(t, "it has come", func() bool { return p.bodies.held.Load() > 0 })
	_ = c.Close()
	waitUntil(t, "the lost client's is given back", func() bool { return p.bodies.held.Load() == 0 })
}

func packedBy(t testing.TB, coding, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "br":
		var err error
		if w, err = brrr.NewWriter(&out, 5); err != nil {
			t.Fatal(err)
		}
	case "zstd":
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Bodies of every size and framing, written in pieces, one behind the other on one connection.
func TestBodiesOfAllSizes(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	c := dial(t, p.addr)
	r := bufio.NewReader(c)
	for i, size := range []int{0, 3000, 4095, 4096, 4097, 9000, 100 << 10, 300 << 10, 3 << 20} {
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d %s"}]}`, size, strings.Repeat("b", size))
		var chunked strings.Builder
		for rest, n := body, 1; rest != ""; n = n*3 + 1 {
			n = min(n, len(rest))
			chunked.WriteString(chunk(rest[:n]))
			rest = rest[n:]
		}
		chunked.WriteString("0\r\nX-Trailer: a\r\n\r\n")
		next := post("/v1/chat/completions", body)
		go func() { _, _ = io.WriteString(c, chatHead+"Transfer-Encoding: chunked\r\n\r\n"+chunked.String()+next) }()
		for k := range 2 {
			if a := receive(t, r); a.StatusCode != 200 {
				t.Fatalf("%d: got %d %q", size, a.StatusCode, a.body)
			}
			if got := w.seen()[2*i+k]; got != body {
				t.Fatalf("%d: the worker got %d bytes, not %d", size, len(got), len(body))
			}
		}
	}
}

// FuzzHeadEnd: what is handed to fasthttp as a head, it uses up. Bytes left over
// in its buffer would be taken for the next request, and the body read from behind them.
func FuzzHeadEnd(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET", "\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"GET / HTTP/1.1\nHost: x\n\nrest", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", "\n\n\r\nGET / HTTP/1.1\r\n: x\r\n\r\n\r\n",
	} {
		f.Add([]byte(s), uint8(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		var whole, parts headEnd
		n, ended := whole.scan(in)
		at, partly := 0, false
		for at < len(in) && !partly {
			k, e := parts.scan(in[at:min(len(in), at+int(step)+1)])
			at, partly = at+k, e
		}
		if at != n || partly != ended {
			t.Fatalf("in one piece the head ends at %d (%v), in pieces at %d (%v)", n, ended, at, partly)
		}
		if !ended {
			return
		}
		var h fasthttp.RequestHeader
		r := bufio.NewReaderSize(bytes.NewReader(in[:n]), len(in)+16)
		if h.Read(r) == nil && r.Buffered() > 0 {
			t.Fatalf("fasthttp leaves %d bytes of %q", r.Buffered(), in[:n])
		}
	})
}

// FuzzUnpack: whatever a packed body is, what comes out is bounded and all memory given back.
func FuzzUnpack(f *testing.F) {
	codings := []string{"gzip", "deflate", "br", "zstd"}
	for i, coding := range codings {
		f.Add(uint8(i), packedBy(f, coding, plainChat))
		f.Add(uint8(i), packedBy(f, coding, strings.Repeat("a", 200<<10)))
	}
	f.Add(uint8(3), []byte("\x28\xb5\x2f\xfd\x00\x98\x01\x00\x00"))
	f.Add(uint8(3), []byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x10\x01\x00\x00"))
	f.Add(uint8(2), []byte("\x11"))
	f.Fuzz(func(t *testing.T, which uint8, packed []byte) {
		var budget bodyBudget
		budget.limit.Store(16 << 20)
		out := body{budget: &budget, most: 64 << 10}
		err := unpackInto(&out, []byte(codings[which%4]), packed)
		if out.n > 64<<10 || err == nil && out.n != len(out.bytes()) {
			t.Fatalf("%d bytes came out", out.n)
		}
		out.letGo()
		if held := budget.held.Load(); held != 0 {
			t.Fatalf("%d bytes of the budget are not given back (%v)", held, err)
		}
	})
}

// FuzzReceive: a body, framed either way and cut anywhere, is read as net/http frames it, or refused; the bytes behind
// it are left for the next request.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\nnext"), uint8(3), true)
	f.Add([]byte("hello, worldnext"), uint8(200), false)
	f.Fuzz(func(t *testing.T, in []byte, step uint8, chunked bool) {
		var budget bodyBudget
		budget.limit.Store(1 << 20)
		fr := wire.Sized(int64(len(in) / 2))
		if chunked {
			fr = wire.Chunked()
		}
		c := &clientConn{Conn: &pieceConn{rest: in, step: int(step) + 1}}
		b := body{budget: &budget, most: 64 << 10}
		err := b.receive(c, &fr)
		if err == nil && !chunked && !bytes.Equal(b.bytes(), in[:len(in)/2]) {
			t.Fatalf("got %q of %q", b.bytes(), in)
		}
		if err == nil {
			rest, _ := io.ReadAll(io.MultiReader(bytes.NewReader(c.leftOver()), c.Conn))
			if !bytes.HasSuffix(in, rest) {
				t.Fatalf("left is %q of %q", rest, in)
			}
		}
		b.letGo()
		if held := budget.held.Load(); held != 0 {
			t.Fatalf("%d bytes of the budget are not given back", held)
		}
	})
}

func (c *clientConn) leftOver() []byte {
	if c.ahead == nil {
		return nil
	}
	return c.ahead[c.from:c.to]
}

// A pieceConn gives its bytes in pieces.
type pieceConn struct {
	net.Conn
	rest []byte
	step int
}

func (p *pieceConn) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(len(p.rest), p.step)])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieceConn) SetReadDeadline(time.Time) error { return nil }

// TestTextsAreCounted: a kilobyte that unpacks to many small texts takes what is made of them.
func TestTextsAreCounted(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.BodyMemory = 4 << 20
	p := startProxy(t, s)
	crumbs := func(n int) string {
		return `{"model":"m","messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, n-1) + `{"type":"text","text":"a"}]}]}`
	}
	packed := string(packedBy(t, "gzip", crumbs(openai.MaxTexts)))
	if a := p.ask(t, "/v1/chat/completions", packed, "Content-Encoding: gzip"); a.StatusCode != 503 || !strings.Contains(a.body, "server.body_memory") {
		t.Errorf("%d texts: %d %s", openai.MaxTexts, a.StatusCode, a.body)
	}
	if a := p.ask(t, "/v1/chat/completions", crumbs(2*fewTexts)); a.StatusCode != 200 {
		t.Errorf("%d texts: %d %s", 2*fewTexts, a.StatusCode, a.body)
	}
	waitUntil(t, "all is given back", func() bool { return p.bodies.held.Load() == 0 })
}

// TestStrangersTakeNoBudget: who shows no key holds no memory that those with one could use.
func TestStrangersTakeNoBudget(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.BodyMemory = 4 << 20
	s.Keys = []Key{{Name: "alice", SHA256: sha256.Sum256([]byte("alice"))}}
	p := startProxy(t, s)
	part := strings.Repeat("x", 60000)
	for _, framing := range []string{"Content-Length: 60001\r\n\r\n" + part, fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(part), part)} {
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, chatHead+framing)
		waitUntil(t, "it waits for the rest", func() bool { return p.bodies.held.Load() == 0 })
		_, _ = io.WriteString(c, map[bool]string{true: "0\r\n\r\n", false: "x"}[strings.HasPrefix(framing, "T")])
		if a := receive(t, bufio.NewReader(c)); a.StatusCode != 401 {
			t.Errorf("%.20q: %d %s", framing, a.StatusCode, a.body)
		}
	}
	if n := p.bodies.held.Load(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
}
