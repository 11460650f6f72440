// What a mirror knows, copied out for prices.

package cost

import (
	"math"
	"time"
)

// Load is what is under way at one engine at one moment, as its Mirror sees it.
type Load struct {
	Engine Engine // with defaults for what is not known
	Timing Timing // known or learned, at full speed; zero until then

	Guessed bool // Timing is learned from whole answers only, and says of small differences nothing

	Slow float64 // passes take so many times longer at present: Mirror.SetSlow; 0: as 1

	Requests    int // sent and not ended
	Decoding    int // past their first token
	Outstanding int // prompt tokens of all of them
	Context     int // prompt and streamed tokens of those decoding
	Streamed    int // tokens that those decoding have generated

	Shared int // of the outstanding, those whose blocks are another request's as well

	Prefilling int           // prompt tokens to compute of those not past their first token, as sent
	Backlog    int           // prompt tokens that the pass under way will not finish
	InPass     int           // prompt tokens that it computes
	Unproven   int           // prompt tokens to compute, as sent, of quiet requests of which no token was seen
	PassLeft   time.Duration // until it ends; 0: idle, or any moment
	Flow       float64       // prompt tokens to compute that were sent in a second, over the last half minute or so

	Held     int           // blocks in the cache, used or not
	EvictAge time.Duration // since the last use of what would be evicted next
}

// used is the share of the pool that unfinished requests use; above 1 where they wait for it.
func (l *Load) used() float64 {
	return float64(l.Outstanding-l.Shared+l.Streamed) / float64(l.Engine.tokens())
}

// Open reports whether the engine's next pass has room for what leg asks of it: what the central queue waits for. An
// answer whose prompt another engine computes does not wait for prompts here: those have the time of its transfer.
func (l *Load) Open(leg Leg) bool {
	return (l.Backlog < l.Engine.Budget || leg == DecodeLeg) && l.Requests < l.Engine.MaxSeqs
}

// slow is Slow, 1 where nobody said.
func (l *Load) slow() float64 {
	if l.Slow > 0 {
		return l.Slow
	}
	return 1
}

// ttft predicts the milliseconds until the first token of a request with so many tokens to compute (0: none, its
// answer is all that is asked for), by a timing that may be another engine's. unproven: prompts of quiet requests of which
// no token was seen are taken to wait.
func (l *Load) ttft(fresh float64, timing *Timing, unproven bool) float64 {
	decode := 0.0
	if l.Decoding > 0 {
		decode = timing.decode(float64(l.Context) / float64(l.Engine.tokens()))
	}
	budget := float64(max(l.Engine.Budget-l.Decoding, 1))
	waiting := l.Backlog
	if unproven {
		waiting = max(waiting, l.Unproven-l.InPass)
	}
	total := float64(waiting) + fresh
	full := math.Floor(total / budget)
	rest := total - full*budget
	t := millis(l.PassLeft) + full*(timing.prefill(budget)+decode)
	if rest > 0 || fresh == 0 {
		t += timing.prefill(rest) + decode
	}
	return t
}

// Load returns what is under way at now.
func (m *Mirror) Load(now time.Time) Load {
	m.expire(now)
	m.advance(now)
	p := &m.pass
	if p.under && !p.composed {
		m.compose()
	}
	l := Load{
		Engine: m.engine, Slow: m.slow,
		Requests: m.requests, Decoding: m.decoding, Outstanding: m.outstanding, Context: m.context, Streamed: m.streamed,
		Shared: m.shared, Prefilling: m.prefilling, Backlog: m.rest, Flow: m.flowing(now) / flowTime.Seconds(),
		Held: m.cache.held(), Unproven: m.unproven,
	}
	l.EvictAge = m.cache.age(now, l.used())
	if t, guessed, ok := m.priced(); ok {
		l.Timing, l.Guessed = t, guessed
	}
	if p.under {
		l.InPass = p.prompt
		l.Backlog -= p.prompt
		l.PassLeft = left(now, p.start, m.length())
	}
	return l
}

// left is how long a pass is still predicted to last. One that is overdue by more than half its length is not to be
// trusted to end at any moment: it is taken to last as long again as it is overdue, so that a hung engine is not the
// best one.
func left(now, start time.Time, length time.Duration) time.Duration {
	left := start.Add(length).Sub(now)
	if left >= 0 {
		return left
	}
	if -left > length/2+slack {
		return -left
	}
	return 0
}

// slack is how late a token may be on its way here.
const slack = 20 * time.Millisecond

// Timing is how long the engine's passes take, as far as it is known or learned; false: not yet.
func (m *Mirror) Timing() (Timing, bool) {
	t, _, ok := m.priced()
	return t, ok
}

func (m *Mirror) timing() (Timing, bool) {
	if m.engine.Timing.known() {
		return m.engine.Timing, true
	}
	if t, ok := m.model.timing(); ok || !m.answers.known() {
		return t, ok
	}
	return typical.times(m.answers.pace()), true
}

// priced is what prices go by: what was learned here, else what others say, else a guess. What others
// say is no part of timing: passes are told apart by that, and by a pace that is far too slow those of a fast
// engine are not, so that its own was never learned.
func (m *Mirror) priced() (t Timing, guessed, ok bool) {
	if m.said.known() && m.guessed() {
		return m.said, false, true
	}
	t, ok = m.timing()
	return t, ok && m.guessed(), ok
}

// Learned is what was learned here of how long passes take at full speed; false: nothing yet.
func (m *Mirror) Learned() (Timing, bool) { return m.model.timing() }

// believable bounds how much slower, or faster, an engine may be said to be than Mocker.
const believable = 100

// Believe takes what somebody else has learned of the engine's passes, until enough is learned here. It
// reports whether that can be.
func (m *Mirror) Believe(t Timing) bool {
	budget := float64(m.engine.Budget)
	for _, v := range [...]float64{t.Pace(), t.prefill(budget) / Mocker.prefill(budget)} {
		if !(v > 1.0/believable && v < believable) { // not with NaN either
			return false
		}
	}
	// Between the points where it was looked at, too: a polynomial may be of any size there, and a length that is
	// no duration has every price be wrong.
	for _, share := range [...]float64{0, 0.5, 1} {
		prefill, decode := t.Prefill[0]+share*budget*(t.Prefill[1]+share*budget*t.Prefill[2]), t.Decode[0]+share*(t.Decode[1]+share*t.Decode[2])
		if !(math.Abs(prefill) < believable*Mocker.prefill(budget) && math.Abs(decode) < believable*Mocker.decode(1)) {
			return false
		}
	}
	m.said = t
	return true
}

// guessed reports whether all that is known of the timing, if anything is, is how long whole answers took.
func (m *Mirror) guessed() bool {
	_, learned := m.model.timing()
	return !learned && !m.engine.Timing.known()
}

// flowTime is the time over which Load.Flow is a mean.
const flowTime = 20 * time.Second

// flowing is the flow that is left at now.
func (m *Mirror) flowing(now time.Time) float64 {
	if m.flow == 0 {
		return 0
	}
	gone := max(now.Sub(m.flowAt), 0) // a clock that goes backwards would make it grow beyond all numbers
	return m.flow * math.Exp(-gone.Seconds()/flowTime.Seconds())
}
