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
	reserving []*job // wait for blocks where they are answered
	coming    []transfer
	loads     []*sim.Sequence
}

type transfer struct {
	job *job
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
func (f *fleet) prefilled(j *job) (err error) {
	j.cached = j.computing.Cached
	if f.answers != nil {
		j.worker = f.answers(j)
	}
	now := f.options.Bandwidth == 0
	if j.answering, err = f.submit(j, j.worker, sim.Request{MaxTokens: j.request.AnswerTokens, Prefilled: now, Load: !now}); err != nil {
		return err
	}
	f.handing.reserving = append(f.handing.reserving, j)
	j.at.Prefilled(f.time(), true)
	return nil
}

// admitted notes whom an engine gave blocks in the pass that it began.
func (f *fleet) admitted(w int) {
	h := &f.handing
	if len(h.reserving) == 0 {
		return
	}
	h.loads = f.engines[w].Loads(h.loads[:0])
	h.reserving = slices.DeleteFunc(h.reserving, func(j *job) bool {
		switch {
		case j.worker != w:
			return false
		case slices.Contains(h.loads, j.answering):
			h.coming = append(h.coming, transfer{j, f.now + f.transfer(j)})
			return true
		case f.options.Bandwidth == 0 && j.answering.Admitted():
			f.engines[j.prefill].Free(j.computing)
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
		f.engines[j.worker].Loaded(j.answering, j.answering.Hashes, j.answering.MaxTokens)
		f.engines[j.prefill].Free(j.computing)
		return true
	})
}

// transfer is how long the KV of a prompt takes to the engine that answers; at most a time that no replay lasts.
func (f *fleet) transfer(j *job) time.Duration {
	seconds := float64(j.request.PromptTokens) * float64(f.options.BytesPerToken) / (f.options.Bandwidth * 1e9)
	return time.Duration(min(math.Round(seconds*1e9), 1<<62))
}
