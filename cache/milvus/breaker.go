// Breaker: after several failures in a row, no calls are made for a while.

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

// A breaker is closed at first. It opens after breakAfter failures in a row. After breakFor it is
// half open and lets one call through, whose result closes it or opens it again. Its methods are
// given the time, as now.
type breaker struct {
	mu       sync.Mutex // guards the fields below
	turn     uint64     // counts the changes of state: a call that began before the last one no longer counts
	failures int        // in a row, while closed
	until    time.Time  // no calls before this time; zero: closed
	trying   bool       // the one call of a half open breaker is under way
	why      string     // the last failure, as plain text
}

// allow reports whether a call may be made, and in which turn. The caller must then pass that
// turn to succeed or to fail.
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
	b.turn++ // failures of calls that began before the breaker opened do not affect this call
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

// fail counts a failure and returns whether it has opened the breaker.
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

// last returns the last failure, and the number of failures in a row; "": none.
func (b *breaker) last() (why string, failures int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why, b.failures
}
