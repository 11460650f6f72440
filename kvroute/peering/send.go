// Sending: what is told to the others, gathered and written into messages.

package peering

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// snapshotApart is how far apart two snapshots are at least, whoever asks for them.
const snapshotApart = time.Second

// A sender gathers news between two calls of Flush, and knows what is under way.
type sender struct {
	mu        sync.Mutex // guards what follows; held for moments only
	events    []event    // in order
	names     []kvindex.Name
	workers   map[*kvroute.Worker]*slots
	slots     map[uint64]*slots // those of workers, by key
	used      []*slots          // whose number is perhaps another one than was told
	accounts  map[uint64]*account
	spent     []*account
	unused    []uint64             // accounts that were dropped
	waits     map[uint64]time.Time // since when the first in line for a model waits
	waiting   []uint64             // models for which that is perhaps another one than was told
	mark      int                  // of accounts' marks, the newest
	markedAt  time.Time
	making    map[uint64]int // answers that are being made here, and by how many
	made      []made         // their beginnings and ends
	legs      int            // that were told of, and have not ended
	pending   bool
	want      bool     // somebody wants a snapshot
	asks      []uint64 // of whom one is wanted
	leaving   bool
	dropped   uint64
	snapshots uint64

	flushing   sync.Mutex // guards what follows; taken before mu
	open       map[uint64]*open
	openNames  int // of all of them
	packer     packer
	seq        uint64
	snapshotAt time.Time
	pages      [][]byte // memory of messages
	page       int
	spare      []event
	spareNames []kvindex.Name
	free       []*open
	rest       rest
}

// An event is News, with its names apart.
type event struct {
	kind     kvroute.NewsKind
	id       uint64
	worker   uint64
	away     kvroute.Away
	from, to int // its names
}

// slots is what is told of a worker as such. While one that was changed has streams yet, its key
// has two.
type slots struct {
	key     uint64
	workers []*kvroute.Worker
	here    *kvroute.Worker // the one that is served now; nil: none
	dirty   bool            // in used
	told    int
}

// active is how many requests are under way at all of them.
func (w *slots) active() (n int) {
	for _, one := range w.workers {
		n += one.Active()
	}
	return n
}

// Sums of accounts are noted each markApart, so that it is known what is of the last minute, which is
// what a limit a minute remembers. One that is not used for that long is dropped.
const (
	markApart = 10 * time.Second
	marks     = 6
)

// An account is what an API key has used here.
type account struct {
	key   uint64
	sum   float64
	marks [marks]float64 // sums as they were, at sender.mark the newest
	quiet int            // marks since it was used
	dirty bool           // in spent
}

// lately is what of the sum is of the last minute, or at least of its last 50 s.
func (a *account) lately(mark int) float64 { return max(a.sum-a.marks[(mark+1)%marks], 0) }

// note notes the sums of the accounts when it is time for it. It is called with mu held.
func (s *sender) note(now time.Time) {
	if now.Sub(s.markedAt) < markApart {
		return
	}
	s.markedAt = now
	s.mark = (s.mark + 1) % marks
	for key, a := range s.accounts {
		if a.quiet++; a.quiet > marks && !a.dirty {
			delete(s.accounts, key)
			s.unused = append(s.unused, key)
			continue
		}
		a.marks[s.mark] = a.sum
	}
}

// An open leg is one that has not ended.
type open struct {
	worker uint64
	away   kvroute.Away
}

func (s *sender) init() {
	s.workers, s.accounts, s.open = map[*kvroute.Worker]*slots{}, map[uint64]*account{}, map[uint64]*open{}
	s.slots, s.packer = map[uint64]*slots{}, newPacker()
	s.waits, s.making = map[uint64]time.Time{}, map[uint64]int{}
}

func (s *sender) setWorkers(workers map[uint64]*kvroute.Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.slots {
		w.here = nil
	}
	for key, worker := range workers {
		w := s.slots[key]
		if w == nil {
			w = &slots{key: key}
			s.slots[key] = w
		}
		w.here = worker
		if s.workers[worker] == w {
			continue
		}
		if before := s.workers[worker]; before != nil { // it goes by another key now
			before.workers = slices.DeleteFunc(before.workers, func(one *kvroute.Worker) bool { return one == worker })
			s.use(before)
		}
		w.workers = append(w.workers, worker)
		s.workers[worker] = w
		s.use(w)
	}
	for _, w := range s.slots {
		if !w.dirty {
			s.prune(w)
		}
	}
}

