// Messages of frames: reading, writing, and the commands between them.

package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// MaxMessage bounds the bytes of one message, all frames together. A batch of events of an engine
// that computes 100,000 tokens per step has less than 1 MB.
const MaxMessage = 8 << 20

const (
	maxCommand = 64 << 10
	maxFrames  = 16
	chunk      = 64 << 10 // bytes of a frame for which memory is allocated before they arrive
	keep       = 1 << 20  // a larger message buffer is not reused
)

const (
	moreFlag    = 1
	longFlag    = 2
	commandFlag = 4
)

// Message is the message read last: its frames, in one buffer. The zero value is ready.
type Message struct {
	buf  []byte
	ends []int
}

// Len returns the number of frames.
func (m *Message) Len() int { return len(m.ends) }

// Frame returns the i-th frame, valid until the next Read into m.
func (m *Message) Frame(i int) []byte {
	start := 0
	if i > 0 {
		start = m.ends[i-1]
	}
	return m.buf[start:m.ends[i]:m.ends[i]]
}

// Read waits for a message and reads it into m. It returns false and no error if nothing arrived
// within wait, or if a command arrived, which it has handled. A subscription is a message of one
// frame in either of its forms: byte 1 (subscribe) or 0 (cancel), then the topic.
func (c *Conn) Read(m *Message, wait time.Duration) (bool, error) {
	if cap(m.buf) > keep {
		m.buf = nil
	}
	m.buf, m.ends = m.buf[:0], m.ends[:0]
	if c.in.Buffered() == 0 {
		c.reader.timeout = wait
		_, err := c.in.Peek(1)
		c.reader.timeout = stallTimeout
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	for more := true; more; {
		if len(m.ends) == maxFrames {
			return false, fmt.Errorf("cannot read a message of more than %d frames", maxFrames)
		}
		if b, err := c.in.Peek(1); err == nil && b[0]&commandFlag != 0 {
			frames := len(m.ends)
			ok, err := c.readCommand(m)
			if err != nil || frames == 0 {
				return ok, err
			}
			if ok {
				return false, errors.New("cannot read a message with a subscription in it")
			}
			continue // libzmq puts a PING between the frames of a message
		}
		flags, err := c.readFrame(&m.buf, MaxMessage-len(m.buf))
		if err != nil {
			return false, err
		}
		m.ends = append(m.ends, len(m.buf))
		more = flags&moreFlag != 0
	}
	return true, nil
}

// Buffered reports whether the beginning of another message is here already.
func (c *Conn) Buffered() bool { return c.in.Buffered() > 0 }

// readCommand reads a command and answers it; a subscription command becomes the equivalent ZMTP
// 3.0 message.
func (c *Conn) readCommand(m *Message) (bool, error) {
	c.body = c.body[:0]
	if _, err := c.readFrame(&c.body, maxCommand); err != nil {
		return false, err
	}
	name, rest := splitCommand(c.body)
	switch string(name) {
	case "PING": // two bytes: how long the peer waits; then at most 16 bytes to send back
		if len(rest) < 2 {
			return false, errors.New("cannot read a PING without its time")
		}
		return false, c.write(commandFlag, append([]byte("\x04PONG"), rest[2:min(len(rest), 18)]...))
	case "SUBSCRIBE":
		m.buf = append(append(m.buf, 1), rest...)
	case "CANCEL":
		m.buf = append(append(m.buf, 0), rest...)
	case "ERROR":
		return false, errors.New("the peer ends the connection with an error")
	default:
		return false, nil
	}
	m.ends = append(m.ends, len(m.buf))
	return true, nil
}

// readFrame appends one frame's body to *dst and returns its flags. Memory grows with the bytes
// received, whatever length the frame claims.
func (c *Conn) readFrame(dst *[]byte, limit int) (flags byte, err error) {
	if err = c.readFull(c.word[:2]); err != nil {
		return 0, err
	}
	flags = c.word[0]
	size := uint64(c.word[1])
	if flags&^(moreFlag|longFlag|commandFlag) != 0 {
		return 0, fmt.Errorf("cannot read a frame with the flags %#x", flags)
	}
	if flags&longFlag != 0 {
		if err = c.readFull(c.word[2:9]); err != nil {
			return 0, err
		}
		size = binary.BigEndian.Uint64(c.word[1:9])
	}
	if size > uint64(limit) {
		return 0, fmt.Errorf("cannot read a frame of %d bytes: more than the %d allowed", size, limit)
	}
	for left := int(size); left > 0; {
		n := min(left, chunk)
		at := len(*dst)
		*dst = slices.Grow(*dst, n)[:at+n]
		if err = c.readFull((*dst)[at:]); err != nil {
			return 0, err
		}
		left -= n
	}
	return flags, nil
}

// readFull fills p, within stallTimeout.
func (c *Conn) readFull(p []byte) error {
	_, err := io.ReadFull(c.in, p)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write sends one message.
func (c *Conn) Write(frames ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = AppendMessage(c.out[:0], frames...)
	return c.send(c.out)
}

// WriteEncoded sends messages encoded by AppendMessage.
func (c *Conn) WriteEncoded(messages []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.send(messages)
}

// Subscribe asks a publisher for the messages whose first frame begins with topic.
func (c *Conn) Subscribe(topic string) error { return c.Write(append([]byte{1}, topic...)) }

func (c *Conn) write(flags byte, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = appendFrame(c.out[:0], flags, body)
	return c.send(c.out)
}

func (c *Conn) send(b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(b)
	return err
}

// AppendMessage appends a message in wire format, so that a publisher encodes it once for all
// subscribers.
func AppendMessage(dst []byte, frames ...[]byte) []byte {
	for i, frame := range frames {
		flags := byte(moreFlag)
		if i == len(frames)-1 {
			flags = 0
		}
		dst = appendFrame(dst, flags, frame)
	}
	return dst
}

func appendFrame(dst []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		dst = binary.BigEndian.AppendUint64(append(dst, flags|longFlag), uint64(len(body)))
	} else {
		dst = append(dst, flags, byte(len(body)))
	}
	return append(dst, body...)
}
