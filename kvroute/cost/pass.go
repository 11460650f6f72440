// The engine's passes as a mirror infers them.

package cost

import "time"

// pass is the pass under way.
type pass struct {
	number   uint64
	under    bool
	composed bool      // its shares are given
	timed    bool      // its length is known: Mirror.length
	start    time.Time // of the pass
	length   time.Duration
	firsts   int // requests whose first token it should bring, seen as it comes
	prompt   int // prompt tokens computed in it
	tokens   int // the same when it was composed
	decoding int // sequences generating a token in it, and the tokens they attend to
	context  int

	anchor   time.Time // when a pass was last known to begin; anchored: that it is known
	anchored bool
	expected time.Duration // of the passes since then that are over, where SetSlow told of a pace
}

// start begins a pass. known: the moment is known, not predicted.
func (m *Mirror) start(at time.Time, known bool) {
	p := &m.pass
	p.number++
	p.under, p.composed, p.timed, p.start, p.prompt = true, false, false, at, 0
	if known {
		p.anchor, p.anchored, p.expected = at, true, 0
		m.model.begin()
	}
}

// compose gives the pass under way its shares, as the engine's scheduler would: who decodes first, then the line in
// order, out of one budget, while the pool has room.
func (m *Mirror) compose() {
	p := &m.pass
	p.composed = true
	p.decoding, p.context = m.decoding, m.context
	p.firsts = 0
	budget := m.engine.Budget - m.decoding
	places := m.engine.MaxSeqs - m.decoding
	room := m.engine.tokens() + m.outstanding/64
	before := m.outstanding - m.shared + m.streamed
	for _, r := range m.line {
		if !r.started {
			before -= r.own
		}
	}
	for _, r := range m.line {
		if budget <= 0 || places <= 0 || r.at.After(p.start) {
			break
		}
		if !r.started {
			if before += r.own; before > room {
				break // blocked, with all behind it
			}
		}
		r.started = true
		places--
		r.share = min(r.rest, budget)
		budget -= r.share
		p.prompt += r.share
		if r.share == r.rest && !r.sent.Quiet {
			p.firsts++
			r.dueBefore, r.due = r.due, p.number
		}
	}
	p.tokens = p.prompt
	if p.prompt == 0 && p.decoding == 0 && p.firsts == 0 {
		p.under = false
	}
}

// uncompose takes back the shares of the pass under way, for a first token of the pass before has come after they were
// given: whoever asks for the load in between must not make a pass of it that this answer is not in, nor make the token
// one that nobody expected (unjudged). A central queue asks with each first token, and nothing was ever learned of an
// engine that always has prompts waiting: it got all requests that begin alike, and seven others none.
func (m *Mirror) uncompose() {
	p := &m.pass
	if !p.under || !p.composed {
		return
	}
	for _, r := range m.line {
		if r.due == p.number {
			r.due = r.dueBefore
		}
		r.share = 0
	}
	p.composed, p.timed, p.prompt, p.tokens, p.firsts = false, false, 0, 0, 0
}

// length is how long the pass under way is taken to last; it must be composed. It is worked out when somebody asks, since
// the timing is learned anew after each pass, and where tokens are seen as they come most passes are over before anybody
// asks.
func (m *Mirror) length() time.Duration {
	p := &m.pass
	if !p.timed {
		p.timed, p.length = true, duration(m.passMillis(p.tokens, p.decoding, p.context))
	}
	return p.length
}

// passMillis is how long a pass is taken to last.
func (m *Mirror) passMillis(prompt, decoding, context int) float64 {
	t, ok := m.timing()
	if !ok {
		t = typical.times(m.answers.pace())
	}
	length := t.prefill(float64(prompt))
	if decoding > 0 {
		length += t.decode(float64(context) / float64(m.engine.tokens()))
	}
	return m.slow * length
}

// catchUp is how many passes are followed one by one after a silence. The rest of the silence is taken to be passes of the
// same length as the next one, in which quiet answers grow.
const catchUp = 1024

