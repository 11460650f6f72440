// Pin: the worker or rank that a request itself names, and the weights that it changes.

package kvroute

import (
	"errors"
	"fmt"
	"strings"

	"kvasir/kvroute/cost"
)

// ErrPin says that a request names a worker or a rank that cannot take it, whoever is
// up or busy. The error is a *PinError that says which.
var ErrPin = errors.New("the request names a worker that cannot take it")

// A Pin names where a request is to go. The zero Pin leaves it to the policy.
//
// A named worker is the only candidate: also when it is busy, and when it is
// down and the request is not Strict.
type Pin struct {
	Worker  string // that answers; empty: any
	Prefill string // that computes the prompt for it; empty: any or none

	// Data-parallel ranks, where the flag beside it is set.
	Rank, PrefillRank     int
	Ranked, PrefillRanked bool
}

// A PinError is ErrPin with what was asked for and what there is.
type PinError struct {
	Leg    cost.Leg // PrefillLeg or Whole
	Worker string
	Rank   int // -1: the worker is the trouble, not its rank
	Ranks  int // of the worker; if Rank >= 0
	Model  string
	Known  []string // workers that could have been named
}

func (e *PinError) Error() string {
	what := "worker"
	if e.Leg == cost.PrefillLeg {
		what = "prefill worker"
	}
	if e.Rank >= 0 {
		if e.Worker == "" {
			return fmt.Sprintf("no %s of model %q has data-parallel rank %d", what, e.Model, e.Rank)
		}
		return fmt.Sprintf("%s %q has no data-parallel rank %d: it has %d", what, e.Worker, e.Rank, e.Ranks)
	}
	if len(e.Known) == 0 {
		return fmt.Sprintf("no %s %q serves model %q: it has no %s", what, e.Worker, e.Model, what)
	}
	return fmt.Sprintf("no %s %q serves model %q: want %s", what, e.Worker, e.Model, strings.Join(e.Known, ", "))
}

func (e *PinError) Unwrap() error { return ErrPin }

// An Override changes a policy's numbers for one request; nil fields leave them
// as they are. Credit and Scale are the policy kv's.
type Override struct {
	Credit      *float64 // of blocks held on the device
	Scale       *float64 // of prefill work against decode work
	Temperature *float64 // 0: the cheapest; above: by chance, the cheap more often
}
