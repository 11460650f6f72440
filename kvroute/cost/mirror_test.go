// The mirror against engines, its learning, and its edges.

package cost

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms float64) time.Time { return start.Add(duration(ms)) }

func known() Engine { return Engine{BlockSize: 64, Blocks: 16384, Timing: Mocker} }

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The predicted time to first token is the engine's own, but for answers that end and for prompts that come meanwhile
// and share the last pass.
func TestPredictsTheEngine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	engine, mirror := sim.New(sim.Options{BlockSize: 64}), NewMirror(known())
	requests := map[*sim.Sequence]*Request{}
	predicted := map[*sim.Sequence]time.Duration{}
	now := time.Duration(0)
	var off []time.Duration
	last := time.Duration(0)
	predict := DefaultPredict()
	for i := range 400 {
		now += time.Duration(random.ExpFloat64() * 300e6)
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
				if s.Generated == 1 && s.Arrived == last {
					off = append(off, (pass.End - s.Arrived - predicted[s]).Abs())
				}
				if s.Done {
					mirror.End(requests[s], start.Add(pass.End))
				}
			}
		}
		prompt := 1 + random.IntN(20000)
		c := []Candidate{{Load: mirror.Load(start.Add(now))}}
		predict.Price(start.Add(now), Prompt{Tokens: prompt}, c)
		s, err := engine.Submit(now, sim.Request{
			Hashes: names(i*1000, prompt/64), PromptTokens: prompt, MaxTokens: 1 + random.IntN(40),
		})
		if err != nil {
			t.Fatal(err)
		}
		requests[s] = mirror.Send(start.Add(now), Sent{Prompt: prompt})
		predicted[s], last = c[0].TTFT, now
		engine.Advance(now)
	}
	slices.Sort(off)
	half, most := off[len(off)/2], off[len(off)*95/100]
	t.Logf("%d predictions: half are off by less than %v, 95%% by less than %v", len(off), half, most)
	if len(off) < 100 || half > time.Millisecond || most > 30*time.Millisecond {
		t.Errorf("of %d predictions half are off by %v and more, 5%% by %v", len(off), half, most)
	}
}

func names(from, n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(from+i) + 1<<40
	}
	return all
}

func TestLineAndPasses(t *testing.T) {
	m := NewMirror(known())
	a := m.Send(at(0), Sent{Prompt: 10000, Hit: 0})
	b := m.Send(at(1), Sent{Prompt: 3000, Hit: 640})
	l := m.Load(at(1))
	if l.InPass != 8192 || l.Backlog != 10000-8192+2360 || l.Requests != 2 || l.Prefilling != 12360 || l.Outstanding != 13000 {
		t.Errorf("in the first pass: %+v", l)
	}
	near(t, "what is left of it", millis(l.PassLeft), Mocker.prefill(8192)-1, 0.01)
	l = m.Load(at(200)) // the first pass cannot be seen to end: it is over when predicted
	if l.InPass != 4168 || l.Backlog != 0 {
		t.Errorf("in the second pass: %+v", l)
	}
	m.Tokens(a, at(260), 1)
	m.Tokens(b, at(260.2), 1) // a little later, and of the same pass
	l = m.Load(at(261))
	if l.Decoding != 2 || l.InPass != 0 || l.Backlog != 0 || l.Prefilling != 0 || l.Context != 13002 || l.Streamed != 2 {
		t.Errorf("decoding: %+v", l)
	}
	if m.pass.number != 3 {
		t.Errorf("it is pass %d, want 3", m.pass.number)
	}
	m.End(a, at(270))
	m.End(b, at(270))
	if l = m.Load(at(271)); l.Requests+l.Outstanding+l.Context+l.Streamed+l.Decoding+l.Backlog+l.InPass != 0 || l.PassLeft != 0 {
		t.Errorf("idle: %+v", l)
	}
}

// A prompt that the pool has no room for waits, with all behind it.
func TestFullPoolBlocks(t *testing.T) {
	m := NewMirror(Engine{BlockSize: 64, Blocks: 100, Timing: Mocker})
	a := m.Send(at(0), Sent{Prompt: 5000})
	m.Tokens(a, at(100), 1)
	m.Send(at(101), Sent{Prompt: 3000})
	m.Send(at(102), Sent{Prompt: 10})
	m.Tokens(a, at(110), 1)
	if l := m.Load(at(111)); l.InPass != 0 || l.Backlog != 3010 {
		t.Errorf("in a full pool %d tokens are computed, %d wait", l.InPass, l.Backlog)
	}
	m.End(a, at(120))
	m.pass.under = false
	m.start(at(120), true)
	if l := m.Load(at(121)); l.InPass != 3010 {
		t.Errorf("with room again %d tokens are computed", l.InPass)
	}
}

