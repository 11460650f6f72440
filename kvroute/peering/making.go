// Making: which answers are being made elsewhere, so that equal requests are asked once where all have one cache.

package peering

import "sync"

// Elsewhere is an answer that at least one other router is making.
type Elsewhere struct {
	by     map[uint64]struct{} // routers
	done   chan struct{}
	stored bool // written before done is closed
}

// Done is closed when the answer is stored, or nobody makes it any more.
func (e *Elsewhere) Done() <-chan struct{} { return e.done }

// Stored says, after Done, whether the answer was stored, or is about to be.
func (e *Elsewhere) Stored() bool { return e.stored }

// makings are the answers that others make, by key. Requests look here: nothing waits for a message
// that is being read.
type makings struct {
	mu    sync.Mutex
	known map[uint64]*Elsewhere
}

// Elsewhere returns the answer of that key that others are making; nil: nobody is known to.
func (x *Exchange) Elsewhere(key uint64) *Elsewhere {
	x.elsewhere.mu.Lock()
	defer x.elsewhere.mu.Unlock()
	return x.elsewhere.known[key]
}

func (m *makings) begin(peer, key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.known[key]
	if e == nil {
		e = &Elsewhere{by: map[uint64]struct{}{}, done: make(chan struct{})}
		m.known[key] = e
	}
	e.by[peer] = struct{}{}
}

// end ends one for all who wait for it, if it is stored or nobody else makes it.
func (m *makings) end(peer, key uint64, stored bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.known[key]
	if e == nil {
		return
	}
	if _, by := e.by[peer]; !by {
		return
	}
	delete(e.by, peer)
	if stored || len(e.by) == 0 {
		e.stored = stored
		close(e.done)
		delete(m.known, key)
	}
}

// heardMaking notes that a peer makes an answer. The hearer's mu is held.
func (h *hearer) heardMaking(x *Exchange, p *peer, key uint64) {
	if _, known := p.making[key]; !known {
		if len(p.making) >= maxMaking || !mayHave(len(p.making), h.making, maxMakings) {
			return
		}
		h.making++
		x.elsewhere.begin(p.id, key)
	}
	p.making[key] = p.round
}

// heardMade notes that it makes it no longer.
func (h *hearer) heardMade(x *Exchange, p *peer, key uint64, stored bool) {
	if _, known := p.making[key]; known {
		delete(p.making, key)
		h.making--
		x.elsewhere.end(p.id, key, stored)
	}
}

// A made is the beginning or the end of an answer here.
type made struct {
	key   uint64
	phase int // 0: it begins; 1: it has ended; 2: and is stored
}

// Making tells others that this router makes an answer, until Made. It is false where it cannot be told.
func (x *Exchange) Making(key uint64) bool {
	s := &x.out
	s.mu.Lock()
	if len(s.making) >= maxMaking || len(s.made) >= maxPending {
		s.dropped++
		s.mu.Unlock()
		return false
	}
	s.making[key]++
	s.made = append(s.made, made{key, 0})
	s.ready(x)
	return true
}

// Made ends what Making began; stored: the answer can be found in the cache that all have, or soon.
func (x *Exchange) Made(key uint64, stored bool) {
	s := &x.out
	s.mu.Lock()
	phase := 1
	if stored {
		phase = 2
	}
	if s.making[key]--; s.making[key] <= 0 {
		delete(s.making, key)
	}
	if stored || s.making[key] == 0 { // else an equal request here has taken over
		s.made = append(s.made, made{key, phase}) // there are no more of them than beginnings
	}
	s.ready(x)
}

// takeMade takes what is to be told of answers; a snapshot has all that are being made.
func (s *sender) takeMade(r *rest) {
	r.made, s.made = append(r.made[:0], s.made...), s.made[:0]
	if r.snapshot {
		for key := range s.making {
			r.made = append(r.made, made{key, 0})
		}
	}
}
