// Two ends over loopback, and peers with every kind of error.

package zmtp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// link opens two ends over loopback.
func link(t testing.TB, left, right string) (*Conn, *Conn) {
	t.Helper()
	ln := listen(t)
	opened := make(chan *Conn, 1)
	go func() {
		defer close(opened)
		conn, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		c, err := Open(conn, right)
		if err != nil {
			t.Error(err)
			return
		}
		opened <- c
	}()
	a, err := Dial(t.Context(), "tcp://"+ln.Addr().String(), left)
	if err != nil {
		t.Fatal(err)
	}
	b := <-opened
	if b == nil {
		t.FailNow()
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

func frames(m *Message) []string {
	var out []string
	for i := range m.Len() {
		out = append(out, string(m.Frame(i)))
	}
	return out
}

func TestMessagesArriveWhole(t *testing.T) {
	pub, sub := link(t, "PUB", "SUB")
	long := strings.Repeat("x", 255)
	messages := [][]string{
		{""}, {"a"}, {"", "12345678", "payload"}, {long}, {long + "y", "", long + "z"},
		{strings.Repeat("big", 1<<20), "tail"}, slices.Repeat([]string{"f"}, maxFrames),
	}
	go func() {
		for _, m := range messages {
			var raw [][]byte
			for _, f := range m {
				raw = append(raw, []byte(f))
			}
			if err := pub.Write(raw...); err != nil {
				t.Error(err)
			}
		}
	}()
	var m Message
	for i, want := range messages {
		if ok, err := sub.Read(&m, 10*time.Second); !ok || err != nil {
			t.Fatalf("message %d: %v, %v", i, ok, err)
		}
		if got := frames(&m); !slices.Equal(got, want) {
			t.Errorf("message %d has %d frames, want %d, or other bytes", i, len(got), len(want))
		}
	}
}

func TestReadSaysThatNothingCame(t *testing.T) {
	pub, sub := link(t, "PUB", "SUB")
	var m Message
	if ok, err := sub.Read(&m, time.Millisecond); ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	if err := pub.Write([]byte("later")); err != nil { // and the connection goes on
		t.Fatal(err)
	}
	if ok, err := sub.Read(&m, 10*time.Second); !ok || err != nil || string(m.Frame(0)) != "later" {
		t.Fatalf("got %v, %v, %q", ok, err, frames(&m))
	}
	pub.Close()
	if ok, err := sub.Read(&m, 10*time.Second); ok || err != io.EOF {
		t.Fatalf("after the end: %v, %v", ok, err)
	}
}

func TestCommands(t *testing.T) {
	pub, sub := link(t, "PUB", "SUB")
	steps := []struct {
		name, body string
		want       []string // as a message
	}{
		{"PING", "\x00\x0acontext", nil},
		{"SUBSCRIBE", "kv@a", []string{"\x01kv@a"}},
		{"CANCEL", "kv@a", []string{"\x00kv@a"}},
		{"NEWS", "of later versions", nil},
	}
	for _, step := range steps {
		body := append(append([]byte{byte(len(step.name))}, step.name...), step.body...)
		if err := sub.write(commandFlag, body); err != nil {
			t.Fatal(err)
		}
		var m Message
		ok, err := pub.Read(&m, 10*time.Second)
		if err != nil || ok != (step.want != nil) || !slices.Equal(frames(&m), step.want) {
			t.Errorf("%s: got %v, %v, %q", step.name, ok, err, frames(&m))
		}
	}
	var pong []byte
	if flags, err := sub.readFrame(&pong, 100); err != nil || flags != commandFlag || string(pong) != "\x04PONGcontext" {
		t.Errorf("PING was answered %#x %q, %v", flags, pong, err)
	}
}

// libzmq with heartbeats sends a PING whenever it is due, even between the frames of a message.
func TestCommandBetweenFrames(t *testing.T) {
	pub, sub := link(t, "PUB", "SUB")
	wire := []byte("\x01\x01a" + "\x04\x07\x04PING\x00\x01" + "\x01\x01b" + "\x04\x05\x04NEWS" + "\x00\x01c")
	if err := pub.WriteEncoded(wire); err != nil {
		t.Fatal(err)
	}
	var m Message
	if ok, err := sub.Read(&m, 10*time.Second); !ok || err != nil || !slices.Equal(frames(&m), []string{"a", "b", "c"}) {
		t.Errorf("got %v, %v, %q", ok, err, frames(&m))
	}
	if ok, err := pub.Read(&m, 10*time.Second); ok || err != nil { // the PONG
		t.Errorf("got %v, %v, %q", ok, err, frames(&m))
	}
}

// A peer writes given bytes; the error of Dial or of the first Read.
func TestWrongPeers(t *testing.T) {
	hello := string(greeting())
	ready := func(socket string) string {
		return hello + string(appendFrame(nil, commandFlag, appendProperty([]byte("\x05READY"), "socket-type", socket)))
	}
	plain := []byte(hello)
	copy(plain[12:], "PLAIN")
	old := []byte(hello)
	old[10] = 1
	long := func(flags byte, size uint64) string {
		return string(binary.BigEndian.AppendUint64([]byte{flags | longFlag}, size))
	}
	for _, peer := range []struct{ name, sends, want string }{
		{"hangs up", "", "cannot read the peer's greeting: unexpected EOF"},
		{"web server", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n12345",
			`the peer does not speak ZeroMQ`},
		{"version 2", string(old), "the peer speaks ZMTP 1, which is older than 3"},
		{"security", string(plain), `the peer wants the security mechanism "PLAIN"; only NULL is spoken here`},
		{"wrong socket", ready("PUSH"), `the peer's socket is "PUSH", which does not go with SUB`},
		{"no socket", hello + "\x04\x06\x05READY", `the peer's socket is "", which does not go with SUB`},
		{"bad properties", hello + "\x04\x08\x05READY\x09x", "cannot read the peer's properties"},
		{"refuses", hello + "\x04\x0a\x05ERROR\x03not", `refused by the peer`},
		{"message first", hello + "\x00\x01x", `expected READY from the peer, got something else`},
		{"huge handshake", hello + long(commandFlag, 1<<40), "more than the 65536 allowed"},
		{"huge frame", ready("PUB") + long(0, 1<<62), "more than the 8388608 allowed"},
		{"sum too large", ready("PUB") + "\x01\x01x" + long(0, MaxMessage), fmt.Sprintf("more than the %d allowed", MaxMessage-1)},
		{"lying length", ready("PUB") + long(0, MaxMessage) + "short", "unexpected EOF"},
		{"unknown flags", ready("PUB") + "\x10\x01x", "cannot read a frame with the flags 0x10"},
		{"too many frames", ready("XPUB") + strings.Repeat("\x01\x01x", maxFrames+1), "more than 16 frames"},
		{"subscription inside", ready("PUB") + "\x01\x01x\x04\x0a\x09SUBSCRIBE", "a message with a subscription in it"},
		{"empty ping", ready("PUB") + "\x04\x05\x04PING", "cannot read a PING without its time"},
		{"error later", ready("PUB") + "\x04\x0a\x05ERROR\x03bad", "the peer ends the connection"},
	} {
		t.Run(peer.name, func(t *testing.T) {
			ln := listen(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				conn, err := ln.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, peer.sends)
				_ = conn.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
			}()
			c, err := Dial(t.Context(), "tcp://"+ln.Addr().String(), "SUB")
			var m Message
			for err == nil {
				_, err = c.Read(&m, 10*time.Second)
			}
			if !strings.Contains(err.Error(), peer.want) {
				t.Errorf("got %v, want %s", err, peer.want)
			}
			if c != nil {
				c.Close()
			}
			if cap(m.buf) > 2*chunk {
				t.Errorf("%d bytes were made for a frame that never came", cap(m.buf))
			}
			<-done
		})
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	ln := listen(t) // accepts connections but sends no greeting
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			t.Error(err)
		}
		_, _ = io.ReadFull(conn, make([]byte, 64))
		cancel()
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}()
	began := time.Now()
	if _, err := Dial(ctx, "tcp://"+ln.Addr().String(), "SUB"); err == nil || time.Since(began) > handshakeTimeout/2 {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
}

func TestSplit(t *testing.T) {
	for _, row := range []struct{ address, network, at, problem string }{
		{"tcp://10.0.0.5:5557", "tcp", "10.0.0.5:5557", ""},
		{"tcp://[::1]:5557", "tcp", "[::1]:5557", ""},
		{"ipc:///run/kv.sock", "unix", "/run/kv.sock", ""},
		{"tcp://*:5557", "", "", "it names no host or no port"},
		{"tcp://:5557", "", "", "it names no host or no port"},
		{"tcp://host", "", "", "missing port"},
		{"http://host:1", "", "", "want tcp://host:port or ipc://path"},
		{"host:1", "", "", "want tcp://host:port or ipc://path"},
		{"inproc://x", "", "", "want tcp://host:port or ipc://path"},
	} {
		network, at, err := Split(row.address)
		if network != row.network || at != row.at || (err == nil) != (row.problem == "") ||
			err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: got %q, %q, %v", row.address, network, at, err)
		}
	}
}

