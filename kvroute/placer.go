// Placer: requests are placed by price.

package kvroute

import (
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// A placer places one request after the other, so that each is priced with what
// the one before it added. Its memory is used again for each.
type placer struct {
	mu       sync.Mutex // guards below but for expired; taken after line.mu, before a tracker's
	whole    group
	decode   group
	prefill  group
	overlaps []kvindex.Overlap
	owner    []int32           // by kvindex ID: position in the group under way, from 1; 0: not in it
	three    [3]cost.Candidate // of pays

	expired atomic.Int64 // when the index last dropped what is predicted no longer; Unix nanoseconds
}

// A group is the candidates for one leg.
type group struct {
	leg        cost.Leg
	candidates []candidate
	priced     []cost.Candidate // the same ones, as they are priced
	eligible   int              // so many may be picked; the others are aside
	best       int              // the one to pick; -1: none
}

// A candidate is one data-parallel rank of a worker where a request could go, while it is looked at: cost.Candidate is
// its price, and Candidate what is shown of both.
type candidate struct {
	rank  *rank
	open  bool            // its engine's next pass has room
	aside bool            // others are preferred
	size  int             // tokens of a block; 0: not known
	cache *kvindex.Worker // to look for the prompt's blocks; nil: none
	names []kvindex.Name  // of them
}

// place picks by price, and takes the slots.
func (pl *placer) place(p *Pool, of *candidates, q *Query) (Placement, error) {
	of.name(q.Prompt)
	pl.expire(p.line.index, q.Now)
	pl.mu.Lock()
	defer pl.mu.Unlock()
	for {
		at, err := pl.gather(of, q)
		if err != nil {
			return Placement{}, err
		}
		if at.Worker = pl.cheapest(p, q); at.Worker == nil {
			continue // a slot has become free, or was taken
		}
		main, pre := pl.picked()
		if p.options.CentralQueue && at.Why == "" && len(q.Tried) == 0 && pl.shut(q.Now, main, pre) {
			q.prefill = pl.shortest(q.tokens())
			return Placement{}, ErrFull
		}
		if pre != nil {
			at.Prefill = pre.candidates[pre.best].rank.worker
		}
		if !at.acquire() {
			continue
		}
		if at.Why == "" {
			at.Why = of.why(policies[p.options.Policy].name, q)
		}
		pl.commit(p, &at, q, main, pre)
		return at, nil
	}
}

// measure fills in how long the request's prompt takes to compute where most of
// it is held, free or not.
func (p *Pool) measure(q *Query) {
	s, err := p.find(q.Model)
	if err != nil {
		return // it hears that when it is its turn
	}
	of, err := p.candidates(s, q)
	if err != nil {
		return
	}
	of.name(q.Prompt)
	pl := &p.line.placer
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.reset()
	for _, w := range of.prefills {
		pl.prefill.add(w, q, q.Pin.PrefillRanked, q.Pin.PrefillRank)
	}
	for _, w := range of.workers {
		pl.gatherWorker(&of, w, q)
	}
	pl.passOver()
	pl.cheapest(p, q)
	q.prefill = pl.shortest(q.tokens())
}

// name makes the names of the prompt's blocks, before the placer is locked: others
// would have to wait for that.
func (c *candidates) name(prompt *Prompt) {
	if prompt == nil {
		return
	}
	last := 0
	for _, workers := range [2][]*Worker{c.workers, c.prefills} {
		for _, w := range workers {
			for _, r := range w.ranks() {
				if size := r.blockSize(); size > 0 && size != last {
					prompt.names(size)
					last = size
				}
			}
		}
	}
}

func (pl *placer) reset() {
	pl.whole.reset(cost.Whole)
	pl.decode.reset(cost.DecodeLeg)
	pl.prefill.reset(cost.PrefillLeg)
}

// gather finds the candidates for each leg. An empty Why says that nothing speaks
// against them.
func (pl *placer) gather(of *candidates, q *Query) (at Placement, err error) {
	pl.reset()
	if err := pl.gatherPrefillWorkers(of, q); err != nil {
		return at, err
	}
	for _, w := range of.workers {
		if available(w, q.Tried, q.Now) {
			pl.gatherWorker(of, w, q)
		}
	}
	if len(pl.whole.candidates) == 0 && len(pl.decode.candidates) == 0 {
		if at, err = makeDo(of.workers, q.Tried, q.Strict, q.Now); err == nil && at.Worker != nil {
			pl.gatherWorker(of, at.Worker, q)
		}
	}
	pl.passOver()
	return at, err
}

// passOver leaves those that are aside to be shown only, where there are others;
// for a prompt the others include workers that compute it themselves.
func (pl *placer) passOver() {
	alone := pl.whole.eligible
	passOver(0, &pl.whole, &pl.decode)
	passOver(alone, &pl.prefill)
}

func passOver(others int, groups ...*group) {
	for _, g := range groups {
		others += g.eligible
	}
	for _, g := range groups {
		switch {
		case others == 0:
			g.eligible = len(g.candidates)
		case g.eligible < len(g.candidates):
			for i := range g.candidates {
				g.priced[i].Aside = g.candidates[i].aside
			}
		}
	}
}

// gatherPrefillWorkers finds the prefill workers.
func (pl *placer) gatherPrefillWorkers(of *candidates, q *Query) error {
	for _, w := range of.prefills {
		if available(w, q.TriedPrefill, q.Now) {
			pl.prefill.add(w, q, q.Pin.PrefillRanked, q.Pin.PrefillRank)
		}
	}
	if len(pl.prefill.candidates) > 0 || !of.must && !of.some {
		return nil
	}
	w, err := of.anyPrefillWorker(q)
	if err != nil {
		return of.alone(err)
	}
	pl.prefill.add(w, q, q.Pin.PrefillRanked, q.Pin.PrefillRank)
	return nil
}

func (pl *placer) gatherWorker(of *candidates, w *Worker, q *Query) {
	if of.whole(w) {
		pl.whole.add(w, q, q.Pin.Ranked, q.Pin.Rank)
	}
	if len(pl.prefill.candidates) > 0 && of.answersAfter(w) {
		pl.decode.add(w, q, q.Pin.Ranked, q.Pin.Rank)
	}
}

func (g *group) reset(leg cost.Leg) {
	clear(g.candidates) // it holds on to no worker that has left
	g.leg, g.candidates, g.priced, g.eligible, g.best = leg, g.candidates[:0], g.priced[:0], 0, -1
}

// add adds each rank of a worker, or the one that is named.
func (g *group) add(w *Worker, q *Query, ranked bool, rank int) {
	ranks := w.ranks()
	if ranked {
		// Pool.candidates saw to it that there is this one. Should the engine have got other
		// ranks since, it refuses the rank itself.
		at := min(rank, len(ranks)-1)
		ranks = ranks[at : at+1]
	}
	aside := w.aside()
	if !aside {
		g.eligible += len(ranks)
	}
	for _, r := range ranks {
		s := candidate{rank: r, aside: aside}
		g.priced = append(g.priced, cost.Candidate{})
		c := &g.priced[len(g.priced)-1]
		s.know(q.Prompt, c)
		s.open = r.track.look(q.Now, g.leg, s.names, c)
		g.candidates = append(g.candidates, s)
	}
}

// know notes where the prompt's blocks are looked for.
func (s *candidate) know(prompt *Prompt, c *cost.Candidate) {
	size := s.rank.blockSize()
	if prompt == nil || size == 0 {
		return
	}
	s.names, s.cache = prompt.names(size), s.rank.cache
	s.size = size
	if !prompt.Exact() {
		s.cache = s.rank.text.Load()
		s.size = prompt.textBlock(size)
	}
	c.BlockTokens = s.size
}

// cheapest prices the groups and says which worker the request goes to, and by
// group.best whether by a prefill worker. nil: there is none.
func (pl *placer) cheapest(p *Pool, q *Query) *Worker {
	tokens := q.tokens()
	for _, g := range [...]*group{&pl.whole, &pl.decode, &pl.prefill} {
		if len(g.candidates) == 0 {
			continue
		}
		pl.meet(g, p.line.index)
		policies[p.options.Policy].price(p, q.Override, q.Now, cost.Prompt{Tokens: tokens, Leg: g.leg}, g.priced)
		if g.eligible > 0 {
			g.best = cost.Pick(g.priced, p.heat(q), p.options.Random)
		}
	}
	w, a, b := &pl.whole, &pl.decode, &pl.prefill
	switch {
	case w.best < 0 && a.best < 0:
		return nil
	case w.best < 0:
		return a.candidates[a.best].rank.worker
	case a.best < 0 || b.best < 0 || !pl.pays(p, q, tokens):
		a.best, b.best = -1, -1
		return w.candidates[w.best].rank.worker
	}
	w.best = -1
	return a.candidates[a.best].rank.worker
}

// picked returns the group that the worker was picked from, and that of the
// prefill worker; nil: none.
func (pl *placer) picked() (main, pre *group) {
	if pl.whole.best >= 0 {
		return &pl.whole, nil
	}
	return &pl.decode, &pl.prefill
}

// heat returns the temperature of the pick.
func (p *Pool) heat(q *Query) float64 {
	if q.Override != nil && q.Override.Temperature != nil {
		return *q.Override.Temperature
	}
	return p.options.Temperature
}

// pays says whether a prefill worker is worth the hand-over. That is a question of
// time, also for policies whose prices are something else.
func (pl *placer) pays(p *Pool, q *Query, tokens int) bool {
	prompt := cost.Prompt{Tokens: tokens}
	for i, g := range [...]*group{&pl.whole, &pl.prefill, &pl.decode} {
		pl.three[i] = g.priced[g.best]
		if !policies[p.options.Policy].timed {
			prompt.Leg = g.leg
			priceByTime(p, q.Override, q.Now, prompt, pl.three[i:i+1])
		}
	}
	prompt.Leg = cost.Whole
	_, pays := p.options.Predict.Handed(prompt, &pl.three[0], &pl.three[1], &pl.three[2], pl.whole.waits(q), pl.prefill.waits(q))
	return pays
}

// waits is how long the prompts in the central queue keep each engine of the group
// busy, where the cheapest of these has no room now; else 0.
func (g *group) waits(q *Query) time.Duration {
	if g.candidates[g.best].open {
		return 0
	}
	return q.ahead / time.Duration(max(g.eligible, 1))
}

// meet fills in what the candidates of a group hold of the prompt.
func (pl *placer) meet(g *group, x *kvindex.Index) {
	for first := range g.candidates {
		names := g.candidates[first].names
		if len(names) == 0 || g.met(first) {
			continue
		}
		for i := first; i < len(g.candidates); i++ {
			if s := &g.candidates[i]; s.cache != nil && sameNames(s.names, names) {
				pl.own(s.cache.ID(), int32(i)+1)
			}
		}
		pl.overlaps = x.Find(pl.overlaps[:0], names)
		for _, o := range pl.overlaps {
			if int(o.Worker) < len(pl.owner) && pl.owner[o.Worker] > 0 {
				g.priced[pl.owner[o.Worker]-1].Overlap = o
			}
		}
		for i := first; i < len(g.candidates); i++ {
			if s := &g.candidates[i]; s.cache != nil && sameNames(s.names, names) {
				pl.own(s.cache.ID(), 0)
			}
		}
	}
}

// met says whether a candidate before this one has blocks of the same size.
func (g *group) met(at int) bool {
	for i := range at {
		if sameNames(g.candidates[i].names, g.candidates[at].names) {
			return true
		}
	}
	return false
}

// sameNames says that both are the names of blocks of one size: a prompt has one
// array for each.
func sameNames(a, b []kvindex.Name) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

func (pl *placer) own(id, place int32) {
	for int(id) >= len(pl.owner) {
		pl.owner = append(pl.owner, 0)
	}
	pl.owner[id] = place
}

// shut says whether an engine that the request should go to is not open. It marks
// such an engine, so that whoever opens it wakes those in line.
func (pl *placer) shut(now time.Time, main, pre *group) bool {
	shut := false
	for _, g := range [...]*group{main, pre} {
		if g != nil && !g.candidates[g.best].open && g.candidates[g.best].rank.track.close(now, g.leg) {
			shut = true
		}
	}
	return shut
}

// shortest returns how long the prompt takes to compute on the candidate that
// holds most of it. The central queue goes by it.
func (pl *placer) shortest(tokens int) time.Duration {
	return cost.Shortest(tokens, pl.whole.priced, pl.prefill.priced)
}

// expire drops what is predicted no longer, once a second.
func (pl *placer) expire(x *kvindex.Index, now time.Time) {
	last := pl.expired.Load()
	if now.UnixNano()-last >= int64(time.Second) && pl.expired.CompareAndSwap(last, now.UnixNano()) {
		x.Expire(now)
	}
}
