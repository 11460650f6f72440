// Write: the goroutine that writes queued rows, and deleting.

package milvus

import (
	"context"
	"time"

	"kvasir/cache"
)

const (
	writeTime  = 10 * time.Second // of one batch
	writeTries = 5                // tries for a batch that the server refuses
	deleteTime = 30 * time.Second
)

// write sends the queue in batches, until the store ends, or the queue is closed and empty.
func (s *Store) write() {
	defer close(s.written)
	wait, refused := firstWait, 0
	for {
		n, closed, err := s.writeBatch()
		switch {
		case s.ctx.Err() != nil || closed && err == nil && n == 0:
			return
		case err == nil && n > 0:
			wait, refused = firstWait, 0
			continue
		case err == nil: // nothing to write, or nowhere to write it to
			select {
			case <-s.ctx.Done():
				return
			case <-s.queue.more:
			}
			continue
		}
		// A server that refuses a batch mostly refuses it again; a lost server comes back.
		if isFinal(err) {
			refused++
		}
		if refused >= writeTries {
			s.drop()
			refused = 0
		}
		if !s.sleep(wait) {
			return
		}
		wait = min(2*wait, maxWait)
	}
}

// writeBatch writes the oldest rows of the queue and returns how many. closed means that the
// queue is closed and now empty.
func (s *Store) writeBatch() (n int, closed bool, err error) {
	if !s.hold(s.ctx) {
		return 0, true, nil
	}
	defer s.release()
	now := time.Now().UnixMilli()
	s.n.expired.Add(uint64(s.queue.remove(func(r *row) bool { return r.expires <= now })))
	rows, closed := s.queue.batch()
	on := s.session.Load()
	if len(rows) == 0 || on == nil {
		return 0, closed && len(rows) == 0, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, writeTime)
	defer cancel()
	if err := on.upsert(ctx, rows); err != nil {
		s.n.failed.Add(1)
		s.writeTrouble(s.words(err))
		if isLost(err) {
			signal(s.lost)
		}
		return 0, false, err
	}
	s.writeTrouble("")
	written := make(map[*row]bool, len(rows))
	for _, r := range rows {
		written[r] = true
	}
	s.queue.remove(func(r *row) bool { return written[r] })
	s.n.stored.Add(uint64(len(rows)))
	return len(rows), false, nil
}

// drop drops the batch that the server refuses.
func (s *Store) drop() {
	if !s.hold(s.ctx) {
		return
	}
	defer s.release()
	rows, _ := s.queue.batch()
	refused := make(map[*row]bool, len(rows))
	for _, r := range rows {
		refused[r] = true
	}
	s.n.dropped.Add(uint64(s.queue.remove(func(r *row) bool { return refused[r] })))
}

// hold waits for the right to write and to take from the queue.
func (s *Store) hold(ctx context.Context) bool {
	select {
	case <-s.writing:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Store) release() { s.writing <- struct{}{} }

// Delete implements cache.Store. It may take seconds, as the server does. No later lookup finds a
// deleted entry. No entry is counted twice, because each query sees all earlier deletes.
func (s *Store) Delete(f cache.Filter) (int, error) {
	ctx, cancel := context.WithTimeout(s.ctx, deleteTime)
	defer cancel()
	if !s.hold(ctx) {
		return 0, s.failed(cache.ErrTimeout)
	}
	defer s.release()
	// A queued entry may replace a written one: it counts once.
	waited := map[string]bool{}
	s.queue.remove(func(r *row) bool {
		if !r.named(&f) {
			return false
		}
		waited[r.key] = true
		return true
	})
	n := len(waited)
	on := s.session.Load()
	if on == nil {
		s.n.deleted.Add(uint64(n))
		return n, s.failed(cache.ErrUnavailable)
	}
	m, err := deleteAll(ctx, on, named(&f), waited)
	s.n.deleted.Add(uint64(n + m))
	if err != nil {
		return n + m, s.failed(asStoreError(err))
	}
	return n + m, nil
}

// deleteAll deletes page by page, and counts the rows that were still alive and are not in
// counted yet.
func deleteAll(ctx context.Context, on *session, expression string, counted map[string]bool) (n int, err error) {
	now := time.Now().UnixMilli()
	for {
		keys, expires, err := on.names(ctx, expression, sweepRows)
		if err != nil || len(keys) == 0 {
			return n, err
		}
		if err := on.delete(ctx, among(keys)); err != nil {
			return n, err
		}
		for i, at := range expires {
			if at > now && !counted[keys[i]] {
				n++
			}
		}
	}
}

// named reports whether the filter selects the row.
func (r *row) named(f *cache.Filter) bool {
	return (f.ID == nil || f.ID.String() == r.entry) && (f.Scope == nil || f.Scope.String() == r.scope) &&
		(f.Tenant == nil || *f.Tenant == r.tenant) && (f.Model == nil || *f.Model == r.model)
}
