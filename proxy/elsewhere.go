// Elsewhere: an answer that another Kvasir is making is waited for, where both have one cache.

package proxy

import (
	"time"

	"github.com/zeebo/xxh3"

	"kvasir/cache"
	"kvasir/kvroute/peering"
	"kvasir/peers"
	"kvasir/proxy/record"
)

const (
	// streamPatience is how long a client that wants a stream waits for an answer of which nothing
	// comes before it is whole.
	streamPatience = 500 * time.Millisecond

	// storePatience is how long an answer is looked for after it was given to the cache, which
	// writes it beside the requests.
	storePatience = time.Second
	firstLook     = 10 * time.Millisecond // after which it is looked for anew, then after twice as long
	lastLook      = 160 * time.Millisecond
)

// peerKey is what a coalesced call is called between Kvasirs. Its scope says who asks, so that
// nobody waits for another tenant's answer; the cache looks at the whole of it.
func (k *coalesceKey) peerKey() uint64 {
	var h xxh3.Hasher
	_, _ = h.Write(k.scope[:])
	_, _ = h.Write(k.question[:])
	return h.Sum64()
}

// A madeForAll is the answer that a request makes for all Kvasirs. The zero value is none.
type madeForAll struct {
	peers *peers.Peers
	key   uint64
}

// makeForAll tells other Kvasirs that this request makes the answer that equal ones wait for.
func (x *exchange) makeForAll(key *coalesceKey) {
	s := x.plan.state.settings
	if !s.CacheOptions.Shared {
		return
	}
	if k := key.peerKey(); s.Peers.Making(k) {
		x.making = madeForAll{s.Peers, k}
	}
}

// end tells them that it is made, or will not be.
func (m *madeForAll) end(stored bool) {
	if m.peers != nil {
		m.peers.Made(m.key, stored)
		*m = madeForAll{}
	}
}

// isMadeElsewhere says whether another Kvasir makes the answer.
func (x *exchange) isMadeElsewhere(key *coalesceKey) bool {
	s := x.plan.state.settings
	return s.CacheOptions.Shared && s.Peers.Elsewhere(key.peerKey()) != nil
}

// awaitElsewhere waits for the answer that another Kvasir is making, if one is. It returns false where
// the client is lost, or everything ends. It returns true for all else: the answer is in the cache
// then, or this request has to ask a worker; for the latter nothing was lost but the time. Nothing of
// it waits for NATS: if that goes, so do the answers that are known to be made.
func (x *exchange) awaitElsewhere(c *cache.Cache, q *cache.Query, key *coalesceKey) bool {
	e := x.plan.state.settings.Peers.Elsewhere(key.peerKey())
	if e == nil {
		return true
	}
	x.trail.Next(record.Follow)
	begin := time.Now()
	end := x.waitElsewhere(c, q, e)
	x.facts.waited += time.Since(begin)
	x.trail.Next(record.Reuse)
	x.p.metrics.coalesced.followed.WithLabelValues(end).Inc()
	return end != whyGone
}

// waitElsewhere waits, and says how that ended, as a label.
func (x *exchange) waitElsewhere(c *cache.Cache, q *cache.Query, e *peering.Elsewhere) string {
	m := &x.p.metrics.coalesced
	m.followers.Inc()
	defer m.followers.Dec()
	t, r := &x.plan.state.settings.Timeouts, &x.plan.state.settings.Routing
	patience := t.FirstByte
	if r.Queue {
		patience += r.QueueTimeout
	}
	if x.plan.req.Stream {
		patience = streamPatience
	}
	clock := time.NewTimer(patience)
	defer clock.Stop()
	select {
	case <-e.Done():
	case <-clock.C:
		return "elsewhere_late"
	case <-x.conn.WhenGone():
		return whyGone
	}
	if !e.Stored() {
		return "elsewhere_failed"
	}
	clock.Reset(storePatience)
	look := time.NewTicker(firstLook)
	defer look.Stop()
	for every := firstLook; ; every = min(2*every, lastLook) {
		if lookUp(c, q, &x.p.bugs).Hit {
			return "elsewhere"
		}
		look.Reset(every)
		select {
		case <-look.C:
		case <-clock.C:
			return "elsewhere_late"
		case <-x.conn.WhenGone():
			return whyGone
		}
	}
}
