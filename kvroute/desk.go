// Desk: where requests are placed by price.

package kvroute

import (
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// A desk places one request after the other, so that each sees what the one
// before it added. Its memory is used again for each.
type desk struct {
	mu       sync.Mutex // guards below but for expired; taken after line.mu, before a tracker's
	whole    group
	decode   group
	prefill  group
	overlaps []kvindex.Overlap
	owner    []int32 // by kvindex ID: place in the group under way, and 1; 0: not in it
	three    [3]cost.Candidate

	expired atomic.Int64 // when the index last dropped what is predicted no longer; Unix nanoseconds
}

// A group is the candidates for one leg.
type group struct {
	leg    cost.Leg
	seats  []seat
	priced []cost.Candidate // of the seats
	open   int              // so many may be chosen; the others are aside
	best   int              // the one to take
}

// A seat is where a request could go.
type seat struct {
	rank  *rank
	open  bool            // its engine's next pass has room
	aside bool            // others are preferred
	size  int             // tokens of a block; 0: not known
	cache *kvindex.Worker // to look for the prompt's blocks; nil: none
	names []kvindex.Name  // of them
}

// place chooses by price, and takes the slots.
func (d *desk) place(p *Pool, f *field, q *Query) (Placement, error) {
	f.name(q.Prompt)
	d.expire(p.line.index, q.Now)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		at, err := d.seat(f, q)
		if err != nil {
			return Placement{}, err
		}
		if at.Worker = d.choose(p, q); at.Worker == nil {
			continue // a slot has become free, or was taken
		}
		main, pre := d.chosen()
		if p.central && at.Why == "" && len(q.Tried) == 0 && d.shut(q.Now, main, pre) {
			q.prefill = d.shortest(q.tokens())
			return Placement{}, ErrFull
		}
		if pre != nil {
			at.Prefill = pre.seats[pre.best].rank.worker
		}
		if !at.acquire() {
			continue
		}
		if at.Why == "" {
			at.Why = f.why(policies[p.policy].name, q)
		}
		d.book(p, &at, q, main, pre)
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
	f, err := p.field(s, q)
	if err != nil {
		return
	}
	f.name(q.Prompt)
	d := &p.line.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reset()
	for _, w := range f.prefills {
		d.prefill.add(w, q, q.Pin.PrefillRanked, q.Pin.PrefillRank)
	}
	for _, w := range f.workers {
		d.seatWorker(&f, w, q)
	}
	d.passOver()
	d.choose(p, q)
	q.prefill = d.shortest(q.tokens())
}

// name makes the names of the prompt's blocks, before anybody has to wait for that.
func (f *field) name(prompt *Prompt) {
	if prompt == nil {
		return
	}
	last := 0
	for _, workers := range [2][]*Worker{f.workers, f.prefills} {
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

func (d *desk) reset() {
	d.whole.reset(cost.Whole)
	d.decode.reset(cost.DecodeLeg)
	d.prefill.reset(cost.PrefillLeg)
}

// seat finds the candidates for each leg. An empty Why says that nothing speaks
// against them.
func (d *desk) seat(f *field, q *Query) (at Placement, err error) {
	d.reset()
	if err := d.seatHelpers(f, q); err != nil {
		return at, err
	}
	for _, w := range f.workers {
		if open(w, q.Tried, q.Now) {
			d.seatWorker(f, w, q)
		}
	}
	if len(d.whole.seats) == 0 && len(d.decode.seats) == 0 {
		if at, err = makeDo(f.workers, q.Tried, q.Strict, q.Now); err == nil && at.Worker != nil {
			d.seatWorker(f, at.Worker, q)
		}
	}
	d.passOver()
	return at, err
}

// passOver leaves those that are aside to be shown only, where there are others:
// for a prompt also a worker that computes it itself.
func (d *desk) passOver() {
	alone := d.whole.open
	passOver(0, &d.whole, &d.decode)
	passOver(alone, &d.prefill)
}

func passOver(others int, groups ...*group) {
	for _, g := range groups {
		others += g.open
	}
	for _, g := range groups {
		switch {
		case others == 0:
			g.open = len(g.seats)
		case g.open < len(g.seats):
			for i := range g.seats {
				g.priced[i].Aside = g.seats[i].aside
			}
		}
	}
}

// seatHelpers finds the prefill workers.
func (d *desk) seatHelpers(f *field, q *Query) error {
	for _, w := range f.prefills {
		if open(w, q.TriedPrefill, q.Now) {
			d.prefill.add(w, q, q.Pin.PrefillRanked, q.Pin.PrefillRank)
		}
	}
	if len(d.prefill.seats) > 0 || !f.must && !f.some {
		return nil
	}
	w, err := f.anyHelper(q)
	if err != nil {
		return f.alone(err)
	}
	d.prefill.add(w, q, q.Pin.PrefillRanked, q.Pin.PrefillRank)
	return nil
}

func (d *desk) seatWorker(f *field, w *Worker, q *Query) {
	if f.whole(w) {
		d.whole.add(w, q, q.Pin.Ranked, q.Pin.Rank)
	}
	if len(d.prefill.seats) > 0 && f.helped(w) {
		d.decode.add(w, q, q.Pin.Ranked, q.Pin.Rank)
	}
}

func (g *group) reset(leg cost.Leg) {
	clear(g.seats) // it holds on to no worker that has left
	g.leg, g.seats, g.priced, g.open, g.best = leg, g.seats[:0], g.priced[:0], 0, -1
}

// add adds each rank of a worker, or the one that is named.
func (g *group) add(w *Worker, q *Query, ranked bool, rank int) {
	ranks := w.ranks()
	if ranked {
		// field saw to it that there is this one. Should the engine have got other
		// ranks since, it refuses the rank itself.
		at := min(rank, len(ranks)-1)
		ranks = ranks[at : at+1]
	}
	aside := w.aside()
	if !aside {
		g.open += len(ranks)
	}
	for _, r := range ranks {
		s := seat{rank: r, aside: aside}
		g.priced = append(g.priced, cost.Candidate{})
		c := &g.priced[len(g.priced)-1]
		s.know(q.Prompt, c)
		s.open = r.track.look(q.Now, g.leg, s.names, c)
		g.seats = append(g.seats, s)
	}
}

// know notes where the prompt's blocks are looked for.
func (s *seat) know(prompt *Prompt, c *cost.Candidate) {
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

// choose prices the groups and says which worker the request goes to, and by
// group.best whether by a prefill worker. nil: there is none.
func (d *desk) choose(p *Pool, q *Query) *Worker {
	tokens := q.tokens()
	for _, g := range [...]*group{&d.whole, &d.decode, &d.prefill} {
		if len(g.seats) == 0 {
			continue
		}
		d.meet(g, p.line.index)
		p.price(q, cost.Prompt{Tokens: tokens, Leg: g.leg}, g.priced)
		if g.open > 0 {
			g.best = cost.Choose(g.priced, p.heat(q), p.random)
		}
	}
	w, a, b := &d.whole, &d.decode, &d.prefill
	switch {
	case w.best < 0 && a.best < 0:
		return nil
	case w.best < 0:
		return a.seats[a.best].rank.worker
	case a.best < 0 || b.best < 0 || !d.pays(p, q, tokens):
		a.best, b.best = -1, -1
		return w.seats[w.best].rank.worker
	}
	w.best = -1
	return a.seats[a.best].rank.worker
}

// chosen returns the group that the worker was chosen from, and that of the
// prefill worker; nil: none.
func (d *desk) chosen() (main, pre *group) {
	if d.whole.best >= 0 {
		return &d.whole, nil
	}
	return &d.decode, &d.prefill
}

// price fills in the prices by the pool's policy.
func (p *Pool) price(q *Query, prompt cost.Prompt, c []cost.Candidate) {
	if p.policy == Predict {
		p.predict.Price(q.Now, prompt, c)
		return
	}
	kv := p.kv
	if o := q.Override; o != nil {
		if o.Credit != nil {
			kv.DeviceCredit = *o.Credit
		}
		if o.Scale != nil {
			kv.PrefillLoadScale = *o.Scale
		}
	}
	kv.Price(q.Now, prompt, c)
}

// heat returns the temperature of the choice.
func (p *Pool) heat(q *Query) float64 {
	if q.Override != nil && q.Override.Temperature != nil {
		return *q.Override.Temperature
	}
	return p.temperature
}

// pays says whether a prefill worker is worth the hand-over. That is a question of
// time, also for the policy KV, whose prices are blocks.
func (d *desk) pays(p *Pool, q *Query, tokens int) bool {
	prompt := cost.Prompt{Tokens: tokens}
	for i, g := range [...]*group{&d.whole, &d.prefill, &d.decode} {
		d.three[i] = g.priced[g.best]
		if p.policy != Predict {
			prompt.Leg = g.leg
			p.predict.Price(q.Now, prompt, d.three[i:i+1])
		}
	}
	prompt.Leg = cost.Whole
	_, pays := p.predict.Handed(prompt, &d.three[0], &d.three[1], &d.three[2], d.whole.waits(q), d.prefill.waits(q))
	return pays
}

// waits is how long those in the central queue keep engines busy of which the
// cheapest has no room now.
func (g *group) waits(q *Query) time.Duration {
	if g.seats[g.best].open {
		return 0
	}
	return q.ahead / time.Duration(max(g.open, 1))
}

// meet fills in what the candidates of a group hold of the prompt.
func (d *desk) meet(g *group, x *kvindex.Index) {
	for first := range g.seats {
		names := g.seats[first].names
		if len(names) == 0 || g.met(first) {
			continue
		}
		for i := first; i < len(g.seats); i++ {
			if s := &g.seats[i]; s.cache != nil && sameNames(s.names, names) {
				d.own(s.cache.ID(), int32(i)+1)
			}
		}
		d.overlaps = x.Find(d.overlaps[:0], names)
		for _, o := range d.overlaps {
			if int(o.Worker) < len(d.owner) && d.owner[o.Worker] > 0 {
				g.priced[d.owner[o.Worker]-1].Overlap = o
			}
		}
		for i := first; i < len(g.seats); i++ {
			if s := &g.seats[i]; s.cache != nil && sameNames(s.names, names) {
				d.own(s.cache.ID(), 0)
			}
		}
	}
}

// met says whether a seat before this one has blocks of the same size.
func (g *group) met(at int) bool {
	for i := range at {
		if sameNames(g.seats[i].names, g.seats[at].names) {
			return true
		}
	}
	return false
}

// sameNames says that both are the names of blocks of one size: a prompt has one
// array for each.
func sameNames(a, b []kvindex.Name) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

func (d *desk) own(id, place int32) {
	for int(id) >= len(d.owner) {
		d.owner = append(d.owner, 0)
	}
	d.owner[id] = place
}

// shut says whether an engine that the request should go to is not open, and
// sees to it that who opens it wakes those in line.
func (d *desk) shut(now time.Time, main, pre *group) bool {
	shut := false
	for _, g := range [...]*group{main, pre} {
		if g != nil && !g.seats[g.best].open && g.seats[g.best].rank.track.close(now, g.leg) {
			shut = true
		}
	}
	return shut
}

// shortest returns how long the prompt takes to compute on the candidate that
// holds most of it: what the central queue goes by.
func (d *desk) shortest(tokens int) time.Duration {
	return cost.Shortest(tokens, d.whole.priced, d.prefill.priced)
}

// expire drops what is predicted no longer, once a second.
func (d *desk) expire(x *kvindex.Index, now time.Time) {
	last := d.expired.Load()
	if now.UnixNano()-last >= int64(time.Second) && d.expired.CompareAndSwap(last, now.UnixNano()) {
		x.Expire(now)
	}
}
