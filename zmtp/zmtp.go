// Package doc, connections and their handshake.

// Package zmtp speaks ZeroMQ's wire protocol, ZMTP 3.0 with the NULL mechanism
// (rfc.zeromq.org/spec/23), over one connection: no more than the KV events of inference engines
// need, for both of their ends.
//
//	c, err := zmtp.Open(conn, "SUB") // greets, and checks that the peer's socket goes with it
//	err = c.Subscribe("")
//	var m zmtp.Message
//	for {
//		ok, err := c.Read(&m, time.Minute) // false: nothing came, or only a command
//		... m.Len(), m.Frame(0) ...
//	}
//
// It has no sockets with queues and reconnection: callers build what they need from connections.
// We have our own because the pure Go library (go-zeromq/zmq4 0.17.0) allocates whatever length a
// peer claims, so that nine bytes from a worker's port end the process; it also treats a peer's
// PING as a message, and cannot stop without data races. Here a message is bounded and its memory
// grows with the bytes received; the frames lie in one buffer that the next message reuses.
//
// It sends no PING: some engines' libraries close a connection on an unknown command. It answers
// a peer's PING; TCP keep-alive (Dial, and Go's listeners) detects a peer that is gone.
package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	handshakeTimeout = 10 * time.Second
	stallTimeout     = 30 * time.Second // for a read inside a message, and for a write
	bufferSize       = 16 << 10         // of a reader; larger frames bypass it
)

// Conn is one connection after its handshake. One goroutine may read while others write.
type Conn struct {
	conn   net.Conn
	reader *timedReader
	in     *bufio.Reader
	word   [9]byte
	body   []byte // of a command

	mu  sync.Mutex // guards out, and writing
	out []byte
}

// timedReader gives each read a deadline of its own.
type timedReader struct {
	conn    net.Conn
	timeout time.Duration
}

func (r *timedReader) Read(p []byte) (int, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return 0, err
	}
	return r.conn.Read(p)
}

// Dial connects to an address in ZeroMQ's form, tcp://host:port or ipc://path, and opens the
// connection as socketType.
func Dial(ctx context.Context, address, socketType string) (*Conn, error) {
	network, at, err := Split(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{
		Timeout:         handshakeTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	conn, err := dialer.DialContext(ctx, network, at)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %q: %w", address, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c, err := Open(conn, socketType)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", address, err)
	}
	return c, nil
}

// Split turns an address in ZeroMQ's form into the arguments of net.Dial.
func Split(address string) (network, at string, err error) {
	scheme, rest, ok := strings.Cut(address, "://")
	switch {
	case ok && scheme == "ipc" && rest != "":
		return "unix", rest, nil
	case ok && scheme == "tcp":
		host, port, err := net.SplitHostPort(rest)
		if err != nil {
			return "", "", fmt.Errorf("cannot read address %q: %w", address, err)
		}
		if host == "" || host == "*" || port == "" || port == "*" {
			return "", "", fmt.Errorf("cannot connect to address %q: it names no host or no port", address)
		}
		return "tcp", rest, nil
	}
	return "", "", fmt.Errorf("cannot read address %q: want tcp://host:port or ipc://path", address)
}

// Open performs the handshake as a socket of the type SUB, PUB, DEALER or ROUTER. It owns conn,
// and closes it on failure.
func Open(conn net.Conn, socketType string) (*Conn, error) {
	reader := &timedReader{conn, handshakeTimeout}
	c := &Conn{conn: conn, reader: reader, in: bufio.NewReaderSize(reader, bufferSize)}
	if err := c.handshake(socketType); err != nil {
		conn.Close()
		return nil, err
	}
	reader.timeout = stallTimeout
	return c, nil
}

// Close closes the connection, which ends reads and writes under way.
func (c *Conn) Close() error { return c.conn.Close() }

// greeting returns what each side sends first: signature, version 3.0, mechanism NULL, and
// as-server false.
func greeting() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}

// peers lists which socket types may connect to each other.
var peers = map[string][]string{
	"SUB":    {"PUB", "XPUB"},
	"PUB":    {"SUB", "XSUB"},
	"DEALER": {"ROUTER"},
	"ROUTER": {"DEALER", "REQ"},
}

func (c *Conn) handshake(socketType string) error {
	// The peer's greeting may come a few bytes at a time; the whole handshake has one deadline
	// for writing.
	if err := c.conn.SetWriteDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if _, err := c.conn.Write(greeting()); err != nil {
		return fmt.Errorf("cannot greet: %w", err)
	}
	if err := c.checkGreeting(); err != nil {
		return err
	}
	ready := appendProperty([]byte("\x05READY"), "Socket-Type", socketType)
	ready = appendProperty(ready, "Identity", "")
	if _, err := c.conn.Write(appendFrame(nil, commandFlag, ready)); err != nil {
		return fmt.Errorf("cannot say what socket this is: %w", err)
	}
	flags, err := c.readFrame(&c.body, maxCommand)
	if err != nil {
		return fmt.Errorf("cannot read what socket the peer is: %w", err)
	}
	name, rest := splitCommand(c.body)
	if flags&commandFlag == 0 || string(name) != "READY" {
		if string(name) == "ERROR" && len(rest) > 0 {
			return errors.New("refused by the peer")
		}
		return errors.New("expected READY from the peer, got something else")
	}
	theirs, err := property(rest, "Socket-Type")
	if err != nil {
		return err
	}
	if !slices.Contains(peers[socketType], theirs) {
		return fmt.Errorf("the peer's socket is %q, which does not go with %s", theirs, socketType)
	}
	return nil
}

func (c *Conn) checkGreeting() error {
	g := make([]byte, 64)
	if err := c.readFull(g); err != nil {
		return fmt.Errorf("cannot read the peer's greeting: %w", err)
	}
	if g[0] != 0xff || g[9]&1 == 0 {
		return errors.New("the peer does not speak ZeroMQ")
	}
	if g[10] < 3 {
		return fmt.Errorf("the peer speaks ZMTP %d, which is older than 3", g[10])
	}
	if mechanism := string(bytes.TrimRight(g[12:32], "\x00")); mechanism != "NULL" {
		return fmt.Errorf("the peer wants the security mechanism %q; only NULL is spoken here", mechanism)
	}
	return nil
}

func appendProperty(dst []byte, name, value string) []byte {
	dst = append(append(dst, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(value))), value...)
}

var errProperties = errors.New("cannot read the peer's properties")

// property finds one property in the body of READY.
func property(b []byte, want string) (string, error) {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			return "", errProperties
		}
		name, rest := b[1:1+n], b[1+n:]
		size := uint64(binary.BigEndian.Uint32(rest))
		if uint64(len(rest)-4) < size {
			return "", errProperties
		}
		if strings.EqualFold(string(name), want) {
			return string(rest[4 : 4+size]), nil
		}
		b = rest[4+size:]
	}
	return "", nil
}

// splitCommand splits a command's body into its name and the rest; the name is empty if the body
// is malformed.
func splitCommand(b []byte) (name, rest []byte) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil
	}
	return b[1 : 1+b[0]], b[1+b[0]:]
}
