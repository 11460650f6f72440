// Package replay plays a trace of requests against simulated engines, in virtual time: who is placed where by which
// policy, and how long everybody waits for it.
//
//	trace, err := replay.Read("trace.jsonl")
//	...
//	result, err := replay.Run(trace, replay.Options{Workers: 8, Policy: "kv", Speed: 6})
//
// What decides is what runs in the proxy: a kvroute.Pool with all its policies, its index, its mirrors and its line of
// requests that wait. It is told what engines store, remove and answer, as the proxy tells it. Only the engines (package
// sim) and the clock are not real. A replay is single-threaded and reads no clock: the same trace, options and seed give
// the same result to the last digit.
package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/sim"
	"kvasir/wording"
)

// Options say what a trace is played against. Zero fields have their defaults.
type Options struct {
	Workers int     // engines that compute prompts and answer; default 4
	Prefill int     // with Decode, instead of Workers: engines that compute prompts for others,
	Decode  int     // and engines that answer
	Policy  string  // a name of Policies; default round_robin
	Speed   float64 // divides the times of arrival; default 1
	Seed    uint64  // of what is drawn at random

	Queue        bool                 // requests may wait at the router: policy predict only
	Disaggregate kvroute.Disaggregate // with prefill workers: whether every prompt is handed over; policy predict only
	KV           cost.KV              // weights of policy kv; default cost.DefaultKV
	Predict      cost.Predict         // of policy predict; default cost.DefaultPredict
	Temperature  float64              // of the choice by price; 0: always the cheapest

	// Replicas are routers before the same workers; each request comes to one of them, drawn at
	// random. Default 1. Sync is how long what one of them says is on its way to the others,
	// after what gathering takes (peering.Gather); negative: they say nothing.
	Replicas int
	Sync     time.Duration

	BlockSize        int // tokens of a block; default 64
	Blocks           int // KV blocks of an engine; default 16,384
	MaxBatchedTokens int // tokens of a pass; default 8,192
	MaxSeqs          int // sequences of an engine that run at a time; default 256

	// The way from prefill to decode: how fast (GB/s; 0: a prompt is there at once) and how much.
	Bandwidth     float64
	BytesPerToken int // default 131,072: 32 layers of 8 KV heads of 128 halves, twice

	// Slowdowns slow engines down. Telemetry says what their GPUs tell of it to the policies that go by it: it is asked
	// for each worker with its requests under way, TelemetryEvery; nil: nobody knows. It must be a function of what it
	// was asked so far.
	Slowdowns []Slowdown
	Telemetry func(now time.Time, worker, active int) kvroute.Hardware

	Scaling *Scaling // nil: the fleet stays as it is

	// Pace is how many times longer a pass takes than on the engine that is simulated; default 1.
	Pace float64

	Progress func(done int) // if not nil: told after each request that is done how many are

	Brief bool // no Result.ITL, which takes memory and time for each token

	// Finished is told, if not nil, of each request that is done, by its place in the order of arrival. An error ends the
	// replay, and is Run's.
	Finished func(request int, r RequestResult) error
}

// Policies are the names of all policies, sorted.
func Policies() []string { return slices.Sorted(slices.Values(kvroute.PolicyNames())) }

