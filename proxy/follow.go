// Following: a request is given the answer that an equal one is getting now.

package proxy

import (
	"time"

	"kvasir/coalesce"
	"kvasir/edge"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/proxy/record"
	"kvasir/tracing/traceparent"
)

// A follower is a request that follows a coalesced call. It decides what its
// client is sent next; follow sends it. It must not be copied: its replay points
// into it.
type follower struct {
	call   *coalesceFollower
	client *edge.Conn
	stream bool          // the client wants events
	answer answer.Answer // as far as it was seen
	by     traceparent.Link
	replay answer.Replay // of answer

	first time.Duration // how long the leader may be silent before the client was sent anything
	idle  time.Duration // and after
	clock *time.Timer   // of both
	signs uint64        // of the leader's life, when the clock was last set

	began   bool // the client was sent a part of the answer
	attempt int  // of the leader whose answer it was
	thought int  // bytes of its reasoning that were sent
	said    int  // of its text
	pieces  int  // of the pieces of its text
	out     []byte
}

// follow answers with what the leader of a coalesced call gets. It returns false
// without an error where the request is to ask a worker itself: as the next
// leader, or alone.
func (x *exchange) follow(call *coalesceFollower) (answered bool, err *openai.Error) {
	t, r := &x.plan.state.settings.Timeouts, &x.plan.state.settings.Routing
	f := &follower{call: call, client: x.conn, stream: x.plan.req.Stream, first: t.FirstByte, idle: t.Idle}
	if r.Queue { // its leader may have to wait for a worker, and then for that worker's first byte
		f.first += r.QueueTimeout
	}
	f.replay = answer.NewReplay(&f.answer, x.plan.route.Kind, answer.NewID(), x.arrived().Unix(), x.plan.req.Usage.Include)
	m := &x.p.metrics.coalesced
	m.followers.Inc()
	defer m.followers.Dec()
	x.trail.Next(record.Follow)
	if f.stream {
		call.Hurry()
	}
	defer f.leave()
	answered, err = x.followToTheEnd(f)
	if x.facts.cache.result == cacheWait {
		x.talk.Told(&f.answer) // as far as its client was sent it
		x.link = f.by
	}
	m.followed.WithLabelValues(endOfFollowing(&x.facts, answered, x.recipients.leader != nil, err)).Inc()
	return answered, err
}

// endOfFollowing is how it ended, as a label.
func endOfFollowing(f *facts, answered, leads bool, err *openai.Error) string {
	switch {
	case f.why != "":
		return f.why
	case err != nil:
		return "timeout"
	case answered:
		return "answered"
	case leads:
		return "led"
	}
	return "alone"
}

// followToTheEnd waits and sends in turn.
func (x *exchange) followToTheEnd(f *follower) (answered bool, err *openai.Error) {
	if !f.join() {
		return x.endFollowing(waitGone)
	}
	defer f.clock.Stop()
	for {
		s := f.call.Look(f.stream)
		switch next, events := f.next(&s); next {
		case followAlone:
			return false, nil
		case followTakeOver:
			if x.recipients.leader = f.takeOver(); x.recipients.leader != nil {
				return false, nil
			}
		case followWhole:
			x.noteFollowed(f.stream)
			x.tell(&f.replay)
			return true, nil
		case followSend, followEnd:
			if err := x.sendFollowed(events, next == followEnd); err != nil {
				x.lostClient()
				return true, nil
			}
			if next == followEnd {
				return true, nil
			}
		case followBroken:
			x.interruptFollower()
			return true, nil
		}
		begin := time.Now()
		if end := f.wait(&s); end != waitNews {
			return x.endFollowing(end)
		}
		if !f.began {
			x.facts.waited += time.Since(begin)
		}
	}
}

// join ties the follower to its client: when the client is lost, or everything
// ends, its place is given up. It returns false where that has happened.
func (f *follower) join() bool {
	if !f.tie() {
		return false
	}
	f.clock = time.NewTimer(f.patience())
	return true
}

func (f *follower) tie() bool {
	tied := f.client.Bind(f.call)
	if !tied {
		f.call.Leave()
	}
	return tied
}

// leave gives the follower's place up, if that was not done when its client was
// lost, nor by taking over.
func (f *follower) leave() {
	if f.client.Unbind() {
		f.call.Leave()
	}
}

// takeOver makes the request the call's leader. It returns nil where another
// follower was faster, or the client is lost, as the next wait will tell.
func (f *follower) takeOver() *coalesceLeader {
	if !f.client.Unbind() {
		return nil
	}
	l := f.call.TakeOver()
	if l == nil {
		f.tie()
	}
	return l
}

// A followStep is what a follower does next.
type followStep uint8

const (
	followWait     followStep = iota // for more
	followSend                       // send events
	followEnd                        // send events, the last ones
	followWhole                      // send the whole answer
	followTakeOver                   // take over from a leader that failed
	followAlone                      // ask a worker alone: the answer is not for it
	followBroken                     // break off: it has begun, and the rest will not come
)

