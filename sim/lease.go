// Leases: how long a prefill worker keeps blocks for a decode worker that does not come.

package sim

import "time"

// leases are the requests that are done and keep their blocks, by their handle. driver.mu guards them.
type leases struct {
	length time.Duration
	held   map[string]*lease

	expired int // leases that ran out
	late    int // messages of decode workers about requests that hold nothing any more
}

// lease is one of them.
type lease struct {
	sequence *Sequence
	until    time.Duration // the engine's time
	over     chan struct{} // closed when it is
	expired  bool          // nobody came; may be read then
}

// heartbeat says how often a decode worker asks to keep a lease whose blocks it cannot fetch yet, and extension
// for how long it is then kept: vLLM's parts of a lease.
func heartbeat(lease time.Duration) time.Duration { return max(lease/6, time.Millisecond) }
func extension(lease time.Duration) time.Duration { return lease * 2 / 3 }

// hold starts the lease of a sequence that has just ended.
func (l *leases) hold(handle string, s *Sequence, now time.Duration) *lease {
	held := &lease{sequence: s, until: now + l.length, over: make(chan struct{})}
	l.held[handle] = held
	return held
}

// expire frees what nobody fetched in time and says when to look again, 0 for never.
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

// free ends a lease because its blocks were fetched or are not wanted. One that is over already betrays a reader who
// may have read what others wrote.
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

// vllmParams is the kv_transfer_params of a job whose blocks are held, nil if they are not. Of several answers the last
// one's are named; the others' blocks are held until their leases end.
func vllmParams(_ *completion, j *job, at source) []byte {
	t := &j.tickets[len(j.tickets)-1]
	if t.handle == "" {
		return nil
	}
	at.request = t.handle
	return appendTransfer(nil, at, t.held, t.sequence.tokens()-1, t.sequence.Cached)
}

// drop takes a sequence out of the engine, whether it runs or is done and held.
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
