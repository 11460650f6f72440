// What is kept of a request that has ended: how it went, for those who look at it.

// Package record says how one request went, step by step: what the page shows of it and what
// traces are made of. No text of the request, of its answer or of its key is in it, but for Content,
// which is there only where tracing.content asks for it.
//
//	trail.Start(arrived)          // of a request under way
//	trail.Next(record.Judge)      // ends the step before
//	trail.Done()
//	observe(&record.Record{...})  // once, when the request has ended
package record

import (
	"time"

	"kvasir/tracing/traceparent"
)

// A Record is one request that has ended. It is valid while its observer is called: the next
// request uses its memory, so what is kept of slices is copied. Strings may be kept; none that a
// client wrote is longer than 256 bytes.
type Record struct {
	ID       string // the client's X-Request-Id, or made here
	WorkerID []byte // the id that workers were sent
	Route    string // the path of the API, as in openai.Routes
	Asked    string // the model of the request; "": none
	Model    string // the model that answered, or should have
	Key      string // the name of its API key; "": none
	Tenant   string // of the key; "": none
	Worker   string // that was asked last; "": none was
	Prefill  string // that computed the prompt for it; "": the worker itself

	Trace traceparent.Context // the request's part in a trace; zero: it has none

	Began     time.Time     // when the request had come whole
	FirstByte time.Duration // from Began to the first byte of the answer; 0: there was none
	Total     time.Duration // from Began to the end
	Overhead  time.Duration // of FirstByte: what was no waiting for others
	Waited    time.Duration // of Total: waiting for a worker, for a place, or as a follower

	Status    int    // of the reply
	Streamed  bool   // it came as events
	End       string // why it did not end well: client_gone, interrupted, blocked ...; "": it did
	Path      string // who answered: upstream, cache, blocked, fast_response, error
	Retries   int
	Fallbacks int   // models that were asked after the chosen one
	Bytes     int64 // of the reply

	Prompt, Completion, CachedTokens int // as the worker counted them; -1: it did not say

	Steps     []Step // their legs are memory of the next request, too
	StepsLeft int    // steps beyond those in Steps

	Judgement Judgement
	Cache     Cache
	Placement Placement

	Link    traceparent.Link // the equal request whose answer this one was given; zero: none, or it is not sampled
	Content *Content         // nil: it is not asked for. For traces alone: nobody else keeps or shows it
}

// Content is what a request asked and was answered, as JSON in the form of OpenTelemetry's conventions.
// Strings of what there is not are empty.
type Content struct {
	System, Input, Output string
	LeftOut               string // why something is missing as a whole
}

// Size is how many bytes it has; none of nil.
func (c *Content) Size() int {
	if c == nil {
		return 0
	}
	return len(c.System) + len(c.Input) + len(c.Output)
}

// An Outcome is the word for how a request ended.
type Outcome string

// The outcomes.
const (
	OK        Outcome = "ok"
	Error     Outcome = "error"
	Blocked   Outcome = "blocked"   // by a guard or a decision
	FromCache Outcome = "cache"     // or with an equal request's answer
	Cancelled Outcome = "cancelled" // by the client
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{OK, Error, Blocked, FromCache, Cancelled} }

// Outcome says how the request ended.
func (r *Record) Outcome() Outcome {
	switch {
	case r.End == "client_gone":
		return Cancelled
	case r.Path == "blocked" || r.Path == "fast_response":
		return Blocked
	case r.Status >= 400 || r.End != "":
		return Error
	case r.Cache.Result == "hit" || r.Cache.Result == "wait":
		return FromCache
	}
	return OK
}

// A Judgement is what the classifier said, and what followed. The zero value says nothing.
type Judgement struct {
	Judged bool // the request was judged at all

	Category   string // "": not asked for
	Confidence float64

	Decision  string // "": none held
	Reasoning string // on, off, an effort; "": as the client asked
	Injected  bool   // the decision's system prompt is in the body

	GuardJudged bool    // the guard against attacks has a score
	Attack      string  // the type of the attack; "": none
	Score       float64 // of it

	Types    []string // of personal data that were found
	Denied   []string // of those, what may not pass
	Redacted int      // values that were replaced

	Guard    string // that blocked: jailbreak, pii, decision; "": none
	Unjudged string // the guard that could not judge and let pass

	Language   string
	Complexity string
	Hidden     int // characters that no reader sees
	Matched    []Match
}

// A Match is a signal that held.
type Match struct {
	Kind, Name string
	Score      float64
}

// Cache is what became of the request at the cache.
type Cache struct {
	Result     string // hit, miss, bypass, wait; "": there is no cache for it
	Why        string // it is no hit
	Entry      string // of a hit
	Similarity float64
	Age        time.Duration
}

// Placement is the last choice of workers. The zero value: none was made.
type Placement struct {
	Policy      string
	Why         string // the policy, pinned, busy, last_resort
	Tokens      int    // of the prompt
	Approximate string // why text stood in for tokens; "": it did not
	Priced      bool   // what workers hold was looked at

	Overlap     int // leading blocks of the prompt that can be reused
	Blocks      int // of the prompt
	BlockTokens int
	Cost        float64
	TTFT        time.Duration // predicted; 0: not predicted

	Candidates []Candidate // at most MaxCandidates: the chosen ones, then the cheapest
	LeftOut    int         // candidates beyond those
}

// MaxCandidates bounds the candidates of a placement in a record.
const MaxCandidates = 16

// A Candidate is a worker, or one rank of it, as it was priced.
type Candidate struct {
	Worker  string
	Rank    int    // -1: none is named
	Leg     string // whole, prefill, decode
	Chosen  bool
	Cost    float64 // milliseconds (predict) or blocks (kv)
	Parts   [MaxParts]Part
	Overlap int // blocks
	Of      int // blocks of the prompt

	Requests, Decoding, Backlog, Context int // what was under way there; the last two in tokens

	TTFT  time.Duration // predicted; 0: not predicted
	Slow  float64       // passes take so many times longer; 0: not known to
	Aside bool          // others are preferred
}

// MaxParts bounds the parts of a price.
const MaxParts = 6

// A Part is what one reason adds to a price. Unused ones have no name.
type Part struct {
	Name  string
	Value float64
}
