// The cost of a token and of a request.

package sim

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
)

// A pass of decoding sequences allocates nothing.
func TestDecodeDoesNotAllocate(t *testing.T) {
	e := New(Options{BlockSize: 64})
	for range 8 {
		submit(t, e, 0, 640, 5000)
	}
	step := func() {
		at, _ := e.Next()
		e.Advance(at)
	}
	for range 50 {
		step()
	}
	for _, s := range e.running {
		s.blocks = append(make([]int32, 0, 200), s.blocks...)
	}
	if n := testing.AllocsPerRun(50, step); n != 0 {
		t.Errorf("%v allocations a pass", n)
	}
}

// An event of a stream allocates nothing.
func TestEventDoesNotAllocate(t *testing.T) {
	w := newWire(&completion{chat: true, id: "chatcmpl-1"}, "model", 1)
	text, buffer := []byte(" naïve \"日本\""), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		buffer = w.appendChunk(buffer[:0], chunk{text: text, usage: &usage{prompt: 5, completion: 7}})
	}); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

// BenchmarkServer measures whole requests of 16 tokens on keep-alive connections, client
// included.
func BenchmarkServer(b *testing.B) {
	for name, fields := range map[string]string{"whole": `"max_tokens":16`, "streamed": `"max_tokens":16,"stream":true`} {
		b.Run(name, func(b *testing.B) {
			address := start(b, Options{Speedup: 1e6})
			request := rawPost("/v1/chat/completions", hello(fields))
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				for pb.Next() {
					if _, err := conn.Write(request); err != nil {
						b.Error(err)
						return
					}
					reply, err := http.ReadResponse(in, nil)
					if err != nil {
						b.Error(err)
						return
					}
					body, err := io.ReadAll(reply.Body)
					if err != nil || !bytes.Contains(body, []byte("simulated")) && !bytes.Contains(body, []byte(`" simu"`)) {
						b.Errorf("%v: %q", err, body)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
