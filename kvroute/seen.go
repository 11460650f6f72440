// Seen: what people are shown of one worker's load and blocks.

package kvroute

import "time"

// Load returns what is under way at all ranks of the worker. Nothing is followed before its first
// pool, and with policies without prices.
func (w *Worker) Load(now time.Time) (l Load) {
	for _, r := range w.ranks() {
		r.track.mu.Lock()
		at := r.track.mirror.Load(now)
		r.track.mu.Unlock()
		l.Requests += at.Requests
		l.Decoding += at.Decoding
		l.Backlog += at.Backlog
		l.Context += at.Context
	}
	return l
}

// Guessed returns how many blocks of tokens are taken to be held by the worker because of what was
// sent there.
func (w *Worker) Guessed() (blocks int) {
	for _, r := range w.ranks() {
		if r.cache != nil {
			blocks += r.cache.Placed()
		}
	}
	return blocks
}
