// Spent: what others have let accounts of API keys use, each amount once.

package peering

import (
	"math"
	"time"
)

// spent is what a peer has let one account use.
type spent struct {
	sum     float64   // as it says
	charged float64   // of it, what was told here: no more than that can be given back
	at      time.Time // when sum became what it is
	round   uint64
}

// maxGone bounds the accounts of peers that are silent. What is not kept is charged for again, as far as it
// is of the last minute.
const maxGone = 4 * maxSpent

// gone is what is kept of a peer that is silent: it may only be cut off.
type gone struct {
	spent map[uint64]*spent
	at    time.Time
}

// heardSum takes a sum. Of an account that is not known it is all of it, as the snapshot
// named all others; before the snapshot it is of nobody knows when, and the snapshot will tell.
func (p *peer) heardSum(x *Exchange, now time.Time, key uint64, sum float64) {
	s := p.spent[key]
	if s == nil && !p.synced {
		return
	}
	if s = p.account(key); s != nil {
		s.heard(x, now, key, sum, math.Inf(1))
	}
}

// heardLately takes a sum of a snapshot. What is older than a minute has been earned back.
func (p *peer) heardLately(x *Exchange, now time.Time, key uint64, sum, lately float64) {
	if s := p.account(key); s != nil {
		s.round = p.round
		s.heard(x, now, key, sum, lately)
	}
}

// account is that of a key; nil: there are too many.
func (p *peer) account(key uint64) *spent {
	s := p.spent[key]
	if s == nil && len(p.spent) < maxSpent {
		s = &spent{}
		p.spent[key] = s
	}
	return s
}

// heard notes a sum, and tells the amount that is new, at most most. A peer that had set tokens aside before
// it was heard gives back what was never taken here. A sum that has become less after a minute is that of an
// account that was dropped there, which was not heard, and has begun anew: nothing is given back.
func (s *spent) heard(x *Exchange, now time.Time, key uint64, sum, most float64) {
	if sum < s.sum && now.Sub(s.at) >= marks*markApart {
		s.sum, s.charged = 0, 0
	}
	amount := max(min(sum-s.sum, most), -s.charged)
	if sum != s.sum {
		s.sum, s.at = sum, now
	}
	s.charged += amount
	if amount != 0 && x.options.Spent != nil {
		x.options.Spent(now, key, amount)
	}
}

// remember keeps the sums of a peer that is forgotten: when it is heard again they are not told
// a second time.
func (h *hearer) remember(now time.Time, p *peer) {
	accounts := len(p.spent)
	for _, g := range h.gone {
		accounts += len(g.spent)
	}
	if len(p.spent) > 0 && len(h.gone) < maxPeers && accounts <= maxGone {
		h.gone[p.id] = gone{p.spent, now}
	}
}

// spentBefore is what was known of a peer that is heard again.
func (h *hearer) spentBefore(id uint64) map[uint64]*spent {
	before, ok := h.gone[id]
	if !ok {
		return map[uint64]*spent{}
	}
	delete(h.gone, id)
	return before.spent
}

// forgetGone drops what is so old that a snapshot tells nothing of before it.
func (h *hearer) forgetGone(now time.Time) {
	for id, g := range h.gone {
		if now.Sub(g.at) > marks*markApart {
			delete(h.gone, id)
		}
	}
}
