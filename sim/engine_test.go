// The core against an independent reimplementation, and its rules one by one.

package sim

import (
	"math"
	"testing"
	"time"

	"kvasir/jsonltest"
)

// twinRow is one request of a trace excerpt, and the result of the twin: a Python rewrite of the
// mocker's rules that was checked against dynamo.replay 1.6.1. Times are in milliseconds.
type twinRow struct {
	Timestamp    float64  `json:"timestamp"`
	InputLength  int      `json:"input_length"`
	OutputLength int      `json:"output_length"`
	HashIDs      []uint64 `json:"hash_ids"`
	TTFT         float64  `json:"ttft"`
	E2E          float64  `json:"e2e"`
	Cached       int      `json:"cached"`
}

func TestTwin(t *testing.T) {
	for _, c := range []struct {
		file      string
		workers   int
		speedup   float64 // divides the arrival times
		options   Options
		preempted int
	}{
		{"twin_conversation.jsonl", 4, 3, Options{BlockSize: 64}, 0},
		{"twin_small_pool.jsonl", 1, 1, Options{BlockSize: 64, Blocks: 4096}, 13},
		{"twin_synthetic.jsonl", 1, 1, Options{BlockSize: 16}, 3},
	} {
		t.Run(c.file, func(t *testing.T) {
			rows := readTwin(t, "testdata/"+c.file)
			got, preempted := replay(t, rows, c.workers, c.speedup, c.options)
			if preempted != c.preempted {
				t.Errorf("%d preemptions, the twin has %d", preempted, c.preempted)
			}
			worst := 0.0
			for i, r := range rows {
				ttft, e2e := millis(got[i].FirstToken-got[i].Arrived), millis(got[i].LastToken-got[i].Arrived)
				worst = max(worst, math.Abs(ttft-r.TTFT), math.Abs(e2e-r.E2E))
				if math.Abs(ttft-r.TTFT) > 0.001 || math.Abs(e2e-r.E2E) > 0.001 || got[i].Cached != r.Cached {
					t.Fatalf("request %d: ttft %.4f e2e %.4f cached %d, the twin says %.4f %.4f %d",
						i, ttft, e2e, got[i].Cached, r.TTFT, r.E2E, r.Cached)
				}
			}
			t.Logf("%d requests, largest difference %.2g ms", len(rows), worst)
		})
	}
}

// replay drives one engine for each worker in virtual time, one after the other; request i goes
// to worker i mod workers.
func replay(t testing.TB, rows []twinRow, workers int, speedup float64, o Options) (out []*Sequence, preempted int) {
	out = make([]*Sequence, len(rows))
	for w := range workers {
		e := New(o)
		i := w
		for {
			at, busy := e.Next()
			for ; i < len(rows); i += workers {
				arrival := time.Duration(math.Round((rows[i].Timestamp - rows[0].Timestamp) / speedup * 1e6))
				if busy && arrival > at {
					break
				}
				var err error
				out[i], err = e.Submit(arrival, Request{
					Hashes:       traceHashes(rows[i], e.options.BlockSize),
					PromptTokens: rows[i].InputLength, MaxTokens: max(rows[i].OutputLength, 1),
				})
				if err != nil {
					t.Fatal(err)
				}
				at, busy = e.Next()
			}
			if !busy {
				break
			}
			e.Advance(at)
			checkPool(t, e)
		}
		preempted += e.Stats().Preemptions
		if s := e.Stats(); s.ActiveBlocks != 0 || s.Running != 0 || s.Waiting != 0 {
			t.Errorf("worker %d is not idle at the end: %+v", w, s)
		}
	}
	return out, preempted
}

// traceHashes names the blocks of a trace's prompt; each id of the trace stands for 512 tokens.
func traceHashes(r twinRow, size int) []uint64 {
	hashes := make([]uint64, r.InputLength/size)
	for i := range hashes {
		hashes[i] = mix(r.HashIDs[i*size/512], uint64(i%(512/size)))
	}
	return hashes
}

func checkPool(t testing.TB, e *Engine) {
	p := &e.pool
	if p.active+p.idle+p.free != p.size || p.active < 0 || p.idle < 0 || p.free < 0 {
		t.Fatalf("pool of %d: active %d idle %d free %d", p.size, p.active, p.idle, p.free)
	}
}

