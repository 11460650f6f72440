// Shutdown: what signals ask for, and the last resort when something does not stop.

package serve

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"kvasir/config"
)

// endsWithin is how long the process may outlive its deadline before it is
// ended by force: a second, less the time that ending it takes.
const endsWithin = 900 * time.Millisecond

// A shutdown listens to signals for as long as the server runs. It has a
// goroutine of its own, so that nothing that hangs while it starts, reloads,
// serves or stops can keep a signal from being heard. The process ends within
// the time of server.drain and one second after the first signal to stop, and
// within one second after the second one, even if something still hangs then.
type shutdown struct {
	reload chan struct{} // holds one element after a SIGHUP, or several of them
	stop   chan struct{} // closed at the first signal to stop
	now    chan struct{} // closed at the second
	signal os.Signal     // the first; set before stop is closed

	drain atomic.Pointer[config.Drain] // of the configuration in force; nil: none is read yet
	exit  func(code int)               // os.Exit, but for tests

	quit, ended chan struct{}
}

func newShutdown(signals <-chan os.Signal) *shutdown {
	e := &shutdown{
		reload: make(chan struct{}, 1), stop: make(chan struct{}), now: make(chan struct{}), exit: os.Exit,
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	go e.hear(signals)
	return e
}

// patience is how long the process may take to stop after the first signal.
func (e *shutdown) patience() time.Duration {
	d := e.drain.Load()
	if d == nil {
		return endsWithin
	}
	return d.Delay + d.Timeout + endsWithin
}

func (e *shutdown) hear(signals <-chan os.Signal) {
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

// force ends the process: with exit code 0 after a second signal, which asked
// for just that, and with 1 after the first, which did not.
func (e *shutdown) force(stops int) {
	said := make(chan struct{})
	go e.say(said)
	select {
	case <-said:
	case <-time.After(50 * time.Millisecond): // the reader of stderr may be what hangs
	}
	code := 1
	if stops > 1 {
		code = 0
	}
	e.exit(code)
}

func (e *shutdown) say(said chan<- struct{}) {
	defer close(said)
	fmt.Fprintln(os.Stderr, "kvasir: ended by force: something did not stop in time")
}

// close stops listening to signals, after which nothing is ended by force.
func (e *shutdown) close() {
	close(e.quit)
	<-e.ended
}