func TestQuietRequestsArePredicted(t *testing.T) {
	m := NewMirror(known())
	r := m.Send(at(0), Sent{Prompt: 1000, Quiet: true})
	if l := m.Load(at(10)); l.Decoding != 0 || l.InPass != 1000 {
		t.Errorf("at first: %+v", l)
	}
	l := m.Load(at(500))
	if l.Decoding != 1 || l.Streamed < 40 || l.Streamed > 100 {
		t.Errorf("half a second later: %+v", l)
	}
	m.End(r, at(501))
	if l := m.Load(at(502)); l.Requests+l.Decoding+l.Streamed+l.Context != 0 {
		t.Errorf("after its end: %+v", l)
	}
}

// The tokens of several sequences that come one after the other end no passes. (Of streams of eight choices, of which each
// pass brings eight events, passes were learned to take 0.25 ms instead of 7.4.)
func TestSequencesSideBySideEndNoPasses(t *testing.T) {
	e := known()
	e.Timing = Timing{}
	m := NewMirror(e)
	now, number := 0.0, 0
	single := func(during *Request) {
		r := m.Send(at(now), Sent{Prompt: 500 + number%40*100})
		now += typical.prefill(float64(r.sent.Prompt))
		for i := range 30 {
			m.Tokens(r, at(now), 1)
			for k := range 8 {
				if during != nil {
					m.Tokens(during, at(now+0.05*float64(k)), 1)
				}
			}
			if i == 20 && during != nil {
				near(t, "tokens under way", float64(m.Load(at(now+0.5)).Streamed), float64(during.tokens+r.tokens), 0)
				near(t, "tokens of eight sequences", float64(during.tokens), 8*21, 0)
			}
			now += typical.decode(float64(m.Load(at(now+0.5)).Context) / float64(e.tokens()))
		}
		m.End(r, at(now))
		number++
	}
	for range 40 {
		several := m.Send(at(now), Sent{Prompt: 100, Quiet: true})
		single(several)
		if m.Load(at(now)).Unproven != 0 {
			t.Fatal("a prompt whose answer is heard of counts as unproven")
		}
		m.End(several, at(now))
		now += 100
		single(nil)
		now += 100
	}
	timing, ok := m.Timing()
	if near(t, "a pass of decode", timing.decode(0.01), typical.decode(0.01), 0.5); !ok {
		t.Error("nothing was learned")
	}
}

// Whole answers teach the pace, but not one whose prompt was computed elsewhere first: that took most of its time.
func TestAnswersTeachThePace(t *testing.T) {
	e := known()
	e.Timing = Timing{}
	for leg, taught := range map[Leg]bool{Whole: true, DecodeLeg: false} {
		m := NewMirror(e)
		for i := range enough + 1 {
			now := float64(i) * 60e3
			r := m.Send(at(now), Sent{Prompt: 1000, Quiet: true, Leg: leg})
			m.Answer(r, at(now+5000), 20)
			m.End(r, at(now+5000))
		}
		timing, ok := m.Timing()
		if ok != taught {
			t.Errorf("leg %d: the timing is known: %v", leg, ok)
		}
		if taught && (timing.Decode[0] < 3*typical.Decode[0] || !m.Load(at(1e6)).Guessed) {
			t.Errorf("20 tokens took 5 s each time, and passes are taken to take %v", timing)
		}
	}
}

// Whole answers that take longer than by the timing that was learned of passes do not move the pace that is not asked for
// then, further with each. (After 300 of 200 ms and 30 more on their way it was 15.)
func TestAnswersBesideStreams(t *testing.T) {
	e := known()
	e.Timing = Timing{}
	m := NewMirror(e)
	now := 0.0
	for i := range 600 {
		prompt, quiet := 500+i%40*100, i%2 == 1
		r := m.Send(at(now), Sent{Prompt: prompt, Quiet: quiet})
		now += typical.prefill(float64(prompt))
		for range 20 {
			if !quiet {
				m.Tokens(r, at(now), 1)
			}
			now += typical.decode(float64(prompt) / float64(e.tokens()))
		}
		if quiet {
			now += 30
			m.Answer(r, at(now), 20)
		}
		m.End(r, at(now))
		now += 100
	}
	if _, learned := m.model.timing(); !learned || m.answers.pace() > 2 {
		t.Errorf("the timing is learned: %v; the pace is %v", learned, m.answers.pace())
	}
}

