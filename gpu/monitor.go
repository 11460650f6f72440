// Monitor: the helper is started, watched, ended and started again.

package gpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// bounds are how long the monitor waits for what.
type bounds struct {
	hello   time.Duration // from a start to the first word: a driver without persistence wakes each GPU
	silence time.Duration // from one line to the next, and no less than eight intervals
	grace   time.Duration // from asking to end to ending
	first   time.Duration // from an end to the next start
	most    time.Duration // the same after many ends; an ended fault is seen within 5 s
	settled time.Duration // a helper that lived so long after its hello was a good one
	kill    func(*process)
}

var usualBounds = bounds{
	hello: 30 * time.Second, silence: 10 * time.Second, grace: time.Second,
	first: 100 * time.Millisecond, most: 3 * time.Second, settled: 10 * time.Second,
	kill: (*process).demand,
}

// badLines is how many unreadable lines a second are overlooked: a driver's
// library may print where it should not.
const badLines = 20

// maxStderr is how many bytes a second it may print as an error.
const maxStderr = 256 << 10

// The ends of an attendance that are the monitor's own.
var (
	errClosed = errors.New("closed")
	errEnded  = errors.New("the NVML helper ended")
)

// A final error does not go away when the helper is started again.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

func errNotInside(library string) error {
	return fmt.Errorf("the driver is here (%s), but this Kvasir was built without its NVML helper; build it with a C compiler at hand, or take a release", library)
}

// run is the life of a monitor that has something to do.
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

// A watch is a monitor at work; run's goroutine alone has it.
type watch struct {
	*Monitor
	tick     *time.Ticker
	told     State   // of the fleet, as last told
	toldGPUs []State // of each GPU; empty: nothing was told
	attempt  int     // starts since a good helper
}

// succeed begins when the monitor before this one has ended.
func (w *watch) succeed() error {
	if before := w.options.After; before != nil && before.done != nil {
		select {
		case <-before.done:
		case <-w.closing:
			return errClosed
		}
	}
	w.options.After = nil // and not held for as long as this one lives
	return w.keepRunning()
}

// keepRunning starts the helper each time that it ended, until the monitor is
// closed or there is no use in it.
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

// once is one run of the helper, and why it is over.
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

// end ends the helper and waits until it is gone; false: the monitor was closed
// before it was.
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

// lose makes telemetry lost.
func (w *watch) lose(why string) {
	w.observed.Store(w.observed.Load().gone(why))
	w.tell(time.Now())
}

// pause waits; false: the monitor was closed.
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

// backoff doubles with each start, and half of it is chance: many hosts may
// have lost their driver at once.
func (w *watch) backoff() time.Duration {
	d := min(w.bounds.first<<min(w.attempt, 16), w.bounds.most)
	w.attempt++
	return d/2 + rand.N(d/2+1)
}
