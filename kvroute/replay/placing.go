// Placing: the pool of the proxy over the engines of a replay, and what they tell it.

package replay

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
	"kvasir/kvroute/peering"
	"kvasir/sim"
)

// model is what all requests of a replay ask for.
const model = "m"

// placing is the pool of one router, and what it placed.
type placing struct {
	exchange *peering.Exchange // with the other routers; nil: they do not know of each other
	flushes  time.Duration     // when it is to say what is new; never: there is nothing

	pool    *kvroute.Pool
	options kvroute.PoolOptions
	workers []*kvroute.Worker // by number of the engine, which is their Peer
	index   *kvindex.Index
	placed  []placed      // of those who waited, not on their way yet
	alarm   time.Duration // when the pool is to be rung; never: not before it says so
	events  bool          // the policy asks what engines hold
	refused int           // blocks that the index did not take: they follow one that is not known
	hashes  []uint64      // to use again
	names   []kvindex.Name
}

// placed is what a request got that waited in the pool.
type placed struct {
	job *job
	at  kvroute.Placement
	err error
}

// newPlacing makes the pool of a router as the proxy does, but for its clock and for what is drawn at random.
func newPlacing(f *fleet, number int) (*placing, error) {
	policy, err := kvroute.ParsePolicy(f.options.Policy)
	if err != nil {
		return nil, err
	}
	p := &placing{
		// Blocks that went while those behind them stay count as held, so there may be more than the pools have.
		index: kvindex.New(kvindex.Options{MaxBlocks: 4 * f.options.most() * f.options.Blocks}),
		alarm: never, flushes: never, events: policy.Priced(),
	}
	if f.options.Replicas > 1 && f.options.Sync >= 0 {
		p.exchange = newExchange(f, p, number)
	}
	for n := range f.engines {
		p.workers = append(p.workers, f.newWorker(n, strconv.Itoa(n)))
	}
	p.options = kvroute.PoolOptions{
		Workers: p.workers, Policy: policy, Index: p.index, KV: f.options.KV, Predict: f.options.Predict, Temperature: f.options.Temperature,
		Disaggregate: f.options.Disaggregate, CentralQueue: f.options.Queue, MaxQueued: math.MaxInt,
		Random: rand.New(rand.NewPCG(f.options.Seed, 0x6b766173+uint64(number))).Uint64, //nolint:gosec // the same seed, the same replay
		Now:    f.time,
		Alarm: func(at time.Time) {
			if p.alarm = never; !at.IsZero() {
				p.alarm = at.Sub(epoch)
			}
		},
	}
	if p.exchange != nil {
		p.options.News = p.exchange.Tell
		p.exchange.SetWorkers(f.time(), p.keyed())
	}
	p.pool = kvroute.NewPool(p.options)
	return p, p.indexed()
}

// newWorker makes the worker that engine n is to placement.
func (f *fleet) newWorker(n int, name string) *kvroute.Worker {
	w := kvroute.NewWorker(name, f.role(n), 0)
	w.Peer = n
	w.SetEngine(kvroute.EngineFacts{
		BlockSize: f.options.BlockSize, Blocks: f.options.Blocks, MaxBatchedTokens: f.options.MaxBatchedTokens, MaxSeqs: f.options.MaxSeqs, Events: true,
	})
	w.SetModels([]kvroute.Model{{Name: model}})
	w.ProbeOK(f.time())
	return w
}

// place places a job, or lets it wait in the pool.
func (f *fleet) place(j *job) error {
	j.prompt = kvroute.NamedPrompt(j.request.PromptTokens, f.options.BlockSize, j.names)
	q := kvroute.Query{Now: f.time(), Model: model, Prompt: &j.prompt}
	p := f.router()
	at, err := p.pool.Place(q)
	if errors.Is(err, kvroute.ErrFull) {
		p.pool.Enter(q, func(at kvroute.Placement, err error) {
			p.placed = append(p.placed, placed{j, at, err})
		})
		return nil
	}
	return f.send(j, at, err)
}

// sendPlaced sends those on their way that waited in the pool and have a place now.
func (f *fleet) sendPlaced() error {
	for _, p := range f.routers {
		for i := 0; i < len(p.placed); i++ {
			one := p.placed[i]
			if err := f.send(one.job, one.at, one.err); err != nil {
				return err
			}
		}
		clear(p.placed)
		p.placed = p.placed[:0]
	}
	return nil
}

// ring lets the pool look at the engines where it asked for that by now.
func (p *placing) ring(now time.Duration) {
	if p.alarm <= now {
		p.alarm = never
		p.pool.Ring()
	}
}

// feed takes in what a pass of an engine removed and stored: one event for a run of a sequence's blocks, as engines
// publish them.
func (p *placing) feed(engine int, pass *sim.Pass) {
	if !p.events {
		return
	}
	w := p.workers[engine].Cache(0)
	if w == nil { // it drains: nobody asks any more
		return
	}
	if len(pass.Removed) > 0 {
		w.Remove(kvindex.Device, pass.Removed)
	}
	for run := pass.Stored; len(run) > 0; {
		n := 1
		for n < len(run) && run[n].Sequence == run[0].Sequence && run[n].Index == run[0].Index+n {
			n++
		}
		p.store(w, run[0].Sequence, run[0].Index, n)
		run = run[n:]
	}
}

func (p *placing) store(w *kvindex.Worker, s *sim.Sequence, first, n int) {
	j := s.Owner.(*job)
	p.hashes, p.names = slices.Grow(p.hashes[:0], n), slices.Grow(p.names[:0], n)
	for i := first; i < first+n; i++ {
		hash := s.Hash(i)
		p.hashes = append(p.hashes, hash)
		if i < len(j.names) {
			p.names = append(p.names, j.names[i])
		} else {
			// No trace says what the tokens of answers were, and no prompt repeats them.
			p.names = append(p.names, kvindex.Name(max(1, hash)))
		}
	}
	e := kvindex.Stored{Hashes: p.hashes, Names: p.names, BlockSize: w.BlockSize()}
	if first > 0 {
		e.Chain, e.Parent = true, s.Hash(first-1)
	}
	// A second copy of a block has no name; the block behind it follows one that may have been evicted elsewhere.
	if w.Store(e) != nil {
		p.refused += n
	}
}
