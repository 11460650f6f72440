// Tests of placement by price: its cost, and single facts that stories do not show.

package kvroute

import (
	"slices"
	"testing"
	"time"

	"kvasir/kvroute/kvindex"
)

// warm returns workers whose engines have told of prompts, and those prompts:
// every worker holds four of them, of which the first half of the blocks is the
// same for all. Every second one is of role decode, and for two of those there is
// a prefill worker, which holds nothing.
func warm(t testing.TB, workers, tokens int, o PoolOptions) (*Pool, [][]uint32) {
	t.Helper()
	o.Workers = newWorkers(workers, 0, "m")
	if o.Disaggregate != Never {
		for i := range o.Workers {
			role := [4]Role{Both, Decode, Both, Decode}[i%4]
			o.Workers[i] = NewWorker(o.Workers[i].name, role, 0)
			if i%4 == 3 {
				o.Workers = append(o.Workers, NewWorker("prefill", Prefill, 0))
			}
		}
		for _, w := range o.Workers {
			w.SetModels([]Model{{Name: "m"}})
		}
	}
	p := NewPool(o)
	prompts := make([][]uint32, 4*workers)
	for i := range prompts {
		prompts[i] = make([]uint32, tokens)
		for at := range prompts[i] {
			prompts[i][at] = uint32(at)
			if at >= tokens/2 {
				prompts[i][at] += uint32(1000 * (i + 1))
			}
		}
	}
	for _, w := range o.Workers {
		w.SetEngine(EngineFacts{BlockSize: 16, Blocks: 16384, MaxBatchedTokens: 8192, MaxSeqs: 256, Events: true})
	}
	for i, w := range o.Workers[:workers] {
		for j := range 4 {
			hold(t, w, prompts[4*i+j])
		}
	}
	return p, prompts
}

// hold lets the worker's engine tell that it holds the prompt.
func hold(t testing.TB, w *Worker, tokens []uint32) {
	t.Helper()
	var hashes []uint64
	n := len(tokens) / 16
	for _, name := range kvindex.AppendNames(nil, 0, tokens, 16) {
		hashes = append(hashes, uint64(name))
	}
	if err := w.Cache(0).Store(kvindex.Stored{Hashes: hashes, Tokens: tokens[:16*n], BlockSize: 16}); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkPlacePredict16 is the way of a prompt of 2,048 tokens, 128 blocks,
// among 16 workers that hold some of it: named, placed, its first token seen,
// released. What Place takes is told apart.
func BenchmarkPlacePredict16(b *testing.B) { benchmarkPredict(b, 16) }

func BenchmarkPlacePredict1000(b *testing.B) { benchmarkPredict(b, 1000) }

func benchmarkPredict(b *testing.B, workers int) {
	p, prompts := warm(b, workers, 2048, PoolOptions{Policy: Predict, Disaggregate: Never})
	var prompt Prompt
	var took []time.Duration
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		prompt.Reset()
		prompt.IDs = prompts[i%len(prompts)]
		i++
		begin := time.Now()
		at, err := p.Place(Query{Now: begin, Model: "m", Prompt: &prompt})
		took = append(took, time.Since(begin))
		if err != nil {
			b.Fatal(err)
		}
		at.Tokens(begin, 1)
		at.Release()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkTokens is what each event of a stream costs, of 32 streams that an
// engine generates together: every 32nd ends a pass.
func BenchmarkTokens(b *testing.B) {
	p, prompts := warm(b, 1, 2048, PoolOptions{Policy: Predict, Disaggregate: Never})
	now := time.Now()
	var streams [32]Placement
	for i := range streams {
		at, err := p.Place(Query{Now: now, Model: "m", Prompt: &Prompt{IDs: prompts[0]}})
		if err != nil {
			b.Fatal(err)
		}
		defer at.Release()
		streams[i] = at
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if i++; i%32 == 0 {
			now = now.Add(20 * time.Millisecond)
		}
		streams[i%32].Tokens(now, 1)
	}
}

// TestPredictAllocs: the way of a request by price takes nothing from the heap, with
// a prefill worker or without, tokens known or not, however long the prompt is.
// What the index takes for blocks that it did not know is another matter: the
// prompts here have all been seen.
func TestPredictAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool loses some on purpose")
	}
	for _, policy := range []Policy{KV, Predict} {
		for _, disaggregate := range []Disaggregate{Never, Auto, Always} {
			for _, tokens := range []int{512, 8192} {
				if n := placeAllocs(t, policy, disaggregate, tokens); n != 0 {
					t.Errorf("%v, %v, %d tokens: %v allocations", policy, disaggregate, tokens, n)
				}
			}
		}
	}
}

