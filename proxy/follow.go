// Following: a request is given the answer that an equal one is getting now.
package proxy

import (
	"time"

	"kvasir/openai"
	"kvasir/openai/answer"
)

// A boarding is what came of looking for a flight.
type boarding uint8

const (
	alone  boarding = iota // it has none
	leads                  // it leads one
	beside                 // it follows one
	stale                  // its answer was stored since the cache was asked
)

// shares says whether equal requests may have one answer at once. With tools on
// offer it may be a call, which is for nobody else unless calls are kept; who had
// begun with the text before it would have half an answer.
func (x sharer) shares() bool {
	return x.rule.why == "" && x.rule.stores && (x.req.ToolCount == 0 || x.state.settings.CacheOptions.ToolCalls)
}

// flies says whether an equal request is on its way to an answer, so that there
// is no need to look for one.
func (x sharer) flies() bool {
	return x.shares() && x.p.flights.flies(keyOfFlight(&x.asking.query))
}

// board joins the flight of equal requests, or begins it. mark is that of
// flights before the cache was asked.
func (x sharer) board(mark uint64) boarding {
	if !x.shares() {
		return alone
	}
	f, first := x.p.flights.board(keyOfFlight(&x.asking.query), mark)
	switch x.flight = f; {
	case f == nil:
		return stale
	case first:
		x.leads(f)
		return leads
	}
	return beside
}

// leads makes the request the leader of the flight.
func (x sharer) leads(f *flight) {
	x.leading, x.pilot = true, pilot{x.p, f}
}

// A seat is a follower's place on a flight: what is closed when its client is lost.
type seat struct {
	all *flights
	f   *flight
}

// Close gives the place back.
func (s *seat) Close() error {
	s.all.leave(s.f)
	return nil
}

// A follower is a request that follows a flight.
type follower struct {
	sharer
	f      *flight
	seat   seat
	answer answer.Answer // as far as it was seen
	replay answer.Replay
	stream bool

	try     int // the leader's whose answer was begun with
	thought int // bytes of reasoning that were sent
	said    int // of text
	pieces  int // of its pieces
	out     []byte
}

// follow answers with what the flight's leader gets. It returns false without an
// error where the request is to ask a worker itself: as the next leader, or
// alone.
func (x sharer) follow() (answered bool, err *openai.Error) {
	w := follower{sharer: x, f: x.flight, seat: seat{&x.p.flights, x.flight}, stream: x.req.Stream}
	w.replay = answer.NewReplay(&w.answer, x.route.Kind, answer.NewID(), x.arrived().Unix(), x.req.Usage.Include)
	m := &x.p.metrics.flightMetrics
	m.followers.Inc()
	defer m.followers.Dec()
	answered, err = w.fly()
	if x.flight != nil && !x.leading {
		x.disembark(&w.seat)
	}
	m.followed.WithLabelValues(w.end(answered, err)).Inc()
	return answered, err
}

// waits notes that the answer is that of an equal request.
func (w *follower) waits() {
	w.facts.cache.result, w.facts.cache.why = cacheWait, ""
}

// end says how the following ended: a label.
func (w *follower) end(answered bool, err *openai.Error) string {
	switch {
	case w.facts.why != "":
		return w.facts.why
	case err != nil:
		return "timeout"
	case answered:
		return "answered"
	case w.leading:
		return "led"
	}
	return "alone"
}

// disembark gives the follower's place back, if that was not done when its
// client was lost.
func (x sharer) disembark(s *seat) {
	if x.conn.unbind() {
		s.all.leave(s.f)
	}
	x.flight = nil
}

// fly goes along with the flight.
func (w *follower) fly() (answered bool, err *openai.Error) {
	if !w.conn.bind(&w.seat) {
		w.seat.all.leave(w.f)
		w.flight = nil
		return w.ended()
	}
	clock := time.NewTimer(w.patience())
	defer clock.Stop()
	for signs := uint64(0); ; {
		s := w.f.look(w.stream)
		if done, answered := w.see(&s); done {
			return answered, nil
		}
		begin := time.Now()
		select {
		case <-s.changed:
			signs = s.signs
			clock.Reset(w.patience())
		case <-w.conn.whenGone():
			return w.ended()
		case <-clock.C:
			if s = w.f.look(w.stream); s.signs == signs {
				return w.overdue()
			}
			signs = s.signs
			clock.Reset(w.patience())
		}
		if !w.reply.began {
			w.facts.waited += time.Since(begin)
		}
	}
}

