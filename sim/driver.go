// The engine in real time: one goroutine sleeps until the next pass ends and delivers its tokens
// to the requests.

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
	work      chan struct{} // rings when an idle engine gets work
	publisher *Publisher    // of KV events, or nil

	mu      sync.Mutex // guards the fields below
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

// job is one completion under way: one sequence per choice, and a wake-up channel.
type job struct {
	requests []Request
	tickets  []ticket
	stream   bool          // ring for every token; otherwise only for the last one
	left     int           // tickets not done; under driver.mu
	wake     chan struct{} // holds one ring, so that ringing never blocks
}

// ticket is one sequence, and the facts about it that a reader may read without the lock.
type ticket struct {
	job      *job
	sequence *Sequence
	reason   string   // its finish reason
	prompt   []uint32 // tokens; for KV events, as are answer and salt
	answer   []uint32
	salt     string
	handle   string        // under which its blocks are held for another engine; "" if they are not
	held     []int32       // block numbers kept for a hand-over, once it is done
	lease    *lease        // lease on held; both may be read after ended is closed
	ended    chan struct{} // closed when held is set; nil if nothing is held
	remote   int           // prompt tokens that were cached on the worker that computed the prompt
	room     chan struct{} // rings once it has blocks for KV from another engine; then sequence.Cached may be read
	visible  atomic.Int32  // visible tokens; sequence.Cached may be read once it is above 0
}

// usage counts the tokens of a finished job. A prompt counts once, however many answers it has.
func (j *job) usage(c *completion, blockSize int) (u usage) {
	for i := range j.tickets {
		s := j.tickets[i].sequence
		u.completion += len(c.answers[i].tokens)
		if i%c.choices > 0 {
			continue
		}
		u.prompt += s.PromptTokens
		if c.transfer.loads() { // vLLM reports the prefill worker's cached tokens, whatever it had cached itself
			u.cached += j.tickets[i].remote
			continue
		}
		u.cached += s.Cached
		u.created += max(s.PromptTokens/blockSize*blockSize-s.Cached, 0)
	}
	return u
}

// prepare makes the job of a completion, without submitting it to the engine.
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

// submit submits the sequences of a job, from first on, to the engine, all for the same pass.
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

// leave removes a job from the engine in any state. Its blocks and its place are free when leave
// returns.
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

// run runs the engine until ctx ends. It sleeps while there is nothing to do. The system may wake
// it late, by up to a millisecond on an idle machine. It then completes all passes that have
// ended meanwhile, so the engine's time does not fall behind.
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

// deliver publishes what a pass changed in the cache, and gives each job its new tokens. The
// caller holds the lock.
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

// now returns the engine's time: the time since the driver was made.
func (d *driver) now() time.Duration { return time.Since(d.started) }

// ring sends a wake-up, unless one is pending already.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
