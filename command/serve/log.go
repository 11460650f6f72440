// Log: zerolog to stderr through a buffer, so that one line a request does not cost one write a request.

package serve

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

const (
	logDelay = 100 * time.Millisecond // a line waits at most this long
	logFull  = 32 << 10               // bytes that are written without waiting
)

// A logBuffer gathers whole lines and writes them in their order: after
// logDelay, when there are logFull bytes, and at once from level warn on. The
// caller whose line fills it waits for the write, so that the buffer is bounded
// and no line is dropped. Safe for
// concurrent use. After Close every line is written at once.
type logBuffer struct {
	out io.Writer

	writing sync.Mutex // held while out is written to; taken before mu
	mu      sync.Mutex // guards the fields below
	pending []byte
	spare   []byte // the memory of what was written last, to be used again
	timer   *time.Timer
	armed   bool // the timer will flush
	closed  bool
}

func newLogBuffer(out io.Writer) *logBuffer {
	b := &logBuffer{out: out}
	b.timer = time.AfterFunc(time.Hour, b.flush)
	b.timer.Stop()
	return b
}

// Write takes one or more whole lines.
func (b *logBuffer) Write(lines []byte) (int, error) {
	return b.WriteLevel(zerolog.InfoLevel, lines)
}

// WriteLevel takes the line of one event; from warn on it is written when
// WriteLevel returns.
func (b *logBuffer) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	b.mu.Lock()
	b.pending = append(b.pending, line...)
	now := level >= zerolog.WarnLevel && level != zerolog.NoLevel || len(b.pending) >= logFull || b.closed
	if !now && !b.armed {
		b.armed = true
		b.timer.Reset(logDelay)
	}
	b.mu.Unlock()
	if now {
		b.flush()
	}
	return len(line), nil
}

// flush writes what is pending. Lines that come meanwhile wait for the next.
// There is nobody to tell when stderr cannot be written to.
func (b *logBuffer) flush() {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	lines := b.pending
	b.pending, b.spare, b.armed = b.spare[:0], nil, false
	b.mu.Unlock()

	if len(lines) > 0 {
		_, _ = b.out.Write(lines)
	}
	if cap(lines) > 8*logFull {
		return // do not keep the memory of one giant line
	}
	b.mu.Lock()
	b.spare = lines
	b.mu.Unlock()
}

// Close writes what is pending.
func (b *logBuffer) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.timer.Stop()
	b.flush()
	return nil
}

// A prettyLog writes events for people, colours included, into the buffer.
type prettyLog struct {
	console zerolog.ConsoleWriter
	buffer  *logBuffer
}

func (p prettyLog) Write(event []byte) (int, error) { return p.console.Write(event) }

func (p prettyLog) WriteLevel(level zerolog.Level, event []byte) (int, error) {
	n, err := p.console.Write(event)
	if level >= zerolog.WarnLevel && level != zerolog.NoLevel {
		p.buffer.flush()
	}
	return n, err
}

// newLog is the program's log on a file, and the buffer to close at its end.
// format is one of log.format.
func newLog(to *os.File, format string) (zerolog.Logger, *logBuffer) {
	buffer := newLogBuffer(to)
	isTerminal := isatty.IsTerminal(to.Fd())
	if format == "json" || format == "auto" && !isTerminal {
		return zerolog.New(buffer).With().Timestamp().Logger(), buffer
	}
	console := zerolog.ConsoleWriter{Out: buffer, NoColor: !isTerminal || os.Getenv("NO_COLOR") != "", TimeFormat: "15:04:05.000"}
	return zerolog.New(prettyLog{console, buffer}).With().Timestamp().Logger(), buffer
}

// setLogLevel takes effect at once, for all loggers there are.
func setLogLevel(level string) {
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		panic("BUG: log.level was not checked: " + level)
	}
	zerolog.SetGlobalLevel(l)
}