// use has the next Flush look at how many slots are used.
func (s *sender) use(w *slots) {
	if !w.dirty {
		w.dirty = true
		s.used = append(s.used, w)
	}
}

// prune drops workers that are not served any more, once they have nothing under way.
func (s *sender) prune(w *slots) {
	w.workers = slices.DeleteFunc(w.workers, func(one *kvroute.Worker) bool {
		over := one != w.here && one.Active() == 0
		if over {
			delete(s.workers, one)
		}
		return over
	})
	if len(w.workers) == 0 && w.told == 0 {
		delete(s.slots, w.key)
	}
}

// Tell takes what a pool says: kvroute.PoolOptions.News.
func (x *Exchange) Tell(n kvroute.News) bool {
	s := &x.out
	s.mu.Lock()
	taken := s.tell(&n)
	first := taken && !s.pending
	s.pending = s.pending || taken
	s.mu.Unlock()
	if first && x.options.Ready != nil {
		x.options.Ready()
	}
	return taken
}

func (s *sender) tell(n *kvroute.News) bool {
	if n.Kind == kvroute.LineWaits {
		return s.wait(Key(n.Model), n.Since)
	}
	e := event{kind: n.Kind, id: n.ID, away: n.Away}
	e.away.Names = nil
	if n.Worker != nil {
		w := s.workers[n.Worker]
		if w == nil {
			return false
		}
		if n.Kind == kvroute.SlotsUsed {
			s.use(w)
			return true
		}
		e.worker = w.key
	}
	switch n.Kind {
	case kvroute.LegEnded: // must not get lost; there are no more of them than legs
		s.legs--
	case kvroute.LegPlaced:
		if s.legs >= maxLegs || len(s.events) >= maxPending || len(s.names) >= maxNames/4 {
			s.dropped++
			return false
		}
		s.legs++
		names := n.Away.Names[:min(len(n.Away.Names), maxBlocks)]
		e.from = len(s.names)
		s.names = append(s.names, names...)
		e.to = len(s.names)
	default:
		if len(s.events) >= maxPending {
			s.dropped++
			return false
		}
	}
	s.events = append(s.events, e)
	return true
}

// wait has the next Flush say since when the first in line for a model waits; zero: nobody does.
func (s *sender) wait(model uint64, since time.Time) bool {
	if _, known := s.waits[model]; !known && len(s.waits) >= maxWaits {
		s.dropped++
		return false
	}
	s.waits[model] = since
	if !slices.Contains(s.waiting, model) {
		s.waiting = append(s.waiting, model)
	}
	return true
}

// takeWaits takes what is to be told of those in line: how long they have waited by now.
func (s *sender) takeWaits(r *rest, now time.Time) {
	if r.snapshot {
		s.waiting = s.waiting[:0]
		for model := range s.waits {
			s.waiting = append(s.waiting, model)
		}
	}
	for _, model := range s.waiting {
		since, waited := s.waits[model], 0
		if since.IsZero() {
			delete(s.waits, model)
		} else {
			waited = 1 + int(min(max(now.Sub(since).Milliseconds(), 0), mostWaited-1))
		}
		r.waits = append(r.waits, keyed[int]{model, waited})
	}
	s.waiting = s.waiting[:0]
}

// Spend notes what an account has used here; negative: less than was noted before.
func (x *Exchange) Spend(key uint64, amount float64) {
	s := &x.out
	s.mu.Lock()
	a := s.accounts[key]
	if a == nil {
		if len(s.accounts) >= maxSpent {
			s.dropped++
			s.mu.Unlock()
			return
		}
		a = &account{key: key}
		s.accounts[key] = a
	}
	a.sum = max(a.sum+amount, 0) // what is given back may be of before it was dropped
	a.quiet = 0
	if !a.dirty {
		a.dirty = true
		s.spent = append(s.spent, a)
	}
	first := !s.pending
	s.pending = true
	s.mu.Unlock()
	if first && x.options.Ready != nil {
		x.options.Ready()
	}
}

// Leave has the next Flush say that this router stops.
func (x *Exchange) Leave() {
	x.out.mu.Lock()
	defer x.out.mu.Unlock()
	x.out.leaving = true
}

// Flush returns the messages that are to be sent to all others now, none if there is nothing to
// say. They are valid until the next Flush.
func (x *Exchange) Flush(now time.Time) [][]byte { return x.flush(now, false) }