// played is a connection that delivers given bytes.
type played struct {
	net.Conn
	in *bytes.Reader
}

func (p played) Read(b []byte) (int, error)       { return p.in.Read(b) }
func (p played) Write(b []byte) (int, error)      { return len(b), nil }
func (p played) Close() error                     { return nil }
func (p played) SetReadDeadline(time.Time) error  { return nil }
func (p played) SetWriteDeadline(time.Time) error { return nil }

func FuzzRead(f *testing.F) {
	hello := append(greeting(), appendFrame(nil, commandFlag, appendProperty([]byte("\x05READY"), "Socket-Type", "PUB"))...)
	f.Add(slices.Concat(hello, AppendMessage(nil, []byte("t"), make([]byte, 8), make([]byte, 300))))
	f.Add(slices.Concat(hello, []byte("\x04\x07\x04PING\x00\x01\x06\x00\x00\x00\x00\x00\x00\x00\x05\x04PONG")))
	f.Add(hello[:70])
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Open(played{in: bytes.NewReader(b)}, "SUB")
		if err != nil {
			return
		}
		var m Message
		total := 0
		for range len(b) + 1 { // each call reads at least one byte, or ends
			ok, err := c.Read(&m, time.Second)
			if err != nil {
				return
			}
			if ok != (m.Len() > 0) {
				t.Fatalf("ok is %v with %d frames", ok, m.Len())
			}
			for i := range m.Len() {
				total += len(m.Frame(i))
			}
		}
		t.Fatalf("no end in %d bytes; %d read", len(b), total)
	})
}

func TestReadAllocatesNothing(t *testing.T) {
	one := AppendMessage(nil, nil, make([]byte, 8), make([]byte, 3000))
	hello := append(greeting(), appendFrame(nil, commandFlag, appendProperty([]byte("\x05READY"), "Socket-Type", "PUB"))...)
	c, err := Open(played{in: bytes.NewReader(append(hello, bytes.Repeat(one, 3000)...))}, "SUB")
	if err != nil {
		t.Fatal(err)
	}
	var m Message
	if n := testing.AllocsPerRun(2000, func() {
		if ok, err := c.Read(&m, time.Second); !ok || err != nil || m.Len() != 3 {
			t.Fatal(ok, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a message", n)
	}
}
