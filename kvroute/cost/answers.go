// What answers that come in one piece tell of an engine's pace.

package cost

import (
	"math"
	"time"
)

// answers learns how many times slower an engine is than a typical one, where no tokens show its passes. It compares how
// long whole answers took with how long the mirror expected them to take, at the pace known when they were sent; as the
// mirror has them wait behind each other too, waiting counts on both sides. It is one factor for all passes: nobody can
// tell which part of an answer's time was its prompt's and which its tokens'.
type answers struct {
	count int
	log   float64 // logarithm of the factor
}

const (
	answersMost = 30.0 // an engine is at most so many times slower or faster than typical
	answersNew  = 0.05 // what a new answer counts for among those before it; the first ones count for more
)

// pace is the factor.
func (a *answers) pace() float64 { return math.Exp(a.log) }

// known reports whether enough was seen to price by it.
func (a *answers) known() bool { return a.count >= enough }

// add takes in an answer that should have taken so long at that pace.
func (a *answers) add(pace float64, expected, took time.Duration) {
	if expected <= 0 || took <= 0 {
		return
	}
	a.count++
	most := math.Log(answersMost)
	seen := min(max(math.Log(pace*float64(took)/float64(expected)), -most), most)
	a.log += max(1/float64(a.count+1), answersNew) * (seen - a.log)
}

// Answer notes that the answer of a quiet request has ended with so many tokens; End follows. Nothing is learned from an
// answer whose prompt was computed elsewhere, as its time includes that. Nor is anything where the timing was learned from
// passes: what is expected then does not follow this pace, and each answer that takes a little longer would move it further.
func (m *Mirror) Answer(r *Request, now time.Time, tokens int) {
	if r.over || !r.sent.Quiet || r.sent.Leg == DecodeLeg || tokens <= 0 || !m.guessed() {
		return
	}
	m.advance(now)
	took := max(now.Sub(r.at), 0)
	pass := duration(m.passMillis(0, max(m.decoding, 1), m.context))
	expected := took + duration(m.passMillis(r.rest, 0, 0)) + time.Duration(tokens)*pass // by the mirror it is still in line
	if r.decoding {
		if r.tokens > 1 {
			pass = now.Sub(r.first) / time.Duration(r.tokens-1)
		}
		expected = r.first.Sub(r.at) + time.Duration(tokens-1)*pass
	}
	// Where a slow GPU was told of, both have its factor, which is no part of what the engine can do.
	m.answers.add(r.pace, expected, took)
}
