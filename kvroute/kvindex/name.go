// Name: what a block is called, from its tokens and all tokens before it.

package kvindex

import (
	"encoding/binary"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// A Name stands for one full block of tokens together with all that comes
// before it in the prompt, and for the model, adapter and salt that it belongs
// to. It is never 0.
//
// The first block of a prompt is XXH3-64 over its tokens as little-endian u32,
// each further one XXH3-64 over (name before, the same of its own tokens),
// little-endian. Where there is a seed it is the name before the first block,
// so that blocks inherit it by their parent: engines name a salt with the first
// block only. The hash's own seed is 1337. Without a Seed these are the block
// hashes of Dynamo (lib/kv-router/src/protocols.rs, dynamo-tokens).
//
// Two prompts whose blocks have one name are taken for the same: by chance in one of
// a million indexes of 6 million blocks, on purpose by whoever looks for it, as
// XXH3 is no cryptographic hash. What comes of it is an overlap that the worker
// does not have, so a prompt that waits longer; engines name their blocks for themselves,
// and no prompt is answered from another's.
type Name uint64

// A Seed keeps the blocks of one model, adapter and salt apart from all
// others. 0: none of the three.
type Seed uint64

const xxhSeed = 1337 // Dynamo's

// SeedOf returns the seed for a model, a LoRA adapter and a cache salt; empty
// means none. Prompts and the events of the engine must be named by the same
// seed.
func SeedOf(model, lora, salt string) Seed {
	if model == "" && lora == "" && salt == "" {
		return 0
	}
	var b []byte
	for _, s := range [...]string{model, lora, salt} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return max(1, Seed(xxh3.HashSeed(b, xxhSeed)))
}

// AppendNames appends the names of the full blocks of tokens to dst; tokens
// that do not fill a block have no name. Names that dst holds already are those
// of the blocks before them, so that a prompt can be named piece by piece; with
// an empty dst, tokens begin the prompt. blockSize is in tokens, above 0.
func AppendNames(dst []Name, seed Seed, tokens []uint32, blockSize int) []Name {
	var stack [1024]byte
	buf := scratch(stack[:], 4*blockSize)
	prev := last(dst, seed)
	for len(tokens) >= blockSize {
		prev = prev.then(localHash(buf, tokens[:blockSize], nil))
		dst = append(dst, prev)
		tokens = tokens[blockSize:]
	}
	return dst
}

// AppendTextNames is AppendNames for prompts whose tokens are not known: blocks
// are runs of blockBytes bytes of text. They name nothing that an engine says,
// only own placements (Worker.Place), and never meet names of tokens.
func AppendTextNames(dst []Name, seed Seed, text []byte, blockBytes int) []Name {
	prev := last(dst, seed)
	for len(text) >= blockBytes {
		prev = prev.then(xxh3.HashSeed(text[:blockBytes], ^uint64(xxhSeed)))
		dst = append(dst, prev)
		text = text[blockBytes:]
	}
	return dst
}

// last returns the name that the next block follows; 0: it is the first, unseeded.
func last(names []Name, seed Seed) Name {
	if len(names) > 0 {
		return names[len(names)-1]
	}
	return Name(seed)
}

// then returns the name of the block of hash local that follows n.
func (n Name) then(local uint64) Name {
	if n != 0 {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:8], uint64(n))
		binary.LittleEndian.PutUint64(b[8:], local)
		local = xxh3.HashSeed(b[:], xxhSeed)
	}
	return max(1, Name(local))
}

// littleEndian says that tokens lie in memory as they are hashed.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// localHash hashes the tokens of one block, and after them its extra keys
// (sorted hashes of images and the like). buf has room for both.
func localHash(buf []byte, tokens []uint32, extra []uint64) uint64 {
	if littleEndian && len(extra) == 0 && len(tokens) > 0 {
		// To copy them first would be as long as to hash them.
		return xxh3.HashSeed(unsafe.Slice((*byte)(unsafe.Pointer(&tokens[0])), 4*len(tokens)), xxhSeed)
	}
	n := 4 * len(tokens)
	to := buf[:n]
	for len(tokens) >= 2 && len(to) >= 8 { // two at once take half the time
		binary.LittleEndian.PutUint64(to, uint64(tokens[0])|uint64(tokens[1])<<32)
		tokens, to = tokens[2:], to[8:]
	}
	for i, t := range tokens {
		binary.LittleEndian.PutUint32(to[4*i:], t)
	}
	for i, e := range extra {
		binary.LittleEndian.PutUint64(buf[n+8*i:], e)
	}
	return xxh3.HashSeed(buf[:n+8*len(extra)], xxhSeed)
}

// scratch returns stack, or n bytes where it is too small.
func scratch(stack []byte, n int) []byte {
	if n > len(stack) {
		return make([]byte, n)
	}
	return stack
}
