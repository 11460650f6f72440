// Attend: reading the lines of one helper until it ends or must be killed.

package gpu

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"kvasir/gpu/snapshot"
)

// An attendance is the monitor's state for one run of the helper.
type attendance struct {
	*watch
	*process
	greeted time.Time // time of its hello; zero: none yet
	heard   time.Time // time of its last good line, or of its start

	window time.Time // begin of the second that lines, bad and loud count
	lines  int
	bad    int
	loud   int // bytes of stderr before that second

	over error // why reading was stopped
}

// attend reads the helper's lines until the helper ends, must be ended, or the monitor is closed.
// It reads on the caller's goroutine and checks the clock after each read: a second goroutine, or
// a ticker, would double the number of wake-ups.
func (a *attendance) attend() error {
	var waker sync.WaitGroup
	heard := make(chan struct{})
	waker.Go(func() { a.wakeToClose(heard) })
	defer waker.Wait()
	defer close(heard)
	s := lines(a)
	for s.Scan() {
		line, err := parse(s.Bytes())
		if err := a.hear(line, err, time.Now()); err != nil {
			return err
		}
	}
	if a.over != nil {
		return a.over
	}
	return silenced(s.Err())
}

// wakeToClose ends Read's wait when the monitor is closed.
func (a *attendance) wakeToClose(heard <-chan struct{}) {
	select {
	case <-a.closing:
		_ = a.stdout.SetReadDeadline(time.Unix(1, 0))
	case <-heard:
	}
}

// Read waits for the helper's next bytes. The scanner calls it when it has returned all earlier
// lines.
func (a *attendance) Read(b []byte) (int, error) {
	for timeouts := 0; ; timeouts++ {
		now := time.Now()
		if timeouts != 1 { // the first timeout may mean that Kvasir itself slept, and lines wait to be read
			if a.over = a.overdue(now); a.over != nil {
				return 0, a.over
			}
			a.tell(now)
		}
		if err := a.stdout.SetReadDeadline(now.Add(min(2*a.options.Interval, time.Second))); err != nil {
			return 0, err
		}
		select {
		case <-a.closing: // after setting the deadline, which may have replaced that of wakeToClose
			a.over = errClosed
			return 0, a.over
		default:
		}
		n, err := a.stdout.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		select {
		case <-a.gone: // the helper ended, but a process that it started still holds its output open
			return 0, io.EOF
		default:
		}
	}
}

// silenced returns why the helper's output has ended.
func silenced(err error) error {
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("the NVML helper babbles: a line of more than %d KiB", maxLine>>10)
	case err != nil:
		return fmt.Errorf("cannot read from the NVML helper: %w", err)
	}
	return errEnded
}

// hear processes a line, or the error of parsing it. An error from hear ends the helper.
func (a *attendance) hear(line snapshot.Line, err error, now time.Time) error {
	a.count(now)
	a.lines++
	if a.lines > a.mostLines() {
		return fmt.Errorf("the NVML helper babbles: more than %d lines a second", a.mostLines())
	}
	if errors.Is(err, errProtocol) {
		return final{err}
	}
	if err == nil {
		err = a.take(line, now)
	}
	if err == nil {
		a.heard = now
		return nil
	}
	if a.bad++; a.bad > badLines {
		return fmt.Errorf("the NVML helper babbles: %w", err)
	}
	return nil
}

// count begins a new second.
func (a *attendance) count(now time.Time) {
	if now.Sub(a.window) >= time.Second {
		a.window, a.lines, a.bad, a.loud = now, 0, 0, a.stderr.written()
	}
}

// take makes a new observation from a line.
func (a *attendance) take(l snapshot.Line, now time.Time) error {
	s := a.observed.Load()
	if l.Hello != nil {
		s = s.hello(l.Hello, now)
		if a.greeted.IsZero() {
			a.greeted = now
		}
	}
	if l.GPU != nil {
		if a.greeted.IsZero() || l.GPU.Index >= len(s.gpus) {
			return fmt.Errorf("a snapshot of GPU %d, of which there was no hello", l.GPU.Index)
		}
		s = s.polled(l.GPU, now)
	}
	if l.Trouble != nil {
		if l.Trouble.GPU >= 0 && (a.greeted.IsZero() || l.Trouble.GPU >= len(s.gpus)) {
			return fmt.Errorf("trouble of GPU %d, of which there was no hello", l.Trouble.GPU)
		}
		s = s.failed(l.Trouble)
	}
	a.observed.Store(s)
	return nil
}

// mostLines returns how many lines a second are allowed: eight times as many as the interval
// gives.
func (a *attendance) mostLines() int {
	return 100 + int(8*time.Second/a.options.Interval)*len(a.observed.Load().gpus)
}

// overdue returns an error if the helper must be ended because of its silence.
func (a *attendance) overdue(now time.Time) error {
	if a.stderr.written()-a.loud > maxStderr {
		return fmt.Errorf("the NVML helper babbles: more than %d KiB a second, %s", maxStderr>>10, a.stderr.lastLine())
	}
	a.count(now)
	quiet := now.Sub(a.heard)
	silence := max(a.bounds.silence, 2*staleAfter*a.options.Interval)
	switch {
	case a.greeted.IsZero() && quiet > a.bounds.hello:
		return fmt.Errorf("the NVML helper did not answer within %v: a call hangs in the driver; look for NVRM and Xid in dmesg", a.bounds.hello)
	case !a.greeted.IsZero() && quiet > silence && len(a.observed.Load().gpus) > 0:
		return fmt.Errorf("the NVML helper said nothing for %v: a call hangs in the driver; look for NVRM and Xid in dmesg", silence)
	}
	return nil
}

// verdict returns why the helper ended, after it has ended.
func (a *attendance) verdict(err error) error {
	if !errors.Is(err, errEnded) {
		return err
	}
	death := a.death()
	if a.greeted.IsZero() && (strings.Contains(death, "GLIBC_") || strings.Contains(death, "error while loading shared libraries")) {
		return final{fmt.Errorf("the NVML helper cannot be started: this system's glibc is missing or too old for it (2.34 is needed): %s", death)}
	}
	return fmt.Errorf("%w: %s", errEnded, death)
}
