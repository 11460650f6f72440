// The mirror of one engine: what it was sent, what it has answered, and the work that it has left.

package cost

import (
	"math"
	"time"

	"kvasir/kvroute/kvindex"
)

// Stale is how long a request may go without news before it counts as lost (Dynamo's threshold).
const Stale = 5 * time.Minute

// Sent is a request as it was sent to an engine.
type Sent struct {
	Prompt int // tokens
	Hit    int // prompt tokens that need not be computed: Candidate.Hit
	Leg    Leg // the part of the request that this engine does

	// Quiet means that its tokens do not show when passes end: either no token is seen before the
	// end, or the tokens belong to several sequences. The progress of its prompt and of its answer
	// is predicted.
	Quiet bool

	// Names are the names of the prompt's full blocks, so that blocks shared with other
	// unfinished requests count once; nil: unknown, and nothing is shared. The mirror keeps the
	// slice until the request ends.
	Names []kvindex.Name
}

// A Mirror models the scheduler of one engine. It sees only the requests sent to the engine and the
// tokens that come back. A request passes through it like this:
//
//	Send --> line --------------> pass ------------> decoding -------> End
//	         no token seen yet    shares of line,    tokens seen,      removed from
//	                              computed now       or predicted      all sums
//
// Each part of the engine, its model here, and the source of that:
//
//	the engine                        the mirror             source
//	waiting and prefilling sequences  line                   Send; the first token removes a request
//	the batch of the pass under way   pass, Request.share    compose: as a scheduler would, from line
//	generating sequences              decoding, quiet        from the first token to End
//	tokens in the KV pool             outstanding, streamed  prompts sent, tokens seen; minus shared
//	blocks shared by requests         active                 Sent.Names
//	blocks cached after requests      cache                  tokens computed since
//	the length of a pass              model, answers         when tokens came and what the pass computed
//	a throttled or shared GPU         told, slow             SetSlow, corrected by the passes since
//
// Its zero value is not usable; NewMirror makes one. It is not safe for concurrent use.
//
//  1. A request is in line until its first token is seen, then decoding, then over. A quiet request
//     leaves the line when the model predicts its first token.
//  2. The pass under way computes the share of each request in line. It is composed when it is
//     first needed, as late as possible, when most of the tokens of the pass before have arrived.
//     If a first token of the pass before arrives later, the shares are taken back (uncompose).
//  3. A pass ends when one of its tokens is seen or, if none can be seen, when it is predicted to
//     end.
//  4. The sums are over the requests that have not ended.
type Mirror struct {
	// engine has the known properties of the engine, and defaults for the unknown ones.
	engine Engine

	// told is the factor by which passes take longer according to the last SetSlow; 1: full
	// speed.
	told float64

	// slow is the factor by which they really take longer now: told, corrected by the passes since.
	// It is 1 if told is 1.
	slow float64

	// model learns how long passes take at full speed; times are divided by told first.
	model learner

	// full is a copy of model from before the engine became slow. It replaces model when the engine
	// is at full speed again. While told is 1 it has no meaning.
	full learner

	// said is what others have learned; nothing: nobody said anything. What is learned here goes before it.
	said Timing

	// answers learns the engine's pace from requests of which only the whole answer is seen.
	answers answers

	// pass is the pass under way.
	pass pass

	// unjudged are passes whose length is known, but for which it is not yet certain that they
	// computed what the mirror assumes (judge).
	unjudged unjudged

	// cache dates the blocks that the engine cached, to estimate the age of the next one it evicts.
	cache cacheAge

	// line has the requests without a seen token, in the order in which they were sent.
	line []*Request

	// heard has all requests, ordered by their last news, oldest first: the first one is the next
	// to be given up (Stale).
	heard list

	// spare has Requests for reuse, linked by next.
	spare *Request

	// requests counts the requests that have not ended.
	requests int

	// decoding counts the requests past their first token.
	decoding int

	// quiet counts the decoding requests that are Sent.Quiet: their tokens do not end a pass.
	quiet int

	// outstanding sums the prompt tokens of all requests.
	outstanding int

	// context sums the tokens to which the decoding requests attend: their prompts and generated
	// tokens.
	context int

	// streamed sums the tokens that the decoding requests have generated.
	streamed int

	// prefilling sums, over the requests in line, the prompt tokens that had to be computed when
	// they were sent.
	prefilling int

	// rest sums the part of prefilling that the pass under way and later passes compute, in tokens.
	rest int

	// unproven sums, over the quiet requests without a seen token, the prompt tokens that had to be
	// computed when they were sent.
	unproven int

	// lost counts the requests that were given up after no news for Stale.
	lost int

	// active counts the requests that use each block, for every stride-th block of unfinished
	// prompts.
	active users

	// stride is the distance, in blocks, between two blocks that are counted: about 64 tokens.
	stride int

	// shared is how many of the outstanding tokens take no memory, because another request has the
	// same blocks.
	shared int

	// flow sums the prompt tokens to compute of all requests sent up to flowAt. It decays by a
	// factor of e every flowTime.
	flow float64

	// flowAt is the time for which flow was computed.
	flowAt time.Time
}

