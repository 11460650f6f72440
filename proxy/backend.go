// Backends: workers, with what the proxy keeps beside each.

package proxy

import (
	"context"
	"sync/atomic"
	"time"

	"kvasir/upstream"
)

// A backend is a worker and what the proxy keeps of it. It lives as long as a
// configuration names the worker with the same settings, so that connections and
// what is known of the worker outlive a reload.
type backend struct {
	*upstream.Worker

	stop      context.CancelFunc           // ends the watch over it; nil: that has not begun
	answered  chan struct{}                // closed after its first answer or failure
	apart     atomic.Bool                  // the log has said already that it cannot hand over
	agreement agreement                    // how well its cached tokens agree with the prediction
	counters  atomic.Pointer[tokenMetrics] // of the model that it answered for last
	tally     tally                        // what people are shown
}

// newBackend makes a backend of one worker of the configuration.
func newBackend(w Worker, t *Timeouts) (*backend, error) {
	made, err := upstream.NewWorker(w, t.upstream())
	if err != nil {
		return nil, err
	}
	b := &backend{Worker: made}
	b.Peer = b
	return b, nil
}

// watchAll begins to watch over the workers that are new in s, and waits up to 250 ms for
// their first answers, so that the first request finds them.
func (p *Proxy) watchAll(s *state) {
	hooks := &upstream.Hooks{
		Log: p.log, Bug: p.bugs.note, News: p.heardModels,
		Short: p.descriptors.NoteUndialled,
	}
	var begun []*backend
	for _, b := range s.backends {
		if b.stop != nil {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		b.stop = cancel
		b.answered = make(chan struct{})
		begun = append(begun, b)
		p.watches.Add(1)
		go p.watchOver(ctx, b, hooks)
	}
	patience := time.NewTimer(250 * time.Millisecond)
	defer patience.Stop()
	for _, b := range begun {
		select {
		case <-b.answered:
		case <-patience.C:
			return
		}
	}
}

// heardModels is called when a worker serves other models than before.
func (p *Proxy) heardModels() {
	p.tokenizers.Look()
	p.noteUnserved()
}

func (p *Proxy) watchOver(ctx context.Context, b *backend, h *upstream.Hooks) {
	defer p.watches.Done()
	b.Watch(ctx, h, func() { close(b.answered) })
}

// closeIdle closes the kept connections to all workers. It is called when descriptors have
// run out, since each client needs one.
func (p *Proxy) closeIdle() {
	for _, b := range p.state.Load().ordered {
		b.Conns.CloseIdle()
	}
}

// retire stops the watch over the worker and closes connections that nobody uses.
// Requests under way keep theirs.
func (b *backend) retire() {
	b.stop()
	b.Conns.CloseIdle()
}

// CheckWorkers asks every worker of the settings once, all at the same time.
func CheckWorkers(ctx context.Context, s *Settings) []upstream.CheckResult {
	return upstream.Check(ctx, s.Workers, s.Timeouts.upstream())
}
