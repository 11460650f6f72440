// Fleets: prefill and decode apart against Dynamo's own figures, determinism, and what policies are for.

package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.json")

func read(t testing.TB, path string) *Trace {
	t.Helper()
	trace, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func run(t testing.TB, trace *Trace, o Options) *Result {
	t.Helper()
	r, err := Run(trace, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func conversation(t testing.TB) *Trace { return read(t, "../../sim/testdata/twin_conversation.jsonl") }

// Each request has the times that dynamo.replay 1.6.1 gives it.
func TestPrefillAndDecodeApartEqualDynamo(t *testing.T) {
	const path = "testdata/dynamo_2p2d.jsonl"
	o := Options{Prefill: 2, Decode: 2, Speed: 1.5}.WithDefaults()
	f, err := newFleet(read(t, path), &o)
	if err != nil {
		t.Fatal(err)
	}
	turn := 0
	f.answers = func(*job) int { // Dynamo picks who answers when the prompt is computed, Kvasir when the request comes
		turn++
		return 2 + (turn-1)%2
	}
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	got := f.result()
	for i, want := range readTwin(t, path) {
		g := got.Each[i]
		if math.Abs(millis(g.TTFT)-want.TTFT) > 0.001 || math.Abs(millis(g.E2E)-want.E2E) > 0.001 || g.CachedTokens != want.Cached {
			t.Fatalf("request %d: ttft %.4f e2e %.4f cached %d, Dynamo says %+v", i, millis(g.TTFT), millis(g.E2E), g.CachedTokens, want)
		}
	}
	for w, r := range got.PerWorker {
		if want := [...]string{"prefill", "prefill", "decode", "decode"}[w]; r.Role != want || r.Requests != 75 || (r.OutputTokens > 0) != (want == "decode") {
			t.Errorf("worker %d: %+v", w, r)
		}
	}
}

// On idle workers: the pass of the prompt, its bytes' way, a pass of one token.
func TestTransferTakesItsTime(t *testing.T) {
	trace := &Trace{Name: "t", PieceTokens: 512, Pieces: 2, Requests: []Request{
		{PromptTokens: 1000, AnswerTokens: 2, Content: []uint32{0, 1}, Line: 1},
	}}
	const prefill = 4.209989e-07*1e6 + 1.518344e-02*1e3 + 1.650142e+01
	for _, bandwidth := range []float64{0, 10} {
		want := prefill + decodeMillis(1000)
		if bandwidth > 0 {
			want += 1000 * 131072 / (bandwidth * 1e9) * 1e3
		}
		r := run(t, trace, Options{Prefill: 1, Decode: 1, Bandwidth: bandwidth})
		if math.Abs(r.TTFT.Mean-want) > 1e-5 {
			t.Errorf("at %v GB/s the first token takes %v ms, want %v", bandwidth, r.TTFT.Mean, want)
		}
		if want += decodeMillis(1001); math.Abs(r.E2E.Mean-want) > 1e-5 {
			t.Errorf("at %v GB/s the answer takes %v ms, want %v", bandwidth, r.E2E.Mean, want)
		}
	}
}

// A prompt that needs longer than a replay may last is refused. Once its time overflowed, and it was there before it
// left.
func TestTransferWithoutEnd(t *testing.T) {
	trace := first(conversation(t), 3)
	for _, bandwidth := range []float64{1e-10, 1e-12, 1e-300, math.SmallestNonzeroFloat64} {
		_, err := Run(trace, Options{Prefill: 1, Decode: 1, Bandwidth: bandwidth})
		if err == nil || !strings.Contains(err.Error(), "days or more, and may last 36500: give it more bandwidth") {
			t.Errorf("at %v GB/s: %v", bandwidth, err)
		}
	}
	if r := run(t, trace, Options{Prefill: 1, Decode: 1, Bandwidth: 1e-9}); r.TTFT.Mean < 8e11 {
		t.Errorf("at 1e-9 GB/s the first token takes %v ms", r.TTFT.Mean)
	}
}

func decodeMillis(tokens float64) float64 {
	a := tokens / (16384 * 64)
	return -25.74*a*a + 54.01*a + 5.74
}

// variants are ways of placing that all come to their end.
var variants = map[string]Options{
	"round_robin": {}, "random": {}, "least_loaded": {}, "p2c": {}, "kv": {}, "predict": {}, "predict queue": {Queue: true},
	"kv temperature": {Temperature: 0.5}, "predict 2p2d": {Prefill: 2, Decode: 2}, "predict 2p2d always queue": {Prefill: 2, Decode: 2, Disaggregate: kvroute.Always, Queue: true},
	"kv 2p2d": {Prefill: 2, Decode: 2}, "kv 2p2d bandwidth": {Prefill: 2, Decode: 2, Bandwidth: 25}, "random 2p2d": {Prefill: 2, Decode: 2},
	"predict small": {Blocks: 2000, Queue: true}, "kv small": {Blocks: 2000}, "kv 2p2d small": {Prefill: 2, Decode: 2, Blocks: 2000},
	"predict 2p2d small bandwidth": {Prefill: 2, Decode: 2, Blocks: 2000, Bandwidth: 25, Queue: true},
	"least_loaded 2p2d small":      {Prefill: 2, Decode: 2, Blocks: 2000},
	"predict 3 replicas":           {Replicas: 3, Sync: 5 * time.Millisecond, Queue: true},
	"predict 2p2d 3 replicas":      {Prefill: 2, Decode: 2, Replicas: 3, Bandwidth: 25, Queue: true},
	"kv 3 replicas apart":          {Replicas: 3, Sync: -1},
	"p2c 3 replicas":               {Replicas: 3, Sync: time.Millisecond},
}

func variant(name string) Options {
	o := variants[name]
	o.Policy, _, _ = strings.Cut(name, " ")
	o.Speed, o.Seed = 3, 7
	return o
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What policies without prices give, to the bytes of a JSON file.
func TestGolden(t *testing.T) {
	got := map[string]*Result{}
	for _, name := range []string{"round_robin", "random", "least_loaded", "p2c", "random 2p2d"} {
		got[name] = run(t, first(conversation(t), 100), variant(name))
	}
	data := append(encode(t, got), '\n')
	const path = "testdata/golden.json"
	if *update {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Errorf("not what %s has (-update rewrites it):\n%s", path, data)
	}
}

// Whatever the policy: all requests are answered in full, each is reported once, the figures of the workers add up to
// those of the whole, and a second run with the same seed gives the same bytes.
func TestPlacings(t *testing.T) {
	trace := first(conversation(t), 30)
	prompt, answer := 0, 0
	for _, r := range trace.Requests {
		prompt, answer = prompt+r.PromptTokens, answer+r.AnswerTokens
	}
	for name := range variants {
		t.Run(name, func(t *testing.T) {
			o := variant(name)
			done := 0
			o.Progress = func(n int) {
				if done++; done != n {
					t.Errorf("told of %d requests that are done after %d", n, done-1)
				}
			}
			r := run(t, trace, o)
			o.Progress = nil
			if a, b := encode(t, r), encode(t, run(t, trace, o)); !bytes.Equal(a, b) {
				t.Errorf("two runs differ:\n%s\n%s", a, b)
			}
			gotPrompt, gotAnswer, preempted := 0, 0, 0
			for _, w := range r.PerWorker {
				gotPrompt, gotAnswer, preempted = gotPrompt+w.PromptTokens, gotAnswer+w.OutputTokens, preempted+w.Preemptions
			}
			if r.Requests != len(trace.Requests) || done != r.Requests || gotPrompt != prompt || gotAnswer != answer || preempted != r.Preemptions {
				t.Errorf("%d requests of %d, %d told, prompts %d of %d, answers %d of %d", r.Requests, len(trace.Requests), done, gotPrompt, prompt, gotAnswer, answer)
			}
			if r.Reuse > r.Ceiling || r.Reuse <= 0 || r.Imbalance < 1 {
				t.Errorf("reuse %v of at most %v, imbalance %v", r.Reuse, r.Ceiling, r.Imbalance)
			}
			for i, q := range r.Each {
				if q.TTFT <= 0 || q.E2E < q.TTFT || q.CachedTokens >= trace.Requests[i].PromptTokens {
					t.Fatalf("request %d: %+v", i, q)
				}
			}
			if r.Refused > 0 {
				t.Errorf("the index did not take %d blocks", r.Refused)
			}
		})
	}
}

func TestAnotherSeedDrawsOtherwise(t *testing.T) {
	trace := first(conversation(t), 50)
	one, other := variant("random"), variant("random")
	other.Seed++
	if bytes.Equal(encode(t, run(t, trace, one)), encode(t, run(t, trace, other))) {
		t.Error("another seed draws the same")
	}
}

// first cuts a trace, and its answers, so that it plays in no time.
func first(t *Trace, n int) *Trace {
	cut := *t
	cut.Requests = slices.Clone(t.Requests[:n])
	for i := range cut.Requests {
		cut.Requests[i].AnswerTokens = min(cut.Requests[i].AnswerTokens, 40)
	}
	return &cut
}

// The index of the replay holds what the engines hold, and nothing else, when all is done.
func TestIndexFollowsEngines(t *testing.T) {
	trace := first(conversation(t), 300)
	o := variant("kv small").WithDefaults()
	f, err := newFleet(trace, &o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	var tokens []uint32
	for i := range trace.Requests {
		r := &trace.Requests[i]
		names := trace.names(r, o.BlockSize, &tokens)
		for _, overlap := range f.placing.index.Find(nil, names) {
			w := slices.IndexFunc(f.placing.workers, func(w *kvroute.Worker) bool { return w.Cache(0).ID() == overlap.Worker })
			probe, err := f.engines[w].Submit(f.now, sim.Request{Hashes: numbers(names), PromptTokens: r.PromptTokens, MaxTokens: 1})
			if err != nil {
				t.Fatal(err)
			}
			f.engines[w].Advance(f.now) // begins the pass that looks for its blocks
			held := min(int(overlap.Device), (r.PromptTokens-1)/o.BlockSize)
			if probe.Cached != held*o.BlockSize {
				t.Fatalf("request %d: the index says that worker %d holds %d blocks, it has %d tokens", i, w, overlap.Device, probe.Cached)
			}
			return // the probe changed the engine
		}
	}
	t.Error("the index holds nothing")
}

func numbers(names []kvindex.Name) (hashes []uint64) {
	for _, n := range names {
		hashes = append(hashes, uint64(n))
	}
	return hashes
}

// Placing by what workers hold finds more of it than placing without looking, and waits less.
func TestPricesPay(t *testing.T) {
	trace := first(conversation(t), 300)
	blind := run(t, trace, variant("random"))
	for _, name := range []string{"kv", "predict", "predict queue"} {
		if r := run(t, trace, variant(name)); r.TTFT.Mean > 0.9*blind.TTFT.Mean || name != "kv" && r.Reuse < 1.1*blind.Reuse {
			t.Errorf("%s: first token after %.0f ms, reuse %.3f; at random %.0f ms, %.3f", name, r.TTFT.Mean, r.Reuse, blind.TTFT.Mean, blind.Reuse)
		}
	}
}

func TestCeiling(t *testing.T) {
	trace := &Trace{PieceTokens: 512, Pieces: 4, Requests: []Request{
		{PromptTokens: 1000, Content: []uint32{0, 1}},    // new
		{PromptTokens: 1000, Content: []uint32{0, 1}},    // all but the last token's block: 15 blocks of 64
		{PromptTokens: 1024, Content: []uint32{0, 1}},    // 1000 tokens known: 15 blocks
		{PromptTokens: 1500, Content: []uint32{0, 2, 3}}, // 8 blocks
		{PromptTokens: 64, Content: []uint32{0}},         // its one block has its last token
	}}
	if got, want := trace.Ceiling(64), float64(15*64+15*64+8*64)/(1000+1000+1024+1500+64); got != want {
		t.Errorf("ceiling %v, want %v", got, want)
	}
}

func TestSpreads(t *testing.T) {
	times := []time.Duration{5e6, 1e6, 2e6, 4e6, 3e6}
	if got, want := spread(times), (Spread{Mean: 3, P50: 3, P90: 4.6, P99: 4.96}); !near(got, want) {
		t.Errorf("spread %+v, want %+v", got, want)
	}
	// 1, 1, 1, 2, 2, 9
	if got, want := spreadGaps([]gap{{9e6, 1}, {1e6, 3}, {2e6, 2}}), (Spread{Mean: 16. / 6, P50: 1.5, P90: 5.5, P99: 8.65}); !near(got, want) {
		t.Errorf("gaps %+v, want %+v", got, want)
	}
	if spread(nil) != (Spread{}) || spreadGaps(nil) != (Spread{}) {
		t.Error("nothing has a spread")
	}
}

func near(a, b Spread) bool {
	return math.Abs(a.Mean-b.Mean)+math.Abs(a.P50-b.P50)+math.Abs(a.P90-b.P90)+math.Abs(a.P99-b.P99) < 1e-9
}

func TestRunRefuses(t *testing.T) {
	trace := conversation(t)
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Policy: "best"}, `cannot replay: policy "best" is none of [kv least_loaded p2c predict random round_robin]`},
		{Options{Workers: -1}, "cannot replay: number of workers -1 is not between 1 and 4096"},
		{Options{Prefill: 1}, "cannot replay: 1 prefill and 0 decode workers: it takes both"},
		{Options{Workers: 1, Prefill: 1, Decode: 1}, "cannot replay: 1 workers beside 1 prefill and 1 decode workers: it takes one or the other"},
		{Options{Speed: math.NaN()}, "cannot replay: speed NaN is not between 1e-6 and 1e9"},
		{Options{Queue: true}, "cannot replay: a queue with policy round_robin: only predict has one"},
		{Options{Temperature: -1}, "cannot replay: temperature -1 is not between 0 and 1e6"},
		{Options{Bandwidth: math.Inf(1)}, "cannot replay: bandwidth +Inf is not between 0 and 1e6 GB/s"},
		{Options{Blocks: 100}, "cannot replay the request of twin_conversation.jsonl:1: cannot take a prompt of 6758 tokens: more tokens than the KV pool holds (6400): give its workers more blocks"},
	} {
		if _, err := Run(trace, c.o); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	if _, err := Run(&Trace{}, Options{}); !errors.Is(err, ErrEmpty) {
		t.Errorf("error %v", err)
	}
}

// In overload those who wait in the queue speak for decode workers to compute prompts: without them in the prices
// prefill workers seem about to be free, and all wait for those alone.
func TestQueueLeavesPromptsToDecodeWorkers(t *testing.T) {
	o := Options{Prefill: 1, Decode: 3, Policy: "predict", Speed: 8}
	without := run(t, conversation(t), o)
	o.Queue = true
	with := run(t, conversation(t), o)
	if with.TTFT.Mean > 1.3*without.TTFT.Mean || with.TTFT.P99 > 1.3*without.TTFT.P99 {
		t.Errorf("first tokens after %.0f ms (p99 %.0f) with the queue, %.0f (p99 %.0f) without", with.TTFT.Mean, with.TTFT.P99, without.TTFT.Mean, without.TTFT.P99)
	}
}

// An engine that is never without prompts to compute shows its timing, too: what all ask for goes to all, though the
// queue keeps the one that has it first from being behind.
func TestHotPrefixFromAColdStart(t *testing.T) {
	trace := &Trace{PieceTokens: 512}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a trace
	at := time.Duration(0)
	for i := range 1200 {
		r := Request{Arrival: at, PromptTokens: 60*512 + 2000, AnswerTokens: 50, Line: i + 1}
		for piece := range 60 {
			r.Content = append(r.Content, uint32(piece))
		}
		for range 4 {
			r.Content = append(r.Content, uint32(60+4*i+len(r.Content)%4))
		}
		trace.Requests = append(trace.Requests, r)
		at += time.Duration(random.ExpFloat64() / 40 * float64(time.Second))
	}
	trace.Pieces = 60 + 4*1200
	turns := run(t, trace, Options{Workers: 8})
	got := run(t, trace, Options{Workers: 8, Policy: "predict", Queue: true})
	t.Logf("first tokens after %.0f ms, round robin %.0f", got.TTFT.Mean, turns.TTFT.Mean)
	if got.TTFT.Mean > 5*turns.TTFT.Mean { // nothing is known for the first two seconds
		t.Errorf("first tokens after %.0f ms, round robin has them after %.0f", got.TTFT.Mean, turns.TTFT.Mean)
	}
	for _, w := range got.PerWorker {
		if w.Requests > 300 || w.Requests < 75 {
			t.Errorf("worker %d has %d of 1,200 requests", w.Worker, w.Requests)
		}
	}
}

// What a replay costs, for each policy, a request.
func BenchmarkRun(b *testing.B) {
	trace := conversation(b)
	for _, name := range []string{"round_robin", "kv", "predict", "predict queue"} {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				run(b, trace, variant(name))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(trace.Requests)), "us/request")
		})
	}
}