// Request is one request in a Mirror. It must not be used after End.
type Request struct {
	sent      Sent
	at        time.Time // when the engine's scheduler gets it
	news      time.Time // when it last had news
	first     time.Time // when its first token came, or was assumed to come
	pace      float64   // of a quiet request: the pace by Mirror.answers when it was sent
	fresh     int       // prompt tokens that had to be computed when it was sent
	unproven  int       // its part of Mirror.unproven, in tokens
	own       int       // prompt tokens in blocks that no earlier request has
	rest      int       // tokens of fresh that no pass before the one under way has computed
	share     int       // tokens of rest that the pass under way computes
	tokens    int       // tokens of its answer, seen or predicted
	ended     uint64    // number of the last pass that gave it a token
	due       uint64    // number of the pass that should give its first token; 0: unknown yet
	dueBefore uint64    // value of due before the pass under way was composed
	started   bool      // the engine has taken blocks for it
	seen      bool      // a token of it was seen
	decoding  bool
	over      bool

	prev, next *Request // links in Mirror.heard or Mirror.spare
}

// NewMirror returns the mirror of an engine that has no requests.
func NewMirror(e Engine) *Mirror {
	m := &Mirror{active: newUsers(), told: 1, slow: 1}
	m.heard.init()
	m.SetEngine(e)
	return m
}

// SetEngine sets the known properties of the engine. It keeps what was learned of its timing.
func (m *Mirror) SetEngine(e Engine) {
	m.engine = e.withDefaults()
	if m.active.n == 0 { // otherwise counted names would no longer be found
		m.stride = max(sampled/m.engine.BlockSize, 1)
	}
	m.cache.resize(m.engine.Blocks)
}

// SetSlow sets the factor by which passes take longer from now on than at the engine's full
// speed, because its GPU is throttled or shared. 1 means full speed, as in a new Mirror.
//
// The factor counts at once, and the following passes correct it if they show another one:
// because of hysteresis a trouble is reported for some seconds after its end, and a lower clock
// slows some passes less than others. The model learns the full speed: times are divided by the
// factor, and passes that span a change are ignored. When the factor returns to 1, what was
// learned meanwhile is dropped, and the model from before is restored.
func (m *Mirror) SetSlow(now time.Time, times float64) {
	if times == m.told {
		return
	}
	m.advance(now)
	if m.pass.composed {
		m.length() // computed with the old factor
	}
	if m.told == 1 {
		m.full = m.model
	}
	if times == 1 {
		m.model = m.full
	}
	m.told = times
	m.pass.anchored, m.unjudged.n = false, 0
	m.pace(now, times)
}

// pace sets the factor for later passes and for the rest of the one under way.
func (m *Mirror) pace(now time.Time, slow float64) {
	p := &m.pass
	if gone := max(now.Sub(p.start), 0); p.under && p.composed && gone < m.length() {
		p.length = gone + time.Duration(float64(p.length-gone)*slow/m.slow)
	}
	m.slow = slow
}

// How fast observed passes correct the factor: each pass moves it by this share of the
// difference, which counts as at most pacedMost.
const (
	paced     = 0.3
	pacedMost = 4.0
)

// correct corrects the factor after passes that were expected to take expected and took took.
func (m *Mirror) correct(now time.Time, expected, took time.Duration) {
	if m.told == 1 || expected <= 0 || took <= 0 {
		return
	}
	if _, known := m.timing(); !known {
		return
	}
	off := min(max(float64(took)/float64(expected), 1/pacedMost), pacedMost)
	m.pace(now, min(max(m.slow*math.Pow(off, paced), 1), pacedMost*m.told))
}

// Send records that a request was sent.
func (m *Mirror) Send(now time.Time, s Sent) *Request {
	m.advance(now)
	m.expire(now)
	r := m.take()
	*r = Request{sent: s, at: now.Add(m.engine.Wire), news: now}
	if s.Leg != DecodeLeg {
		r.fresh = max(s.Prompt-s.Hit, 1)
		r.rest = r.fresh
	}
	if s.Quiet {
		r.pace = m.answers.pace()
		r.unproven = r.fresh
		m.unproven += r.unproven
	}
	m.heard.push(r)
	m.line = append(m.line, r)
	m.requests++
	m.outstanding += s.Prompt
	m.prefilling += r.fresh
	m.rest += r.rest
	r.own = s.Prompt - m.share(s.Names)
	m.shared += s.Prompt - r.own
	m.flow = m.flowing(now) + float64(r.fresh)
	m.flowAt = now
	m.cache.grow(now, blocksOf(r.fresh, m.engine.BlockSize))
	if !m.pass.under {
		m.start(r.at, true)
	}
	return r
}