// An answer whose end nobody told of is dropped after five minutes; its End may still come.
func TestStale(t *testing.T) {
	m := NewMirror(known())
	a := m.Send(at(0), Sent{Prompt: 1000, Names: sharedNames(15)})
	b := m.Send(at(0), Sent{Prompt: 1000, Names: sharedNames(15)})
	m.Tokens(b, at(100e3), 1)
	if l := m.Load(at(300e3 + 1)); l.Requests != 1 || m.Lost() != 1 {
		t.Errorf("%d requests, %d lost", l.Requests, m.Lost())
	}
	m.End(a, at(300e3+2))
	if l := m.Load(at(400e3 + 1)); l.Requests+l.Outstanding+l.Shared != 0 || m.active.n != 0 || m.Lost() != 2 {
		t.Errorf("%+v, %d lost", l, m.Lost())
	}
	m.Tokens(b, at(400e3+2), 1)
	m.End(b, at(400e3+3))
	if l := m.Load(at(400e3 + 4)); l.Requests+l.Decoding+l.Streamed != 0 {
		t.Errorf("%+v", l)
	}
}

func sharedNames(n int) []kvindex.Name {
	all := make([]kvindex.Name, n)
	for i := range all {
		all[i] = kvindex.Name(i + 1)
	}
	return all
}

func TestSharedBlocksCountOnce(t *testing.T) {
	for _, size := range []int{16, 64, 256} {
		m := NewMirror(Engine{BlockSize: size, Timing: Mocker})
		blocks := 4096 / size
		a := m.Send(at(0), Sent{Prompt: 4096, Names: sharedNames(blocks)})
		b := m.Send(at(0), Sent{Prompt: 4096 + 64, Hit: 4096, Names: sharedNames(blocks)})
		l := m.Load(at(1))
		if l.Outstanding-l.Shared != 4096+64 {
			t.Errorf("blocks of %d: %d tokens outstanding, %d shared", size, l.Outstanding, l.Shared)
		}
		if n := m.Active(sharedNames(blocks + 9)); n != blocks || m.Users(sharedNames(blocks), n) != 2 {
			t.Errorf("blocks of %d: %d of %d are active, with %d users", size, n, blocks, m.Users(sharedNames(blocks), n))
		}
		m.End(a, at(2))
		if l = m.Load(at(3)); l.Outstanding-l.Shared != 4096+64 || l.Shared != 0 {
			t.Errorf("blocks of %d: %d outstanding, %d shared", size, l.Outstanding, l.Shared)
		}
		m.End(b, at(4))
		if n := m.Active(sharedNames(blocks)); n != 0 || m.Users(sharedNames(blocks), n) != 0 {
			t.Errorf("blocks of %d: %d active of nobody", size, n)
		}
	}
}

// What comes in any order leaves nothing behind.
func TestSumsComeBack(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 7))
		m := NewMirror(Engine{BlockSize: 16, Blocks: 1 + random.IntN(3000)})
		var open []*Request
		now := 0.0
		for range 400 {
			now += random.ExpFloat64() * 20
			switch k := random.IntN(10); {
			case k < 3 || len(open) == 0:
				prompt := 1 + random.IntN(9000)
				open = append(open, m.Send(at(now), Sent{
					Prompt: prompt, Hit: random.IntN(prompt + 1), Leg: Leg(random.IntN(3)), Quiet: random.IntN(4) == 0,
					Names: sharedNames(random.IntN(prompt/16 + 1)),
				}))
			case k < 8:
				m.Tokens(open[random.IntN(len(open))], at(now), random.IntN(3))
			case k < 9:
				m.Usage(open[random.IntN(len(open))], random.IntN(9000))
			default:
				i := random.IntN(len(open))
				m.End(open[i], at(now))
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
			}
			l := m.Load(at(now))
			if l.Backlog < 0 || l.InPass < 0 || l.PassLeft < 0 || l.Prefilling < 0 || l.Shared < 0 || l.Shared > l.Outstanding || l.Decoding < 0 {
				t.Fatalf("seed %d: %+v", seed, l)
			}
		}
		for _, r := range open {
			m.End(r, at(now))
		}
		l := m.Load(at(now))
		if l.Requests+l.Decoding+l.Outstanding+l.Context+l.Streamed+l.Shared+l.Prefilling+l.Backlog+l.InPass+l.Unproven+m.active.n+len(m.line)+m.quiet != 0 {
			t.Fatalf("seed %d: %+v is left", seed, l)
		}
	}
}

