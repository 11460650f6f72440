// Package kvroute knows the workers and says which one takes a request.
//
// It decides and does no I/O: whoever forwards requests and probes workers
// tells it what happened (Succeeded, Failed, Busy, ProbeOK, ProbeFailed,
// SetModels) and asks it for a place:
//
//	w := kvroute.NewWorker("a", kvroute.Both, 64)
//	w.SetModels([]kvroute.Model{{Name: "qwen"}})
//	pool := kvroute.NewPool(kvroute.PoolOptions{
//		Workers: []*kvroute.Worker{w}, Policy: kvroute.LeastLoaded, MaxQueued: 100,
//	})
//
//	q := kvroute.Query{Now: time.Now(), Model: "qwen"}
//	at, err := pool.Place(q)
//	if errors.Is(err, kvroute.ErrFull) {
//		at, err = pool.Wait(q, clientGone, 10*time.Second)
//	}
//	if err != nil {
//		return err
//	}
//	defer at.Release()
//
// With the policies KV and Predict the choice goes by what each worker holds of
// the prompt and by what is under way there, so that more is to be told:
//
//	w.SetEngine(kvroute.EngineFacts{BlockSize: 16, MaxBatchedTokens: 8192, Events: true})
//	err := w.Cache(0).Store(event) // for each of its events
//
//	q.Prompt = &kvroute.Prompt{Seed: kvindex.SeedOf("qwen", "", ""), IDs: tokens}
//	at, err := pool.Place(q)
//	if at.Prefill != nil {
//		... // it computes the prompt first, or at once
//		at.Prefilled(now, true)
//	}
//	at.Tokens(now, 1) // for each event of the answer
//	at.Answered(now, tokens) // or, of one in one piece, at its end
//
// A worker lives as long as its configuration names it; a Pool is the workers
// and the policy of one configuration generation. The state that both share,
// the requests that wait, is a line that every pool hands on to the next one
// (PoolOptions.After, Pool.Start).
//
// Time comes in as an argument. Only what waits looks at a clock of its own
// (PoolOptions.Now), because a waiting request is woken by time as well.
package kvroute

import (
	"errors"
	"fmt"
	"strings"
)

// Why a request got no worker. Compare with errors.Is.
var (
	// ErrUnknownModel: no worker serves the model, and all workers have said what they serve.
	ErrUnknownModel = errors.New("no worker serves this model")

	// ErrModelUnsure: no worker is known to serve the model, but some have not
	// said yet what they serve. The error is an *UnsureError that names them.
	ErrModelUnsure = errors.New("no worker is known to serve this model, and some have not answered yet")

	// ErrNoWorker: the model is served, but every worker of it was tried for this
	// request or is down or ejected.
	ErrNoWorker = errors.New("no worker of this model is left to try")

	// ErrNoPrefill: the prompt is to be computed by a prefill worker (Always, or
	// the request names one), and none is left. It is an ErrNoWorker.
	ErrNoPrefill = fmt.Errorf("the request needs a prefill worker, and none is up or left to try: %w", ErrNoWorker)

	// ErrFull: the workers that could take the request are all at their limit
	// of requests, or others wait for them already. Pool.Wait may follow.
	ErrFull = errors.New("all workers of this model are full")

	// ErrQueueFull: as many requests wait for the model as may.
	ErrQueueFull = errors.New("too many requests wait for this model")

	// ErrQueueTimeout: no worker became free in the time the request could wait.
	ErrQueueTimeout = errors.New("no worker of this model became free in time")

	// ErrGone: the client left while its request waited.
	ErrGone = errors.New("the client left while its request waited")
)

// An UnsureError is ErrModelUnsure with the names of the workers that have not
// said yet what they serve.
type UnsureError struct{ Workers []string }

func (e *UnsureError) Error() string {
	return ErrModelUnsure.Error() + ": " + strings.Join(e.Workers, ", ")
}

func (e *UnsureError) Unwrap() error { return ErrModelUnsure }

// A Role says which part of a request a worker computes.
type Role uint8

// The roles.
const (
	Both    Role = iota // prefill and decode
	Prefill             // prompts only; takes no requests of its own
	Decode              // answers; prefills what no prefill worker did for it
)

var roleNames = [...]string{Both: "both", Prefill: "prefill", Decode: "decode"}

func (r Role) String() string { return roleNames[r] }

// ParseRole reads both, prefill or decode; empty means both.
func ParseRole(s string) (Role, error) {
	if s == "" {
		return Both, nil
	}
	for r, name := range roleNames {
		if s == name {
			return Role(r), nil
		}
	}
	return Both, fmt.Errorf("cannot read role %q: want both, prefill or decode", s)
}

// A Model is a name that clients may ask a worker for.
type Model struct {
	Name        string
	MaxModelLen int // tokens of prompt and answer together; 0: unknown
}
