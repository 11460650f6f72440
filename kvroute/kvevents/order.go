// The order of messages: what a sequence number means after those before it. No I/O.

package kvevents

import "hash/maphash"

// order follows the sequence numbers of one publisher, which count its messages from 0 since it was started.
// Invariant: heard <= next.
type order struct {
	known bool   // next means something
	next  uint64 // the message to take next; all before are taken or given up
	heard uint64 // live messages come from here on: those that a replay gave before them are doubles
	last  uint64 // fingerprint of the message next-1, if hasLast
	has   bool
}

// verdict is what to do with a live message.
type verdict uint8

const (
	take    verdict = iota // it is the next one
	double                 // a replay gave it already
	gap                    // messages before it are missing
	restart                // the numbers went back: another process counts
)

// live judges the number of a message that came by subscription.
func (o *order) live(seq uint64) verdict {
	switch {
	case !o.known:
		return take
	case seq < o.heard:
		return restart
	case seq < o.next:
		return double
	case seq > o.next:
		return gap
	}
	return take
}

// taken notes that a message was given to the sink.
func (o *order) taken(seq uint64, payload []byte) {
	o.known, o.next, o.has = true, seq+1, true
	o.last = fingerprint(payload)
}

// same reports whether a message that a replay gives as next-1 is the one that was taken.
func (o *order) same(payload []byte) bool { return !o.has || o.last == fingerprint(payload) }

// over begins anew: a process that counts from 0.
func (o *order) over() { *o = order{known: true} }

var seed = maphash.MakeSeed()

// fingerprint tells messages apart: they begin with the time of day.
func fingerprint(payload []byte) uint64 { return maphash.Bytes(seed, payload) }
