// Queue: the part of the line that waits for one model: by class in the order of arrival, and in the order of cost.Queue.

package kvroute

import (
	"math"
	"time"

	"kvasir/kvroute/cost"
)

// A queue holds the requests of the line that wait for one model.
type queue struct {
	classes [classes]fifo // each in the order of arrival

	// central is the order in which those of them who are not picky are placed by
	// a pool with a central queue.
	central cost.Queue[*waiter]
}

// A class is who can be placed on the same workers.
type class uint8

const (
	plain  class = iota // any worker will do
	strict              // any but a last resort
	picky               // wants or shuns some workers: each to be looked at for itself
	classes
)

// class returns the class of the request while it waits.
func (q *Query) class() class {
	switch {
	case len(q.Tried) > 0 || len(q.TriedPrefill) > 0 || q.Aggregate || q.Pin != Pin{}:
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
	since time.Time
	ready chan struct{} // closed when at or err is there; nil: placed is told

	placed func(Placement, error) // of Enter

	at   Placement
	err  error
	done bool // no longer in line

	next, prev *waiter
	turn       *cost.Waiting[*waiter] // nil: not in the central queue
}

func (in *queue) len() int {
	if in == nil {
		return 0
	}
	n := 0
	for c := range in.classes {
		n += in.classes[c].len
	}
	return n
}

func (in *queue) of(w *waiter) *fifo { return &in.classes[w.query.class()] }

// order gives those their place in the central queue who have none yet.
func (in *queue) order() {
	for c := range in.classes {
		if class(c) == picky {
			continue
		}
		for w := in.classes[c].head; w != nil; w = w.next {
			if w.turn == nil {
				w.turn = in.central.Push(w.since, w.query.prefill, w)
			}
		}
	}
}

// remove takes w out.
func (in *queue) remove(w *waiter) {
	in.of(w).remove(w)
	if w.turn != nil {
		in.central.Remove(w.turn)
	}
	w.done = true
}

// first returns the number of who came first.
func (in *queue) first() uint64 {
	first := uint64(math.MaxUint64)
	for c := range in.classes {
		if w := in.classes[c].head; w != nil {
			first = min(first, w.seq)
		}
	}
	return first
}

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
