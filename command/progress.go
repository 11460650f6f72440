// Progress: one line on a terminal that says how far a command is. Where stderr is no terminal nothing is said.

package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// A progressBar is one line of a terminal.
type progressBar struct {
	to    io.Writer
	all   int
	shown int // percent
}

const barWidth = 40

func (p *progressBar) set(done int) {
	percent := min(done*100/p.all, 100)
	if percent == p.shown {
		return
	}
	p.shown = percent
	full := percent * barWidth / 100
	fmt.Fprintf(p.to, "\r[%s%s] %3d %%", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), percent)
}

func (p *progressBar) clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.to, "\r%s\r", strings.Repeat(" ", barWidth+9))
	}
}

// watched is the input of a command that shows on the terminal how much of it was read: in percent of a file, else in
// lines. It shows nothing where the terminal is none, or has the input or the output on it as well. done clears the line.
func watched(in, out, terminal *os.File) (watching io.Reader, done func()) {
	if !isatty.IsTerminal(terminal.Fd()) || isatty.IsTerminal(in.Fd()) || isatty.IsTerminal(out.Fd()) {
		return in, func() {}
	}
	if info, err := in.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		r := &fileReader{from: in, bar: progressBar{to: terminal, all: int(info.Size())}}
		return r, r.bar.clear
	}
	r := &lineReader{from: in, to: terminal}
	return r, r.clear
}

// A fileReader shows which part of a file was read.
type fileReader struct {
	from io.Reader
	bar  progressBar
	read int
}

func (r *fileReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.read += n
	r.bar.set(r.read)
	return n, err
}

// A lineReader shows how many lines were read, each hundred.
type lineReader struct {
	from         io.Reader
	to           io.Writer
	lines, shown int
}

func (r *lineReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.lines += bytes.Count(b[:n], []byte("\n"))
	if now := r.lines / 100 * 100; now > r.shown {
		r.shown = now
		fmt.Fprintf(r.to, "\r%d lines", now)
	}
	return n, err
}

func (r *lineReader) clear() {
	if r.shown > 0 {
		fmt.Fprint(r.to, "\r                          \r")
	}
}
