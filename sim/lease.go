// Leases: how long a prefill worker keeps blocks for a decode worker that does not come.

package sim

import "time"

// leases are the finished requests that keep their blocks, by handle. driver.mu guards them.
type leases struct {
	length time.Duration
	held   map[string]*lease

	expired int // leases that ran out
	late    int // messages of decode workers about requests that no longer hold blocks
}

// lease is the lease on the blocks of one finished request.
type lease struct {
	sequence *Sequence
	until    time.Duration // the engine's time
	over     chan struct{} // closed when the lease is over
	expired  bool          // no decode worker came; may be read after over is closed
}

// heartbeat returns how often a decode worker asks to extend a lease whose blocks it cannot fetch
// yet; extension returns for how long. Both are the same fractions of a lease as in vLLM.
func heartbeat(lease time.Duration) time.Duration { return max(lease/6, time.Millisecond) }
func extension(lease time.Duration) time.Duration { return lease * 2 / 3 }

// hold starts the lease of a sequence that has just ended.
func (l *leases) hold(handle string, s *Sequence, now time.Duration) *lease {
	held := &lease{sequence: s, until: now + l.length, over: make(chan struct{})}
	l.held[handle] = held
	return held
}

// expire frees the blocks that were not fetched in time, and returns when to check again; 0:
// never.
func (l *leases) expire(e *Engine, now time.Duration) (next time.Duration) {
	for handle, held := range l.held {
		if held.until <= now {
			delete(l.held, handle)
			e.Free(held.sequence)
			l.expired++
			held.expired = true
			close(held.over)
		} else if next == 0 || held.until < next {
			next = held.until
		}
	}
	return next
}

// free ends a lease because its blocks were fetched or are no longer wanted. If the lease is
// already over, the reader may have read blocks that another request overwrote: it counts as
// late.
func (l *leases) free(e *Engine, handle string) {
	held := l.held[handle]
	if held == nil {
		l.late++
		return
	}
	delete(l.held, handle)
	e.Free(held.sequence)
	close(held.over)
}

// extend keeps a lease for a while longer.
func (l *leases) extend(handle string, now time.Duration) {
	if held := l.held[handle]; held != nil {
		held.until = max(held.until, now+extension(l.length))
	}
}

// vllmParams returns the kv_transfer_params of a job whose blocks are held; nil: they are not
// held. With several answers it names the blocks of the last one; the others are held until their
// leases expire.
func vllmParams(_ *completion, j *job, at source) []byte {
	t := &j.tickets[len(j.tickets)-1]
	if t.handle == "" {
		return nil
	}
	at.request = t.handle
	return appendTransfer(nil, at, t.held, t.sequence.tokens()-1, t.sequence.Cached)
}

// drop removes a sequence from the engine, whether it runs or is finished and held.
func (d *driver) drop(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.sequence != nil {
		d.engine.Cancel(t.sequence)
	}
	if _, ok := d.leases.held[t.handle]; ok {
		d.leases.free(d.engine, t.handle)
	}
	ring(d.work)
}
