// The engine in real time: one goroutine that sleeps until the next pass ends and tells the requests what they got.

package sim

import (
	"errors"
	"sync/atomic"
	"time"
)

// job is one completion under way: a sequence a choice, and a bell.
type job struct {
	tickets []ticket
	stream  bool          // ring for every token, else for the last one
	left    int           // tickets not done; under Server.mu
	wake    chan struct{} // holds one ring, so that ringing never waits
}

// ticket is one sequence and what a reader may know of it without the lock.
type ticket struct {
	job      *job
	sequence *Sequence
	reason   string       // why it will end
	visible  atomic.Int32 // tokens; sequence.Cached may be read once it is above 0
}

// usage counts the tokens of a job that is done: prompts once, however many answers each has.
func (j *job) usage(c *completion, blockSize int) (u usage) {
	for i := range j.tickets {
		s := j.tickets[i].sequence
		u.completion += len(c.answers[i].tokens)
		if i%c.choices > 0 {
			continue
		}
		u.prompt += s.PromptTokens
		u.cached += s.Cached
		u.created += max(s.PromptTokens/blockSize*blockSize-s.Cached, 0)
	}
	return u
}

var errClosed = errors.New("the server is closing")

// submit hands the sequences of one completion to the engine, all for the same pass.
func (s *Server) submit(c *completion, requests []Request) (*job, error) {
	j := &job{tickets: make([]ticket, len(requests)), stream: c.stream, left: len(requests), wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, errClosed
	}
	_, busy := s.engine.Next()
	for i := range requests {
		t := &j.tickets[i]
		t.job, t.reason = j, c.answers[i].reason
		requests[i].Owner = t
		var err error
		if t.sequence, err = s.engine.Submit(s.now(), requests[i]); err != nil {
			s.cancel(j)
			return nil, err
		}
	}
	if !busy {
		ring(s.work)
	}
	return j, nil
}

// leave takes a job out of the engine, wherever it stands; blocks and place are free when it returns.
func (s *Server) leave(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel(j)
}

func (s *Server) cancel(j *job) {
	for i := range j.tickets {
		if j.tickets[i].sequence != nil {
			s.engine.Cancel(j.tickets[i].sequence)
		}
	}
}

// drive runs the engine until the server closes. It sleeps while nothing is to do. The system may wake it late, by up
// to a millisecond where the machine is idle: the passes that are over by then are made up for in one go, so virtual
// time does not slip.
func (s *Server) drive() {
	defer s.goroutines.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		now := s.now()
		for pass, ok := s.engine.Advance(now); ok; pass, ok = s.engine.Advance(now) {
			s.deliver(pass)
		}
		next, busy := s.engine.Next()
		s.mu.Unlock()
		var due <-chan time.Time
		if busy {
			timer.Reset(next - s.now())
			due = timer.C
		}
		select {
		case <-due:
		case <-s.work:
		case <-s.closed.Done():
			return
		}
	}
}

// deliver tells each sequence's job what a pass made visible. The caller holds the lock.
func (s *Server) deliver(p *Pass) {
	for _, seq := range p.Tokens {
		t := seq.Owner.(*ticket)
		t.visible.Store(int32(seq.Generated))
		s.metrics.token(seq, t.reason)
		if seq.Done {
			t.job.left--
		}
		if t.job.stream || t.job.left == 0 {
			ring(t.job.wake)
		}
	}
}

// now is the engine's time: since the server was made.
func (s *Server) now() time.Duration { return time.Since(s.started) }

// ring rings a bell that may ring already.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
