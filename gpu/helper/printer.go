//go:build linux && cgo

// Printer: collects lines so that many are written at once.

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// gathered is how long a line may wait for others. The reader dates a line by its arrival, so it
// must not wait long.
const gathered = 5 * time.Millisecond

// A printer writes whole lines, as many as possible at once, because each write wakes the reader.
// When the reader is gone, the helper ends.
type printer struct {
	mu     sync.Mutex
	to     io.Writer
	lines  bytes.Buffer
	encode *json.Encoder // writes into lines
	oldest time.Time     // when the first of lines was added
}

func newPrinter(w io.Writer) *printer {
	p := &printer{to: w}
	p.encode = json.NewEncoder(&p.lines)
	return p
}

// add adds a line to those that the next flush writes.
func (p *printer) add(line snapshot.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines.Len() == 0 {
		p.oldest = time.Now()
	}
	if err := p.encode.Encode(line); err != nil { // only NaN fails, and no figure is NaN
		panic("BUG: " + err.Error())
	}
}

// flush writes the collected lines.
func (p *printer) flush() { p.flushAfter(0) }

// flushAfter writes them if the first has waited that long.
func (p *printer) flushAfter(waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines.Len() == 0 || waited > 0 && time.Since(p.oldest) < waited {
		return
	}
	if _, err := p.to.Write(p.lines.Bytes()); err != nil {
		os.Exit(1)
	}
	p.lines.Reset()
}

// print writes a line at once, after the collected ones.
func (p *printer) print(line snapshot.Line) {
	p.add(line)
	p.flush()
}

const wholeDriver = -1 // value of Trouble.GPU for the whole driver

func (p *printer) trouble(gpu int, ret nvml.Return) {
	p.add(snapshot.Line{Trouble: &snapshot.Trouble{GPU: gpu, Code: code(ret), Text: ret.Error()}})
}
