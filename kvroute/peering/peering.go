// Exchange: what this router has told and what it has heard, in one value.

// Package peering is what several routers before the same workers tell each other, so that
// each prices with everybody's load: which legs of requests are under way where, with the
// blocks of their prompts, how many slots are in use, who has waited longest, which workers were
// found dead, what API keys have used, and which answers are being made.
//
//	x := peering.New(peering.Options{Name: "host-a", Ready: wake})
//	pool := kvroute.NewPool(kvroute.PoolOptions{News: x.Tell, ...})
//	x.SetWorkers(map[uint64]*kvroute.Worker{peering.Key("http://10.0.0.5:8000"): w})
//	for _, message := range x.Flush(now) { ... }  // after Ready, to all others
//	err := x.Take(now, message)                   // of another one
//	x.Tick(now)                                   // each Heartbeat
//
// It does no I/O and reads no clock: bytes come in and go out, and what is heard is told the
// workers (kvroute.Worker.Follow). Package peers carries the bytes over NATS, kvroute/replay
// in virtual time.
//
// It is lossy by design. Messages are numbered; whoever misses one, or hears of a router for
// the first time, asks for a snapshot, and goes on with what it has until that comes. A router
// that is silent for Silent is forgotten with all that it had under way. Nothing here waits
// for anybody.
package peering

import (
	"errors"
	"time"

	"github.com/zeebo/xxh3"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
)

const (
	// Heartbeat is how often Tick is to be called; each sends a message, if it is an empty one.
	Heartbeat = time.Second

	// Silent is how long a router may be silent before it is forgotten.
	Silent = 3 * Heartbeat

	// Gather is how long messages are to be gathered before Flush, after Ready.
	Gather = 2 * time.Millisecond
)

// Bounds of what is kept, and of what is taken from others.
const (
	MaxMessage = 256 << 10 // bytes
	maxPeers   = 256
	maxLegs    = 1 << 16 // under way here, and of all others together
	maxNames   = 1 << 22 // of blocks of these
	maxExpand  = 1 << 17 // names that the copies of one message stand for; legs are taken without more
	maxPending = 1 << 14 // news until the next Flush
	maxBlocks  = 1 << 14 // blocks of one prompt that are told of, the first ones
	maxName    = 64      // bytes of a router's name
	maxSpent   = 1 << 14 // accounts of API keys, of each router
	maxWaits   = 1 << 10 // models that requests wait for, of each router
	maxPaces   = 1 << 12 // workers' ranks of which others have learned the pace
	maxMaking  = 1 << 12 // answers that each router makes
	maxMakings = 1 << 15 // and all of them together
)

// Options are what an Exchange is told at its start.
type Options struct {
	ID   uint64 // of this router; no other one has it, nor has this one after a restart
	Name string // for people

	// Ready is called when there is something to Flush, once until that is called. It must not
	// wait, nor call the Exchange.
	Ready func()

	// Spent is told what other routers have let an account use: Spend of theirs. nil: nobody
	// wants to know. It must not call the Exchange.
	Spent func(now time.Time, account uint64, amount float64)

	// Known is told of a router that is heard for the first time, and of one that is forgotten.
	// nil: nobody wants to know. It must not call the Exchange.
	Known func(name string, known bool)
}

// An Exchange is one router's side. Tell and Spend may be called at any time by anybody; so may
// all others, which take turns.
type Exchange struct {
	options Options
	out     sender
	in      hearer

	elsewhere makings
}

// New returns an Exchange that has heard of nobody.
func New(o Options) *Exchange {
	o.Name = o.Name[:min(len(o.Name), maxName)]
	x := &Exchange{options: o}
	x.out.init()
	x.in.peers = map[uint64]*peer{}
	x.in.workers = map[uint64]*kvroute.Worker{}
	x.in.away = map[uint64]int{}
	x.in.gone = map[uint64]gone{}
	x.in.waits = map[uint64]time.Time{}
	x.in.paces = map[pacer]cost.Timing{}
	x.elsewhere.known = map[uint64]*Elsewhere{}
	return x
}

// Key is what a worker is called between routers, by its URL in canonical form, or a model, by its
// name.
func Key(name string) uint64 { return xxh3.HashString(name) }

// Take's errors. Each is about the message alone: others are taken nevertheless.
var (
	ErrVersion   = errors.New("the message is of another version of Kvasir")
	ErrMalformed = errors.New("the message is malformed")
	ErrStale     = errors.New("the message is older than one that was taken before")
	ErrTooMany   = errors.New("too many routers are known already")
)

// Stats is what an Exchange has done.
type Stats struct {
	Peers     []string // names of the routers that are known, sorted
	Legs      int      // that others have under way here
	Making    int      // answers that others make
	Dropped   uint64   // news that were not told, because too many waited
	Gaps      uint64   // messages of others that were missed
	Snapshots uint64   // that were sent
	Ignored   uint64   // legs of others at workers that are not known here
}

// Stats returns what it has done so far.
func (x *Exchange) Stats() Stats {
	s := x.in.stats()
	x.out.mu.Lock()
	defer x.out.mu.Unlock()
	s.Dropped, s.Snapshots = x.out.dropped, x.out.snapshots
	return s
}

// Peers returns how many other routers are known.
func (x *Exchange) Peers() int { return int(x.in.known.Load()) }

// SetWorkers says which workers are served now, by Key. What others have under way at workers
// that are new here counts from now on.
func (x *Exchange) SetWorkers(now time.Time, workers map[uint64]*kvroute.Worker) {
	x.out.setWorkers(workers)
	x.in.setWorkers(now, workers)
}
