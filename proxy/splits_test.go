// Streams in random shape: line ends, sizes, framing, reads that split anything, and a cut anywhere.

package proxy

import (
	"fmt"
	"io"
	"math/rand"
	"net"
	"strings"
	"testing"
)

// A randomStream is what a worker sends and what its client is to get.
type randomStream struct {
	reads []string // head and body of the reply, cut into writes
	want  string
	eol   string
	ends  bool // by the end of the connection
}

func newRandomStream(r *rand.Rand) *randomStream {
	s := &randomStream{eol: []string{"\n", "\r\n", "\r"}[r.Intn(3)]}
	events := roleEvent
	if r.Intn(2) == 0 {
		events += ": keep-alive\n\n"
	}
	for range r.Intn(5) {
		events += delta(strings.Repeat("a", []int{1, 10, 1000, 5000, 70_000, 200_000}[r.Intn(6)]))
	}
	events += finishEvent
	body := strings.ReplaceAll(events+usageEvent+doneEvent, "\n", s.eol)
	s.want = strings.ReplaceAll(events+doneEvent, "\n", s.eol) // the usage was asked for by us
	raw := streamHead
	switch r.Intn(3) {
	case 0:
		var chunks strings.Builder
		for _, part := range pieces(r, body, []int{3, 100, 100_000}[r.Intn(3)]) {
			chunks.WriteString(chunk(part))
		}
		raw += chunks.String() + "0\r\n\r\n"
	case 1:
		raw, s.ends = closeHead+body, true
	default:
		raw = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	s.reads = pieces(r, raw, []int{2000, 100_000}[r.Intn(2)])
	return s
}

// pieces cuts s into parts of 1 to most bytes.
func pieces(r *rand.Rand, s string, most int) (parts []string) {
	for len(s) > 0 {
		n := min(len(s), 1+r.Intn(most))
		parts, s = append(parts, s[:n]), s[n:]
	}
	return parts
}

// play starts a proxy before a worker that sends what the function returned says.
func play(t *testing.T) (*testProxy, func([]string) received) {
	script := make(chan []string, 1)
	w := startWorker(t, func(c net.Conn, _ string) bool {
		for _, s := range <-script {
			if _, err := io.WriteString(c, s); err != nil {
				break
			}
		}
		return false
	})
	s := settingsFor(w.url)
	s.Retry.Attempts = 0
	p := startProxy(t, s)
	return p, func(reads []string) received {
		script <- reads
		return p.ask(t, "/v1/chat/completions", streamChat)
	}
}

func TestStreamsOfAnyShapePass(t *testing.T) {
	_, ask := play(t)
	for seed := range int64(200) {
		s := newRandomStream(rand.New(rand.NewSource(seed)))
		if a := ask(s.reads); a.StatusCode != 200 || a.err != nil || a.body != s.want {
			t.Errorf("seed %d, line end %q: %d %v, %d bytes of %d", seed, s.eol, a.StatusCode, a.err, len(a.body), len(s.want))
		}
	}
}

// Wherever a stream is cut, the client gets whole events of it and an error, and
// an end that is none.
func TestStreamsCutAnywhereAreTold(t *testing.T) {
	_, ask := play(t)
	for seed := range int64(200) {
		r := rand.New(rand.NewSource(seed))
		s := newRandomStream(r)
		a := ask(s.reads[:r.Intn(len(s.reads))])
		if a.StatusCode == 502 {
			continue // nothing with content had come
		}
		if s.ends && strings.Contains(a.body, `"finish_reason":"stop"`) {
			continue // finished, by all that can be told
		}
		got, last, told := strings.Cut(a.body, `data: {"error":`)
		if len(s.want) > 70_000 {
			got = strings.TrimSuffix(got, "\n\n") // behind a piece of an event that was given up
		}
		if a.err == nil || !strings.HasPrefix(s.want, got) {
			t.Errorf("seed %d: %v, %d bytes", seed, a.err, len(got))
		}
		if done := strings.HasSuffix(got, doneEvent[:12]+s.eol+s.eol); told == done || told && !strings.Contains(last, `"code":"stream_interrupted"`) {
			t.Errorf("seed %d: told of it: %v, done: %v, %.80q", seed, told, done, last)
		}
	}
}
