// Hand-overs: prompts computed by one engine and answered by another, and the way of their blocks between the two.

package replay

import (
	"math"
	"slices"
	"time"

	"kvasir/sim"
)

// handing are the hand-overs under way.
//
//  1. A prompt that is computed keeps its blocks where it is until the engine that answers has it.
//  2. That one takes blocks for it when it begins a pass. Without a bandwidth the prompt is there at once; else it
//     comes over as long as its bytes take, and the answer begins with the pass after that.
type handing struct {
	reserving []*Job // wait for blocks where they are answered
	coming    []transfer
	loads     []*sim.Sequence
}

type transfer struct {
	job *Job
	at  time.Duration // when all of it is there
}

func (h *handing) next() time.Duration {
	at := never
	for _, t := range h.coming {
		at = min(at, t.at)
	}
	return at
}

// prefilled hands a job over whose prompt is computed now.
func (f *fleet) prefilled(j *Job) (err error) {
	j.cached = j.prompt.Cached
	if f.book != nil {
		f.book.done(j, f.time())
	}
	f.trouble.active[j.Prefill]--
	if j.Worker == Later {
		j.Worker = f.placer.Decode(f.time(), j)
		f.trouble.active[j.Worker]++
	}
	now := f.Bandwidth == 0
	if j.Sequence, err = f.submit(j, j.Worker, sim.Request{MaxTokens: j.AnswerTokens, Prefilled: now, Load: !now}); err != nil {
		return err
	}
	f.handing.reserving = append(f.handing.reserving, j)
	if f.placer.Prefilled != nil {
		f.placer.Prefilled(f.time(), j)
	}
	return nil
}

// admitted notes whom an engine gave blocks in the pass that it began.
func (f *fleet) admitted(w int) {
	h := &f.handing
	if len(h.reserving) == 0 {
		return
	}
	h.loads = f.engines[w].Loads(h.loads[:0])
	h.reserving = slices.DeleteFunc(h.reserving, func(j *Job) bool {
		switch {
		case j.Worker != w:
			return false
		case slices.Contains(h.loads, j.Sequence):
			h.coming = append(h.coming, transfer{j, f.now + f.transfer(j)})
			return true
		case f.Bandwidth == 0 && j.Sequence.Admitted():
			f.engines[j.Prefill].Free(j.prompt)
			return true
		}
		return false
	})
}

// load takes in the prompts that are there now.
func (f *fleet) load() {
	h := &f.handing
	h.coming = slices.DeleteFunc(h.coming, func(t transfer) bool {
		if t.at > f.now {
			return false
		}
		j := t.job
		f.engines[j.Worker].Loaded(j.Sequence, j.Sequence.Hashes, j.Sequence.MaxTokens)
		f.engines[j.Prefill].Free(j.prompt)
		return true
	})
}

// transfer is how long the KV of a prompt takes to the engine that answers; at most a time that no replay lasts.
func (f *fleet) transfer(j *Job) time.Duration {
	seconds := float64(j.PromptTokens) * float64(f.BytesPerToken) / (f.Bandwidth * 1e9)
	return time.Duration(min(math.Round(seconds*1e9), 1<<62))
}
