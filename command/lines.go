// Lines: commands that answer each line of their input with one line of output, on all processors and in order.

package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"kvasir/config"
)

// maxLine is how long one line may be, in bytes.
const maxLine = 64 << 20

// stdin is the standard input, and says what it should hold to whoever sits at a terminal and may
// wait for the program, which waits for them.
func stdin(cmd *cobra.Command, what string) *os.File {
	if isatty.IsTerminal(os.Stdin.Fd()) {
		fmt.Fprintf(cmd.ErrOrStderr(), "reading %s from the terminal; end it with Ctrl-D, or stop with Ctrl-C\n", what)
	}
	return os.Stdin
}

// A lineAnswerer makes what is written, as JSON, of one line. It is one thread's.
type lineAnswerer func(line []byte) (any, error)

// A lineUnderWay is one line of input on its way to one of output.
type lineUnderWay struct {
	in   []byte
	out  []byte
	bad  bool
	done chan struct{}
}

// answerLines answers every line that is not empty. One that cannot be answered
// gets {"error": ...}, and makes an error of the whole.
func answerLines(in io.Reader, out io.Writer, newThread func() lineAnswerer) error {
	threads := runtime.GOMAXPROCS(0)
	work := make(chan *lineUnderWay)
	ordered := make(chan *lineUnderWay, 16*threads)
	var workers sync.WaitGroup
	for range threads {
		workers.Go(func() { newThread().run(work) })
	}
	read := make(chan error, 1)
	unwritten := make(chan struct{}) // closed when nobody takes the output any more
	go func() { read <- splitLines(in, work, ordered, unwritten) }()
	bad, writing := writeLines(out, ordered, unwritten)
	workers.Wait()
	reading := <-read
	switch {
	case writing != nil:
		return fmt.Errorf("cannot write the output: %w", writing)
	case reading != nil:
		return reading
	case bad > 0:
		return fmt.Errorf("%d lines could not be read; their errors are in the output", bad)
	}
	return nil
}

// writeLines writes the answers in order, and counts those that are errors. It
// closes unwritten when it cannot write.
func writeLines(out io.Writer, ordered <-chan *lineUnderWay, unwritten chan<- struct{}) (bad int, writing error) {
	w := bufio.NewWriterSize(out, 64<<10)
	for line := range ordered {
		<-line.done
		if line.bad {
			bad++
		}
		if writing != nil {
			continue
		}
		if _, writing = w.Write(line.out); writing == nil && len(ordered) == 0 {
			writing = w.Flush()
		}
		if writing != nil {
			close(unwritten)
		}
	}
	if writing == nil {
		writing = w.Flush()
	}
	return bad, writing
}

// splitLines hands out the lines until stop, and closes both channels at the end.
func splitLines(in io.Reader, work, ordered chan<- *lineUnderWay, stop <-chan struct{}) error {
	defer close(ordered)
	defer close(work)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 0; lines.Scan(); n++ {
		in := lines.Bytes()
		if n == 0 {
			in = bytes.TrimPrefix(in, []byte("\ufeff")) // as some systems begin a file
		}
		if len(bytes.TrimSpace(in)) == 0 {
			continue
		}
		select {
		case <-stop:
			return nil
		default:
		}
		line := &lineUnderWay{in: bytes.Clone(in), done: make(chan struct{})}
		ordered <- line
		work <- line
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line is longer than %s", config.Size(maxLine))
	}
	return lines.Err()
}

func (a lineAnswerer) run(work <-chan *lineUnderWay) {
	for line := range work {
		out, err := a(line.in)
		if err == nil {
			line.out, err = json.Marshal(out)
		}
		if err != nil {
			line.bad = true
			line.out, _ = json.Marshal(map[string]string{"error": err.Error()})
		}
		line.out = append(line.out, '\n')
		line.in = nil // it may wait long for a line before it
		close(line.done)
	}
}

// readObject reads a line into a struct whose fields are strings: fields names
// them for the message.
func readObject(line []byte, to any, fields string) error {
	err := json.Unmarshal(line, to)
	var unlike *json.UnmarshalTypeError
	switch {
	case errors.As(err, &unlike) && unlike.Field == "":
		return fmt.Errorf(`the line must be an object with %s, is a JSON %s`, fields, unlike.Value)
	case errors.As(err, &unlike):
		return fmt.Errorf("%q must be a string, is a JSON %s", unlike.Field, unlike.Value)
	case err != nil:
		return fmt.Errorf("the line is not JSON: %w", err)
	}
	return nil
}