// flush is Flush; always: a message is sent in any case.
func (x *Exchange) flush(now time.Time, always bool) [][]byte {
	s := &x.out
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.page = -1
	events, names := s.take()
	for i := range events {
		s.write(x, &events[i], names)
	}
	s.spare, s.spareNames = events[:0], names[:0]
	s.writeRest(x, s.takeRest(now))
	if always && s.page < 0 {
		s.room(x, 0)
	}
	return s.pages[:s.page+1]
}

// take takes the news that were gathered.
func (s *sender) take() ([]event, []kvindex.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, names := s.events, s.names
	s.events, s.names, s.pending = s.spare[:0], s.spareNames[:0], false
	return events, names
}

// room returns the message under way, a new one where n more bytes have no room in it.
func (s *sender) room(x *Exchange, n int) *[]byte {
	if s.page >= 0 && len(s.pages[s.page])+n <= MaxMessage {
		return &s.pages[s.page]
	}
	if s.page++; s.page == len(s.pages) {
		s.pages = append(s.pages, nil)
	}
	s.seq++
	s.pages[s.page] = appendHeader(s.pages[s.page][:0], x.options.ID, s.seq, s.packer.at)
	return &s.pages[s.page]
}

// mostFree is for how many legs memory is kept.
const mostFree = 1024

// entrySize is more than an entry without names takes.
const entrySize = 128

func (s *sender) write(x *Exchange, e *event, names []kvindex.Name) {
	switch e.kind {
	case kvroute.LegPlaced:
		o := s.newOpen()
		o.worker = e.worker
		kept := o.away.Names[:0]
		o.away = e.away
		o.away.Names = names[e.from:e.to]
		s.writePlaced(x, e.id, o)
		if s.openNames+len(o.away.Names) > maxNames {
			o.away.Names = nil // a snapshot does without
		}
		o.away.Names = append(kept, o.away.Names...)
		s.openNames += len(o.away.Names)
		s.open[e.id] = o
	case kvroute.LegTokens:
		o := s.open[e.id]
		if o == nil {
			return
		}
		o.away.Generated = e.away.Generated
		m := s.room(x, entrySize)
		*m = binary.AppendUvarint(binary.AppendUvarint(append(*m, entryTokens), e.id), uint64(e.away.Generated))
	case kvroute.LegEnded:
		if o := s.open[e.id]; o != nil {
			delete(s.open, e.id)
			s.openNames -= len(o.away.Names)
			if len(s.free) < mostFree {
				s.free = append(s.free, o)
			}
			m := s.room(x, entrySize)
			*m = binary.AppendUvarint(append(*m, entryEnded), e.id)
		}
	case kvroute.FoundSick:
		m := s.room(x, entrySize)
		*m = appendKeyed(*m, entrySick, e.worker)
	}
}

func (s *sender) newOpen() *open {
	if n := len(s.free); n > 0 {
		o := s.free[n-1]
		s.free = s.free[:n-1]
		return o
	}
	return &open{}
}

func (s *sender) writePlaced(x *Exchange, id uint64, o *open) {
	m := s.room(x, entrySize+10*len(o.away.Names))
	*m = appendPlaced(*m, &s.packer, id, o.worker, &o.away)
}

// A rest is what is no event: numbers as they were at a moment, and what others asked for.
type rest struct {
	snapshot, leaving bool
	slots, waits      []keyed[int]
	spent             []spentSum
	unused            []uint64
	made              []made
	paced             []keyed[*kvroute.Worker]
	asks              []uint64
}

type spentSum struct {
	key         uint64
	sum, lately float64
}

type keyed[T any] struct {
	key uint64
	n   T
}

// takeRest takes what is to be written beside the events. Nothing is written here: whoever places
// waits for mu.
func (s *sender) takeRest(now time.Time) *rest {
	r := &s.rest
	r.slots, r.waits, r.spent, r.unused, r.asks = r.slots[:0], r.waits[:0], r.spent[:0], r.unused[:0], r.asks[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now)
	r.leaving = s.leaving
	clear(r.paced)
	r.paced = r.paced[:0]
	r.snapshot = s.want && now.Sub(s.snapshotAt) >= snapshotApart
	if r.snapshot {
		s.want, s.snapshotAt = false, now
		s.snapshots++
		s.used = s.used[:0]
		for _, w := range s.slots {
			s.used = append(s.used, w)
			w.told = 0
			if w.here != nil {
				r.paced = append(r.paced, keyed[*kvroute.Worker]{w.key, w.here})
			}
		}
		s.spent = s.spent[:0]
		for _, a := range s.accounts {
			s.spent = append(s.spent, a)
		}
	}
	for _, w := range s.used {
		w.dirty = false
		n := w.active()
		if n != w.told {
			r.slots = append(r.slots, keyed[int]{w.key, n})
			w.told = n
		}
		s.prune(w)
	}
	s.used = s.used[:0]
	for _, a := range s.spent {
		a.dirty = false
		r.spent = append(r.spent, spentSum{a.key, a.sum, a.lately(s.mark)})
	}
	s.spent = s.spent[:0]
	r.unused, s.unused = append(r.unused, s.unused...), s.unused[:0]
	s.takeWaits(r, now)
	s.takeMade(r)
	r.asks, s.asks = append(r.asks, s.asks...), s.asks[:0]
	return r
}

