// The schedule of one pass: which sequences compute how many tokens, which are admitted, which
// are preempted, and how long the pass takes.

package sim

import "time"

// begin schedules the pass that starts at start, by the rules of Dynamo's mocker for vLLM:
//  1. Running sequences first, in order of admission: one token each, or a chunk of a prompt, out
//     of one budget.
//  2. When blocks run out, the sequence admitted last is preempted: it goes to the front of the
//     queue and is computed again later. No sequence is admitted in such a pass.
//  3. Then the queue, strictly first come first served, while there is a place and the whole
//     prompt of the head fits into blocks that are free, idle or shared with running sequences.
//  4. A sequence whose prompt is completed in the pass generates its first token from that. Every
//     other sequence without uncomputed tokens left generates one token and is charged decode
//     time.
func (e *Engine) begin(start time.Duration) {
	e.passes++
	e.under = true
	e.pass = Pass{
		Start: start, Tokens: e.pass.Tokens[:0], Removed: e.pass.Removed[:0], Stored: e.pass.Stored[:0],
	}
	budget := e.options.MaxBatchedTokens
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		if !e.compute(s, 0, &budget) {
			break
		}
	}
	for e.pass.Preempted == 0 && len(e.running)+len(e.loading) < e.options.MaxSeqs {
		if !e.admit(start, &budget) {
			break
		}
	}
	e.stuck = len(e.running) == 0 && len(e.loading)+e.held > 0 && e.pass.Preempted == 0 && e.head(start) != nil
	e.pass.End = start + passLength(e.millis()*e.slow, e.options.Speedup)
}

// admit admits the head of the queue and reports whether it did. A sequence whose KV has not
// arrived yet only gets its blocks: it takes part in passes after Loaded.
func (e *Engine) admit(start time.Duration, budget *int) bool {
	s := e.head(start)
	if s == nil {
		return false
	}
	tokens, size := s.tokens(), e.options.BlockSize
	hits, active := e.pool.match(s, (tokens-1)/size) // the last token is computed even if its block is cached
	if blocksOf(tokens, size)-active > e.pool.size-e.pool.active {
		return false
	}
	if s.Load && s.elsewhere {
		e.pass.Removed, _ = e.pool.take(s, blocksOf(tokens, size), hits, e.pass.Removed) // fits, as checked above
		e.pop()
		s.sealed, s.loading = hits, true
		e.loading, e.loads = append(e.loading, s), append(e.loads, s)
	} else {
		if *budget == 0 && tokens > hits*size {
			return false
		}
		if !e.compute(s, hits, budget) {
			return false
		}
		e.pop()
		s.running = true
		e.running = append(e.running, s)
	}
	if !s.admitted {
		s.admitted = true
		s.Cached = hits * size
		e.stats.QueriedTokens += s.PromptTokens
		e.stats.HitTokens += s.Cached
	}
	return true
}

// compute gives s its tokens of this pass; a new sequence takes its first `hits` blocks from the
// cache. If blocks are short it preempts other sequences. It returns false if s itself was
// preempted.
func (e *Engine) compute(s *Sequence, hits int, budget *int) bool {
	size := e.options.BlockSize
	before := s.computed + hits*size
	if s.elsewhere {
		before = max(before, s.PromptTokens)
	}
	tokens := min(s.tokens()-before, *budget)
	after := before + tokens
	for {
		var ok bool
		if e.pass.Removed, ok = e.pool.take(s, blocksOf(after, size), hits, e.pass.Removed); ok {
			break
		}
		if e.preempt(budget) == s {
			return false
		}
	}
	s.sealed = max(s.sealed, hits)
	s.computed = after
	if full := after / size; full > s.sealed+1 {
		e.pool.touch(s, s.sealed, full)
	}
	for ; s.sealed < after/size; s.sealed++ {
		if e.pool.seal(s, s.sealed) {
			e.pass.Stored = append(e.pass.Stored, StoredBlock{s, s.sealed})
		}
	}
	promptBefore := min(before, s.PromptTokens)
	s.now = share{e.passes, tokens, min(after, s.PromptTokens) - promptBefore, promptBefore}
	*budget -= tokens
	return true
}

// preempt takes the blocks of the last running sequence, puts it at the front of the queue and
// returns it.
func (e *Engine) preempt(budget *int) *Sequence {
	last := len(e.running) - 1
	s := e.running[last]
	e.running = e.running[:last]
	e.preempted = append(e.preempted, s)
	e.pool.release(s)
	s.running, s.computed, s.elsewhere = false, 0, false
	if s.now.pass == e.passes {
		*budget += s.now.tokens
		s.now = share{}
	}
	s.Preempted++
	e.pass.Preempted++
	e.stats.Preemptions++
	return s
}

// millis returns the length of the pass in milliseconds, and lists the sequences that generate a
// token at its end.
func (e *Engine) millis() float64 {
	count, ends, starts, decoding := 0, 0, 0, 0
	for _, s := range e.running {
		mine := s.now.pass == e.passes
		if mine && s.now.prompt > 0 {
			count++
			ends += s.now.start + s.now.prompt
			starts += s.now.start
		}
		if !mine || s.computed < s.tokens() { // a sequence whose KV came from elsewhere may find no budget left
			continue
		}
		e.pass.Tokens = append(e.pass.Tokens, s)
		if s.Generated > 0 || s.now.prompt == 0 {
			decoding += s.tokens()
		}
	}
	decode := 0.0
	if decoding > 0 {
		decode = decodeMillis(decoding, e.options.Blocks*e.options.BlockSize)
	}
	return prefillMillis(count, ends, starts) + decode
}

// head returns the first sequence of the queue, if it has arrived by start.
func (e *Engine) head(start time.Duration) *Sequence {
	if n := len(e.preempted); n > 0 {
		return e.preempted[n-1]
	}
	if len(e.waiting) > 0 && e.waiting[0].Arrived <= start {
		return e.waiting[0]
	}
	return nil
}

// pop removes the head from its queue.
func (e *Engine) pop() {
	if n := len(e.preempted); n > 0 {
		e.preempted = e.preempted[:n-1]
		return
	}
	e.waiting[0] = nil
	e.waiting = e.waiting[1:]
}

func blocksOf(tokens, size int) int { return (tokens + size - 1) / size }
