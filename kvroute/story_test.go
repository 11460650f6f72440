// Commands of transcripts that tell of prompts, engines and blocks.

package kvroute

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvasir/kvroute/kvindex"
)

// tokens reads runs of token ids: 1-8,40-47.
func tokens(list string) []uint32 {
	ids := []uint32{}
	for run := range strings.SplitSeq(list, ",") {
		from, to, _ := strings.Cut(run, "-")
		first, _ := strconv.Atoi(from)
		last, _ := strconv.Atoi(to)
		for id := first; id <= last; id++ {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// textOf returns four bytes for each token.
func textOf(ids []uint32) []byte {
	var text []byte
	for _, id := range ids {
		text = fmt.Appendf(text, "%04d", id%10000)
	}
	return text
}

// priced is what a transcript says of a placement by price, or with a prefill worker.
func priced(at Placement) string {
	var text strings.Builder
	if at.Rank >= 0 {
		fmt.Fprintf(&text, ", rank %d", at.Rank)
	}
	if at.Candidates != nil {
		text.WriteString(", " + at.Overlap.text())
	}
	if at.Prefill != nil {
		fmt.Fprintf(&text, "; prefill %s", at.Prefill.Name())
		if at.PrefillRank >= 0 {
			fmt.Fprintf(&text, ", rank %d", at.PrefillRank)
		}
		if at.Candidates != nil {
			text.WriteString(", " + at.PrefillOverlap.text())
		}
	}
	return text.String()
}

func (o Overlap) text() string {
	if o.BlockSize == 0 {
		return "holds nobody knows what"
	}
	text := fmt.Sprintf("holds %d of %d", o.Blocks(), o.Of)
	if o.Predicted > 0 {
		text += fmt.Sprintf(" (%d predicted)", o.Predicted)
	}
	if o.Host+o.Disk > 0 {
		text += fmt.Sprintf(" (%d host, %d disk)", o.Host, o.Disk)
	}
	return text
}

// engine NAME [block=N] [blocks=N] [budget=N] [seqs=N] [ranks=N] [events]
func (s *story) tellEngine(w words) {
	news := s.worker(w.at(0)).SetEngine(EngineFacts{
		BlockSize: w.number("block"), Blocks: w.number("blocks"), MaxBatchedTokens: w.number("budget"),
		MaxSeqs: w.number("seqs"), Ranks: w.number("ranks"), Events: slices.Contains(w.bare, "events"),
	})
	if !news {
		s.say("no news\n")
	}
}

// hardware NAME [slow=X] [aside]
func (s *story) tellHardware(w words) {
	slow, _ := strconv.ParseFloat(w.named["slow"], 64)
	if !s.worker(w.at(0)).SetHardware(Hardware{Slow: slow, Aside: slices.Contains(w.bare, "aside")}) {
		s.say("no news\n")
	}
}

// event returns the blocks of an event: NAME TOKENS [rank=N] [block=N]. Their hashes are their names.
func (s *story) event(w words) (cache *kvindex.Worker, hashes []uint64, e kvindex.Stored) {
	cache = s.worker(w.at(0)).Cache(w.number("rank"))
	size := w.number("block")
	if size == 0 {
		size = cache.BlockSize()
	}
	ids := tokens(w.at(1))
	for _, name := range kvindex.AppendNames(nil, 0, ids, size) {
		hashes = append(hashes, uint64(name))
	}
	tier := slices.Index([]string{"", "host", "disk"}, w.named["tier"])
	return cache, hashes, kvindex.Stored{Tier: kvindex.Tier(tier), Hashes: hashes, Tokens: ids, BlockSize: size}
}

// holds NAME TOKENS [rank=N] [block=N] [tier=T]: its events say so
func (s *story) tellHolds(w words) {
	cache, _, e := s.event(w)
	if err := cache.Store(e); err != nil {
		s.say("%v\n", err)
	}
}

// drops NAME TOKENS [rank=N] [block=N] [tier=T]
func (s *story) tellDrops(w words) {
	cache, hashes, e := s.event(w)
	cache.Remove(e.Tier, hashes)
}

func (s *story) at(id string) *Placement {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.placed[id]
	if !ok {
		s.t.Fatalf("%s holds nothing", id)
	}
	return &at
}

// tokens ID [n=N]
func (s *story) tellTokens(w words) { s.at(w.at(0)).Tokens(time.Now(), max(w.number("n"), 1)) }

// prefilled ID
func (s *story) tellPrefilled(w words) { s.at(w.at(0)).Prefilled(time.Now(), true) }

// explain ID
func (s *story) tellExplain(w words) {
	for _, c := range s.at(w.at(0)).Candidates {
		name := c.Worker.Name()
		if c.Rank >= 0 {
			name += fmt.Sprintf(" rank %d", c.Rank)
		}
		chosen := ""
		if c.Slow != 1 {
			chosen += fmt.Sprintf(", slow %g", c.Slow)
		}
		if c.Aside {
			chosen += ", aside"
		}
		if c.Chosen {
			chosen += ", chosen"
		}
		s.say("%s %s: %s, %d requests, %d decoding, backlog %d%s\n",
			name, c.Leg, c.Overlap.text(), c.Load.Requests, c.Load.Decoding, c.Load.Backlog, chosen)
	}
}
