// Flight: equal requests at once are one call to a worker, which one of them makes.
package proxy

import (
	"io"
	"sync"

	"kvasir/openai/answer"
)

// A flight is one answer on its way to several requests. One of them leads: it
// asks a worker, and is the only one to add to the answer. The others follow.
//
//  1. It has a leader exactly while it flies; whoever follows may become it
//     while it is adrift.
//  2. What has come of the answer's text is never changed while it flies.
//  3. Once it has landed, is spent or scattered, it stays so.
//  4. A leader whose client is lost goes on for its followers. The worker's
//     connection is closed by whoever goes last.
type flight struct {
	key flightKey

	mu        sync.Mutex // guards the rest
	phase     phase
	try       int           // how many leaders there were
	answer    answer.Answer // what the leader has got
	followers int           // that have not left
	deaf      bool          // the leader's own client was lost before the answer was whole
	conn      io.Closer     // to the worker, while there is one to be stopped
	signs     uint64        // how often the leader gave a sign
	grown     chan struct{} // closed with the next one; nil: nobody waits for it
	turned    chan struct{} // closed with the next phase; nil: nobody waits for it
}

// A phase is where a flight is.
type phase uint8

const (
	flying    phase = iota // a leader is at it
	adrift                 // its leader failed: the next takes over
	landed                 // the answer is whole
	spent                  // it is whole, but only for who has begun with it
	scattered              // the answer is not for others: everyone asks alone
)

// follow adds a follower, if the flight takes any.
func (f *flight) follow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		return false
	}
	f.followers++
	return true
}

// take makes a follower the leader of a flight that is adrift.
func (f *flight) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase != adrift {
		return false
	}
	f.phase, f.answer, f.deaf = flying, answer.Answer{}, false
	f.try++
	f.followers--
	f.turn()
	return true
}

// tell hands what has come to the followers, and says that something has come.
func (f *flight) tell(a *answer.Answer) {
	f.mu.Lock()
	f.answer = *a
	f.wake()
	f.mu.Unlock()
}

// sign says that the leader is at it, though nothing has come.
func (f *flight) sign() {
	f.mu.Lock()
	f.wake()
	f.mu.Unlock()
}

// open says whether it takes followers; the lock is held.
func (f *flight) open() bool { return f.phase != spent && f.phase != scattered }

// land ends the flight with the whole answer: landed, and still found until it is
// retired, or spent.
func (f *flight) land(a *answer.Answer, as phase) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == flying {
		f.phase, f.answer = as, *a
		f.turn()
	}
}

// wake wakes who waits for more of the answer; the lock is held.
func (f *flight) wake() {
	f.signs++
	if f.grown != nil {
		close(f.grown)
		f.grown = nil
	}
}

// turn wakes everybody; the lock is held.
func (f *flight) turn() {
	f.wake()
	if f.turned != nil {
		close(f.turned)
		f.turned = nil
	}
}

// stop closes the connection to the worker; the lock is held.
func (f *flight) stop() {
	if f.conn != nil {
		_ = f.conn.Close()
		f.conn = nil
	}
}

// hold names the connection that is closed when nobody waits any more.
func (f *flight) hold(c io.Closer) {
	f.mu.Lock()
	f.conn = c
	f.mu.Unlock()
}

// release takes it back: from now on nobody else closes it. False when it was closed.
func (f *flight) release() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := f.conn != nil
	f.conn = nil
	return held
}

// lose says that the leader's client is lost. The leader goes on where others
// follow, unless everything is to end; otherwise its worker is stopped.
func (f *flight) lose(ending bool) (goesOn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.phase != flying: // the leader's own writes tell whether its client has had it all
	case f.followers > 0 && !ending:
		f.deaf = true
		return true
	default:
		f.deaf = f.deaf || !ending
		if f.followers == 0 {
			f.phase = scattered // whoever comes now begins anew
		}
	}
	f.stop()
	return false
}

// carries says whether the leader goes on for others though its own client is lost.
func (f *flight) carries() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deaf && f.phase == flying && f.followers > 0
}

// isFollowed says whether others wait for what the leader gets.
func (f *flight) isFollowed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == flying && f.followers > 0
}

func (f *flight) isDeaf() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deaf
}

// A sight is what a follower sees of a flight.
type sight struct {
	phase   phase
	try     int
	answer  answer.Answer
	signs   uint64
	changed <-chan struct{}
}

// look returns how the flight stands, and what is closed when that has changed:
// with each piece of the answer, or, for who has no use for pieces, when it has
// ended one way or another.
func (f *flight) look(pieces bool) sight {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := &f.turned
	if pieces {
		changed = &f.grown
	}
	if *changed == nil && (f.phase == flying || f.phase == adrift) {
		*changed = make(chan struct{})
	}
	return sight{f.phase, f.try, f.answer, f.signs, *changed}
}
