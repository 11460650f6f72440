// Receiving: where heads end, and bodies in every framing and content coding.

package edge

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/edge/edgetest"
	"kvasir/wire"
)

// FuzzHeadEnd: fasthttp consumes every byte that it gets as a head. Bytes left in its buffer
// would be read as the next request, and the body would be read from after them.
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

// FuzzUnpack: for any compressed body, the output is bounded and all memory is given back.
func FuzzUnpack(f *testing.F) {
	codings := []string{"gzip", "deflate", "br", "zstd"}
	for i, coding := range codings {
		f.Add(uint8(i), edgetest.Packed(f, coding, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		f.Add(uint8(i), edgetest.Packed(f, coding, strings.Repeat("a", 200<<10)))
	}
	f.Add(uint8(3), []byte("\x28\xb5\x2f\xfd\x00\x98\x01\x00\x00"))
	f.Add(uint8(3), []byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x10\x01\x00\x00"))
	f.Add(uint8(2), []byte("\x11"))
	f.Fuzz(func(t *testing.T, which uint8, packed []byte) {
		var budget Budget
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

// FuzzReceive: a body in either framing, delivered in any pieces, is read as net/http reads it,
// or refused. The bytes after it are left for the next request.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\nnext"), uint8(3), true)
	f.Add([]byte("hello, worldnext"), uint8(200), false)
	f.Fuzz(func(t *testing.T, in []byte, step uint8, chunked bool) {
		var budget Budget
		budget.limit.Store(1 << 20)
		fr := wire.Sized(int64(len(in) / 2))
		if chunked {
			fr = wire.Chunked()
		}
		c := &Conn{Conn: &pieceConn{rest: in, step: int(step) + 1}}
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

func (c *Conn) leftOver() []byte {
	if c.ahead == nil {
		return nil
	}
	return c.ahead[c.from:c.to]
}

// A pieceConn delivers its bytes in pieces.
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
