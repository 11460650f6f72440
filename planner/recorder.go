// The recorder: the requests of the last minutes, in memory that is bounded, without any of their text.

package planner

import (
	"cmp"
	"slices"
	"sync"
	"time"
	"unsafe"

	"kvasir/kvroute/kvindex"
	"kvasir/kvroute/replay"
)

// PieceTokens is how many tokens a piece of a prompt has, by which the recorder knows what prompts have in common.
const PieceTokens = 256

// A Recorder keeps when requests came, how long they were and took, and the names of the pieces of their prompts: hashes
// of all tokens up to there. It may be used by many at once.
//
//  1. It never takes more memory than it was made with: of more requests than fit the oldest are forgotten, and so is
//     one the names of which had to make room.
//  2. A request is noted when it comes, so that arrivals are counted, and again when it is done. Nothing is allocated
//     for either.
type Recorder struct {
	mu       sync.Mutex // guards below
	began    time.Time
	records  []record
	came     uint64 // requests that came in all; one's number is what it was before, and its place that modulo len(records)
	names    []kvindex.Name
	named    uint64 // names in all, likewise
	arrivals []int32
	bucket   int64 // since began, the one that arrivals count now
}

// record is a request.
type record struct {
	arrival        time.Duration // since began
	ttft, e2e      time.Duration // e2e 0: it is not done, or brought no answer
	prompt, answer int32
	first          uint64 // of names
	named          int32
	streamed       bool
}

// NewRecorder returns one that takes so many bytes at most, and begins now. history is how far it is to look back.
func NewRecorder(bytes int, history time.Duration, now time.Time) *Recorder {
	// A third for records, the rest for names: those of prompts of some 4,000 tokens.
	records := max(bytes/3/int(unsafe.Sizeof(record{})), 16)
	return &Recorder{
		began: now, records: make([]record, records), names: make([]kvindex.Name, max(bytes*2/3/int(unsafe.Sizeof(kvindex.Name(0))), 64)),
		arrivals: make([]int32, history/Bucket+2),
	}
}

// Came notes a request that came, with the names of its pieces, which it copies. It returns what Done is to be told.
func (r *Recorder) Came(now time.Time, names []kvindex.Name) (ticket uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := max(now.Sub(r.began), 0)
	r.advance(int64(at / Bucket))
	// One that waited for the lock longer than another counts where the clock is by now.
	if back := r.bucket - int64(at/Bucket); back < int64(len(r.arrivals)) {
		r.arrivals[(r.bucket-back)%int64(len(r.arrivals))]++
	}
	if len(names) > len(r.names)/8 { // one giant is not to make room of all others
		names = nil
	}
	one := &r.records[r.came%uint64(len(r.records))]
	*one = record{arrival: at, first: r.named, named: int32(len(names))}
	for _, name := range names {
		r.names[r.named%uint64(len(r.names))] = name
		r.named++
	}
	r.came++
	return r.came // so that 0 is none
}

// advance begins the buckets up to one.
func (r *Recorder) advance(bucket int64) {
	if skipped := bucket - r.bucket; skipped > int64(len(r.arrivals)) {
		clear(r.arrivals)
		r.bucket = bucket
	}
	for r.bucket < bucket {
		r.bucket++
		r.arrivals[r.bucket%int64(len(r.arrivals))] = 0
	}
}

// A Done is a request that is done: what its worker counted, and how long it took from its arrival.
type Done struct {
	PromptTokens, AnswerTokens int
	TTFT, E2E                  time.Duration
	Streamed                   bool // TTFT is that of the first token, not of the whole
}

// mostTokens bounds what is believed of a prompt or an answer.
const mostTokens = 1 << 24

// Done notes that a request is done that came. It is not told of one that brought no answer.
func (r *Recorder) Done(ticket uint64, d Done) {
	if d.PromptTokens < 1 || d.E2E <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ticket == 0 || ticket > r.came || r.came-ticket >= uint64(len(r.records)) {
		return // forgotten meanwhile
	}
	one := &r.records[(ticket-1)%uint64(len(r.records))]
	one.prompt, one.answer = int32(min(d.PromptTokens, mostTokens)), int32(min(max(d.AnswerTokens, 1), mostTokens))
	one.ttft, one.e2e, one.streamed = min(d.TTFT, d.E2E), d.E2E, d.Streamed
}

