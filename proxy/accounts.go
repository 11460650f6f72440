// Accounts: what keys may use a minute, over all Kvasirs before the same workers.

package proxy

import (
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"kvasir/kvroute"
	"kvasir/peers"
)

// Accounts are the buckets of keys' limits that other Kvasirs have, too: one of a key's requests,
// and one of its tokens for each model. A nil one shares nothing.
type accounts struct {
	p     *Proxy
	peers *peers.Peers

	mu       sync.Mutex // guards what follows
	buckets  map[uint64]*kvroute.Bucket
	unknown  map[uint64]struct{} // accounts that no key here has
	unknowns time.Time           // when that was last emptied
}

func newAccounts(p *Proxy, others *peers.Peers) *accounts {
	a := &accounts{p: p, peers: others, buckets: map[uint64]*kvroute.Bucket{}, unknown: map[uint64]struct{}{}}
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

// add makes a new bucket the one of an account.
func (a *accounts) add(b *kvroute.Bucket, digest *[32]byte, model string) {
	if a == nil {
		return
	}
	id := accountOf(digest, model)
	b.Share(&kvroute.Sharing{Others: a.peers.Others, Took: func(amount float64) { a.peers.Spend(id, amount) }})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buckets[id] = b
}

// spent notes what another Kvasir has let an account use.
func (a *accounts) spent(now time.Time, id uint64, amount float64) {
	if b := a.bucket(now, id); b != nil {
		b.TakenElsewhere(now, amount)
	}
}

// forgetUnknown is how often an account is looked for anew that no key has here: a model may have
// come.
const forgetUnknown = 10 * time.Second

func (a *accounts) bucket(now time.Time, id uint64) *kvroute.Bucket {
	a.mu.Lock()
	b, unknown := a.buckets[id], false
	if b == nil {
		if now.Sub(a.unknowns) > forgetUnknown {
			clear(a.unknown)
			a.unknowns = now
		}
		_, unknown = a.unknown[id]
	}
	a.mu.Unlock()
	if b != nil || unknown {
		return b
	}
	if b = a.look(id); b == nil {
		a.mu.Lock()
		a.unknown[id] = struct{}{}
		a.mu.Unlock()
	}
	return b
}

// look finds the account of a model's tokens that no request here was for yet.
func (a *accounts) look(id uint64) *kvroute.Bucket {
	s := a.p.state.Load()
	if s == nil {
		return nil
	}
	served := s.pool.Models()
	for _, k := range s.keys.byDigest {
		if k.TokensPerMinute == 0 {
			continue
		}
		for i := range served {
			if accountOf(&k.SHA256, served[i].Name) == id {
				return k.allowanceOf(served[i].Name).Bucket
			}
		}
	}
	return nil
}
