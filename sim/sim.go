// The simulated engine: package doc, options and their defaults.

// Package sim is a worker without a GPU: an engine that schedules, caches and times requests like
// vLLM's, and a server that speaks vLLM 0.32's HTTP form, or with Options.Engine SGLang's or
// TensorRT-LLM's (dialect.go), for people who try Kvasir out, for its tests and for replays. It
// never passes for a real engine: every text says that it is simulated, as do the Server header
// and, where the API has a field for it, "system_fingerprint":"kvasir-sim" or a weight_version.
//
//	s, err := sim.NewServer(sim.Options{Name: "decode-0", Model: "sim-model"})
//	ln, err := net.Listen("tcp", "127.0.0.1:8100")
//	go s.Serve(ln)   // returns nil after Close
//	defer s.Close()
//
//	curl http://127.0.0.1:8100/v1/chat/completions -H 'content-type: application/json' \
//	  -d '{"model":"sim-model","messages":[{"role":"user","content":"Hello"}],"stream":true}'
//
// These are realistic: the timing (the length of a pass from its prompt tokens and KV use,
// timing.go), continuous batching with chunked prefill and preemption (engine.go), paged KV
// blocks with a prefix cache and LRU eviction (blocks.go), and therefore cached_tokens, queueing
// and the metrics. The rules and constants are those of Dynamo's mocker (aisimulate-core 0.13.0),
// with which the core agrees request by request (engine_test.go). The text is not realistic
// (text.go). It ends by itself after 32 to 159 tokens unless ignore_eos or min_tokens say
// otherwise, and depends only on the prompt, the seeds and the worker's name; temperature and
// similar parameters are checked but have no other effect. Where a request asks for JSON by a
// schema the answer is the simplest that fits it (structured.go).
//
// vLLM's routes for responses, messages, embeddings, rerank and score are there as well. Responses
// and messages become chats, so that the same conversation meets the same blocks on each of the
// three routes; stored responses are kept in memory, a thousand at most (responses.go). A vector
// knows which words two texts have in common, and no meaning (pooling.go).
//
// With Options.Events it publishes the blocks that its cache stores and removes, as vLLM does:
// over ZeroMQ, with a second socket for missed messages (events.go, publisher.go). All blocks are
// on the device, its only tier.
//
//	go s.ServeEvents(events) // listeners, as for Serve
//	go s.ServeReplay(replay)
//
// # Prefill and decode
//
// Workers hand prompts over as vLLM does over NIXL (transfer.go), SGLang in bootstrap rooms
// (meet.go) and TensorRT-LLM with disaggregated_params (trtllm.go). The KV itself is not real.
// Instead one number per block goes over HTTP on a separate port (sidechannel.go): that is enough
// to tell right KV from wrong, and it takes as long as real KV would at Options.Bandwidth.
// Everything else is as observed on vLLM 0.32: parameters to the byte; leases; 200 with a wrong
// text when blocks were reused after their lease; 500, at once for another engine id and after a
// timeout for a dead port; an engine that hangs, and then dies, on a request without a required
// field (Serve returns; nothing else in the process ends); and the counters that reveal each.
//
//	curl $P/v1/chat/completions -d '{"messages":[...],"max_tokens":1,"kv_transfer_params":{"do_remote_decode":true}}'
//	curl $D/v1/chat/completions -d '{"messages":[...],"kv_transfer_params":{ what the first reply says }}'
//
// The core does no I/O and gets the time from its caller, so that a replay drives the same Engine
// in virtual time:
//
//	e := sim.New(sim.Options{BlockSize: 64})
//	seq, err := e.Submit(now, sim.Request{Hashes: hashes, PromptTokens: 640, MaxTokens: 20})
//	for pass, ok := e.Advance(now); ok; pass, ok = e.Advance(now) { ... pass.Tokens, pass.Stored, pass.Removed ... }
//	next, busy := e.Next() // when to call Advance again
//
// # Faults
//
// With Options.Faults (kvasir simulate --faults) the request header x-sim-fault makes the worker
// fail on purpose. An event is one "data:" line with its blank line. The role chunk and [DONE]
// count as events.
//
//	die              close the connection before the reply head
//	die-after=N      cut the stream after N events, without the last chunk; not streamed: like die
//	hang             read the request and never answer
//	hang-after=N     stop after N events and keep the connection open; not streamed: like hang
//	slow=DURATION    wait before each event (Go's form: 20ms); not streamed: before the reply
//	status=CODE      answer with that status and an error in vLLM's form
//	error-event      200, then an error event first, then [DONE]; not streamed: 500
//	error-after=N    the same after N events; not streamed: 500
//	role-then-error  the role chunk of each choice, then the error event, then [DONE]; not streamed: 500
//	keepalive        two ": keep-alive" comments before the first event; not streamed: no effect
//	close            no chunked framing and no Content-Length: the body ends when the connection does
//	truncate-json    not streamed: a Content-Length eight bytes larger than what is sent; streamed: no effect
//
// Any other value is refused with 400. Faults apply to all routes
// that answer a prompt.
package sim

import (
	"fmt"
	"time"
)

// Fingerprint is the system_fingerprint of every completion. It distinguishes a simulated answer
// from a real one.
const Fingerprint = "kvasir-sim"

