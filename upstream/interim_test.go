// Interim replies: 1xx of a worker are counted and dropped.

package upstream

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"kvasir/wire"
)

const interimReply = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"

const finalReply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

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
	n := copy(b, p.rest[:min(p.step, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieceConn) SetReadDeadline(time.Time) error { return nil }

// callOn is a call whose request was sent, before the reply.
func callOn(reply []byte, step int) *Call {
	pieces := &pieceConn{rest: reply, step: step}
	return &Call{
		conn: &conn{Conn: pieces, raw: pieces}, timeouts: Timeouts{FirstByte: time.Minute, Idle: time.Minute},
		Now: time.Now(), Sent: time.Now(),
	}
}

func TestInterimRepliesAreDropped(t *testing.T) {
	c := callOn([]byte(strings.Repeat(interimReply, maxInterim)+finalReply), 50)
	if err := c.readHead(); err != nil || c.Head.Status != 200 {
		t.Fatalf("status %d, %v", c.Head.Status, err)
	}
	if len(c.buf) != wire.SmallBuffer {
		t.Errorf("the buffer has grown to %d bytes", len(c.buf))
	}
	var err error
	for err == nil {
		err = c.More()
	}
	if string(c.Payload()) != "{}" {
		t.Errorf("the body is %q", c.Payload())
	}
	c = callOn([]byte(strings.Repeat(interimReply, 10*maxInterim)), 1<<20)
	if err := c.readHead(); err == nil || !strings.Contains(err.Error(), "interim") {
		t.Errorf("endless interim replies: %v", err)
	}
}

// FuzzInterim: whatever comes before a reply, what is held of it is bounded.
func FuzzInterim(f *testing.F) {
	f.Add([]byte(interimReply+interimReply+finalReply), uint8(7))
	f.Add([]byte(strings.Repeat("HTTP/1.1 100\r\n\r\n", 70)), uint8(255))
	f.Add([]byte("HTTP/1.1 102 \r\nA: b\r\n\r\nHTTP/1.1 204\r\n\r\n"), uint8(0))
	f.Fuzz(func(t *testing.T, reply []byte, step uint8) {
		c := callOn(reply, int(step)+1)
		err := c.readHead()
		if len(c.buf) > 2*maxReplyHead {
			t.Fatalf("%d bytes are held", len(c.buf))
		}
		if err == nil && c.Head.Status < 200 {
			t.Fatalf("an interim reply was taken for the reply: %d", c.Head.Status)
		}
		for err == nil && len(c.buf) < 1<<20 {
			err = c.More()
		}
		if err != nil && err != io.EOF && c.conn == nil {
			t.Fatal("the connection was let go")
		}
	})
}
