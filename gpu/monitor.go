// Monitor: starts, watches, ends and restarts the helper.

package gpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// bounds are the monitor's waiting times.
type bounds struct {
	hello   time.Duration // from a start to the hello: a driver without persistence mode first wakes each GPU
	silence time.Duration // from one line to the next, but at least eight intervals
	grace   time.Duration // from asking the helper to end to killing it
	first   time.Duration // from the helper's end to the next start
	most    time.Duration // the same after many ends; short enough to notice within 5 s that a fault is over
	settled time.Duration // a helper that lived this long after its hello was good
	kill    func(*process)
}

var usualBounds = bounds{
	hello: 30 * time.Second, silence: 10 * time.Second, grace: time.Second,
	first: 100 * time.Millisecond, most: 3 * time.Second, settled: 10 * time.Second,
	kill: (*process).demand,
}

// badLines is how many unreadable lines a second are tolerated: a driver library may print to the
// wrong place.
const badLines = 20

// maxStderr is how many bytes a second the helper may write to stderr.
const maxStderr = 256 << 10

// Errors with which the monitor itself ends an attendance.
var (
	errClosed = errors.New("closed")
	errEnded  = errors.New("the NVML helper ended")
)

// A final error would persist if the helper were started again.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

func errNotInside(library string) error {
	return fmt.Errorf("the driver is here (%s), but this Kvasir was built without its NVML helper; build it with a C compiler at hand, or take a release", library)
}

// run is the main loop of a monitor that has a helper to run.
func (m *Monitor) run() {
	defer close(m.done)
	w := &watch{Monitor: m, tick: time.NewTicker(min(m.options.Interval, time.Second)), told: Stale}
	defer w.tick.Stop()
	if err := w.succeed(); !errors.Is(err, errClosed) {
		m.observed.Store(&observation{state: Off, why: err.Error()})
		w.tell(time.Now())
		return
	}
	m.observed.Store(&observation{state: Off, why: "telemetry is closed"})
}

// A watch is the state of a running monitor; only run's goroutine uses it.
type watch struct {
	*Monitor
	tick     *time.Ticker
	told     State   // state of the fleet in the last notice
	toldGPUs []State // state of each GPU in the last notice; empty: none yet
	attempt  int     // starts since the last good helper
}

// succeed waits until the monitor before this one has ended, and takes over its state.
func (w *watch) succeed() error {
	if before := w.options.After; before != nil && before.done != nil {
		select {
		case <-before.done:
		case <-w.closing:
			return errClosed
		}
	}
	w.options.After = nil // so that it can be collected
	return w.keepRunning()
}

// keepRunning restarts the helper each time it ends, until the monitor is closed or an error is
// final.
func (w *watch) keepRunning() error {
	from, err := program(w.options.Helper)
	if err != nil {
		return err
	}
	file, err := memfd(from)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		err := w.once(file)
		if errors.Is(err, errClosed) || errors.As(err, new(final)) {
			return err
		}
		w.lose(err.Error() + "; it is started again")
		if !w.pause(w.backoff()) {
			return errClosed
		}
	}
}

// once runs the helper once and returns why it ended.
func (w *watch) once(file *os.File) error {
	for leftBehind.Load() > 0 {
		w.lose("an earlier NVML helper hangs in the driver and cannot be ended")
		if !w.pause(w.bounds.most) {
			return errClosed
		}
	}
	p, err := launch(file, w.options.Interval.String(), w.options.Library)
	if err != nil {
		if why := refused(err); why != nil {
			return final{why}
		}
		return fmt.Errorf("cannot start the NVML helper: %w", err)
	}
	a := &attendance{watch: w, process: p, heard: time.Now()}
	err = a.attend()
	if !a.greeted.IsZero() && time.Since(a.greeted) >= w.bounds.settled {
		w.attempt = 0
	}
	if !w.end(p, err) {
		return errClosed
	}
	return a.verdict(err)
}

// end ends the helper and waits until it is gone. It returns false if the monitor was closed
// first.
func (w *watch) end(p *process, why error) bool {
	defer p.hush()
	if errors.Is(why, errEnded) && p.goneWithin(w.bounds.grace) {
		return true
	}
	p.ask()
	if p.goneWithin(w.bounds.grace) {
		return true
	}
	w.bounds.kill(p)
	if p.goneWithin(w.bounds.grace) {
		return true
	}
	w.lose(fmt.Sprintf("the NVML helper (process %d) hangs in the driver and cannot be ended; look for NVRM and Xid in dmesg, a restart of the host may be needed", p.cmd.Process.Pid))
	for {
		select {
		case <-p.gone:
			return true
		case <-w.closing:
			p.leave()
			return false
		case now := <-w.tick.C:
			w.tell(now)
		}
	}
}

// lose sets the state of telemetry to lost.
func (w *watch) lose(why string) {
	w.observed.Store(w.observed.Load().gone(why))
	w.tell(time.Now())
}

// pause waits for d. It returns false if the monitor was closed.
func (w *watch) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return true
		case <-w.closing:
			return false
		case now := <-w.tick.C:
			w.tell(now)
		}
	}
}

// backoff doubles with each start, and half of it is random, because many hosts may lose their
// driver at the same time.
func (w *watch) backoff() time.Duration {
	d := min(w.bounds.first<<min(w.attempt, 16), w.bounds.most)
	w.attempt++
	return d/2 + rand.N(d/2+1)
}