func readTwin(tb testing.TB, path string) []twinRow {
	tb.Helper()
	return jsonltest.Read[twinRow](tb, path)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func TestSubmitRefuses(t *testing.T) {
	e := New(Options{Blocks: 4})
	for _, c := range []struct {
		name    string
		request Request
		want    string
	}{
		{"prompt over the pool", Request{PromptTokens: 65, MaxTokens: 1, Hashes: make([]uint64, 4)},
			"cannot take a prompt of 65 tokens: more tokens than the KV pool holds (64)"},
		{"no tokens", Request{PromptTokens: 0, MaxTokens: 1},
			"cannot take a request of 0 prompt tokens, 0 hashes, 1 tokens to generate"},
		{"missing hashes", Request{PromptTokens: 32, MaxTokens: 1, Hashes: make([]uint64, 1)},
			"cannot take a request of 32 prompt tokens, 1 hashes, 1 tokens to generate"},
	} {
		if _, err := e.Submit(0, c.request); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
	if _, busy := e.Next(); busy {
		t.Error("a refused request keeps the engine busy")
	}
}

func TestAnswerEndsWhereThePoolEnds(t *testing.T) {
	e := New(Options{Blocks: 4})
	s := submit(t, e, 0, 60, 1000)
	drain(t, e)
	if !s.Done || s.Generated != 5 { // 64 tokens of KV; the KV of the last token is never computed
		t.Errorf("done %v after %d tokens, want 5", s.Done, s.Generated)
	}
}

func TestCancelFreesAtOnce(t *testing.T) {
	e := New(Options{MaxSeqs: 2})
	running, other, waiting := submit(t, e, 0, 100, 50), submit(t, e, 0, 100, 3), submit(t, e, 0, 100, 3)
	e.Advance(0)
	if s := e.Stats(); s.Running != 2 || s.Waiting != 1 || s.ActiveBlocks == 0 {
		t.Fatalf("before: %+v", s)
	}
	e.Cancel(running)
	e.Cancel(waiting)
	e.Cancel(waiting) // a second time does nothing
	if s := e.Stats(); s.Running != 1 || s.Waiting != 0 || s.ActiveBlocks != 7 {
		t.Fatalf("after: %+v", s)
	}
	for _, s := range drain(t, e) {
		if s != other {
			t.Error("a cancelled sequence is in a pass")
		}
	}
	if !running.Done || running.Generated != 0 || other.Generated != 3 {
		t.Errorf("generated %d and %d tokens", running.Generated, other.Generated)
	}
	checkPool(t, e)
}

func TestPassesTellStoredAndRemovedBlocks(t *testing.T) {
	e := New(Options{Blocks: 4})
	known := map[uint64]bool{}
	for round := range 3 {
		submit(t, e, e.now, 40, 10, uint64(round+1)*100, uint64(round+1)*100+1)
		for {
			at, busy := e.Next()
			if !busy {
				break
			}
			p, ok := e.Advance(at)
			if !ok {
				continue
			}
			for _, h := range p.Removed {
				if !known[h] {
					t.Errorf("block %d removed but not stored", h)
				}
				delete(known, h)
			}
			for _, b := range p.Stored {
				known[b.Sequence.Hash(b.Index)] = true
			}
		}
		if len(known) != e.pool.idle || len(known) == 0 {
			t.Errorf("events say %d blocks are cached, the pool has %d", len(known), e.pool.idle)
		}
	}
}

// A conversation's next turn finds the cached blocks of the answer if the caller named them.
func TestNamedAnswerIsFoundAgain(t *testing.T) {
	e := New(Options{})
	submit(t, e, 0, 32, 33, 1, 2, 3, 4) // 32 + 33 tokens; the KV of 64 is computed
	drain(t, e)
	next := submit(t, e, e.now, 80, 1, 1, 2, 3, 4, 5)
	drain(t, e)
	if next.Cached != 64 {
		t.Errorf("cached %d tokens, want 64", next.Cached)
	}
}

func BenchmarkReplay(b *testing.B) {
	rows := readTwin(b, "testdata/twin_small_pool.jsonl")
	tokens := 0
	for b.Loop() {
		got, _ := replay(b, rows, 1, 1, Options{BlockSize: 64, Blocks: 4096})
		for _, s := range got {
			tokens += s.Generated
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}

func submit(t testing.TB, e *Engine, now time.Duration, prompt, out int, hashes ...uint64) *Sequence {
	t.Helper()
	for len(hashes) < prompt/e.options.BlockSize {
		hashes = append(hashes, mix(e.nextID+1, uint64(len(hashes))))
	}
	s, err := e.Submit(now, Request{Hashes: hashes, PromptTokens: prompt, MaxTokens: out})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drain runs an engine until it is idle and returns the sequences of its passes.
func drain(t testing.TB, e *Engine) (seen []*Sequence) {
	t.Helper()
	for {
		at, busy := e.Next()
		if !busy {
			return seen
		}
		if p, ok := e.Advance(at); ok {
			seen = append(seen, p.Tokens...)
		}
		checkPool(t, e)
	}
}
