// Messages: their form, and how they are read.

package peering

import (
	"encoding/binary"
	"math"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// version is the first byte of a message. A message of another one is not looked at any further.
// 1 had entrySpent in snapshots, no entry behind entryLeaving, and none that may be skipped.
const version = 2

// A message is the version, the router's ID (8 bytes), the message's number among those of the router
// (from 1), the place of its first new name (packer), and entries to its end. Each entry is its
// kind, one byte, and what the kind has. Numbers are uvarints, if nothing else is said; a worker
// is its Key in 8 bytes.
const (
	entryPlaced   = iota + 1 // leg, worker, rank+1, cost.Leg, prompt, hit, block size, 1 if exact, tokens of the answer, names
	entryTokens              // leg, tokens of the answer
	entryEnded               // leg
	entrySlots               // worker, requests under way
	entrySick                // worker
	entrySpent               // account (8 bytes), its sum (8 bytes, a float64)
	entrySnapshot            // length of the router's name, the name: all that it has follows
	entryComplete            // end of the snapshot
	entryWant                // router (8 bytes) whose snapshot is wanted
	entryLeaving             // the router stops
	entryLately              // of a snapshot: account, sum, how much of it is of the last minute (8 bytes, a float64)
	entryUnused              // account that was not used for a minute: its next sum begins at 0
	entryWaits               // model (8 bytes), 1 + ms that the request in line has waited that has longest; 0: none waits
	entryMaking              // answer (8 bytes) that the router makes
	entryMade                // answer that it makes no longer, 1 if it is stored
	entryPace                // of a snapshot: worker, rank+1, what was learned of its passes (cost.Timing, 6 float64)
)

// Entries from entryOptional on have their length behind their kind, a number: who does not know one goes
// on behind it, so that another one needs no other version.
const entryOptional = 128

// mostWaited bounds how long a request has waited, in ms.
const mostWaited = 1 << 30

// mostTokens bounds numbers of tokens: sums of them must not overflow.
const mostTokens = 1 << 30

func appendHeader(dst []byte, id, seq, at uint64) []byte {
	dst = append(dst, version)
	dst = binary.LittleEndian.AppendUint64(dst, id)
	dst = binary.AppendUvarint(dst, seq)
	return binary.AppendUvarint(dst, at)
}

func appendPlaced(dst []byte, p *packer, id, worker uint64, a *kvroute.Away) []byte {
	dst = binary.AppendUvarint(append(dst, entryPlaced), id)
	dst = binary.LittleEndian.AppendUint64(dst, worker)
	exact := 0
	if a.Exact {
		exact = 1
	}
	for _, n := range [...]int{a.Rank + 1, int(a.Leg), a.Prompt, a.Hit, a.BlockSize, exact, a.Generated} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return p.append(dst, a.Names)
}

func appendKeyed(dst []byte, kind byte, key uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, kind), key)
}

func appendAmount(dst []byte, amount float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(amount))
}

// A reader reads a message of a stranger. Once it is bad all is zero.
type reader struct {
	rest    []byte
	bad     bool
	expand  int // names that copies may still stand for
	scratch []kvindex.Name
}

func (r *reader) byte() byte {
	if r.bad || len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	if r.bad {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// number reads a number that is at most most.
func (r *reader) number(most int) int {
	v := r.uvarint()
	if v > uint64(most) {
		r.bad = true
		return 0
	}
	return int(v)
}

func (r *reader) key() uint64 {
	if r.bad || len(r.rest) < 8 {
		r.bad = true
		return 0
	}
	v := binary.LittleEndian.Uint64(r.rest)
	r.rest = r.rest[8:]
	return v
}

// amount reads what was spent: a number that is not negative.
func (r *reader) amount() float64 {
	v := math.Float64frombits(r.key())
	if !(v >= 0 && v <= 1e18) {
		r.bad = true
		return 0
	}
	return v
}

// names reads n names of 8 bytes; valid until the next call.
func (r *reader) names(n int) []kvindex.Name {
	if r.bad || len(r.rest) < 8*n {
		r.bad = true
		return nil
	}
	r.scratch = r.scratch[:0]
	for i := range n {
		name := kvindex.Name(binary.LittleEndian.Uint64(r.rest[8*i:]))
		if name == 0 {
			r.bad = true // no block has it
			return nil
		}
		r.scratch = append(r.scratch, name)
	}
	r.rest = r.rest[8*n:]
	return r.scratch
}

func (r *reader) text(most int) string { return string(r.bytes(most)) }

// bytes reads a number, at most most, and as many bytes.
func (r *reader) bytes(most int) []byte {
	n := r.number(most)
	if r.bad || len(r.rest) < n {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// timing reads six numbers; what they say is looked at by who takes them.
func (r *reader) timing() (t cost.Timing) {
	for _, part := range [...]*[3]float64{&t.Prefill, &t.Decode} {
		for i := range part {
			part[i] = math.Float64frombits(r.key())
		}
	}
	return t
}

// away reads a leg without its names.
func (r *reader) away() (a kvroute.Away) {
	a.Rank = r.number(1<<16) - 1
	a.Leg = cost.Leg(r.number(int(cost.DecodeLeg)))
	a.Prompt = r.number(mostTokens)
	a.Hit = r.number(a.Prompt)
	a.BlockSize = r.number(1 << 20)
	a.Exact = r.number(1) == 1
	a.Generated = r.number(mostTokens)
	return a
}
