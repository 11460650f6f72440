// The engine in real time: one goroutine that sleeps until the next pass ends and tells the requests what they got.

package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// driver runs an engine in real time.
type driver struct {
	started   time.Time     // the engine's time 0
	work      chan struct{} // rings when an idle engine got something to do
	publisher *Publisher    // of KV events, or nil

	mu      sync.Mutex // guards all below
	engine  *Engine
	metrics metrics
	events  eventWriter
}

// newDriver makes a driver whose engine moves only while run does.
func newDriver(o Options) *driver {
	d := &driver{started: time.Now(), work: make(chan struct{}, 1), engine: New(o), metrics: newMetrics(),
		events: eventWriter{blockSize: o.BlockSize}}
	if o.Events {
		d.publisher = NewPublisher(o.EventTopic, o.EventBuffer, o.EventBuffer)
	}
	return d
}

// job is one completion under way: a sequence a choice, and a bell.
type job struct {
	tickets []ticket
	stream  bool          // ring for every token, else for the last one
	left    int           // tickets not done; under driver.mu
	wake    chan struct{} // holds one ring, so that ringing never waits
}

// ticket is one sequence and what a reader may know of it without the lock.
type ticket struct {
	job      *job
	sequence *Sequence
	reason   string   // why it will end
	prompt   []uint32 // tokens, for KV events; as answer and salt
	answer   []uint32
	salt     string
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

// submit hands the sequences of one completion to the engine, all for the same pass.
func (d *driver) submit(c *completion, requests []Request) (*job, error) {
	j := &job{tickets: make([]ticket, len(requests)), stream: c.stream, left: len(requests), wake: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, busy := d.engine.Next()
	for i := range requests {
		t := &j.tickets[i]
		t.job, t.reason = j, c.answers[i].reason
		t.prompt, t.answer, t.salt = c.prompts[i/c.choices], c.answers[i].tokens, c.salt
		requests[i].Owner = t
		var err error
		if t.sequence, err = d.engine.Submit(d.now(), requests[i]); err != nil {
			d.cancel(j)
			return nil, fmt.Errorf("cannot start answer %d: %w", i, err)
		}
	}
	if !busy {
		ring(d.work)
	}
	return j, nil
}

// leave takes a job out of the engine, wherever it stands; blocks and place are free when it returns.
func (d *driver) leave(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel(j)
}

func (d *driver) cancel(j *job) {
	for i := range j.tickets {
		if j.tickets[i].sequence != nil {
			d.engine.Cancel(j.tickets[i].sequence)
		}
	}
}

// run runs the engine until ctx is over. It sleeps while nothing is to do. The system may wake it late, by up
// to a millisecond where the machine is idle: the passes that are over by then are made up for in one go, so virtual
// time does not slip.
func (d *driver) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		now := d.now()
		for pass, ok := d.engine.Advance(now); ok; pass, ok = d.engine.Advance(now) {
			d.deliver(pass)
		}
		next, busy := d.engine.Next()
		d.mu.Unlock()
		var due <-chan time.Time
		if busy {
			timer.Reset(next - d.now())
			due = timer.C
		}
		select {
		case <-due:
		case <-d.work:
		case <-ctx.Done():
			return
		}
	}
}

// deliver publishes what a pass did to the cache, and tells each sequence's job what it made visible. The caller
// holds the lock.
func (d *driver) deliver(p *Pass) {
	if d.publisher != nil {
		if payload := d.events.payload(p, time.Now()); payload != nil {
			d.publisher.Publish(payload)
		}
	}
	for _, seq := range p.Tokens {
		t := seq.Owner.(*ticket)
		t.visible.Store(int32(seq.Generated))
		d.metrics.token(seq, t.reason)
		if seq.Done {
			t.job.left--
		}
		if t.job.stream || t.job.left == 0 {
			ring(t.job.wake)
		}
	}
}

// now is the engine's time: since the driver was made.
func (d *driver) now() time.Duration { return time.Since(d.started) }

// ring rings a bell that may ring already.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
