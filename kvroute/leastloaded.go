// Policy least_loaded: the worker with the fewest requests under way.

package kvroute

// leastLoaded looks from a random place on, so that equals share the load.
func leastLoaded(e eligible) *Worker {
	from := int(e.below(len(e.workers)))
	w := e.lightest(from)
	if w == nil && e.widen() {
		w = e.lightest(from)
	}
	return w
}

// lightest returns the eligible worker with the least load, of equals the first one
// from a place on.
func (e *eligible) lightest(from int) *Worker {
	var best *Worker
	var least load
	for _, half := range [2][]*Worker{e.workers[from:], e.workers[:from]} {
		for _, w := range half {
			active := w.underWay()
			if best != nil && active > least.active {
				continue // as most are: of these nothing else is looked at
			}
			here := load{active, w.slow()}
			if best != nil && !here.below(least) || !e.has(w) {
				continue
			}
			if best, least = w, here; here == (load{0, 1}) {
				return best // idle, at full speed
			}
		}
	}
	return best
}

// A load is what workers are compared by where nobody knows prices: the requests
// under way and, of equals, the slowness. To multiply them is worse: where passes
// take longer there are more requests under way by that alone, and when the
// factor ends everybody would go there at once.
type load struct {
	active int64 // also of other routers
	slow   float64
}

func (w *Worker) load() load { return load{w.underWay(), w.slow()} }

func (l load) below(other load) bool {
	return l.active < other.active || l.active == other.active && l.slow < other.slow
}
