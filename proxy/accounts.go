// Accounts: what keys may use a minute, over all Kvasirs before the same workers.

package proxy

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"kvasir/kvroute"
	"kvasir/peers"
)

// Accounts are the limits of keys that other Kvasirs have, too: one bucket of a key's requests, and
// one of its tokens for each model. A nil one shares nothing.
//
//  1. What an account is called leads to a key and a model, not to a bucket: the bucket is that of the
//     newest generation's key, whatever was reloaded meanwhile.
//  2. What others let an account use that no key here has, or none yet, is owed for a minute or two: a
//     bucket that is made then begins with it, and one that was made before it was served pays with
//     the first generation that has it.
type accounts struct {
	p     *Proxy
	peers *peers.Peers

	mu     sync.Mutex // guards what follows; of other locks those of buckets alone are taken with it held
	names  map[uint64]account
	owed   [2]map[uint64]debt // of this minute, and of the one before
	minute time.Time          // when it began
}

// An account is of a key's requests where model is "", else of a model's tokens.
type account struct {
	digest [32]byte
	model  string
}

// A debt is what others let an account use, since it was first heard of.
type debt struct {
	amount float64
	since  time.Time
}

// maxOwed bounds the accounts of a minute that are not known here.
const maxOwed = 1 << 14

func newAccounts(p *Proxy, others *peers.Peers) *accounts {
	a := &accounts{p: p, peers: others, names: map[uint64]account{}}
	others.HearSpent(a.spent)
	return a
}

// accountOf is what the account of a key is called between Kvasirs: of its requests where model is
// "", else of a model's tokens.
func accountOf(digest *[32]byte, model string) uint64 {
	h := xxh3.New()
	_, _ = h.Write(digest[:])
	_, _ = h.WriteString(model)
	return h.Sum64()
}

// add makes a new bucket the one of an account, with what is owed.
func (a *accounts) add(b *kvroute.Bucket, digest *[32]byte, model string) {
	if a == nil {
		return
	}
	id := accountOf(digest, model)
	b.Share(&kvroute.Sharing{Others: a.peers.Others, Took: func(amount float64) { a.peers.Spend(id, amount) }})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names[id] = account{*digest, model}
	a.pay(b, id)
}

// pay has a bucket pay what its account owes. It is called with mu held.
func (a *accounts) pay(b *kvroute.Bucket, id uint64) {
	before, now := a.owed[1][id], a.owed[0][id]
	if !now.since.IsZero() && before.since.IsZero() {
		before.since = now.since
	}
	if !before.since.IsZero() {
		b.TakenElsewhere(before.since, max(before.amount+now.amount, 0))
		delete(a.owed[0], id)
		delete(a.owed[1], id)
	}
}

// keep forgets the accounts of keys that the newest generation, which is served now, does not have. Of
// those that it has, what came while their buckets were made is paid.
func (a *accounts) keep(ring *keyring) {
	if a == nil {
		return
	}
	a.mu.Lock()
	var owing []uint64
	for id, of := range a.names {
		switch _, before := a.owed[1][id]; {
		case ring.byDigest[of.digest] == nil:
			delete(a.names, id)
		default:
			if _, now := a.owed[0][id]; now || before {
				owing = append(owing, id)
			}
		}
	}
	a.mu.Unlock()
	for _, id := range owing {
		a.settle(id)
	}
}

// settle has the bucket of an account, if there is one, pay what is owed.
func (a *accounts) settle(id uint64) {
	b, _ := a.bucket(id)
	if b == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pay(b, id)
}

// spent notes what another Kvasir has let an account use.
func (a *accounts) spent(now time.Time, id uint64, amount float64) {
	switch b, known := a.bucket(id); {
	case b != nil:
		b.TakenElsewhere(now, amount)
	case !known:
		a.owe(now, id, amount)
		a.settle(id) // it was made, or is served, since this very moment
	}
}

// owe notes what a bucket that is made, or served, later begins with.
func (a *accounts) owe(now time.Time, id uint64, amount float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.minute) > time.Minute {
		a.owed = [2]map[uint64]debt{{}, a.owed[0]}
		a.minute = now
	}
	d, has := a.owed[0][id]
	if !has {
		d.since = now
		if len(a.owed[0]) >= maxOwed {
			return
		}
	}
	d.amount += amount
	a.owed[0][id] = d
}

// bucket is that of an account; nil: there is none, or no limit any more. known: the generation that is
// served has the key, which has asked for the model.
func (a *accounts) bucket(id uint64) (b *kvroute.Bucket, known bool) {
	a.mu.Lock()
	of, known := a.names[id]
	a.mu.Unlock()
	s := a.p.state.Load()
	if !known || s == nil {
		return nil, false
	}
	k := s.keys.byDigest[of.digest]
	switch {
	case k == nil:
		return nil, false
	case of.model == "":
		return k.requests, true
	}
	if allowance := k.allowanceOf(of.model); allowance != nil {
		return allowance.Bucket, true
	}
	return nil, true
}
