// Draining: a worker that an operator takes out gets nothing new, and ends what it has.

package kvroute

// SetDraining says whether the worker is left out of all placements, whatever its health is. What
// is under way there goes on. It reports whether that is news.
//
// The catalog leaves it out, so that no request pays for the question; also one that names the
// worker, and one that has nobody else, goes elsewhere or gets ErrNoWorker.
func (w *Worker) SetDraining(drains bool) bool {
	if w.draining.Swap(drains) == drains {
		return false
	}
	if l := w.line.Load(); l != nil {
		l.version.Add(1)
		l.wake() // who waits for it alone waits in vain, or no longer
	}
	return true
}

// Draining says whether the worker gets nothing new by SetDraining.
func (w *Worker) Draining() bool { return w.draining.Load() }

// drained is the status of a worker that is left out, though it is well.
func (s Status) drained() Status {
	if s.State.TakesRequests() {
		return Status{State: Draining, Why: "an operator has taken it out; undrain puts it back"}
	}
	return s
}
