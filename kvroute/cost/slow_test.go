// Engines that telemetry says are slow: what is learned of them, and what they cost.

package cost

import (
	"math/rand/v2"
	"testing"
	"time"

	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// What is learned is what the engine can do, whatever slows it down meanwhile; so both are right from the first pass on
// that telemetry tells of, and from the first one after.
func TestLearnsFullSpeed(t *testing.T) {
	for _, told := range []bool{true, false} {
		random := rand.New(rand.NewPCG(4, 4))
		engine, mirror := sim.New(sim.Options{BlockSize: 64}), NewMirror(Engine{BlockSize: 64, Blocks: 16384})
		requests := map[*sim.Sequence]*Request{}
		now, slow, worst := time.Duration(0), 1.0, 1.0
		for i := range 3000 {
			now += time.Duration(random.ExpFloat64() * 200e6 * slow)
			if i%300 == 150 { // mostly amid a pass
				slow = [...]float64{3, 1, 8, 2, 1}[i/300%5]
				engine.Slow(slow)
				if told {
					mirror.SetSlow(start.Add(now), slow)
				}
			}
			for {
				end, busy := engine.Next()
				if !busy || end > now {
					break
				}
				pass, ok := engine.Advance(end)
				if !ok {
					continue
				}
				for _, s := range pass.Tokens {
					mirror.Tokens(requests[s], start.Add(pass.End), 1)
					if s.Done {
						mirror.End(requests[s], start.Add(pass.End))
					}
				}
			}
			prompt := 1 + random.IntN(12000)
			s, err := engine.Submit(now, sim.Request{Hashes: names(i*1000, prompt/64), PromptTokens: prompt, MaxTokens: 1 + random.IntN(40)})
			if err != nil {
				t.Fatal(err)
			}
			requests[s] = mirror.Send(start.Add(now), Sent{Prompt: prompt})
			engine.Advance(now)
			if timing, ok := mirror.Timing(); ok && i > 140 {
				for _, tokens := range []float64{1000, 8000} {
					off := timing.prefill(tokens) / Mocker.prefill(tokens)
					worst = max(worst, off, 1/off)
				}
			}
		}
		t.Logf("told %v: off by %.2f at most", told, worst)
		if told && worst > 1.05 || !told && worst < 1.5 {
			t.Errorf("told %v: a prefill is learned %.2f times too long or short", told, worst)
		}
	}
}

// What is left of the pass under way takes as much longer, and what is gone of it stays.
func TestSlowAmidAPass(t *testing.T) {
	m := NewMirror(known())
	m.Send(at(0), Sent{Prompt: 8192})
	whole := Mocker.prefill(8192)
	left := func(when string, now, want float64) {
		t.Helper()
		near(t, when, millis(m.Load(at(now)).PassLeft), want, 1e-3)
	}
	left("at full speed", 40, whole-40)
	m.SetSlow(at(40), 3)
	left("slow", 40, 3*(whole-40))
	left("later", 70, 3*(whole-40)-30)
	m.SetSlow(at(70), 1)
	left("well again", 70, whole-50)
	m.SetSlow(at(1000), 2) // overdue: nothing is known of what is left
	r := m.Send(at(1000), Sent{Prompt: 100})
	m.Tokens(r, at(1001), 1)
	m.End(r, at(1001))
	if l := m.Load(at(1001)); l.Slow != 2 || l.Requests != 1 {
		t.Errorf("%+v", l)
	}
}

// What a wrong factor teaches goes with it.
func TestWrongFactor(t *testing.T) {
	m := NewMirror(Engine{BlockSize: 64, Blocks: 16384})
	now := 0.0
	passes := func(n int) {
		for i := range n {
			prompt := 1000 + i%8*1000
			r := m.Send(at(now), Sent{Prompt: prompt})
			now += Mocker.prefill(float64(prompt))
			m.Tokens(r, at(now), 1)
			m.End(r, at(now))
			now += 10
		}
	}
	learned := func(when string, by float64) {
		t.Helper()
		timing, ok := m.Timing()
		if !ok {
			t.Fatalf("%s: nothing is known", when)
		}
		near(t, when+": a pass", m.slow*timing.prefill(4000)/Mocker.prefill(4000), 1, by)
	}
	passes(100)
	learned("at full speed", 0.02)
	m.SetSlow(at(now), 4) // it is not
	passes(1000)
	learned("after long", 0.05)
	m.SetSlow(at(now), 1)
	learned("told right", 0.02)

	// Nothing is known from before: then nothing is known again, sooner than something wrong.
	m, now = NewMirror(Engine{BlockSize: 64, Blocks: 16384}), 0
	m.SetSlow(at(now), 2)
	passes(100)
	learned("from the start", 0.02)
	m.SetSlow(at(now), 1)
	if _, ok := m.Timing(); ok {
		t.Error("what was learned while slow is kept")
	}
}

// A pass that spans a change is not learned from, those before and after are.
func TestPassOverAChange(t *testing.T) {
	m := NewMirror(Engine{BlockSize: 64, Blocks: 16384})
	now := 0.0
	pass := func(slow float64) int {
		before := m.model.prefill.count
		r := m.Send(at(now), Sent{Prompt: 4096})
		m.Load(at(now + 1))
		m.SetSlow(at(now+2), slow)
		now += 100
		m.Tokens(r, at(now), 1)
		m.End(r, at(now))
		now += 10
		return m.model.prefill.count - before
	}
	// Each is learned with the next one, when all that it brought is known. -1: what was learned at half speed is forgotten.
	for i, want := range []int{0, 1, 0, 0, 1, -1, 0, 1} {
		if got := pass([...]float64{1, 1, 2, 2, 2, 1, 1, 1}[i]); got != want {
			t.Errorf("pass %d: %d more are learned from, want %d", i, got, want)
		}
	}
}

// Everything that passes take is longer; the price of the work for those who come later is not.
func TestPricesOfSlow(t *testing.T) {
	e := known().withDefaults()
	busy := Load{
		Engine: e, Timing: Mocker, Requests: 40, Decoding: 30, Outstanding: 400000, Context: 300000, Streamed: 5000, Prefilling: 6000,
		Backlog: 5000, PassLeft: 50 * time.Millisecond, Held: 16384, EvictAge: 5 * time.Second, Flow: 40000,
	}
	slow := busy
	slow.Slow = 2
	c := []Candidate{{Load: busy, Overlap: kvindex.Overlap{Device: 31}}, {Load: slow, Overlap: kvindex.Overlap{Device: 31}}}
	predict, kv := DefaultPredict(), DefaultKV()
	predict.Price(start, Prompt{Tokens: 10000}, c)
	for i, times := range []float64{2, 1, 1, 2, 2, 1} {
		full, part := c[0].Parts[i], c[1].Parts[i]
		want := times * full.Value
		if full.Name == "ttft" {
			want -= 50 // what is left of the pass is as the mirror says
		}
		near(t, part.Name, part.Value, want, 1e-6)
	}
	near(t, "the place in the queue", millis(Shortest(10000, c[1:]))/millis(Shortest(10000, c[:1])), 2, 1e-6)
	kv.Price(start, Prompt{Tokens: 10000}, c)
	near(t, "kv", c[1].Cost/c[0].Cost, 2, 1e-9)
	near(t, "the sum of kv's parts", c[1].Parts[3].Value+c[1].Parts[4].Value+c[1].Parts[5].Value, c[1].Cost, 1e-9)
	// While no timing is known, in tokens.
	for i := range c {
		c[i].Load.Timing = Timing{}
	}
	predict.Price(start, Prompt{Tokens: 10000}, c)
	near(t, "in tokens", c[1].Parts[0].Value/c[0].Parts[0].Value, 2, 1e-9)
	near(t, "the work in tokens", c[1].Parts[1].Value, c[0].Parts[1].Value, 1e-9)
}

// One that is aside is not taken, however cheap, and the others have the prices that they have without it.
func TestAsideIsShownOnly(t *testing.T) {
	idle, busy := Load{Engine: known().withDefaults(), Timing: Mocker}, Load{Engine: known().withDefaults(), Timing: Mocker}
	busy.Requests, busy.Prefilling, busy.Outstanding, busy.Flow, busy.Backlog = 4, 30000, 500000, 30000, 9000
	predict, kv := DefaultPredict(), KV{PrefillLoadScale: 1, DeviceCredit: 1, Decay: 1}
	for name, price := range map[string]func(time.Time, Prompt, []Candidate){"predict": predict.Price, "kv": kv.Price} {
		prompt := Prompt{Tokens: 6400}
		alone := []Candidate{{Load: busy, Overlap: kvindex.Overlap{Device: 10}}}
		price(start, prompt, alone)
		c := []Candidate{{Load: idle, Aside: true, Overlap: kvindex.Overlap{Device: 100}}, {Load: busy, Overlap: kvindex.Overlap{Device: 10}}}
		price(start, prompt, c)
		if c[0].Cost >= c[1].Cost {
			t.Errorf("%s: who is aside is not cheaper: %v", name, c)
		}
		near(t, name+" beside one that is aside", c[1].Cost, alone[0].Cost, 1e-9)
		for _, temperature := range []float64{0, 1} {
			random := rand.New(rand.NewPCG(5, 5))
			for range 100 {
				if Pick(c, temperature, random.Uint64) != 1 {
					t.Fatalf("%s at temperature %v: who is aside is chosen", name, temperature)
				}
			}
		}
		near(t, "the place in the queue", millis(Shortest(6400, c)), millis(Shortest(6400, alone)), 1e-9)
	}
}
