// Ending: what signals ask for, and the last resort when something does not end.

package serve

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"kvasir/config"
)

// endsWithin is how long after it should have ended the process is ended by
// force: a second less what that takes.
const endsWithin = 900 * time.Millisecond

// An ending hears the signals for as long as serve runs, from a goroutine of its
// own: nothing that starts, reloads, serves or stops can keep it from that. After the first
// signal to stop the process ends within server.drain and a second, after
// another one within a second, whatever still waits then.
type ending struct {
	reload chan struct{} // something for each SIGHUP, or for several
	stop   chan struct{} // closed at the first signal to stop
	now    chan struct{} // closed at the second
	signal os.Signal     // the first; set before stop is closed

	drain atomic.Pointer[config.Drain] // of the configuration that counts; nil: none is read yet
	exit  func(code int)               // os.Exit, but for tests

	quit, ended chan struct{}
}

func newEnding(signals <-chan os.Signal) *ending {
	e := &ending{
		reload: make(chan struct{}, 1), stop: make(chan struct{}), now: make(chan struct{}), exit: os.Exit,
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	go e.hear(signals)
	return e
}

// patience is how long the first signal may take.
func (e *ending) patience() time.Duration {
	d := e.drain.Load()
	if d == nil {
		return endsWithin
	}
	return d.Delay + d.Timeout + endsWithin
}

func (e *ending) hear(signals <-chan os.Signal) {
	defer close(e.ended)
	var overdue <-chan time.Time
	stops := 0
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				select {
				case e.reload <- struct{}{}:
				default:
				}
				continue
			}
			switch stops++; stops {
			case 1:
				e.signal = sig
				overdue = time.After(e.patience())
				close(e.stop)
			case 2:
				overdue = time.After(endsWithin)
				close(e.now)
			}
		case <-overdue:
			e.force(stops)
			return
		case <-e.quit:
			return
		}
	}
}

// force ends the process. A second signal asked for just that, after the first it
// is a failure.
func (e *ending) force(stops int) {
	said := make(chan struct{})
	go e.say(said)
	select {
	case <-said:
	case <-time.After(50 * time.Millisecond): // whoever reads stderr may be what hangs
	}
	code := 1
	if stops > 1 {
		code = 0
	}
	e.exit(code)
}

func (e *ending) say(said chan<- struct{}) {
	defer close(said)
	fmt.Fprintln(os.Stderr, "kvasir: ended by force: something did not stop in time")
}

// close ends the hearing, and with it the last resort.
func (e *ending) close() {
	close(e.quit)
	<-e.ended
}
