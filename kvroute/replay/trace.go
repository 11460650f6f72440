// A trace: requests with their lengths, their times, and which of their prompts begin alike.

package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kvasir/kvroute/kvindex"
)

// A Request is one row of a trace.
type Request struct {
	Arrival      time.Duration // since any moment
	PromptTokens int           // at least 1
	AnswerTokens int           // at least 1
	Content      []uint32      // pieces of Trace.PieceTokens tokens that the prompt is made of; equal number, equal tokens
	Line         int           // in the file, from 1
}

// A Trace is what is played. Requests are in order of arrival.
type Trace struct {
	Name        string // of the file
	Requests    []Request
	PieceTokens int // of a piece of Content
	Pieces      int // different ones; Content counts from 0
	Left        int // lines of the file that say nothing of a request that was served
}

// Spread moves each arrival by a random time below stamp, for a trace whose times are rounded to as much: Mooncake's
// conversations have up to 23 requests at one moment, every 3 s, which no router but one can place one after the other.
func (t *Trace) Spread(stamp time.Duration, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0x737072656164)) //nolint:gosec // the same seed, the same replay
	for i := range t.Requests {
		t.Requests[i].Arrival += time.Duration(random.Int64N(int64(stamp)))
	}
	slices.SortStableFunc(t.Requests, func(a, b Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

func (t *Trace) where(r *Request) string { return fmt.Sprintf("%s:%d", t.Name, r.Line) }

// names returns the names of the prompt's full blocks. It makes its tokens in buffer, which is to be given again.
func (t *Trace) names(r *Request, blockSize int, buffer *[]uint32) []kvindex.Name {
	full := r.PromptTokens / blockSize
	*buffer = t.appendTokens((*buffer)[:0], r, 0, full*blockSize)
	return kvindex.AppendNames(make([]kvindex.Name, 0, full), 0, *buffer, blockSize)
}

// appendTokens appends the prompt's tokens from one place to another. A trace does not tell them, only which are
// equal: piece p has the tokens p*PieceTokens and on.
func (t *Trace) appendTokens(dst []uint32, r *Request, from, to int) []uint32 {
	for from < to {
		piece, offset := from/t.PieceTokens, from%t.PieceTokens
		n := min(to-from, t.PieceTokens-offset)
		token := r.Content[piece]*uint32(t.PieceTokens) + uint32(offset)
		dst = slices.Grow(dst, n)[:len(dst)+n]
		run := dst[len(dst)-n:]
		for i := range run {
			run[i] = token + uint32(i)
		}
		from += n
	}
	return dst
}

// Ceiling is the share of the prompt tokens that one cache without bounds would have held: what no policy exceeds.
// Full blocks count, and the last token of a prompt is always computed.
func (t *Trace) Ceiling(blockSize int) float64 {
	hit, all := 0, 0
	t.Cached(blockSize, func(i, cached int) {
		hit += cached
		all += t.Requests[i].PromptTokens
	})
	return share(hit, all)
}

// Cached tells of each request, in order of arrival, how many tokens of its prompt one cache without bounds would hold
// that had all prompts before it.
func (t *Trace) Cached(blockSize int, tell func(request, cached int)) {
	known := make([]int32, t.Pieces) // tokens of each piece seen
	for i := range t.Requests {
		r := &t.Requests[i]
		same, begins := 0, true
		for k, at := 0, 0; at < r.PromptTokens; k, at = k+1, at+t.PieceTokens {
			length := min(t.PieceTokens, r.PromptTokens-at)
			seen := &known[r.Content[k]]
			if begins {
				same += min(length, int(*seen))
				begins = int(*seen) >= t.PieceTokens
			}
			*seen = max(*seen, int32(length))
		}
		tell(i, min(same, r.PromptTokens-1)/blockSize*blockSize)
	}
}
