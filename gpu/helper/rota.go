//go:build linux && cgo

// Rota: who asks what, and when.

package main

import (
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// askLost is how often a GPU that cannot be asked is tried.
	askLost = time.Second
	// late is what a poll takes at most before the others are asked without waiting for it. A poll
	// takes some 0.1 ms to 3 ms; the first of a GPU that was asleep may take a second.
	late = 5 * time.Millisecond
)

// A question is something to ask the driver again and again, and its call may hang.
type question struct {
	ask   func(now time.Time) nvml.Return
	every time.Duration

	due   time.Time // guarded by the rota's mu, as what follows
	began time.Time // of the call that runs; zero: none does
	lost  time.Time // since when it has no answer; zero: it has
}

// A rota has one asker at a time: a goroutine that asks one question after the other, so that a round
// is one wake-up and one write. When a call does not return in time another goroutine becomes the
// asker, and the one in the call ends when the call does.
//
// Invariants, all guarded by mu:
//  1. A question is asked by one goroutine at a time.
//  2. Of all askers only the one whose turn it is takes questions.
//  3. After the end nobody takes one.
type rota struct {
	out       *printer
	questions []*question
	start     time.Time
	over      func(now time.Time) bool // asked after each round, whether the session is
	lost      chan nvml.Return         // gets the code by which the driver is lost, or SUCCESS when it is over; holds one
	end       chan struct{}            // closed at the end
	askers    sync.WaitGroup

	mu      sync.Mutex
	turn    int
	calling bool // whether the present asker is in a call
	relief  *time.Timer
	ended   bool
}

// begin starts the first asker; stop ends all and waits for calls that hang.
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

// serve asks in rounds for as long as it is this asker's turn.
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

// round asks everything that is due by now; false: it is not this asker's turn any more.
func (r *rota) round(turn int, now time.Time) bool {
	for q := r.take(turn, now); q != nil; q = r.take(turn, now) {
		ret := q.ask(now)
		if judge(ret) == driverLost {
			r.tell(ret)
		}
		if !r.answered(turn, q, ret) {
			r.out.flush() // nobody knows when the round of others ends
			return false
		}
		r.out.flushAfter(gathered)
	}
	r.out.flush()
	return true
}

// take gives the question that waits for longest, and nil when the round is over.
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

// answered takes the answer and says whether it is still this asker's turn. The next time is a
// multiple of the interval from the start, for all alike: a wake-up costs more than a poll.
func (r *rota) answered(turn int, q *question, ret nvml.Return) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	every := q.every
	switch {
	case ret == nvml.SUCCESS:
		q.lost = time.Time{}
	default:
		every = max(every, askLost)
		if q.lost.IsZero() && ret != nvml.ERROR_NO_PERMISSION { // which a new initialisation would not give
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

// relieve makes its goroutine the asker, when the one whose turn it was is in a call for too long.
func (r *rota) relieve() {
	r.mu.Lock()
	if r.ended || !r.calling {
		r.mu.Unlock()
		return
	}
	r.turn++
	r.calling = false
	turn := r.turn
	r.askers.Add(1) // stop waits: the one in the call is still counted
	r.mu.Unlock()
	defer r.askers.Done()
	r.serve(turn)
}

// next is when the next round is.
func (r *rota) next(now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := now.Add(askLost)
	for _, q := range r.questions {
		// A question whose call hangs counts too: the call may have returned by then.
		if due := q.due; q.began.IsZero() && due.Before(next) {
			next = due
		} else if soon := now.Add(q.every); soon.Before(next) {
			next = soon
		}
	}
	return next
}

// tell says why the session is over; the first reason counts.
func (r *rota) tell(ret nvml.Return) {
	select {
	case r.lost <- ret:
	default:
	}
}

// longest returns when the GPU that has been lost for longest was lost, and when the oldest call
// under way began; zero: there is none.
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
