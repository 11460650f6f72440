// Listeners: the errors that Accept survives, and the settings of an accepted connection.

package edge

import (
	"net"
	"syscall"
	"testing"
	"time"

	"kvasir/wire"
)

// Without a free descriptor Accept fails. The server used to take that as its end, and the
// process exited.
func TestAcceptSurvivesExhaustion(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		inner := &failingListener{errs: []error{&net.OpError{Op: "accept", Err: errno}, &net.OpError{Op: "accept", Err: errno}, net.ErrClosed}}
		if _, err := (patient{inner}).Accept(); err != net.ErrClosed || len(inner.errs) != 0 {
			t.Errorf("%v: got %v with %d left", errno, err, len(inner.errs))
		}
	}
}

type failingListener struct {
	net.Listener
	errs []error
}

func (l *failingListener) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

// TestWriteClockIsAskedForAtEachAccept: a client that reads nothing is dropped after the write
// timeout in force when it was accepted.
func TestWriteClockIsAskedForAtEachAccept(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Hour
	clients := &Listener{Listener: ln, WriteTimeout: func() time.Duration { return clock }}
	defer clients.Close()
	for _, want := range []time.Duration{time.Hour, 50 * time.Millisecond} {
		clock = want
		dialed, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer dialed.Close()
		c, err := clients.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.(*Conn).writeTimeout; got != want {
			t.Errorf("the write clock of a new connection is %v, not %v", got, want)
		}
		if want == time.Hour {
			continue
		}
		for piece := make([]byte, 1<<20); err == nil; {
			_, err = c.Write(piece)
		}
		if !wire.IsTimeout(err) {
			t.Errorf("writing ended with %v", err)
		}
	}
}