// Version is the reply of GET /version: the version of the simulated vLLM, and a mark of the
// simulator.
const Version = "0.32.0+kvasir.sim"

// Options configure an engine and its server. The zero value of each field means its default.
type Options struct {
	Name   string // the worker's name, which its answers mention; default "sim-0"
	Model  string // the one model served; default "kvasir-sim"
	Engine string // vllm | sglang | trtllm: whose HTTP API is simulated; default vllm
	Role   string // both | prefill | decode; default both. Shown in /metrics; every worker accepts either side of a hand-over

	BlockSize        int // tokens in one KV block; default 16
	Blocks           int // KV blocks in the pool; default 16,384
	MaxBatchedTokens int // tokens one pass may compute; default 8,192
	MaxSeqs          int // sequences that run at a time; default 256
	MaxModelLen      int // tokens of prompt and answer; default 32,768. The server refuses longer ones; the core does not check

	Speedup float64 // divides the length of every pass; default 1
	Seed    uint64  // changes every answer's text
	Faults  bool    // honour x-sim-fault

	SideChannel      string        // where other engines fetch KV once a request is held; default "127.0.0.1:0"
	Lease            time.Duration // how long blocks are held for an engine that does not come; default 30 s, as in vLLM
	BootstrapTimeout time.Duration // how long one leg of SGLang's hand-over waits for the other; default 300 s, as in SGLang
	TransferTimeout  time.Duration // how long to wait for an engine that does not answer; default 5 s, as in vLLM
	KVBytes          int           // bytes of one token's KV, all layers; default 131,072, as for a Llama with 8 billion parameters
	Bandwidth        float64       // of KV between engines in GB/s; default 50, a fast network card; multiplied by Speedup

	Events      bool   // publish KV events: Server.ServeEvents and ServeReplay
	EventTopic  string // their topic; default empty
	EventBuffer int    // messages kept for subscribers that missed some; default 10,000, as in vLLM
}

// withDefaults returns o with every zero field at its default.
func (o Options) withDefaults() Options {
	o.Name = orDefault(o.Name, "sim-0")
	o.Model = orDefault(o.Model, "kvasir-sim")
	o.Engine = orDefault(o.Engine, "vllm")
	o.Role = orDefault(o.Role, "both")
	o.BlockSize = orDefault(o.BlockSize, 16)
	o.Blocks = orDefault(o.Blocks, 16384)
	o.MaxBatchedTokens = orDefault(o.MaxBatchedTokens, 8192)
	o.MaxSeqs = orDefault(o.MaxSeqs, 256)
	o.MaxModelLen = orDefault(o.MaxModelLen, 32768)
	o.Speedup = orDefault(o.Speedup, 1)
	o.SideChannel = orDefault(o.SideChannel, "127.0.0.1:0")
	o.Lease = orDefault(o.Lease, 30*time.Second)
	o.BootstrapTimeout = orDefault(o.BootstrapTimeout, 300*time.Second)
	o.TransferTimeout = orDefault(o.TransferTimeout, 5*time.Second)
	o.KVBytes = orDefault(o.KVBytes, 128<<10)
	o.Bandwidth = orDefault(o.Bandwidth, 50)
	o.EventBuffer = orDefault(o.EventBuffer, 10000)
	return o
}

// validate returns an error for the first invalid option. o has its defaults filled in.
func (o Options) validate() error {
	switch o.Role {
	case "both", "prefill", "decode":
	default:
		return fmt.Errorf("role %q is none of both, prefill, decode", o.Role)
	}
	for _, size := range []struct {
		name  string
		value int
	}{
		{"block size", o.BlockSize}, {"blocks", o.Blocks}, {"max batched tokens", o.MaxBatchedTokens},
		{"max seqs", o.MaxSeqs}, {"max model len", o.MaxModelLen}, {"event buffer", o.EventBuffer},
		{"KV bytes", o.KVBytes},
	} {
		if size.value < 1 || size.value > 1<<30 {
			return fmt.Errorf("%s %d is not between 1 and 2^30", size.name, size.value)
		}
	}
	if !(o.Speedup >= 1e-6) { // also NaN; with a smaller one a pass does not fit a time.Duration
		return fmt.Errorf("speedup %v is not at least 1e-6", o.Speedup)
	}
	if _, ok := dialects[o.Engine]; !ok {
		return fmt.Errorf("engine %q is none of vllm, sglang, trtllm", o.Engine)
	}
	if o.Lease < 0 || o.TransferTimeout < 0 || o.BootstrapTimeout < 0 || !(o.Bandwidth >= 1e-6) {
		return fmt.Errorf("lease %v, bootstrap timeout %v, transfer timeout %v and bandwidth %v GB/s are not all above 0",
			o.Lease, o.BootstrapTimeout, o.TransferTimeout, o.Bandwidth)
	}
	if o.MaxModelLen > o.Blocks*o.BlockSize {
		return fmt.Errorf("max model len %d is more than the %d tokens of the pool (%d blocks of %d)",
			o.MaxModelLen, o.Blocks*o.BlockSize, o.Blocks, o.BlockSize)
	}
	return nil
}

func orDefault[T comparable](value, standard T) T {
	var zero T
	if value == zero {
		return standard
	}
	return value
}
