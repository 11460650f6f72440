// Waits: how long the requests in line at others have waited, so that a free slot goes to the first of all.

package peering

import (
	"time"

	"kvasir/kvroute"
)

// A wait is since when the first in line of a peer waits for a model, by the clock here.
type wait struct {
	since time.Time
	round uint64
}

// heardWait notes how long the first in line of a peer has waited: 1 + ms; 0: nobody is in line.
func (h *hearer) heardWait(now time.Time, p *peer, model uint64, waited int) {
	if _, known := p.waits[model]; !known && (waited == 0 || len(p.waits) >= maxWaits) {
		return
	}
	delete(p.waits, model)
	if waited > 0 {
		p.waits[model] = wait{now.Add(-time.Duration(waited-1) * time.Millisecond), p.round}
	}
	var first time.Time
	for _, one := range h.peers {
		if w, ok := one.waits[model]; ok && (first.IsZero() || w.since.Before(first)) {
			first = w.since
		}
	}
	if first.Equal(h.waits[model]) {
		return
	}
	if h.untold = true; first.IsZero() {
		delete(h.waits, model)
	} else {
		h.waits[model] = first
	}
}

// tellWaits tells the workers what was heard of those in line, once for a whole message: there may be
// thousands of workers, and as many entries. A worker without a limit is told too, as it may get one.
func (h *hearer) tellWaits() {
	if !h.untold {
		return
	}
	h.untold = false
	for _, w := range h.workers {
		w.SetOthersWait(h.othersWait(w))
	}
}

// othersWait is since when the first of all others waits that the worker could take; zero: nobody does.
func (h *hearer) othersWait(w *kvroute.Worker) (first time.Time) {
	models, _ := w.Models()
	for i := range models {
		if since, ok := h.waits[Key(models[i].Name)]; ok && (first.IsZero() || since.Before(first)) {
			first = since
		}
	}
	return first
}