// WithDefaults returns the options with the defaults of the fields that are zero.
func (o Options) WithDefaults() Options {
	if o.Prefill+o.Decode == 0 && o.Workers == 0 {
		o.Workers = 4
	}
	for _, f := range []struct {
		field    *int
		standard int
	}{{&o.Replicas, 1}, {&o.BytesPerToken, 131072}, {&o.BlockSize, 64}, {&o.Blocks, 16384}, {&o.MaxBatchedTokens, 8192}, {&o.MaxSeqs, 256}} {
		if *f.field == 0 {
			*f.field = f.standard
		}
	}
	if o.Policy == "" {
		o.Policy = "round_robin"
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Pace == 0 {
		o.Pace = 1
	}
	if o.KV == (cost.KV{}) {
		o.KV = cost.DefaultKV()
	}
	if o.Predict == (cost.Predict{}) {
		o.Predict = cost.DefaultPredict()
	}
	if policy, err := kvroute.ParsePolicy(o.Policy); err != nil || !policy.Queues() {
		o.Disaggregate = kvroute.Always
	}
	return o
}

// MaxWorkers bounds Options.Workers.
const MaxWorkers = 4096

// MaxReplicas bounds Options.Replicas, and maxSync Options.Sync.
const (
	MaxReplicas = 64
	maxSync     = time.Minute
)

// Validate reports the first option that is out of its bounds, on options that have no field at 0 that would have a
// default.
func (o *Options) Validate() error {
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"number of workers", o.workers(), 1, MaxWorkers}, {"number of prefill workers", o.Prefill, 0, MaxWorkers},
		{"number of decode workers", o.Decode, 0, MaxWorkers},
		{"number of replicas", o.Replicas, 1, MaxReplicas}, {"block size", o.BlockSize, 1, 1 << 20}, {"blocks", o.Blocks, 1, 1 << 24},
		{"bytes per token", o.BytesPerToken, 1, 1 << 30}, {"max batched tokens", o.MaxBatchedTokens, 1, 1 << 30}, {"max seqs", o.MaxSeqs, 1, 1 << 20},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("%s %d is not between %d and %d", f.name, f.value, f.least, f.most)
		}
	}
	if !(o.Speed >= 1e-6 && o.Speed <= 1e9) { // also NaN
		return fmt.Errorf("speed %v is not between 1e-6 and 1e9", o.Speed)
	}
	if o.Pace != 0 && !(o.Pace >= 0.001 && o.Pace <= 1000) {
		return fmt.Errorf("pace %v is not between 0.001 and 1000", o.Pace)
	}
	if s := o.Scaling; s != nil && (s.Want == nil || s.First < 0 || s.Start < 0 || s.Most < o.workers() || s.Most > MaxWorkers) {
		return fmt.Errorf("a fleet that changes: first at %v, starts of %v, %d workers at most: times must be 0 or more, workers between %d and %d",
			s.First, s.Start, s.Most, o.workers(), MaxWorkers)
	}
	if (o.Prefill > 0) != (o.Decode > 0) {
		return fmt.Errorf("%d prefill and %d decode workers: it takes both", o.Prefill, o.Decode)
	}
	if o.Prefill > 0 && o.Workers > 0 {
		return fmt.Errorf("%d workers beside %d prefill and %d decode workers: it takes one or the other", o.Workers, o.Prefill, o.Decode)
	}
	if !(o.Bandwidth >= 0 && o.Bandwidth <= 1e6) {
		return fmt.Errorf("bandwidth %v is not between 0 and 1e6 GB/s", o.Bandwidth)
	}
	if o.Scaling != nil && o.Replicas > 1 {
		return fmt.Errorf("%d replicas before a fleet that changes: it takes one", o.Replicas)
	}
	if o.Sync > maxSync {
		return fmt.Errorf("sync %v is longer than %v", o.Sync, maxSync)
	}
	policy, err := kvroute.ParsePolicy(o.Policy)
	if err != nil {
		return fmt.Errorf("policy %q is none of %v", o.Policy, Policies())
	}
	if o.Queue && !policy.Queues() {
		return fmt.Errorf("a queue with policy %s: only %s has one", policy, wording.List(kvroute.PoliciesThat(kvroute.Policy.Queues), "and"))
	}
	if !(o.Temperature >= 0 && o.Temperature <= 1e6) {
		return fmt.Errorf("temperature %v is not between 0 and 1e6", o.Temperature)
	}
	return o.validateSlowdowns()
}

// workers is how many engines there are.
func (o *Options) workers() int { return o.Workers + o.Prefill + o.Decode }

func (o *Options) engine() sim.Options {
	return sim.Options{BlockSize: o.BlockSize, Blocks: o.Blocks, MaxBatchedTokens: o.MaxBatchedTokens, MaxSeqs: o.MaxSeqs, Speedup: 1 / o.Pace}
}

// most is how many workers there may be at once.
func (o *Options) most() int {
	if o.Scaling != nil {
		return o.Scaling.Most
	}
	return o.workers()
}

// ErrEmpty is Run's error for a trace without requests.
var ErrEmpty = errors.New("the trace has no requests")

// epoch is time 0 of a replay, for those who count in time.Time.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Run plays a trace. Errors: an option out of its bounds, ErrEmpty, and a prompt that no engine can hold
// (sim.ErrTooLong).
func Run(t *Trace, o Options) (*Result, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("cannot replay: %w", err)
	}
	if len(t.Requests) == 0 {
		return nil, fmt.Errorf("cannot replay: %w", ErrEmpty)
	}
	f, err := newFleet(t, &o)
	if err != nil {
		return nil, err
	}
	if err := f.run(); err != nil {
		return nil, err
	}
	return f.result(), nil
}
