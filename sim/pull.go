// How a decode worker gets the blocks of its prompt: it waits for room, fetches, and answers from
// what arrived.

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// pullBlocks does the part of a hand-over that comes before a job's tokens: a decode worker
// fetches the blocks of its prompts from the worker that computed them; a prefill worker of
// SGLang meets the worker that will fetch them. When it returns nil, the job runs. The error is a
// *failure, or the context's.
func pullBlocks(ctx context.Context, s *Server, c *completion, j *job) error {
	if !c.transfer.loads() && c.rooms == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.alive, cancel)()
	err := s.dialect.pull(ctx, s, c, j)
	if err != nil && s.isDead() {
		return engineDead
	}
	return err
}

// each runs work for all answers at the same time and waits for all. The first error cancels the
// others.
func each(ctx context.Context, answers int, work func(context.Context, int) error) error {
	if answers == 1 {
		return work(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i := range answers {
		running.Go(func() {
			if err := work(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// pullHeld fetches the blocks of prompts that a prefill worker holds under a lease.
func pullHeld(ctx context.Context, s *Server, c *completion, j *job) error {
	err := each(ctx, len(j.tickets), func(ctx context.Context, i int) error {
		if !c.transfer.complete {
			return hangPull(ctx, s)
		}
		t := &j.tickets[i]
		if err := awaitRoom(ctx, s, c.transfer.source, t.room); err != nil {
			return err
		}
		t.remote = c.transfer.cached
		return loadBlocks(ctx, s, c, t, i, c.transfer)
	})
	if c.transfer.complete && (err == nil || ctx.Err() != nil) {
		s.release(c.transfer.source)
	}
	return err
}

// loadBlocks fetches the prompt blocks that a sequence lacks, and lets it run with what arrived.
func loadBlocks(ctx context.Context, s *Server, c *completion, t *ticket, i int, from *transfer) error {
	all := appendContents(nil, s.options, t.prompt)
	held := t.sequence.Cached / s.options.BlockSize
	contents, err := fetchBlocks(ctx, s, from, held, len(all))
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		s.driver.failed()
		return transferFailed
	}
	if !slices.Equal(contents, all[held:]) || from.first != 0 && from.first != t.answer[0] {
		c.mislead(s.options, i, contents)
	}
	s.driver.loaded(t, &c.answers[i], c.request(s.options, i))
	return nil
}

// hangPull waits for ever, as vLLM 0.32 does when a field of the parameters is missing. When the
// client then leaves, the engine dies, because it cannot find the request.
func hangPull(ctx context.Context, s *Server) error {
	<-ctx.Done()
	if s.closed.Err() == nil {
		s.die() // does nothing if it is dead already
	}
	return ctx.Err()
}

// awaitRoom waits until the engine has blocks for a sequence, and keeps the prefill worker's
// lease alive meanwhile.
func awaitRoom(ctx context.Context, s *Server, from source, room <-chan struct{}) error {
	beat := time.NewTicker(heartbeat(s.options.Lease))
	defer beat.Stop()
	for {
		select {
		case <-room:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
			limited, cancel := context.WithTimeout(ctx, s.options.TransferTimeout)
			_, _ = s.say(limited, from, sideBeat, nil) // if the source is gone, the fetch will fail
			cancel()
		}
	}
}

// fetchBlocks reads the contents of blocks held to count of a prompt at the source, and takes as
// long as a real transfer would. It fails at once if the source refuses, and after
// TransferTimeout if the source cannot be reached.
func fetchBlocks(ctx context.Context, s *Server, t *transfer, held, count int) ([]uint64, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	if len(t.blocks) < count {
		return nil, fmt.Errorf("cannot fetch %d blocks: %d are there", count, len(t.blocks))
	}
	limited, cancel := context.WithTimeout(ctx, s.options.TransferTimeout)
	defer cancel()
	answer, err := s.say(limited, t.source, sideRead, t.blocks[held:count])
	if errors.Is(err, errUnreachable) {
		<-limited.Done()
	}
	if err != nil {
		return nil, err
	}
	contents, err := decodeContents(answer, count-held)
	if err != nil {
		return nil, err
	}
	return contents, wait(ctx, s.options.transferTime(count-held))
}

// transferTime returns how long the transfer of the KV of some blocks takes.
func (o Options) transferTime(blocks int) time.Duration {
	bytes := float64(blocks) * float64(o.BlockSize) * float64(o.KVBytes)
	seconds := bytes / (o.Bandwidth * 1e9) / o.Speedup
	return time.Duration(min(seconds, 1e9) * float64(time.Second))
}

// wait sleeps for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mislead makes the i-th answer fit the KV that arrived instead of its prompt. A forced tool call
// stays as it is: its form is forced, whatever the model reads.
func (c *completion) mislead(o Options, i int, contents []uint64) {
	if c.tool != nil {
		return
	}
	key := uint64(i)
	for _, content := range contents {
		key = mix(key, content)
	}
	c.answers[i] = writeAnswer(o.Name, mix(key, c.seed), c.limits)
}

// loaded starts a sequence whose KV has arrived; r has the names of its blocks.
func (d *driver) loaded(t *ticket, a *answer, r Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.answer, t.reason = a.tokens, a.reason
	d.engine.Loaded(t.sequence, r.Hashes, r.MaxTokens)
	ring(d.work)
}

// failed counts a failed transfer.
func (d *driver) failed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.metrics.failedTransfers++
}