// The timing is learned from tokens, in spite of stalls, and followed when it changes.
func TestLearnsTiming(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	var l learner
	feed := func(n int, scale float64) {
		for i := range n {
			tokens, decoding, share := 0, 1, random.Float64()*0.5
			if i%2 == 0 {
				tokens = 1 + random.IntN(8192)
			}
			l.begin()
			l.pass(tokens, decoding, share, 8192)
			o := l.since
			o.millis = scale * (Mocker.prefill(float64(tokens)) + Mocker.decode(share)) * (1 + 0.05*random.NormFloat64())
			if i == 0 || random.IntN(25) == 0 {
				o.millis += 3000 // a stall
			}
			l.observe(o)
		}
	}
	check := func(when string, scale, by float64) {
		got, ok := l.timing()
		if !ok {
			t.Fatalf("%s: nothing is known", when)
		}
		for _, tokens := range []float64{500, 3000, 8192} {
			want := scale * Mocker.prefill(tokens)
			near(t, when+": a prefill", got.prefill(tokens)/want, 1, by)
		}
		for _, share := range []float64{0.05, 0.25, 0.5} {
			near(t, when+": a decode", got.decode(share)/scale/Mocker.decode(share), 1, 2*by)
		}
	}
	feed(150, 1)
	check("after 150 passes", 1, 0.15)
	feed(400, 1)
	check("after 550", 1, 0.05)
	feed(1200, 3)
	check("three times slower", 3, 0.1)
}

// Who has seen short passes only does not say what a full one takes, and knows it as soon as it sees some.
func TestLearnsLongPassesAtOnce(t *testing.T) {
	var l learner
	feed := func(tokens int, n int) {
		for i := range n {
			l.begin()
			l.pass(tokens+i%7*10, 0, 0, 8192)
			o := l.since
			o.millis = Mocker.prefill(float64(tokens + i%7*10))
			l.observe(o)
		}
	}
	feed(100, 300)
	if got, ok := l.timing(); ok {
		t.Errorf("prompts of 100 tokens say that a full pass takes %v ms", got.prefill(8192))
	}
	feed(8000, 3)
	got, ok := l.timing()
	if !ok {
		t.Fatal("full passes say nothing")
	}
	near(t, "a full pass", got.prefill(8000)/Mocker.prefill(8000), 1, 0.1)
}

func TestHungEngineGetsDearer(t *testing.T) {
	m := NewMirror(known())
	m.Tokens(m.Send(at(0), Sent{Prompt: 1000}), at(40), 1)
	l := m.Load(at(50))
	if l.PassLeft > 10*time.Millisecond {
		t.Errorf("a pass of an idle engine lasts another %v", l.PassLeft)
	}
	if l = m.Load(at(5000)); l.PassLeft < 4*time.Second {
		t.Errorf("after five seconds of silence it is said to end in %v", l.PassLeft)
	}
}

// Whoever asks for the load between the first tokens of one pass takes nothing from what is learned of it. An engine that
// is never without prompts showed no timing then: the second token belonged to a pass that was composed too early.
func TestLoadBetweenFirstTokens(t *testing.T) {
	m := NewMirror(Engine{BlockSize: 64, Budget: 1001}) // one more, as an answer counts as generated on when its end is not known yet
	var line []*Request
	send := func(now time.Time) { line = append(line, m.Send(now, Sent{Prompt: 500})) }
	for range 6 {
		send(start)
	}
	for pass := range 40 { // two prompts each, of 100 ms
		for k := range 2 {
			now := at(100*float64(pass+1) + 0.05*float64(k))
			r := line[0]
			line = line[1:]
			m.Tokens(r, now, 1)
			m.End(r, now)
			m.Load(now)
			send(now)
		}
	}
	got, ok := m.Timing()
	if !ok {
		t.Fatal("nothing is learned of passes that the load was asked for in between")
	}
	if millis := got.prefill(1000); math.Abs(millis-100) > 10 {
		t.Errorf("a full pass takes %.1f ms, want 100", millis)
	}
}