// Load is what is known at now, for a planner with these options: of requests that are done the last ones of those that
// are Settled, as many as a plan plays. Requests whose prompts the engine's pool could not hold are left out: its size was
// not known, or was another one. Requests that come wait while the last ones are copied, and not while they are made into
// a trace.
func (r *Recorder) Load(now time.Time, o *Options) *Load {
	at := max(now.Sub(r.began), 0)
	l := &Load{Now: at / Bucket * Bucket, Done: &replay.Trace{Name: "the last requests", PieceTokens: PieceTokens}}
	most := max(o.MostPlayed, fewRequests)

	// How long the last ones took says which are settled. What is measured is of no more than these either.
	last, _ := r.copy(at, at+1, most, o, false, l)
	var took []time.Duration
	var outcomes []Outcome
	for i := range last {
		one := &last[i].record
		if one.arrival >= at-o.Window {
			took = append(took, one.e2e)
		}
		if one.streamed && one.arrival+one.e2e > at-o.Interval {
			outcomes = append(outcomes, Outcome{TTFT: one.ttft, E2E: one.e2e, Answer: int(one.answer)})
		}
	}
	l.Settled = at - settles(took)
	l.Measured = measured(outcomes, o.Targets)

	done, names := r.copy(at, min(l.Settled, l.Now), most, o, true, nil)
	slices.SortStableFunc(done, func(a, b copied) int {
		return cmp.Or(cmp.Compare(a.arrival, b.arrival), cmp.Compare(a.number, b.number))
	})
	pieces := make(map[kvindex.Name]uint32, len(names))
	l.Done.Requests = make([]replay.Request, 0, len(done))
	for i := range done {
		one := &done[i]
		l.Done.Requests = append(l.Done.Requests, replay.Request{
			Arrival: one.arrival, PromptTokens: int(one.prompt), AnswerTokens: int(one.answer),
			Content: content(int(one.prompt), names[one.from:one.from+int(one.named)], l.Done, pieces), Line: int(one.number + 1),
		})
	}
	return l
}

// copied is a record, the request's number, and where among the names that were copied with it its own begin.
type copied struct {
	record
	number uint64
	from   int
}

// copy returns, newest first, the last requests that are done of those that came before a time, at most so many, and with
// named the names of their pieces. Into l, if not nil, go the arrivals. It is all that Load does under the lock.
func (r *Recorder) copy(at, by time.Duration, most int, o *Options, named bool, l *Load) (done []copied, names []kvindex.Name) {
	done = make([]copied, 0, min(most, len(r.records)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if l != nil {
		r.advance(int64(at / Bucket))
		l.Since = max(l.Now-o.Window/Bucket*Bucket, 0, l.Now-time.Duration(len(r.arrivals)-2)*Bucket)
		for b := int64(l.Since / Bucket); b < int64(l.Now/Bucket); b++ {
			l.Arrivals = append(l.Arrivals, int(r.arrivals[b%int64(len(r.arrivals))]))
		}
	}
	oldest := uint64(max(int64(r.came)-int64(len(r.records)), 0))
	for n := r.came; n > oldest && len(done) < most; n-- {
		one := &r.records[(n-1)%uint64(len(r.records))]
		if r.named-one.first > uint64(len(r.names)) || one.arrival < at-Back*o.Window-overtakes {
			break // so are all before it
		}
		if one.arrival < at-Back*o.Window || one.arrival >= by || one.e2e == 0 || int(one.prompt)+int(one.answer) > o.Engine.Blocks*o.Engine.BlockSize {
			continue
		}
		done = append(done, copied{*one, n - 1, len(names)})
		for i := range uint64(one.named) {
			if !named {
				break
			}
			names = append(names, r.names[(one.first+i)%uint64(len(r.names))])
		}
	}
	return done, names
}

// overtakes is by how much longer one request may have waited for the lock than the next one.
const overtakes = time.Second

// content are the pieces of a request's prompt. Where fewer are named than it has, the others are like no other one.
func content(prompt int, names []kvindex.Name, t *replay.Trace, pieces map[kvindex.Name]uint32) []uint32 {
	content := make([]uint32, (prompt+PieceTokens-1)/PieceTokens)
	for i := range content {
		if i < len(names) {
			number, known := pieces[names[i]]
			if !known {
				number = uint32(t.Pieces)
				pieces[names[i]] = number
				t.Pieces++
			}
			content[i] = number
			continue
		}
		content[i] = uint32(t.Pieces)
		t.Pieces++
	}
	return content
}
