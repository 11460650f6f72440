// Policy round_robin: each worker in turn.

package kvroute

// roundRobin takes the next in turn. The turns of a worker that is not eligible
// go round the others: its neighbour would else get all of them.
func roundRobin(e eligible) *Worker {
	turn, all := e.turn.Add(1)-1, uint64(len(e.workers))
	for {
		if w := e.workers[turn%all]; e.has(w) {
			return w
		}
		if n := e.count(); n > 0 {
			return e.nth(turn / all % uint64(n))
		}
		if !e.widen() {
			return nil
		}
	}
}
