// Reading traces: which form a file has, and what is wrong with its lines.

package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of what is read.
const (
	maxLine     = 4 << 20 // bytes
	maxRequests = 4 << 20
	maxTokens   = 1 << 24 // of a prompt or an answer
	maxPieces   = 1 << 22 // different pieces of a trace: 2^31 tokens where they have 512
	maxProblems = 5       // that an error tells of
)

// errTooLarge ends the reading of a trace.
var errTooLarge = fmt.Errorf("the trace is too large: cut it to %d requests and %d different blocks of content", maxRequests, maxPieces)

// A Problem is a line of a trace that cannot be read.
type Problem struct {
	Name string
	Line int
	Err  error
}

func (p *Problem) Error() string { return fmt.Sprintf("%s:%d: %v", p.Name, p.Line, p.Err) }

func (p *Problem) Unwrap() error { return p.Err }

// A reader builds a trace from lines.
type reader struct {
	trace    Trace
	line     int
	dense    map[uint64]uint32 // number of a piece by its id
	problems []error
	left     int // lines that say nothing of a request that was served
}

// Read reads a trace from a file. It tells the form from the content:
//   - Mooncake's JSON lines {"timestamp" in ms, "input_length", "output_length", "hash_ids" of 512-token blocks};
//   - Azure's CSV with the header TIMESTAMP,ContextTokens,GeneratedTokens: no prompt has anything in common with another;
//   - the log of Kvasir's own requests: JSON lines with "time", "total_ms", "prompt_tokens" and "completion_tokens";
//     lines of other events, and requests whose worker did not count, are left out.
//
// An error names the file and the line of up to five problems, each a *Problem.
func Read(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the trace: %w", err)
	}
	defer f.Close()
	return ReadFrom(filepath.Base(path), f)
}

// ReadFrom is Read from what is open already; name is what errors call it.
func ReadFrom(name string, from io.Reader) (*Trace, error) {
	r := &reader{trace: Trace{Name: name, PieceTokens: 512}, dense: map[uint64]uint32{}}
	if err := r.read(from); err != nil {
		return nil, fmt.Errorf("cannot read the trace: %w", err)
	}
	t := &r.trace
	if len(t.Requests) == 0 {
		return nil, fmt.Errorf("cannot read the trace: %s: %w", name, r.nothing())
	}
	slices.SortStableFunc(t.Requests, func(a, b Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	t.Left = r.left
	return t, nil
}

// nothing says why no request was found.
func (r *reader) nothing() error {
	if r.left > 0 {
		return fmt.Errorf("%w: none of its %d lines is a served request with prompt_tokens and completion_tokens", ErrEmpty, r.left)
	}
	return ErrEmpty
}

func (r *reader) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var row func([]byte) error
	for lines.Scan() {
		r.line++
		line := bytes.TrimSpace(lines.Bytes())
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(line) == 0 {
			continue
		}
		var err error
		if row == nil {
			row, err = r.form(line)
		} else {
			err = row(line)
		}
		if errors.Is(err, errTooLarge) {
			return &Problem{r.trace.Name, r.line, err}
		}
		if err != nil {
			r.problems = append(r.problems, &Problem{r.trace.Name, r.line, err})
		}
		if len(r.problems) == maxProblems || row == nil && err != nil {
			break
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		r.problems = append(r.problems, &Problem{r.trace.Name, r.line + 1, fmt.Errorf("the line is longer than %d bytes: is this a trace?", maxLine)})
	} else if err != nil {
		return &Problem{r.trace.Name, r.line + 1, err}
	}
	return errors.Join(r.problems...)
}

// errForm says what forms there are.
var errForm = errors.New(`this is no trace: give Mooncake's JSON lines ({"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}), ` +
	`Azure's CSV (first line TIMESTAMP,ContextTokens,GeneratedTokens) or the JSON log of Kvasir's requests`)

// form finds the form of a file by its first line and takes that in.
func (r *reader) form(first []byte) (func([]byte) error, error) {
	if first[0] == '{' {
		if bytes.Contains(first, []byte(`"input_length"`)) || bytes.Contains(first, []byte(`"hash_ids"`)) {
			return r.mooncake, r.mooncake(first)
		}
		if bytes.Contains(first, []byte(`"time"`)) {
			return r.log, r.log(first)
		}
		return nil, errForm
	}
	names := columns(strings.ToLower(string(first)))
	azure := azureColumns{slices.Index(names, "timestamp"), slices.Index(names, "contexttokens"), slices.Index(names, "generatedtokens"), len(names)}
	if azure.time < 0 || azure.prompt < 0 || azure.answer < 0 {
		return nil, errForm
	}
	return func(line []byte) error { return r.azure(line, azure) }, nil
}

// add appends a request; content are the ids of its pieces, or nil if it has nothing in common with any other.
func (r *reader) add(arrival time.Duration, prompt, answer int, content []uint64) error {
	if prompt < 1 || prompt > maxTokens {
		return fmt.Errorf("a prompt of %d tokens: it must have 1 to %d", prompt, maxTokens)
	}
	if answer < 0 || answer > maxTokens {
		return fmt.Errorf("an answer of %d tokens: it must have 0 to %d", answer, maxTokens)
	}
	pieces := (prompt + r.trace.PieceTokens - 1) / r.trace.PieceTokens
	if content != nil && len(content) < pieces {
		return fmt.Errorf("%d hash_ids for a prompt of %d tokens: it must have one for each %d tokens", len(content), prompt, r.trace.PieceTokens)
	}
	if len(r.trace.Requests) == maxRequests || r.trace.Pieces+pieces > maxPieces {
		return errTooLarge
	}
	numbers := make([]uint32, pieces)
	for i := range numbers {
		if content == nil {
			numbers[i] = r.fresh()
			continue
		}
		number, known := r.dense[content[i]]
		if !known {
			number = r.fresh()
			r.dense[content[i]] = number
		}
		numbers[i] = number
	}
	r.trace.Requests = append(r.trace.Requests, Request{
		Arrival: arrival, PromptTokens: prompt, AnswerTokens: max(answer, 1), Content: numbers, Line: r.line,
	})
	return nil
}

func (r *reader) fresh() uint32 {
	r.trace.Pieces++
	return uint32(r.trace.Pieces - 1)
}