func placeAllocs(t *testing.T, policy Policy, disaggregate Disaggregate, tokens int) float64 {
	p, prompts := warm(t, 8, tokens, PoolOptions{Policy: policy, Disaggregate: disaggregate, CentralQueue: true, MaxQueued: 9})
	p.options.Workers[0].SetHardware(Hardware{Slow: 2})
	p.options.Workers[1].SetHardware(Hardware{Aside: true})
	var prompt Prompt
	i, now, text := 0, time.Now(), textOf(prompts[0])
	place := func() {
		prompt.Reset()
		if i++; i%2 == 0 {
			prompt.IDs = prompts[i%len(prompts)]
		} else {
			prompt.Text = text
		}
		now = now.Add(100 * time.Microsecond) // so that nothing predicted expires, to be noted anew
		at, err := p.Place(Query{Now: now, Model: "m", Prompt: &prompt})
		if err != nil {
			t.Fatal(err)
		}
		if len(at.Candidates) < len(p.options.Workers) {
			t.Fatal("candidates are missing")
		}
		at.Prefilled(now, true)
		at.Tokens(now, 1)
		at.Cached(16)
		at.Tokens(now, 3)
		at.Release()
	}
	for range 1000 {
		place()
	}
	return testing.AllocsPerRun(200, place)
}

// What is predicted goes by time, also where nothing is placed any more.
func TestIndexForgetsWhatIsOver(t *testing.T) {
	now := time.Now()
	w := NewWorker("a", Both, 0)
	w.SetModels([]Model{{Name: "m"}})
	w.SetEngine(EngineFacts{BlockSize: 16, Blocks: 100, Events: true})
	p := NewPool(PoolOptions{Workers: []*Worker{w}, Policy: Predict, Now: func() time.Time { return now }})
	at, err := p.Place(Query{Now: now, Model: "m", Prompt: &Prompt{IDs: make([]uint32, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if got := p.Index().Predicted; got != 4 {
		t.Errorf("%d blocks are predicted while the request is under way", got)
	}
	at.Release()
	now = now.Add(time.Second)
	if got := p.Index().Predicted; got != 0 {
		t.Errorf("%d blocks are predicted after it", got)
	}
}

// In overload decode workers compute prompts, too, though each single one would be done earlier by a prefill worker.
func TestWaitingPromptsGoToDecodeWorkers(t *testing.T) {
	workers := []*Worker{NewWorker("prefill", Prefill, 0), NewWorker("decode", Decode, 0)}
	for _, w := range workers {
		w.SetModels([]Model{{Name: "m"}})
		w.SetEngine(EngineFacts{BlockSize: 16, Blocks: 16384, MaxBatchedTokens: 8192, MaxSeqs: 256, Events: true})
	}
	now := time.Now()
	p := NewPool(PoolOptions{Workers: workers, Policy: Predict, CentralQueue: true, MaxQueued: 100, Now: func() time.Time { return now }})
	query := func(tokens int) Query {
		ids := make([]uint32, tokens)
		for at := range ids {
			ids[at] = uint32(tokens)
		}
		return Query{Now: now, Model: "m", Prompt: &Prompt{IDs: ids}}
	}
	for i := range 40 { // answers that prompts would hold up
		q := query(16 + i)
		q.Aggregate = true
		at, err := p.Place(q)
		if err != nil {
			t.Fatal(err)
		}
		defer at.Release()
		at.Tokens(q.Now, 1)
	}
	var all []*waiter
	for i := range 40 {
		w, at, err := p.line.enter(query(6000+i), nil)
		if err != nil {
			t.Fatal(err)
		}
		if w == nil {
			w = &waiter{at: at, done: true}
		}
		all = append(all, w)
	}
	handed, alone, waits := 0, 0, 0
	p.line.mu.Lock()
	for _, w := range all {
		switch {
		case !w.done:
			waits++
		case w.at.Prefill != nil:
			handed++
			defer w.at.Release()
		default:
			alone++
			defer w.at.Release()
		}
	}
	p.line.mu.Unlock()
	if handed == 0 || alone == 0 || waits == 0 {
		t.Errorf("%d handed over, %d by the decode worker alone, %d wait", handed, alone, waits)
	}
}

// BenchmarkCentralQueue: a request ends while 1,000 wait at 16 engines, one of
// them goes there, and another one comes.
func BenchmarkCentralQueue(b *testing.B) {
	p, prompts := warm(b, 16, 2048, PoolOptions{Policy: Predict, Disaggregate: Never, CentralQueue: true, MaxQueued: 2000})
	ids := make([][]uint32, 4000) // nobody holds anything of these
	for i := range ids {
		ids[i] = append([]uint32{uint32(1 + i)}, prompts[0][1:]...)
	}
	var held []Placement
	var waiting []*waiter
	enter := func(i int) {
		w, at, err := p.line.enter(Query{Model: "m", Prompt: &Prompt{IDs: ids[i%len(ids)]}}, nil)
		switch {
		case err != nil:
			b.Fatal(err)
		case w == nil:
			held = append(held, at)
		default:
			waiting = append(waiting, w)
		}
	}
	i := 0
	for ; len(waiting) < 1000; i++ {
		enter(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		held[0].Release()
		held = held[1:]
		waiting = slices.DeleteFunc(waiting, func(w *waiter) bool {
			if w.done {
				held = append(held, w.at)
			}
			return w.done
		})
		i++
		enter(i)
	}
	b.ReportMetric(float64(len(waiting)), "waiting")
}
