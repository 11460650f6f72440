// Hearing: what others say, and what that changes here.

package peering

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// A hearer knows what each other router has under way.
type hearer struct {
	known atomic.Int64 // routers

	mu      sync.Mutex // guards what follows; sender.mu is not taken with it held
	peers   map[uint64]*peer
	workers map[uint64]*kvroute.Worker
	away    map[uint64]int // requests under way by worker, of all others
	legs    int            // of all peers
	names   int            // of all these legs
	slots   int            // workers that peers have requests at, each counted once for each peer
	gone    map[uint64]gone
	making  int // answers that peers make
	paces   map[pacer]cost.Timing
	pruned  bool                 // paces were looked through since the last heartbeat
	waits   map[uint64]time.Time // by model: since when the first in line waits, of all others
	untold  bool                 // waits has changed, and workers were not told
	gaps    uint64
	ignored uint64
	reader  reader
}

// A peer is another router as it is known here.
type peer struct {
	id     uint64
	name   string
	seq    uint64
	heard  time.Time
	synced bool // nothing was missed since its last snapshot

	legs     map[uint64]*awayLeg
	names    int            // of them
	slots    map[uint64]int // by worker
	spent    map[uint64]*spent
	waits    map[uint64]wait   // by model
	making   map[uint64]uint64 // answers, with the round of the snapshot that named them last
	unpacker unpacker

	round   uint64 // of snapshots; what a snapshot does not name is over
	inRound bool
	slotted map[uint64]bool // named by the snapshot under way
}

// awayLeg is one leg of it.
type awayLeg struct {
	worker   uint64
	away     kvroute.Away
	followed *kvroute.Followed // nil: the worker, or the rank, is not known
	partial  bool              // what is known of the worker was not enough for all of it
	round    uint64
}

// follow counts the leg at a worker, as far as that is known.
func (l *awayLeg) follow(now time.Time, w *kvroute.Worker) {
	if l.followed != nil {
		l.followed.End(now)
		l.followed = nil
	}
	if w != nil {
		l.partial = !w.Knows(&l.away)
		l.followed = w.Follow(now, &l.away)
	}
}

// calls are what is to be called when no lock is held any more.
type calls struct {
	want  bool // our snapshot
	ask   bool // for that of the message's sender
	known []string
	gone  []string
}

// Take takes a message of another router. The Exchange keeps nothing of it.
func (x *Exchange) Take(now time.Time, message []byte) error {
	h := &x.in
	h.mu.Lock()
	var c calls
	id, err := h.take(x, now, message, &c)
	h.known.Store(int64(len(h.peers)))
	h.mu.Unlock()
	if c.want {
		x.wanted()
	}
	if c.ask {
		x.ask(id)
	}
	x.tellKnown(&c)
	return err
}

func (x *Exchange) tellKnown(c *calls) {
	if x.options.Known == nil {
		return
	}
	for _, name := range c.known {
		x.options.Known(name, true)
	}
	for _, name := range c.gone {
		x.options.Known(name, false)
	}
}

func (h *hearer) take(x *Exchange, now time.Time, message []byte, c *calls) (uint64, error) {
	if len(message) == 0 || len(message) > MaxMessage+entrySize {
		return 0, ErrMalformed
	}
	if message[0] != version {
		return 0, ErrVersion
	}
	r := &h.reader
	r.rest, r.bad, r.expand = message[1:], false, maxExpand
	id, seq, at := r.key(), r.uvarint(), r.uvarint()
	if r.bad || seq == 0 {
		return 0, ErrMalformed
	}
	if id == x.options.ID {
		return id, nil // its own, come back
	}
	p := h.peers[id]
	switch {
	case p == nil:
		if len(h.peers) >= maxPeers {
			return id, ErrTooMany
		}
		p = &peer{id: id, legs: map[uint64]*awayLeg{}, slots: map[uint64]int{}, spent: h.spentBefore(id), waits: map[uint64]wait{}, making: map[uint64]uint64{}, slotted: map[uint64]bool{}}
		h.peers[id] = p
		c.want, c.ask = true, true
	case seq <= p.seq:
		return id, ErrStale
	case seq != p.seq+1:
		h.gaps++
		p.synced, p.inRound, c.ask = false, false, true
	}
	p.seq, p.heard = seq, now
	p.unpacker.begin(at)
	for len(r.rest) > 0 && !r.bad {
		h.entry(x, now, p, r, c)
	}
	h.tellWaits()
	if p.synced {
		c.ask = false
	}
	if r.bad {
		p.synced, p.inRound = false, false
		return id, ErrMalformed
	}
	return id, nil
}

