// Pace: what others have learned of how long engines' passes take, for who has not seen enough of them yet.

package peering

import (
	"maps"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
)

// A pacer is a rank of a worker.
type pacer struct {
	worker uint64
	rank   int
}

// heardPace takes what a snapshot says. The last one to say something is believed.
func (h *hearer) heardPace(of pacer, t cost.Timing) {
	if _, known := h.paces[of]; !known && len(h.paces) >= maxPaces {
		if h.pruned { // a stranger's message is not to look at all of them with each entry
			return
		}
		h.pruned = true // until the next heartbeat
		maps.DeleteFunc(h.paces, func(of pacer, _ cost.Timing) bool {
			w := h.workers[of.worker]
			return w == nil || !w.Knows(&kvroute.Away{Rank: of.rank})
		})
		if len(h.paces) >= maxPaces {
			return
		}
	}
	h.paces[of] = t
	if w := h.workers[of.worker]; w != nil {
		w.Believe(of.rank, t)
	}
}

// believe tells workers that came, or came to be known to have ranks, since it was heard.
func (h *hearer) believe() {
	h.pruned = false
	for of, t := range h.paces {
		if w := h.workers[of.worker]; w != nil {
			w.Believe(of.rank, t)
		}
	}
}