// Tokens records that n more tokens of the answer were seen. The first one ends its prefill.
func (m *Mirror) Tokens(r *Request, now time.Time, n int) {
	if r.over || n <= 0 {
		return
	}
	m.advance(now)
	r.news = now
	m.heard.pop(r)
	m.heard.push(r)
	if !r.sent.Quiet && m.endsPass(r, now) {
		m.finish(now, true)
		m.start(now, true)
	}
	r.ended = m.pass.number - 1
	if !r.decoding {
		if !r.sent.Quiet {
			m.uncompose()
		}
		switch {
		case r.sent.Quiet:
		case r.due > 0 && r.due == r.ended:
			m.unjudged.firsts++
		default:
			m.unjudged.surprises++
		}
		m.first(r, now)
	}
	if r.sent.Quiet && !r.seen {
		r.seen = true
		m.unproven -= r.unproven
		m.grow(r, -r.tokens) // the tokens that it was predicted to have
		r.unproven = 0
	}
	m.grow(r, n)
}

// Heard records that the answer of a quiet request has this many tokens by now, as somebody says who sees them: another
// router that sent it. What follows is predicted again.
func (m *Mirror) Heard(r *Request, now time.Time, tokens int) {
	if r.over || !r.sent.Quiet || tokens <= 0 {
		return
	}
	m.advance(now)
	r.news = now
	m.heard.pop(r)
	m.heard.push(r)
	if p := &m.pass; !r.decoding && p.under && p.composed && r.share > 0 && r.share == r.rest && !m.visible() {
		m.finish(now, false) // it has r among its first tokens
		m.start(now, false)
	}
	if !r.decoding {
		m.first(r, now)
	}
	m.unproven -= r.unproven
	r.unproven = 0
	m.grow(r, tokens-r.tokens)
}

// Usage records how many prompt tokens the engine reports as cached. It has an effect only before
// the first token.
func (m *Mirror) Usage(r *Request, cached int) {
	if r.over || r.decoding || r.sent.Leg == DecodeLeg || cached < 0 {
		return
	}
	fresh := max(r.sent.Prompt-cached, 1)
	m.prefilling += fresh - r.fresh
	m.rest -= r.rest
	r.rest = max(r.rest+fresh-r.fresh, r.share)
	m.rest += r.rest
	r.fresh = fresh
}

// End records that a request is over, however it ended. Call it exactly once, and do not use r
// afterwards.
func (m *Mirror) End(r *Request, now time.Time) {
	if !r.over { // otherwise it was lost, and has left the sums already
		m.advance(now)
		m.remove(r, now)
	}
	r.next, m.spare = m.spare, r
	r.sent.Names = nil
}

// Lost returns how many requests were dropped after no news for Stale.
func (m *Mirror) Lost() int { return m.lost }

// first moves a request from the line to the decoding ones.
func (m *Mirror) first(r *Request, now time.Time) {
	m.leaveLine(r)
	r.decoding, r.first = true, now
	m.decoding++
	m.context += r.sent.Prompt
	m.prefilling -= r.fresh
	if r.sent.Quiet {
		m.quiet++
	}
}

func (m *Mirror) grow(r *Request, n int) {
	r.tokens += n
	m.streamed += n
	m.context += n
}

func (m *Mirror) leaveLine(r *Request) {
	for i, other := range m.line {
		if other == r {
			m.line = append(m.line[:i], m.line[i+1:]...)
			break
		}
	}
	m.pass.prompt -= r.share
	m.rest -= r.rest
	if r.due == m.pass.number {
		m.pass.firsts--
	}
	r.share, r.rest = 0, 0
}

// remove removes a request from all sums.
func (m *Mirror) remove(r *Request, now time.Time) {
	if r.decoding {
		m.decoding--
		m.context -= r.sent.Prompt + r.tokens
		m.streamed -= r.tokens
		if r.sent.Quiet {
			m.quiet--
		}
		m.cache.grow(now, r.tokens/m.engine.BlockSize)
	} else {
		if r.due > 0 && r.due == m.pass.number-1 {
			m.unjudged.due--
		}
		m.leaveLine(r)
		m.prefilling -= r.fresh
	}
	m.requests--
	m.unproven -= r.unproven
	m.outstanding -= r.sent.Prompt
	m.shared -= m.unshare(r.sent.Names)
	m.heard.pop(r)
	r.over = true
	if m.requests == 0 {
		m.pass.under = false
	}
}

// expire drops requests without news: their End was forgotten, or is minutes late.
func (m *Mirror) expire(now time.Time) {
	for r := m.heard.front(); r != nil && now.Sub(r.news) > Stale; r = m.heard.front() {
		m.remove(r, now)
		m.lost++
	}
}

func (m *Mirror) take() *Request {
	r := m.spare
	if r == nil {
		return &Request{}
	}
	m.spare = r.next
	return r
}

// list is a ring of requests with a separate head.
type list struct{ head Request }

func (l *list) init() { l.head.next, l.head.prev = &l.head, &l.head }

func (l *list) front() *Request {
	if l.head.next == &l.head {
		return nil
	}
	return l.head.next
}

func (l *list) push(r *Request) {
	r.prev, r.next = l.head.prev, &l.head
	r.prev.next, l.head.prev = r, r
}

func (l *list) pop(r *Request) {
	r.prev.next, r.next.prev = r.next, r.prev
}

func blocksOf(tokens, size int) int { return (tokens + size - 1) / size }
