// Policy random: any worker, each with the same chance.

package kvroute

func random(e eligible) *Worker {
	// Nearly always all are eligible, and one draw is enough.
	for range 2 {
		if w := e.workers[e.below(len(e.workers))]; e.has(w) {
			return w
		}
	}
	for {
		if n := e.count(); n > 0 {
			return e.nth(e.below(n))
		}
		if !e.widen() {
			return nil
		}
	}
}