// entry takes in the next entry of a message.
func (h *hearer) entry(x *Exchange, now time.Time, p *peer, r *reader, c *calls) {
	kind := r.byte()
	switch kind {
	case entryPlaced:
		h.placed(now, p, r)
	case entryTokens:
		if id, n := r.uvarint(), r.number(mostTokens); !r.bad {
			p.tokens(now, id, n)
		}
	case entryEnded:
		if id := r.uvarint(); !r.bad {
			h.end(now, p, id)
		}
	case entrySlots:
		if key, n := r.key(), r.number(1<<20); !r.bad {
			h.heardSlots(p, key, n)
		}
	case entrySick:
		if w := h.workers[r.key()]; w != nil && !r.bad {
			w.Suspect(now)
		}
	case entrySpent:
		if key, sum := r.key(), r.amount(); !r.bad {
			p.heardSum(x, now, key, sum)
		}
	case entryLately:
		if key, sum, lately := r.key(), r.amount(), r.amount(); !r.bad {
			p.heardLately(x, now, key, sum, lately)
		}
	case entryUnused:
		if key := r.key(); !r.bad {
			delete(p.spent, key)
		}
	case entryPace:
		if key, rank, t := r.key(), r.number(1<<16)-1, r.timing(); !r.bad {
			h.heardPace(pacer{key, rank}, t)
		}
	case entryWaits:
		if key, waited := r.key(), r.number(mostWaited); !r.bad {
			h.heardWait(now, p, key, waited)
		}
	case entryMaking:
		if key := r.key(); !r.bad {
			h.heardMaking(x, p, key)
		}
	case entryMade:
		if key, stored := r.key(), r.number(1); !r.bad {
			h.heardMade(x, p, key, stored == 1)
		}
	case entrySnapshot:
		if name := r.text(maxName); !r.bad {
			p.beginSnapshot(name, c)
		}
	case entryComplete:
		if p.inRound {
			h.complete(x, now, p)
		}
	case entryWant:
		if r.key() == x.options.ID && !r.bad {
			c.want = true
		}
	case entryLeaving:
		h.forget(x, now, p, c)
		delete(h.gone, p.id)
		r.rest = nil // it has nothing more to say
	default:
		if kind < entryOptional {
			r.bad = true
			return
		}
		r.bytes(len(r.rest)) // of a newer one
	}
}

// tokens notes how many tokens of its answer a leg has.
func (p *peer) tokens(now time.Time, id uint64, n int) {
	l := p.legs[id]
	if l == nil {
		return
	}
	l.away.Generated = n
	if l.followed != nil {
		l.followed.Tokens(now, n)
	}
}

// heardSlots notes how many requests of the peer are under way at a worker.
func (h *hearer) heardSlots(p *peer, key uint64, n int) {
	h.setSlots(p, key, n)
	if p.inRound && p.slots[key] != 0 {
		p.slotted[key] = true
	}
}

// beginSnapshot begins a round: what the peer does not tell again in it is gone.
func (p *peer) beginSnapshot(name string, c *calls) {
	if p.name == "" {
		p.name = name
		c.known = append(c.known, name)
	}
	p.round++
	p.inRound = true
	clear(p.slotted)
}

func (h *hearer) placed(now time.Time, p *peer, r *reader) {
	id, key := r.uvarint(), r.key()
	a := r.away()
	l := p.legs[id]
	var names []kvindex.Name
	room := mayHave(len(p.legs), h.legs, maxLegs)
	if l == nil && room {
		names = p.unpacker.append(nil, r)
	} else {
		p.unpacker.skip(r)
	}
	if r.bad {
		return
	}
	if l != nil { // of a snapshot: it is known already
		l.round = p.round
		if l.away.Generated = a.Generated; l.followed != nil {
			l.followed.Tokens(now, a.Generated)
		}
		return
	}
	if !room {
		return
	}
	if mayHave(p.names+len(names), h.names+len(names), maxNames) {
		a.Names = names
		p.names += len(names)
		h.names += len(names)
	}
	l = &awayLeg{worker: key, away: a, round: p.round}
	p.legs[id] = l
	h.legs++
	w := h.workers[key]
	if w == nil {
		h.ignored++
	}
	l.follow(now, w)
}

// mayHave says whether a peer that has so many may have more, where all peers have so many of most:
// as many as are left for others. One peer alone can so use half of what there is, and none can keep the others
// from having any.
func mayHave(has, all, most int) bool { return has <= most-all && all < most }

func (h *hearer) end(now time.Time, p *peer, id uint64) {
	if l := p.legs[id]; l != nil {
		if l.followed != nil {
			l.followed.End(now)
		}
		p.names -= len(l.away.Names)
		h.names -= len(l.away.Names)
		h.legs--
		delete(p.legs, id)
	}
}

