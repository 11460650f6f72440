// The sockets of KV events: one publishes, one sends missed messages again.

package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"kvasir/zmtp"
)

// Publisher publishes messages as an engine does: numbered from 0, to all current subscribers,
// and kept for a while for those that missed some. Publish never waits: a slow subscriber misses
// messages, as on a real PUB socket. Make it with NewPublisher; it is safe for concurrent use.
type Publisher struct {
	topic string
	limit int // messages kept
	water int // most messages waiting for one subscriber

	goroutines sync.WaitGroup // connections; added under mu while not closing

	mu          sync.Mutex // guards all below
	closing     bool
	next        uint64
	kept        [][]byte // encoded payloads, the oldest at next % limit once it is full
	open        map[net.Conn]struct{}
	listeners   map[net.Listener]struct{}
	subscribers map[*subscriber]struct{}
}

// subscriber is one connection of the PUB socket.
type subscriber struct {
	waiting chan []byte // encoded messages

	mu     sync.Mutex // guards topics
	topics map[string]int
}

// NewPublisher makes a publisher that keeps the last `buffer` messages, and drops messages for a
// subscriber that has highWater messages waiting already; both are at least 1. The caller must
// Close it.
func NewPublisher(topic string, buffer, highWater int) *Publisher {
	return &Publisher{topic: topic, limit: buffer, water: highWater, open: map[net.Conn]struct{}{},
		listeners: map[net.Listener]struct{}{}, subscribers: map[*subscriber]struct{}{}}
}

// Publish sends a payload and returns its number. It keeps the slice.
func (p *Publisher) Publish(payload []byte) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	seq := p.next
	p.next++
	if len(p.kept) < p.limit {
		p.kept = append(p.kept, payload)
	} else {
		p.kept[seq%uint64(p.limit)] = payload
	}
	var message []byte
	for s := range p.subscribers {
		if !s.wants(p.topic) {
			continue
		}
		if message == nil {
			message = zmtp.AppendMessage(nil, []byte(p.topic), number(seq), payload)
		}
		select {
		case s.waiting <- message:
		default: // the subscriber is at its high-water mark
		}
	}
	return seq
}

// number encodes a sequence number as in a frame.
func number(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// Serve publishes to the clients of ln until Close, and then returns nil. It closes ln.
func (p *Publisher) Serve(ln net.Listener) error { return p.accept(ln, p.servePublish) }

// ServeReplay sends messages again to clients of ln that ask for them, until Close, and then
// returns nil. It closes ln.
func (p *Publisher) ServeReplay(ln net.Listener) error { return p.accept(ln, p.serveReplay) }

// Close closes all connections and listeners, and returns when the goroutines of connections have
// ended. Calling it twice is fine.
func (p *Publisher) Close() {
	p.mu.Lock()
	p.closing = true
	for ln := range p.listeners {
		ln.Close()
	}
	for conn := range p.open {
		conn.Close()
	}
	p.mu.Unlock()
	p.goroutines.Wait()
}

func (p *Publisher) accept(ln net.Listener, serve func(net.Conn)) error {
	defer ln.Close()
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return nil
	}
	p.listeners[ln] = struct{}{}
	p.mu.Unlock()
	for {
		conn, err := ln.Accept()
		p.mu.Lock()
		switch {
		case p.closing:
			p.mu.Unlock()
			if err == nil {
				conn.Close()
			}
			return nil
		case err != nil:
			delete(p.listeners, ln)
			p.mu.Unlock()
			return fmt.Errorf("cannot accept subscribers to KV events: %w", err)
		}
		p.open[conn] = struct{}{}
		p.goroutines.Go(func() {
			serve(conn)
			conn.Close()
			p.mu.Lock()
			delete(p.open, conn)
			p.mu.Unlock()
		})
		p.mu.Unlock()
	}
}

// servePublish serves one connection of the PUB socket: it reads subscriptions while another
// goroutine writes.
func (p *Publisher) servePublish(conn net.Conn) {
	c, err := zmtp.Open(conn, "PUB")
	if err != nil {
		return
	}
	s := &subscriber{waiting: make(chan []byte, p.water), topics: map[string]int{}}
	var writer sync.WaitGroup
	writer.Go(func() { s.write(c) })
	p.mu.Lock()
	p.subscribers[s] = struct{}{}
	p.mu.Unlock()
	var m zmtp.Message
	for {
		ok, err := c.Read(&m, idle)
		if err != nil {
			break
		}
		if ok && m.Len() == 1 {
			s.subscribe(m.Frame(0))
		}
	}
	p.mu.Lock()
	delete(p.subscribers, s)
	p.mu.Unlock()
	close(s.waiting) // no more messages are sent to it
	writer.Wait()
}

// write sends all waiting messages in one write. It ends when waiting is closed; after an error
// it only drains the channel.
func (s *subscriber) write(c *zmtp.Conn) {
	var out []byte
	var err error
	for message := range s.waiting {
		out = append(out[:0], message...)
		for len(out) < 64<<10 && len(s.waiting) > 0 {
			message, ok := <-s.waiting
			if !ok {
				break
			}
			out = append(out, message...)
		}
		if err == nil {
			if err = c.WriteEncoded(out); err != nil {
				c.Close() // so that the reader ends
			}
		}
	}
}

// subscribe reads a subscription: 1 or 0, and a topic. Topics are counted, as ZeroMQ does.
func (s *subscriber) subscribe(frame []byte) {
	if len(frame) == 0 || frame[0] > 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	topic := string(frame[1:])
	if frame[0] == 1 && len(s.topics) < maxTopics {
		s.topics[topic]++
		return
	}
	if s.topics[topic]--; s.topics[topic] <= 0 {
		delete(s.topics, topic)
	}
}

// maxTopics bounds the topics of one subscriber.
const maxTopics = 1024

func (s *subscriber) wants(topic string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for prefix := range s.topics {
		if strings.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}

// serveReplay serves one connection of the ROUTER socket. A request is an empty frame and a
// number; the answer is every kept message from that number on, and then one numbered -1. As in
// real engines, other requests get no answer.
func (p *Publisher) serveReplay(conn net.Conn) {
	c, err := zmtp.Open(conn, "ROUTER")
	if err != nil {
		return
	}
	var m zmtp.Message
	for {
		ok, err := c.Read(&m, idle)
		if err != nil {
			return
		}
		if !ok || m.Len() != 2 || len(m.Frame(0)) != 0 || len(m.Frame(1)) > 8 {
			continue
		}
		from := uint64(0)
		for _, b := range m.Frame(1) { // fewer than eight bytes are accepted, as by Python's int.from_bytes
			from = from<<8 | uint64(b)
		}
		if err := p.answer(c, from); err != nil {
			return
		}
	}
}

var errClosing = errors.New("closing")

// answer sends the kept messages from one number on.
func (p *Publisher) answer(c *zmtp.Conn, from uint64) error {
	var out []byte
	for {
		p.mu.Lock()
		seq := max(from, p.next-uint64(len(p.kept)))
		if p.closing || seq >= p.next {
			closing := p.closing
			p.mu.Unlock()
			if closing {
				return errClosing
			}
			break
		}
		payload := p.kept[seq%uint64(p.limit)]
		p.mu.Unlock()
		from = seq + 1
		out = zmtp.AppendMessage(out, nil, []byte(p.topic), number(seq), payload)
		if len(out) >= 64<<10 {
			if err := c.WriteEncoded(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return c.WriteEncoded(zmtp.AppendMessage(out, nil, nil, number(1<<64-1), nil))
}