// writeRest writes it, without mu: the legs of a snapshot take a while.
func (s *sender) writeRest(x *Exchange, r *rest) {
	if r.snapshot {
		m := s.room(x, entrySize+maxName)
		*m = binary.AppendUvarint(append(*m, entrySnapshot), uint64(len(x.options.Name)))
		*m = append(*m, x.options.Name...)
		s.packer.restart()
		for _, id := range slices.Sorted(maps.Keys(s.open)) {
			s.writePlaced(x, id, s.open[id])
		}
	}
	s.writeNumbers(x, entryWaits, r.waits) // before the slots: whoever hears of a free one knows who is first
	s.writeNumbers(x, entrySlots, r.slots)
	slices.Sort(r.unused)
	for _, key := range r.unused { // before the sums: it may have been used again
		m := s.room(x, entrySize)
		*m = appendKeyed(*m, entryUnused, key)
	}
	slices.SortFunc(r.spent, func(a, b spentSum) int { return cmp.Compare(a.key, b.key) })
	for _, a := range r.spent {
		m := s.room(x, entrySize)
		if r.snapshot {
			*m = appendAmount(appendAmount(appendKeyed(*m, entryLately, a.key), a.sum), a.lately)
		} else {
			*m = appendAmount(appendKeyed(*m, entrySpent, a.key), a.sum)
		}
	}
	slices.SortFunc(r.paced, func(a, b keyed[*kvroute.Worker]) int { return cmp.Compare(a.key, b.key) })
	for _, w := range r.paced {
		w.n.Learned(func(rank int, t cost.Timing) {
			m := s.room(x, entrySize)
			*m = binary.AppendUvarint(appendKeyed(*m, entryPace, w.key), uint64(rank+1))
			for _, v := range slices.Concat(t.Prefill[:], t.Decode[:]) {
				*m = appendAmount(*m, v)
			}
		})
	}
	for _, one := range r.made {
		m := s.room(x, entrySize)
		if one.phase == 0 {
			*m = appendKeyed(*m, entryMaking, one.key)
		} else {
			*m = append(appendKeyed(*m, entryMade, one.key), byte(one.phase-1))
		}
	}
	if r.snapshot {
		m := s.room(x, entrySize)
		*m = append(*m, entryComplete)
	}
	for _, id := range r.asks {
		m := s.room(x, entrySize)
		*m = appendKeyed(*m, entryWant, id)
	}
	if r.leaving {
		m := s.room(x, entrySize)
		*m = append(*m, entryLeaving)
	}
}

func (s *sender) writeNumbers(x *Exchange, kind byte, all []keyed[int]) {
	slices.SortFunc(all, func(a, b keyed[int]) int { return cmp.Compare(a.key, b.key) })
	for _, one := range all {
		m := s.room(x, entrySize)
		*m = binary.AppendUvarint(appendKeyed(*m, kind, one.key), uint64(max(one.n, 0)))
	}
}

// ask has the next Flush ask a router for a snapshot.
func (x *Exchange) ask(id uint64) {
	s := &x.out
	s.mu.Lock()
	if !slices.Contains(s.asks, id) {
		s.asks = append(s.asks, id)
	}
	s.ready(x)
}

// wanted has the next Flush send a snapshot.
func (x *Exchange) wanted() {
	s := &x.out
	s.mu.Lock()
	s.want = true
	s.ready(x)
}

// ready unlocks, and says that there is something to send.
func (s *sender) ready(x *Exchange) {
	first := !s.pending
	s.pending = true
	s.mu.Unlock()
	if first && x.options.Ready != nil {
		x.options.Ready()
	}
}
