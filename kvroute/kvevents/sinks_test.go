// Sinks for tests, and the files of engines' bytes.

package kvevents

import (
	"fmt"
	"strings"
	"testing"

	"kvasir/kvroute/kvevents/recorded"
)

// script writes down what it hears.
type script struct{ strings.Builder }

func (w *script) Stored(s *Stored) {
	fmt.Fprintf(w, "  stored rank %d %v %x", s.Rank, s.Tier, s.Handles)
	if s.HasParent {
		fmt.Fprintf(w, " after %x", s.Parent)
	}
	fmt.Fprintf(w, " tokens %d x %d", len(s.Handles), s.BlockSize)
	if n := len(s.Tokens); n > 0 {
		fmt.Fprintf(w, " %d..%d", s.Tokens[0], s.Tokens[n-1])
	} else {
		fmt.Fprint(w, " unsaid")
	}
	if s.LoRAID != Unknown || len(s.LoRA) > 0 {
		fmt.Fprintf(w, " lora %d %q", s.LoRAID, s.LoRA)
	}
	if len(s.Salt) > 0 {
		fmt.Fprintf(w, " salt %q", s.Salt)
	}
	if len(s.Extra) > 0 {
		fmt.Fprintf(w, " extra %x", s.Extra)
	}
	fmt.Fprintf(w, " group %d\n", s.Group)
}

func (w *script) Removed(r *Removed) {
	fmt.Fprintf(w, "  removed rank %d %v %x group %d\n", r.Rank, r.Tier, r.Handles, r.Group)
}

func (w *script) Cleared(c Cleared) { fmt.Fprintf(w, "  rank %d: %v\n", c.Rank, c.Reason) }

// holding is a sink that knows which prompts an engine holds, the obvious way: a block's name is all its tokens from
// the beginning of the prompt on, and the salt.
type holding struct {
	blocks    map[uint64]*held
	strangers int // handles removed that were not there
}

type held struct {
	salt   string
	prompt []uint32
	count  int
}

func newHolding() *holding { return &holding{blocks: map[uint64]*held{}} }

func (h *holding) Stored(s *Stored) {
	salt, prompt := string(s.Salt), []uint32(nil)
	if s.HasParent {
		parent := h.blocks[s.Parent]
		if parent == nil {
			return // stored before anybody listened
		}
		salt, prompt = parent.salt, parent.prompt
	}
	for i, handle := range s.Handles {
		prompt = append(prompt[:len(prompt):len(prompt)], s.Tokens[i*s.BlockSize:(i+1)*s.BlockSize]...)
		b := h.blocks[handle]
		if b == nil {
			b = &held{salt: salt, prompt: prompt}
			h.blocks[handle] = b
		}
		b.count++
	}
}

func (h *holding) Removed(r *Removed) {
	for _, handle := range r.Handles {
		b := h.blocks[handle]
		if b == nil {
			h.strangers++
			continue
		}
		if b.count--; b.count == 0 {
			delete(h.blocks, handle)
		}
	}
}

func (h *holding) Cleared(Cleared) { clear(h.blocks) }

// overlap is how many leading blocks of a prompt are held.
func (h *holding) overlap(salt string, prompt []uint32, size int) int {
	names := map[string]bool{}
	for _, b := range h.blocks {
		names[fmt.Sprint(b.salt, b.prompt)] = true
	}
	n := 0
	for (n+1)*size <= len(prompt) && names[fmt.Sprint(salt, prompt[:(n+1)*size])] {
		n++
	}
	return n
}

// captures are the files of engines' bytes; msgspec.jsonl is made by encode.py.
var captures = []string{"vllm", "vllm_bytes_hash", "sglang", "mocker", "msgspec"}

func readCaptured(t testing.TB, name string) []recorded.Row {
	t.Helper()
	return recorded.Read(t, "testdata/"+name+".jsonl")
}
