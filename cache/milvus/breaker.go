// Breaker: after some failures in a row nobody is asked for a while.

package milvus

import (
	"sync"
	"time"
)

const (
	breakAfter = 5                // failures in a row
	breakFor   = 10 * time.Second // until one call may try again
)

// States of a breaker, as Stats names them.
const (
	stateClosed   = "closed"
	stateOpen     = "open"
	stateHalfOpen = "half-open"
)

// A breaker is closed at first. It opens after breakAfter failures in a row;
// after breakFor it is half open and lets one call through, whose end closes it
// or opens it again. Time enters as now.
type breaker struct {
	mu       sync.Mutex // guards the fields below
	turn     uint64     // counts the changes of state: a call that began before one says nothing about after
	failures int        // in a row, while closed
	until    time.Time  // not before this; zero: closed
	trying   bool       // the one call of a half open breaker is on its way
	why      string     // the last failure, in plain words
}

// allow reports whether a call may be made, and in which turn: that is told to succeed or fail,
// one of which must follow.
func (b *breaker) allow(now time.Time) (turn uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return b.turn, true
	}
	if b.trying || now.Before(b.until) {
		return 0, false
	}
	b.trying = true
	b.turn++ // failures of calls that began before the breaker opened do not end this one
	return b.turn, true
}

// succeed closes the breaker.
func (b *breaker) succeed(turn uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if turn != b.turn {
		return
	}
	if b.trying {
		b.turn++
	}
	b.failures, b.until, b.trying, b.why = 0, time.Time{}, false, ""
}

// fail counts a failure and says whether it has opened the breaker.
func (b *breaker) fail(turn uint64, now time.Time, why string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if turn != b.turn {
		return false
	}
	b.why = why
	b.failures++
	if !b.trying && b.failures < breakAfter {
		return false
	}
	b.turn++
	b.until, b.trying = now.Add(breakFor), false
	return true
}

func (b *breaker) state(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return stateClosed
	case now.Before(b.until):
		return stateOpen
	}
	return stateHalfOpen
}

// last returns what failed last, and how often in a row; "": nothing.
func (b *breaker) last() (why string, failures int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why, b.failures
}
