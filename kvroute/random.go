// Policy random: any worker, each with the same chance.

package kvroute

func random(e eligible) *Worker {
	drawn := e.workers[e.below(len(e.workers))]
	for {
		if e.has(drawn) { // as nearly always
			return drawn
		}
		if n := e.count(); n > 0 {
			return e.nth(e.below(n))
		}
		if !e.widen() {
			return nil
		}
	}
}
