// The engine in real time: one goroutine that sleeps until the next pass ends and tells the requests what they got.

package sim

import (
	"context"
	"fmt"
	"slices"
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
	leases  leases
	loads   []*Sequence // scratch of run
}

// newDriver makes a driver whose engine moves only while run does.
func newDriver(o Options) *driver {
	d := &driver{started: time.Now(), work: make(chan struct{}, 1), engine: New(o), metrics: newMetrics(),
		events: eventWriter{blockSize: o.BlockSize}, leases: leases{length: o.Lease, held: map[string]*lease{}}}
	if o.Events {
		d.publisher = NewPublisher(o.EventTopic, o.EventBuffer, o.EventBuffer)
	}
	return d
}

// job is one completion under way: a sequence a choice, and a bell.
type job struct {
	requests []Request
	tickets  []ticket
	stream   bool          // ring for every token, else for the last one
	left     int           // tickets not done; under driver.mu
	wake     chan struct{} // holds one ring, so that ringing never waits
}

// ticket is one sequence and what a reader may know of it without the lock.
type ticket struct {
	job      *job
	sequence *Sequence
	reason   string   // why it will end
	prompt   []uint32 // tokens, for KV events; as answer and salt
	answer   []uint32
	salt     string
	handle   string        // under which its blocks are held for another engine; "" if they are not
	held     []int32       // those blocks, once it is done
	lease    *lease        // and how long they are held; both may be read after ended
	ended    chan struct{} // closed then; nil where nothing is held
	remote   int           // prompt tokens that the worker which computed it had cached
	room     chan struct{} // holds a ring once it has blocks for KV from another engine; sequence.Cached may be read then
	visible  atomic.Int32  // tokens; sequence.Cached may be read once it is above 0
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
		if c.transfer.loads() { // vLLM says on what the prefill worker had cached, whatever it had itself
			u.cached += j.tickets[i].remote
			continue
		}
		u.cached += s.Cached
		u.created += max(s.PromptTokens/blockSize*blockSize-s.Cached, 0)
	}
	return u
}

// prepare makes the job of a completion, of which nothing is in the engine yet.
func prepare(c *completion, requests []Request) *job {
	j := &job{requests: requests, tickets: make([]ticket, len(requests)), stream: c.stream, left: len(requests), wake: make(chan struct{}, 1)}
	for i := range requests {
		t := &j.tickets[i]
		t.job, t.reason = j, c.answers[i].reason
		t.prompt, t.answer, t.salt = c.prompts[i/c.choices], c.answers[i].tokens, c.salt
		if c.transfer.holds() {
			t.handle, t.ended = handle(c.id), make(chan struct{})
		}
		if c.transfer.loads() {
			t.room = make(chan struct{}, 1)
		}
		requests[i].Owner = t
	}
	return j
}

// submit hands the sequences of a job from first on to the engine, all for the same pass.
func (d *driver) submit(j *job, first int, requests []Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, busy := d.engine.Next()
	for i, r := range requests {
		var err error
		if j.tickets[first+i].sequence, err = d.engine.Submit(d.now(), r); err != nil {
			d.cancel(j)
			return fmt.Errorf("cannot start answer %d: %w", first+i, err)
		}
	}
	if !busy {
		ring(d.work)
	}
	return nil
}

// leave takes a job out of the engine, wherever it stands; blocks and place are free when it returns.
func (d *driver) leave(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel(j)
	ring(d.work) // its blocks may let another one in
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
		d.loads = d.engine.Loads(d.loads[:0])
		for _, seq := range d.loads {
			ring(seq.Owner.(*ticket).room)
		}
		expiry := d.leases.expire(d.engine, now)
		next, busy := d.engine.Next()
		d.mu.Unlock()
		if expiry > 0 && (!busy || expiry < next) {
			next, busy = expiry, true
		}
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
			if t.handle != "" {
				t.held = slices.Clone(seq.BlockIDs())
				t.lease = d.leases.hold(t.handle, seq, d.now())
				close(t.ended)
			}
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
