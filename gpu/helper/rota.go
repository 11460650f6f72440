//go:build linux && cgo

// Rota: which goroutine polls which GPU, and when.

package main

import (
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// askLost is the time between two tries of a GPU that cannot be polled.
	askLost = time.Second
	// late is how long a poll may take before the other GPUs are polled without waiting for it. A
	// poll takes about 0.1 ms to 3 ms; the first poll of a sleeping GPU may take a second.
	late = 5 * time.Millisecond
)

// A question is a periodic call into the driver, such as the poll of one GPU. The call may hang.
type question struct {
	ask   func(now time.Time) nvml.Return
	every time.Duration

	due   time.Time // when it is next asked; this and the fields below are guarded by the rota's mu
	began time.Time // start of the call under way; zero: none
	lost  time.Time // since when it has had no answer; zero: it has one
}

// A rota has one asker at a time: a goroutine that asks one question after the other, so that a
// round costs one wake-up and one write. When a call does not return in time, another goroutine
// becomes the asker; the old one ends when its call returns.
//
// Invariants, all guarded by mu:
//  1. At most one goroutine asks a question at a time.
//  2. Only the asker whose turn it is takes questions.
//  3. After the end no asker takes one.
type rota struct {
	out       *printer
	questions []*question
	start     time.Time
	over      func(now time.Time) bool // called after each round: whether the session is over
	lost      chan nvml.Return         // gets the code with which the driver was lost, or SUCCESS when over returns true; holds one
	end       chan struct{}            // closed at the end
	askers    sync.WaitGroup

	mu      sync.Mutex
	turn    int
	calling bool // whether the present asker is in a call
	relief  *time.Timer
	ended   bool
}

// begin starts the first asker. stop ends all askers and waits for calls that hang.
func (r *rota) begin() {
	r.end = make(chan struct{})
	r.relief = time.AfterFunc(time.Hour, r.relieve)
	r.relief.Stop()
	for _, q := range r.questions {
		q.due = r.start
	}
	r.askers.Go(func() { r.serve(0) })
}

func (r *rota) stop() {
	r.mu.Lock()
	r.ended = true
	r.relief.Stop()
	r.mu.Unlock()
	close(r.end)
	r.askers.Wait()
	r.out.flush()
}

// serve asks in rounds while it is this asker's turn.
func (r *rota) serve(turn int) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-r.end:
			return
		case <-next.C:
		}
		now := time.Now()
		if !r.round(turn, now) {
			return
		}
		if r.over(now) {
			r.tell(nvml.SUCCESS)
		}
		next.Reset(time.Until(r.next(now)))
	}
}

// round asks every question that is due by now. It returns false if it is no longer this asker's
// turn.
func (r *rota) round(turn int, now time.Time) bool {
	for q := r.take(turn, now); q != nil; q = r.take(turn, now) {
		ret := q.ask(now)
		if judge(ret) == driverLost {
			r.tell(ret)
		}
		if !r.answered(turn, q, ret) {
			r.out.flush() // the round of the next asker may end much later
			return false
		}
		r.out.flushAfter(gathered)
	}
	r.out.flush()
	return true
}

// take returns the question that has waited longest; nil: the round is over.
func (r *rota) take(turn int, now time.Time) *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turn != r.turn || r.ended {
		return nil
	}
	var first *question
	for _, q := range r.questions {
		if q.began.IsZero() && !q.due.After(now) && (first == nil || q.due.Before(first.due)) {
			first = q
		}
	}
	if first != nil {
		first.began = time.Now()
		r.calling = true
		r.relief.Reset(late)
	}
	return first
}

// answered records the answer and returns whether it is still this asker's turn. All questions
// are due at the same multiples of the interval since the start, because a wake-up costs more
// than a poll.
func (r *rota) answered(turn int, q *question, ret nvml.Return) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	every := q.every
	switch {
	case ret == nvml.SUCCESS:
		q.lost = time.Time{}
	default:
		every = max(every, askLost)
		if q.lost.IsZero() && ret != nvml.ERROR_NO_PERMISSION { // a new initialisation would not grant a permission
			q.lost = q.began
		}
	}
	q.began = time.Time{}
	now := time.Now()
	q.due = now.Add(every - now.Sub(r.start)%every)
	if turn != r.turn {
		return false
	}
	r.calling = false
	r.relief.Stop()
	return true
}

// relieve makes its goroutine the asker when the present asker has been in a call for too long.
func (r *rota) relieve() {
	r.mu.Lock()
	if r.ended || !r.calling {
		r.mu.Unlock()
		return
	}
	r.turn++
	r.calling = false
	turn := r.turn
	r.askers.Add(1) // cannot race with stop's wait: the asker in the call is still counted
	r.mu.Unlock()
	defer r.askers.Done()
	r.serve(turn)
}

// next returns the time of the next round.
func (r *rota) next(now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := now.Add(askLost)
	for _, q := range r.questions {
		// A question whose call hangs counts too, because the call may have returned by then.
		if due := q.due; q.began.IsZero() && due.Before(next) {
			next = due
		} else if soon := now.Add(q.every); soon.Before(next) {
			next = soon
		}
	}
	return next
}

// tell reports why the session is over; only the first reason counts.
func (r *rota) tell(ret nvml.Return) {
	select {
	case r.lost <- ret:
	default:
	}
}

// longest returns when the GPU that has been lost longest was lost, and when the oldest call
// under way began; zero: none.
func (r *rota) longest() (lost, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.questions {
		lost, began = earlier(lost, q.lost), earlier(began, q.began)
	}
	return lost, began
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
