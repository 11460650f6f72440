// Tests of the log's buffer: no line lost or torn, none later than promised.

package serve

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// writes keeps what each single write held.
type writes struct {
	mu   sync.Mutex
	each [][]byte
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.each = append(w.each, bytes.Clone(p))
	return len(p), nil
}

func (w *writes) all() (text string, count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.Join(w.each, nil)), len(w.each)
}

func TestLogDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &writes{}
		b := newLogBuffer(out)
		for range 2 { // the timer has to be armed again
			log := zerolog.New(b)
			log.Info().Msg("a")
			time.Sleep(logDelay - time.Millisecond)
			log.Info().Msg("b")
			before, _ := out.all()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			after, _ := out.all()
			if got := strings.TrimPrefix(after, before); strings.Count(got, "\n") != 2 {
				t.Errorf("after the delay there is %q more", got)
			}
		}
		if _, n := out.all(); n != 2 {
			t.Errorf("4 lines took %d writes, want 2", n)
		}
	})
}

func TestLogAtOnce(t *testing.T) {
	t.Parallel()
	out := &writes{}
	b := newLogBuffer(out)
	log := zerolog.New(b)
	log.Info().Msg("first")
	log.Warn().Msg("second")
	if got, _ := out.all(); !strings.Contains(got, "first") || !strings.HasSuffix(got, "second\"}\n") {
		t.Errorf("after a warning there is %q", got)
	}
	log.Info().Msg("third")
	b.Close()
	if got, _ := out.all(); !strings.Contains(got, "third") {
		t.Errorf("after Close there is %q", got)
	}
	log.Info().Msg("fourth")
	if got, _ := out.all(); !strings.Contains(got, "fourth") {
		t.Errorf("a line after Close is lost: %q", got)
	}
}

func TestLogConcurrent(t *testing.T) {
	t.Parallel()
	const writers, lines = 8, 2000
	out := &writes{}
	b := newLogBuffer(out)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			log := zerolog.New(b)
			for i := range lines {
				e := log.Info()
				if i%100 == 0 {
					e = log.Warn()
				}
				e.Msgf("%d %d %s", w, i, strings.Repeat("x", i%50))
			}
		})
	}
	wg.Wait()
	b.Close()
	got, count := out.all()
	next := [writers]int{}
	for line := range strings.Lines(got) {
		var level, message string
		if _, err := fmt.Sscanf(line, `{"level":%q,"message":%q}`, &level, &message); err != nil {
			t.Fatalf("torn line %q: %v", line, err)
		}
		var w, i int
		if _, err := fmt.Sscanf(message, "%d %d", &w, &i); err != nil || i != next[w] {
			t.Fatalf("line %q where %d of writer %d was next: %v", line, next[w], w, err)
		}
		next[w]++
	}
	for w, n := range next {
		if n != lines {
			t.Errorf("writer %d: %d lines of %d", w, n, lines)
		}
	}
	if count >= writers*lines {
		t.Errorf("%d writes for %d lines", count, writers*lines)
	}
	for _, p := range out.each {
		if !bytes.HasSuffix(p, []byte("}\n")) {
			t.Errorf("a write ends within a line: %q", p)
		}
	}
}

func TestPrettyLog(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	log, buffer := newLog(w, "pretty")
	log.Warn().Str("key", "value").Msg("said")
	buffer.Close()
	w.Close()
	got, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(got), "WRN said key=value\n") {
		t.Errorf("log is %q, %v", got, err)
	}
}

// line is about what one request logs.
func line(log *zerolog.Logger) {
	log.Info().Str("request", "0123456789abcdef").Str("route", "/v1/chat/completions").Str("model", "qwen").
		Str("worker", "10.0.0.5:8000").Int("status", 200).Int("bytes", 12345).Int("overhead_us", 87).Msg("request")
}

// BenchmarkLog compares a buffered line with a write for each, to a pipe that
// is read as a log collector would.
func BenchmarkLog(b *testing.B) {
	for _, buffered := range []bool{false, true} {
		b.Run(fmt.Sprintf("buffered=%v", buffered), func(b *testing.B) {
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, r); done <- err }()
			var out io.Writer = w
			buffer := newLogBuffer(w)
			if buffered {
				out = buffer
			}
			log := zerolog.New(out).With().Timestamp().Logger()
			b.ReportAllocs()
			for b.Loop() {
				line(&log)
			}
			buffer.Close()
			w.Close()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}

func TestLogLineAllocatesNothing(t *testing.T) {
	b := newLogBuffer(io.Discard)
	defer b.Close()
	log := zerolog.New(b)
	line(&log)
	if n := testing.AllocsPerRun(1000, func() { line(&log) }); n > 0 {
		t.Errorf("a line allocates %v times", n)
	}
}
