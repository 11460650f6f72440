// Queue: who waits for one model, as linked lists by class.
package kvroute

// A queue is who waits for one model, each class in the order of arrival.
type queue [classes]fifo

// A class is who can be placed on the same workers.
type class uint8

const (
	plain  class = iota // any worker will do
	strict              // any but a last resort
	picky               // tried some workers already: each to be looked at for itself
	classes
)

// class returns the class of the request while it waits.
func (q *Query) class() class {
	switch {
	case len(q.Tried) > 0:
		return picky
	case q.Strict:
		return strict
	}
	return plain
}

// A waiter is one request in line.
type waiter struct {
	query Query
	seq   uint64
	ready chan struct{} // closed when at or err is there

	at   Placement
	err  error
	done bool // no longer in line

	next, prev *waiter
}

func (in *queue) len() int {
	if in == nil {
		return 0
	}
	n := 0
	for c := range in {
		n += in[c].len
	}
	return n
}

func (in *queue) of(w *waiter) *fifo { return &in[w.query.class()] }

// A fifo is a linked list of waiters, so that leaving it costs nothing.
type fifo struct {
	head, tail *waiter
	len        int
	at         *waiter // the next to look at while settling
}

func (f *fifo) push(w *waiter) {
	if w.prev = f.tail; w.prev == nil {
		f.head = w
	} else {
		w.prev.next = w
	}
	f.tail = w
	f.len++
}

func (f *fifo) remove(w *waiter) {
	if w.prev == nil {
		f.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		f.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	f.len--
}