func (h *hearer) setSlots(p *peer, key uint64, n int) {
	before := p.slots[key]
	if n == before {
		return
	}
	if n == 0 {
		delete(p.slots, key)
		delete(p.slotted, key)
		h.slots--
	} else {
		if before == 0 {
			if !mayHave(len(p.slots), h.slots, maxLegs) {
				return
			}
			h.slots++
		}
		p.slots[key] = n
	}
	sum := h.away[key] + n - before
	if h.away[key] = sum; sum == 0 {
		delete(h.away, key)
	}
	if w := h.workers[key]; w != nil {
		if h.untold { // a slot that is free may be for whoever waits
			w.SetOthersWait(h.othersWait(w))
		}
		w.SetAway(sum)
	}
}

// complete ends what a snapshot has not named.
func (h *hearer) complete(x *Exchange, now time.Time, p *peer) {
	p.synced, p.inRound = true, false
	var over []uint64
	for id, l := range p.legs {
		if l.round != p.round {
			over = append(over, id)
		}
	}
	slices.Sort(over)
	for _, id := range over {
		h.end(now, p, id)
	}
	for key := range p.slots {
		if !p.slotted[key] {
			h.setSlots(p, key, 0)
		}
	}
	for key, s := range p.spent {
		if s.round != p.round {
			delete(p.spent, key)
		}
	}
	for model, w := range p.waits {
		if w.round != p.round {
			h.heardWait(now, p, model, 0)
		}
	}
	for key, round := range p.making {
		if round != p.round {
			h.heardMade(x, p, key, false)
		}
	}
}

// forget drops all that a router had under way.
func (h *hearer) forget(x *Exchange, now time.Time, p *peer, c *calls) {
	ids := make([]uint64, 0, len(p.legs))
	for id := range p.legs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		h.end(now, p, id)
	}
	for model := range p.waits { // before the slots: none is left to it
		h.heardWait(now, p, model, 0)
	}
	for key := range p.slots {
		h.setSlots(p, key, 0)
	}
	for key := range p.making {
		h.heardMade(x, p, key, false)
	}
	delete(h.peers, p.id)
	h.remember(now, p)
	if p.name != "" {
		c.gone = append(c.gone, p.name)
	}
}

// Tick forgets routers that are silent, asks for the snapshots that have not come, and returns
// a message to all others, if only to say that this one is here. Call it each Heartbeat. The
// messages are as those of Flush.
func (x *Exchange) Tick(now time.Time) [][]byte {
	h := &x.in
	h.mu.Lock()
	var c calls
	var ask []uint64
	for id, p := range h.peers {
		switch {
		case now.Sub(p.heard) > Silent:
			h.forget(x, now, p, &c)
		case !p.synced:
			ask = append(ask, id)
		}
		h.again(now, p)
	}
	h.untold = h.untold || len(h.waits) > 0 // workers may serve other models by now
	h.tellWaits()
	h.forgetGone(now)
	h.believe()
	h.known.Store(int64(len(h.peers)))
	h.mu.Unlock()
	slices.Sort(ask)
	for _, id := range ask {
		x.ask(id)
	}
	x.tellKnown(&c)
	return x.flush(now, true)
}

// again counts what could not be counted when it was heard: what an engine says of itself may come
// later than what others have under way there.
func (h *hearer) again(now time.Time, p *peer) {
	for _, l := range p.legs {
		if w := h.workers[l.worker]; w != nil && l.partial && w.Knows(&l.away) {
			l.follow(now, w)
		}
	}
}

// Forget drops all other routers, as when nothing is heard any more.
func (x *Exchange) Forget(now time.Time) {
	h := &x.in
	h.mu.Lock()
	var c calls
	for _, p := range h.peers {
		h.forget(x, now, p, &c)
	}
	h.tellWaits()
	h.known.Store(0)
	h.mu.Unlock()
	x.tellKnown(&c)
}

func (h *hearer) setWorkers(now time.Time, workers map[uint64]*kvroute.Worker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.workers
	h.workers = workers
	for key, w := range old {
		if workers[key] != w {
			w.SetAway(0)
			w.SetOthersWait(time.Time{})
		}
	}
	for key, w := range workers {
		if old[key] != w {
			w.SetOthersWait(h.othersWait(w))
			w.SetAway(h.away[key])
		}
	}
	h.believe()
	for _, p := range h.peers {
		for _, l := range p.legs {
			if w := workers[l.worker]; w != old[l.worker] {
				l.follow(now, w)
			}
		}
	}
}

func (h *hearer) stats() (s Stats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.peers {
		s.Peers = append(s.Peers, cmp.Or(p.name, "unknown"))
		s.Legs += len(p.legs)
	}
	slices.Sort(s.Peers)
	s.Gaps, s.Ignored, s.Making = h.gaps, h.ignored, h.making
	return s
}
