// Queue: entries that wait to be written, bounded in number and bytes.

package milvus

import (
	"slices"
	"sync"

	"kvasir/cache"
)

const (
	queueRows  = 1024
	queueBytes = 64 << 20
	batchRows  = 128
	batchBytes = 4 << 20
)

// A queue keeps its rows until remove is called for them.
type queue struct {
	mu     sync.Mutex // guards the fields below, not the channel
	rows   []*row
	bytes  int
	closed bool

	more chan struct{} // holds a message when there may be rows, or the end
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

func (q *queue) push(r *row) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return cache.ErrUnavailable
	}
	if len(q.rows) >= queueRows || q.bytes+r.size() > queueBytes {
		return cache.ErrFull
	}
	q.rows = append(q.rows, r)
	q.bytes += r.size()
	signal(q.more)
	return nil
}

// batch returns the oldest rows, which stay in the queue, and whether it is closed. No two of
// them have the same key, because Milvus does not define which of two rows with one key an upsert
// keeps.
func (q *queue) batch() (rows []*row, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	seen := make(map[string]bool, min(len(q.rows), batchRows))
	bytes := 0
	for _, r := range q.rows {
		bytes += r.size()
		if len(rows) == batchRows || len(rows) > 0 && bytes > batchBytes || seen[r.key] {
			break
		}
		seen[r.key] = true
		rows = append(rows, r)
	}
	return rows, q.closed
}

// remove drops the rows for which gone holds, and returns how many.
func (q *queue) remove(gone func(*row) bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.rows)
	q.rows = slices.DeleteFunc(q.rows, func(r *row) bool {
		if !gone(r) {
			return false
		}
		q.bytes -= r.size()
		return true
	})
	return before - len(q.rows)
}

// clear drops all rows.
func (q *queue) clear() int { return q.remove(func(*row) bool { return true }) }

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.rows)
}

// close stops the queue from accepting rows.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.more)
}
