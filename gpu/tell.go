// Tell: one notice for each change of a state.

package gpu

import (
	"errors"
	"fmt"
	"time"
)

// tell compares the present states with those of the last notices.
func (w *watch) tell(now time.Time) {
	f := w.Fleet(now)
	if f.State != w.told {
		w.told = f.State
		w.notice(fmt.Sprintf("GPU telemetry is %s", f.State), f.State, f.Why, fmt.Sprintf(": driver %s, %s", f.Driver, gpus(len(f.GPUs))))
	}
	if f.State != OK {
		return // the notice on the fleet covers every GPU
	}
	for len(w.toldGPUs) < len(f.GPUs) {
		w.toldGPUs = append(w.toldGPUs, OK)
	}
	fresh := now.Sub(w.observed.Load().since) <= staleAfter*w.options.Interval
	for i, g := range f.GPUs {
		if g.State == w.toldGPUs[i] || g.State == Stale && fresh {
			continue // after a hello, this GPU has not been polled yet
		}
		w.toldGPUs[i] = g.State
		w.notice(fmt.Sprintf("GPU %d (%s) is %s", i, g.UUID, g.State), g.State, g.Why, "")
	}
}

// notice sends one notice: why the state is bad, or that it is good.
func (w *watch) notice(text string, s State, why, good string) {
	switch {
	case w.options.Notice == nil:
	case s == OK:
		w.options.Notice(text+good, nil)
	default:
		w.options.Notice(text, errors.New(why))
	}
}

func gpus(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}
