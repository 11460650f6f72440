// News: what routers before the same workers have to know of each other's placements.

package kvroute

import (
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// NewsKind is what News is about.
type NewsKind uint8

// The kinds.
const (
	LegPlaced NewsKind = iota // a leg of a request was sent to Worker: Away
	LegTokens                 // its answer has Away.Generated tokens
	LegEnded                  // it is over
	SlotsUsed                 // Worker.Active is another one than it was
	FoundSick                 // Worker was ejected, or is down
	LineWaits                 // the request in line for Model that has waited longest does since Since
)

// News is one thing that other routers before the same workers have to know. The first
// three kinds come in this order for each ID, and only from policies with prices.
type News struct {
	Kind   NewsKind
	ID     uint64 // of the leg, from 1; no other leg has it
	Worker *Worker
	Away   Away

	Model string
	Since time.Time // zero: none waits
}

// Away is a leg of a request as other routers have to know it.
type Away struct {
	Rank      int // -1: the worker has but one
	Leg       cost.Leg
	Prompt    int  // tokens
	Hit       int  // of them, those that need not be computed
	Generated int  // tokens of the answer so far
	BlockSize int  // tokens of a block of the engine; 0: not known
	Exact     bool // Names are of the engine's own blocks, not of text

	// Names are of the prompt's full blocks. In News they are its placement's, and not to be kept.
	Names []kvindex.Name
}

// tokensApart is after how many tokens others are told again how long an answer is. In
// between each of them predicts it, as the engine has the same passes for all.
const tokensApart = 256

func tellsTokens(before, now int) bool { return before == 0 || before/tokensApart != now/tokensApart }

func (l *leg) tellPlaced(news func(News) bool, r *rank, a *Away) {
	id := r.worker.line.Load().legs.Add(1)
	if news(News{Kind: LegPlaced, ID: id, Worker: r.worker, Away: *a}) {
		l.news, l.told = news, id
	}
}

func (l *leg) tellTokens(generated int) {
	l.news(News{Kind: LegTokens, ID: l.told, Away: Away{Generated: generated}})
}

func (l *leg) tellEnded() { l.news(News{Kind: LegEnded, ID: l.told}) }

func (w *Worker) tellSlots() { w.tell(SlotsUsed) }

func (w *Worker) tellSick() { w.tell(FoundSick) }

func (w *Worker) tell(kind NewsKind) {
	if l := w.line.Load(); l != nil && l.news != nil {
		l.news(News{Kind: kind, Worker: w})
	}
}

// underWay is how many requests are under way there, of all routers.
func (w *Worker) underWay() int64 { return w.active.Load() + w.away.Load() }

// Suspect notes that another router has found the worker dead. Here the next failure, of a
// request, ejects it; a success clears it of all. No more than that, as it may be the other
// router that is cut off.
func (w *Worker) Suspect(now time.Time) { w.change(now, (*health).suspect) }

// Followed is a leg that another router has under way at a worker of this one.
type Followed struct {
	worker *Worker
	leg    leg
}

// rankOf is the rank that a leg is at; nil: the worker has no such rank, or is in no pool yet.
func (w *Worker) rankOf(a *Away) *rank {
	ranks := w.ranks()
	at := max(a.Rank, 0)
	if at >= len(ranks) || a.Rank >= 0 != (len(ranks) > 1) {
		return nil
	}
	return ranks[at]
}

// Knows says whether all that a leg is can be counted at the worker: it has the rank, and blocks of
// that size. If not, Follow is to be called anew once it does: facts of an engine come late.
func (w *Worker) Knows(a *Away) bool {
	r := w.rankOf(a)
	return r != nil && (len(a.Names) == 0 || a.BlockSize == r.blockSize())
}

// Follow counts a leg of another router's request in what is known of the worker, until End;
// nil: the worker has no such rank, or is in no pool yet. It keeps a.Names. A Followed is not for
// concurrent use.
func (w *Worker) Follow(now time.Time, a *Away) *Followed {
	r := w.rankOf(a)
	if r == nil {
		return nil
	}
	names := a.Names
	if a.BlockSize != r.blockSize() {
		names = nil
	}
	f := &Followed{worker: w}
	// Whatever it says of its tokens comes late, and not with each pass.
	f.leg.send(now, r, cost.Sent{Prompt: a.Prompt, Hit: a.Hit, Leg: a.Leg, Quiet: true, Names: names})
	pl := &w.line.Load().placer
	pl.mu.Lock() // for rank.texts
	f.leg.noteSent(r, a.Leg, a.Exact, names, now)
	pl.mu.Unlock()
	f.Tokens(now, a.Generated)
	return f
}

// Tokens notes that its answer has so many tokens by now; 0: none yet.
func (f *Followed) Tokens(now time.Time, generated int) {
	t := f.leg.track
	t.mu.Lock()
	t.mirror.Heard(f.leg.request, now, generated)
	opened := t.opened(now)
	t.mu.Unlock()
	if opened {
		f.worker.wake()
	}
}

// End notes that it is over. The second time it does nothing.
func (f *Followed) End(now time.Time) {
	if f.leg.end(now) {
		f.worker.wake()
	}
}
