// The package doc, the events and who receives them.

// Package kvevents listens to what an inference engine says about its KV cache: which blocks it stored, removed or
// forgot. It speaks the wire of vLLM, SGLang, TensorRT-LLM's streaming publisher and Dynamo's mocker: ZeroMQ, three
// frames (topic, sequence number, msgpack), with a second socket that gives missed messages again.
//
//	source := kvevents.Source{Events: "tcp://10.0.0.5:5557", Replay: "tcp://10.0.0.5:5558"}
//	sub, err := kvevents.New(source, sink, kvevents.Options{})
//	go func() { defer close(done); sub.Run(ctx) }() // until ctx is over; leaves nothing behind
//	sub.Stats()
//
// Each data-parallel rank of an engine publishes from a port of its own, and gets a Subscriber of its own.
// What a sink hears is in order and has no holes: where messages were missed and cannot be had again, or where the
// engine was started anew, it hears Cleared first. It hears doubles, because engines send them (vLLM stores and
// removes a block twice that two requests computed at the same time): count.
//
// There is no queue here. One goroutine reads, decodes and calls the sink; while it repairs a gap, messages wait in
// the connection and in the publisher, whose bound makes another gap.
package kvevents

import "fmt"

// Sink receives the events of one engine or rank, from the goroutine in Subscriber.Run or of Decoder.Decode. The
// structs and their slices are valid until the method returns.
type Sink interface {
	Stored(*Stored)
	Removed(*Removed)
	Cleared(Cleared)
}

// BatchSink is a Sink that hears when a message's events have all been given, so that it may put several into one.
type BatchSink interface {
	Sink
	BatchEnd()
}

// Unknown stands for a rank, group or LoRA id that an event does not say.
const Unknown = -1

// Stored says that blocks are in a tier from now on: a run in order, each the child of the one before.
//
// Handles name blocks in this engine's words and say nothing anywhere else. They are 64 bits: of a longer hash the
// last eight bytes (vLLM's own rule), of a signed number its two's complement.
type Stored struct {
	Rank int  // data-parallel rank, or Unknown
	Tier Tier // where the blocks are

	Handles   []uint64
	Parent    uint64 // handle of the block before the first, if HasParent; without, the first begins a prompt
	HasParent bool

	// Tokens are BlockSize for each handle. Or there are none, and no parent: an engine that copies blocks to another
	// tier says only which; then the handle is what is known about them.
	Tokens    []uint32
	BlockSize int

	LoRA   []byte // the adapter's name; empty without
	LoRAID int    // of old engines, which say no name; else Unknown
	Salt   []byte // cache_salt of the request; said with the first block of a prompt, empty without

	// Extra is empty, or has for each handle 0 or a digest of what else than tokens, LoRA and salt the block is made
	// of: images and other embeddings. Blocks of the same tokens and another digest are other blocks. See Digest.
	Extra []uint64

	Group int // the engine's number for a group of its layers, or Unknown. Groups that say little are left out: mainKind
}

// Removed says that blocks are no longer in a tier. It may name blocks that nobody has heard of.
type Removed struct {
	Rank    int
	Tier    Tier
	Handles []uint64
	Group   int
}

// Cleared says that all blocks are forgotten, by the engine or because what is known about them cannot be trusted.
type Cleared struct {
	Rank   int // only this rank of the source, or Unknown: all that the source told
	Reason Reason
}

// Reason is why blocks are forgotten.
type Reason uint8

// Reasons.
const (
	ByEngine  Reason = iota // the engine said so
	Gap                     // messages were missed for good
	Restarted               // the engine was started anew
	Unsure                  // the connection was lost and no replay socket can tell what was missed meanwhile
	Silent                  // there has been no connection for longer than Options.Patience
	Damaged                 // a message could not be read
)

var reasonText = [...]string{"cleared by the engine", "messages missed", "engine restarted",
	"connection lost without a replay socket", "no connection", "unreadable message"}

func (r Reason) String() string {
	if int(r) < len(reasonText) {
		return reasonText[r]
	}
	return fmt.Sprintf("reason %d", r)
}

// Tier is where an engine keeps a block, the fastest first.
type Tier uint8

// Tiers.
const (
	Device Tier   = iota // the memory of the accelerator
	Host                 // the memory of its host
	Disk                 // the host's disk
	Shared               // a store that several engines share
	Tiers  = iota        // how many there are
)

var tierText = [...]string{"device", "host", "disk", "shared"}

func (t Tier) String() string {
	if int(t) < len(tierText) {
		return tierText[t]
	}
	return fmt.Sprintf("tier %d", t)
}

// tierOf reads a medium as engines write it, in any case; none means the device.
func tierOf(medium []byte) (Tier, bool) {
	var upper [16]byte
	if len(medium) > len(upper) {
		return 0, false
	}
	for i, b := range medium {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		upper[i] = b
	}
	switch string(upper[:len(medium)]) {
	case "", "GPU", "DEVICE", "HBM":
		return Device, true
	case "CPU", "CPU_PINNED", "CPU_TIER1", "HOST", "DRAM":
		return Host, true
	case "CPU_TIER2", "DISK", "NVME", "SSD", "STORAGE": // CPU_TIER2 is SGLang's third level, its storage
		return Disk, true
	case "EXTERNAL", "NETWORK", "REMOTE", "SHARED":
		return Shared, true
	}
	return 0, false
}