// next says what follows from how the call stands, and which events are to be
// sent. They are valid until it is called again.
func (f *follower) next(s *coalesceSnapshot) (step followStep, events []byte) {
	switch {
	case f.began && (s.Phase == coalesce.Leaderless || s.Phase == coalesce.Abandoned || s.Attempt != f.attempt):
		return followBroken, nil
	case !f.began && (s.Phase == coalesce.Abandoned || s.Phase == coalesce.CompletedForStarted):
		return followAlone, nil
	case s.Phase == coalesce.Leaderless:
		return followTakeOver, nil
	}
	f.answer, f.by = s.Value.Answer, s.Value.by
	switch {
	case s.Phase == coalesce.Completed && !f.began:
		return followWhole, nil
	case f.stream:
		return f.news(s)
	}
	return followWait, nil
}

// news is what the client was not sent yet, as events.
func (f *follower) news(s *coalesceSnapshot) (step followStep, events []byte) {
	a, out := &f.answer, f.out[:0]
	if !f.began && len(a.Text)+len(a.Reasoning) > 0 {
		out = f.replay.Open(out)
		f.began, f.attempt = true, s.Attempt
	}
	for p := answer.PiecesOf(a.Reasoning[f.thought:], nil, 0); p.More(); {
		out = f.replay.Think(out, p.Next())
	}
	for p := answer.PiecesOf(a.Text, a.Pieces[min(f.pieces, len(a.Pieces)):], f.said); p.More(); {
		out = f.replay.Say(out, p.Next())
	}
	f.thought, f.said, f.pieces = len(a.Reasoning), len(a.Text), len(a.Pieces)
	switch {
	case s.Phase == coalesce.Completed || s.Phase == coalesce.CompletedForStarted:
		step, out = followEnd, f.replay.Close(out)
	case len(out) > 0:
		step = followSend
	}
	f.out = out
	return step, out
}

// What ended a wait.
type waitEnd uint8

const (
	waitNews    waitEnd = iota // the call stands otherwise now, or its leader lives
	waitGone                   // the client is lost, or everything ends
	waitOverdue                // the leader was silent for too long
)

// wait waits until the call stands otherwise than s says.
func (f *follower) wait(s *coalesceSnapshot) waitEnd {
	select {
	case <-s.Changed:
		f.signs = s.Signs
	case <-f.client.WhenGone():
		return waitGone
	case <-f.clock.C:
		signs := f.call.Look(f.stream).Signs
		if signs == f.signs {
			return waitOverdue
		}
		f.signs = signs
	}
	f.clock.Reset(f.patience())
	return waitNews
}

// patience is how long the leader may give no sign of life.
func (f *follower) patience() time.Duration {
	if f.began {
		return f.idle
	}
	return f.first
}

// noteFollowed notes that the answer is that of an equal request.
func (x *exchange) noteFollowed(streamed bool) {
	x.facts.cache.result, x.facts.cache.why = cacheWait, ""
	x.facts.streamed = streamed
}

// sendFollowed sends events of an equal request's answer, the head before the
// first of them.
func (x *exchange) sendFollowed(events []byte, last bool) error {
	x.call.Now = time.Now() // of the writes: no worker was called
	if !x.reply.began {
		x.noteFollowed(true)
		err := x.reply.begin(200, streamHeader, -1, events)
		x.answered()
		x.forgetBody()
		return err
	}
	err := x.reply.send(events)
	if err == nil && last {
		err = x.reply.end()
	}
	return err
}

// endFollowing ends a request that waits no longer: its client is lost, everything
// ends, or its patience does.
func (x *exchange) endFollowing(why waitEnd) (answered bool, err *openai.Error) {
	switch gone := why == waitGone && x.conn.Gone(); {
	case gone && x.reply.began:
		x.lostClient()
		return true, nil
	case x.reply.began:
		x.interruptFollower()
		return true, nil
	case gone:
		x.facts.why = whyGone
		return true, clientGone
	case why == waitGone:
		x.facts.why = "shutdown"
		return true, shuttingDown()
	}
	return true, &openai.Error{
		Status: 504, Type: "server_error", Code: "upstream_error",
		Message: "the answer to an equal request, which this one waited for, did not begin in time; the worker may be overloaded. Ask again",
	}
}

// interruptFollower breaks off an answer that was begun and cannot be finished.
func (x *exchange) interruptFollower() {
	x.facts.why = whyInterrupted
	e := &openai.Error{
		Status: 502, Type: "server_error", Code: "stream_interrupted",
		Message: "the worker stopped in the middle of this answer; the answer so far is incomplete, ask again",
	}
	if x.p.stopping.Load() {
		x.facts.why = "shutdown"
		e.Status, e.Message = 503, "the gateway is shutting down; the answer so far is incomplete, ask again"
	}
	x.facts.usage = answer.NoUsage
	x.reply.breakOff(answer.AppendError(nil, x.plan.route.Kind, e))
}