// patience is how long nothing may come. Before the first sign of the answer its
// leader may have to wait for a worker, and then for that worker's first byte.
func (w *follower) patience() time.Duration {
	t := &w.state.settings.Timeouts
	if w.reply.began {
		return t.Idle
	}
	limit := t.FirstByte
	if r := &w.state.settings.Routing; r.Queue {
		limit += r.QueueTimeout
	}
	return limit
}

// see does what follows from how the flight stands, and says whether that is all.
func (w *follower) see(s *sight) (done, answered bool) {
	switch {
	case w.reply.began && (s.phase == adrift || s.phase == scattered || s.try != w.try):
		w.interrupted()
		return true, true
	case !w.reply.began && (s.phase == scattered || s.phase == spent):
		return true, false
	case s.phase == adrift:
		return w.lead(), false
	}
	w.answer = s.answer
	switch {
	case s.phase == landed && !w.reply.began:
		w.waits()
		w.facts.streamed = w.stream
		w.tell(&w.replay)
		return true, true
	case w.stream:
		return w.send(s)
	}
	return false, false
}

// lead makes this request the flight's leader, unless another was faster.
func (w *follower) lead() bool {
	if !w.conn.unbind() {
		return false // its client is lost, as the next look at it will tell
	}
	if w.f.take() {
		w.leads(w.f)
		return true
	}
	if !w.conn.bind(&w.seat) {
		w.seat.all.leave(w.f)
	}
	return false
}

// send passes on what is new, as events.
func (w *follower) send(s *sight) (done, answered bool) {
	out := w.out[:0]
	if !w.reply.began && len(s.answer.Text)+len(s.answer.Reasoning) > 0 {
		out = w.replay.Open(out)
		w.try = s.try
	}
	for p := answer.PiecesOf(s.answer.Reasoning[w.thought:], nil, 0); p.More(); {
		out = w.replay.Think(out, p.Next())
	}
	for p := answer.PiecesOf(s.answer.Text, s.answer.Pieces[min(w.pieces, len(s.answer.Pieces)):], w.said); p.More(); {
		out = w.replay.Say(out, p.Next())
	}
	w.thought, w.said, w.pieces = len(s.answer.Reasoning), len(s.answer.Text), len(s.answer.Pieces)
	if done = s.phase == landed || s.phase == spent; done {
		out = w.replay.Close(out)
	}
	w.out = out
	if len(out) == 0 {
		return false, false
	}
	if err := w.write(out, done); err != nil {
		w.lostClient()
		return true, true
	}
	return done, true
}

// write sends events, the head before the first.
func (w *follower) write(out []byte, last bool) error {
	w.call.now = time.Now() // of the writes: no worker was called
	if !w.reply.began {
		w.waits()
		w.facts.streamed = true
		err := w.reply.begin(200, streamHeader, -1, out)
		w.answered()
		w.forgetBody()
		return err
	}
	err := w.reply.send(out)
	if err == nil && last {
		err = w.reply.end()
	}
	return err
}

// ended is how a follower ends whose client is lost, or that the shutdown stops.
func (w *follower) ended() (bool, *openai.Error) {
	switch {
	case w.conn.gone.Load() && w.reply.began:
		w.lostClient()
		return true, nil
	case w.conn.gone.Load():
		w.facts.why = whyGone
		return true, clientGone
	case w.reply.began:
		w.interrupted()
		return true, nil
	}
	w.facts.why = "shutdown"
	return true, shuttingDown()
}

// overdue is how a follower ends whose patience does.
func (w *follower) overdue() (bool, *openai.Error) {
	if w.reply.began {
		w.interrupted()
		return true, nil
	}
	return true, &openai.Error{
		Status: 504, Type: "server_error", Code: "upstream_error",
		Message: "the answer to an equal request, which this one waited for, did not begin in time; the worker may be overloaded. Ask again",
	}
}

// interrupted ends an answer that was begun and cannot be finished.
func (w *follower) interrupted() {
	w.facts.why = whyInterrupted
	e := &openai.Error{
		Status: 502, Type: "server_error", Code: "stream_interrupted",
		Message: "the worker stopped in the middle of this answer; what came until here is not whole. Ask again",
	}
	if w.p.stopping.Load() {
		w.facts.why = "shutdown"
		e.Status, e.Message = 503, "the gateway is shutting down; what came until here is not whole. Ask again"
	}
	w.facts.usage = answer.NoUsage
	w.reply.breakOff(answer.AppendError(nil, w.route.Kind, e))
}