// advance ends the passes that are over by now, where no token can show that they are.
func (m *Mirror) advance(now time.Time) {
	p := &m.pass
	for passes := 0; p.under; {
		if !p.composed {
			if !now.After(p.start) {
				return // what came with the tokens of the pass before may still be on its way here
			}
			m.compose()
			continue
		}
		if m.visible() {
			return
		}
		end, skipped := p.start.Add(m.length()), 0
		if end.After(now) {
			return
		}
		if passes++; passes > catchUp {
			end, skipped = now, int(now.Sub(end)/max(m.length(), 1))
		}
		m.finish(end, false)
		if skipped > 0 {
			m.growQuiet(skipped)
		}
		m.start(end, false)
	}
}

// visible reports whether a token will show the end of the pass under way.
func (m *Mirror) visible() bool { return m.decoding > m.quiet || m.pass.firsts > 0 }

// finish ends the pass under way. seen: its end is known, so that the time since the anchor can be learned from.
func (m *Mirror) finish(now time.Time, seen bool) {
	p := &m.pass
	if !p.under {
		return
	}
	if !p.composed {
		m.compose()
	}
	if m.told != 1 {
		p.expected += m.length()
	}
	m.model.pass(p.tokens, p.decoding, float64(p.context)/float64(m.engine.tokens()), m.engine.Budget)
	if seen {
		m.judge(now)
	}
	for i := 0; i < len(m.line); i++ {
		r := m.line[i]
		if r.share > 0 {
			r.rest -= r.share
			m.rest -= r.share
			r.share = 0
		}
		if r.sent.Quiet && r.started && r.rest == 0 {
			m.first(r, now)
			i--
		}
	}
	if m.quiet > 0 {
		m.growQuiet(1)
	}
	p.under = false
}

// judge keeps how long the passes since the anchor took until it is clear that they computed what the mirror takes
// them to have: an engine may have had no room for a prompt, or was sent others by someone else. That is clear where
// nobody was in line, and where each request that was to have its first token at the end of a pass had it then; the
// passes before, which computed the beginnings of its prompt, are then right too.
func (m *Mirror) judge(now time.Time) {
	p, k := &m.pass, &m.unjudged
	m.settle()
	if !p.anchored {
		k.n = 0
		return
	}
	o := m.model.since
	o.millis = millis(now.Sub(p.anchor)) / m.told // the same all the time: SetSlow takes the anchor away
	m.correct(now, p.expected, now.Sub(p.anchor))
	p.anchored = false
	if len(m.line) == 0 {
		m.model.observe(o)
		return
	}
	if k.n == len(k.passes) {
		k.n = 0
	}
	k.passes[k.n] = o
	k.n++
	k.due = p.firsts
}

// settle learns from what was kept, or drops it: all tokens of the pass before are here.
func (m *Mirror) settle() {
	k := &m.unjudged
	if k.surprises == 0 && k.due > 0 && k.firsts == k.due {
		for _, o := range k.passes[:k.n] {
			m.model.observe(o)
		}
	}
	if k.surprises > 0 || k.due > 0 {
		k.n = 0
	}
	k.due, k.firsts, k.surprises = 0, 0, 0
}

// unjudged are passes whose time is known, and what came with the tokens of the last one.
type unjudged struct {
	passes    [16]timed
	n         int
	due       int // first tokens that were to come
	firsts    int // that came
	surprises int // others
}

// growQuiet adds the tokens that each quiet answer of which none were seen had in so many passes.
func (m *Mirror) growQuiet(passes int) {
	for r := m.heard.front(); r != &m.heard.head && r != nil; r = r.next {
		if r.decoding && r.sent.Quiet && !r.seen {
			m.grow(r, passes)
		}
	}
}

// endsPass reports whether a token of r seen now is one of the pass under way, not a late one of the pass before:
// it is if r has had its token of that one, or if it comes too late for it.
func (m *Mirror) endsPass(r *Request, now time.Time) bool {
	p := &m.pass
	if !p.under {
		return true
	}
	if !now.After(p.start) {
		return false
	}
	if r.decoding && r.ended == p.number-1 {
		return true
	}
	if !p.composed {
		m.compose()
	}
	return now.Sub(p.start) > time.Duration(float64(m.length())/m.slow/2) // what is said of its pace may be over
}
