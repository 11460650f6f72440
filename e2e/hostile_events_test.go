// KV events: engines that publish what is no event, or no end of it.

package e2e

import (
	"bytes"
	"crypto/rand"
	bigendian "encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// evilPublisher speaks ZMTP as an engine's publisher does, and then sends what it likes, until the peer hangs up.
func evilPublisher(t *testing.T, send func(seq uint64) []byte) (address string, connections *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go publishEvil(c, send)
		}
	}()
	return ln.Addr().String(), connections
}

func publishEvil(c net.Conn, send func(seq uint64) []byte) {
	defer c.Close()
	greeting := make([]byte, 64)
	copy(greeting, "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL")
	if _, err := c.Write(greeting); err != nil {
		return
	}
	if _, err := io.ReadFull(c, greeting); err != nil {
		return
	}
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
	if _, err := fmt.Fprintf(c, "\x04%c%s", len(ready), ready); err != nil {
		return
	}
	for seq := uint64(0); ; seq++ {
		c.SetWriteDeadline(time.Now().Add(patience))
		if _, err := c.Write(send(seq)); err != nil {
			return
		}
	}
}

// zmqFrame is one frame of ZMTP 3.0.
func zmqFrame(more bool, body []byte) []byte {
	flags := byte(2)
	if more {
		flags |= 1
	}
	return append(bigendian.BigEndian.AppendUint64([]byte{flags}, uint64(len(body))), body...)
}

// zmqEvent is a message as vLLM publishes them: topic, number, payload.
func zmqEvent(seq uint64, payload []byte) []byte {
	return bytes.Join([][]byte{zmqFrame(true, nil), zmqFrame(true, bigendian.BigEndian.AppendUint64(nil, seq)), zmqFrame(false, payload)}, nil)
}

// TestHostileEventsTakeMemory: none of it takes memory without end, or keeps requests from being answered.
func TestHostileEventsTakeMemory(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 64<<10)
	_, _ = rand.Read(noise)
	evil := map[string]func(seq uint64) []byte{
		"noise in place of frames":         func(uint64) []byte { return noise },
		"noise in place of events":         func(seq uint64) []byte { return zmqEvent(seq, noise[:4000]) },
		"numbers out of order":             func(seq uint64) []byte { return zmqEvent(seq*0x9e3779b97f4a7c15, []byte{0x93, 0, 0x90, 0}) },
		"a frame of 4 EiB":                 func(uint64) []byte { return []byte("\x01\x00\x02\x40\x00\x00\x00\x00\x00\x00\x00aaaa") },
		"a frame of 64 MiB, most of it":    func(uint64) []byte { return append([]byte("\x01\x00\x02\x00\x00\x00\x00\x03\xff\xff\xff"), noise...) },
		"commands without end":             func(uint64) []byte { return bytes.Repeat([]byte("\x04\x09\x04PING\x00\x00xx"), 1000) },
		"frames of one message, endless":   func(uint64) []byte { return bytes.Repeat([]byte("\x01\x01a"), 10000) },
		"lists in lists":                   func(seq uint64) []byte { return zmqEvent(seq, bytes.Repeat([]byte{0x91}, 1<<20)) },
		"a list of 4 G events":             func(seq uint64) []byte { return zmqEvent(seq, []byte("\x93\x00\xdd\xff\xff\xff\xff\x90")) },
		"a block of no tokens, many names": func(seq uint64) []byte { return zmqEvent(seq, storedOf(seq)) },
	}
	fine := map[string]bool{"commands without end": true, "a block of no tokens, many names": true} // as far as anybody can tell
	w := echoWorker(t)
	var config strings.Builder
	heard := map[string]*atomic.Int64{}
	config.WriteString("cache: {store: \"off\"}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\ngpu: {mode: \"off\"}\nmodels: [{name: m, tokenizer: none}]\nworkers:\n")
	for i, name := range namesOf(evil) {
		address, connections := evilPublisher(t, evil[name])
		heard[name] = connections
		fmt.Fprintf(&config, "- {name: w%d, url: \"%s\", engine: vllm, models: [m], kv_events: \"tcp://%s\"}\n", i, w.URL, address)
	}
	k := serve(t, config.String(), "m")
	before := k.memory(t, "VmRSS")
	eventually(t, patience, "all are listened to", func() bool {
		for _, n := range heard {
			if n.Load() == 0 {
				return false
			}
		}
		return true
	})
	for range 200 {
		if r := post(t, k.url+"/v1/chat/completions", chatOf("What is the old market of Lyon known for?")); r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	eventually(t, patience, "it says of which the events are bad", func() bool {
		ready := string(get(t, k.admin+"/readyz").body)
		for i, name := range namesOf(evil) {
			if !fine[name] && !strings.Contains(ready, fmt.Sprintf(`worker \"w%d\"`, i)) {
				return false
			}
		}
		return true
	})
	if grown := k.memory(t, "VmHWM") - before; grown > 200 {
		t.Errorf("it grew by %d MiB", grown)
	}
}

// storedOf is an event of a block with another adapter each time.
func storedOf(seq uint64) []byte {
	name := fmt.Sprintf("adapter-%d-%s", seq, strings.Repeat("x", 200))
	b := []byte("\x93\xcb\x00\x00\x00\x00\x00\x00\x00\x00\x91\x98\xabBlockStored\x91\xcf")
	b = bigendian.BigEndian.AppendUint64(b, seq)
	b = append(b, "\xc0\x90\x10\x01\xc0\xda"...)
	b = bigendian.BigEndian.AppendUint16(b, uint16(len(name)))
	return append(append(b, name...), 0)
}
