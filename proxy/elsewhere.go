// Elsewhere: an answer that another Kvasir is making is waited for, where both have one cache.

package proxy

import (
	"time"

	"github.com/zeebo/xxh3"

	"kvasir/cache"
	"kvasir/kvroute/peering"
	"kvasir/openai"
	"kvasir/proxy/record"
)

const (
	// streamPatience is how long a client that wants a stream waits for an answer of which nothing
	// comes before it is whole. Others wait for a part of timeouts.first_byte, which is how long they
	// are willing to wait for a worker: most answers have come by then, and if that one hangs they
	// have not lost much.
	streamPatience = 500 * time.Millisecond
	wholePart      = 4

	// storePatience is how long an answer is looked for after it was given to the cache, which
	// writes it beside the requests.
	storePatience = time.Second
	firstLook     = 10 * time.Millisecond // after which it is looked for anew, then after twice as long
	lastLook      = 160 * time.Millisecond
)

// peerKey is what a coalesced call is called between Kvasirs whose caches are one. Its scope says who
// asks, so that nobody waits for another tenant's answer; the cache looks at the whole of it. The store
// is part of it, so that nobody waits for an answer that comes to another store. It is false where
// nothing can be shared: there are no others, or there is no such cache, or not now.
func (x *exchange) peerKey(key *coalesceKey) (k uint64, shared bool) {
	s := x.plan.state.settings
	if s.Peers == nil || !s.CacheOptions.Shared {
		return 0, false
	}
	store, known := s.Cache.Identity()
	if !known {
		return 0, false
	}
	var h xxh3.Hasher
	_, _ = h.Write(key.scope[:])
	_, _ = h.Write(key.question[:])
	_, _ = h.WriteString(store)
	return h.Sum64(), true
}

// makeForAll tells other Kvasirs that the answer that equal requests wait for is made here; and, when the call has ended,
// that it is made, or will not be. While another leader takes over nothing is said: they wait on.
func (x *exchange) makeForAll(k uint64) {
	if p := x.plan.state.settings.Peers; p.Making(k) {
		x.recipients.leader.OnEnd(func(stored bool) { p.Made(k, stored) })
	}
}

// awaitElsewhere waits for the answer that another Kvasir is making, if one is, and answers with it: the client, and all
// that follow, who look for nothing themselves. It returns false where the request has to ask a worker after all; nothing
// was lost then but the time. Nothing of it waits for NATS: if that goes, so do the answers that are known to be made.
func (x *exchange) awaitElsewhere(c *cache.Cache, q *cache.Query, k uint64) (answered bool, err *openai.Error) {
	e := x.plan.state.settings.Peers.Elsewhere(k)
	if e == nil {
		return false, nil
	}
	x.trail.Next(record.Follow)
	begin := time.Now()
	r, end := x.waitElsewhere(c, q, e)
	x.facts.waited += time.Since(begin)
	x.trail.Next(record.Reuse)
	x.p.metrics.coalesced.followed.WithLabelValues(end).Inc()
	l := x.recipients.leader
	if end == whyGone {
		l.Fail() // one of those that follow waits on
		x.recipients.leader = nil
		return x.endFollowing(waitGone)
	}
	if !r.Hit {
		l.Heartbeat()
		return false, nil
	}
	a := x.recall(&r)
	if a == nil { // it cannot be told here
		return false, nil
	}
	x.recipients.leader = nil
	l.Complete(made{*a, x.trace.Link()})
	l.Retire(true)
	x.tellCached(a)
	return true, nil
}

// waitElsewhere waits, and returns what was found and how that ended, as a label.
func (x *exchange) waitElsewhere(c *cache.Cache, q *cache.Query, e *peering.Elsewhere) (r cache.Result, end string) {
	m := &x.p.metrics.coalesced
	m.followers.Inc()
	defer m.followers.Dec()
	patience, hurried := x.plan.state.settings.Timeouts.FirstByte/wholePart, x.recipients.leader.Hurried()
	stream := min(patience, streamPatience)
	if x.plan.req.Stream {
		patience, hurried = stream, nil
	}
	clock := time.NewTimer(patience - x.facts.waited) // it may have followed one that left
	defer clock.Stop()
	for waits := true; waits; {
		select {
		case <-e.Done():
			waits = false
		case <-hurried: // one of those that follow wants a stream
			hurried = nil
			clock.Reset(stream)
		case <-clock.C:
			return r, "elsewhere_late"
		case <-x.conn.WhenGone():
			return r, whyGone
		}
	}
	if !e.Stored() {
		return r, "elsewhere_failed"
	}
	clock.Reset(storePatience)
	look := time.NewTicker(firstLook)
	defer look.Stop()
	for every := firstLook; ; every = min(2*every, lastLook) {
		if r = lookUp(c, q, &x.p.bugs); r.Hit {
			return r, "elsewhere"
		}
		look.Reset(every)
		select {
		case <-look.C:
		case <-clock.C:
			return r, "elsewhere_late"
		case <-x.conn.WhenGone():
			return r, whyGone
		}
	}
}
