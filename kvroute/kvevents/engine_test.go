// The simulated engine behind HTTP: what its events say is what it finds cached. And how fast the wire is.

package kvevents

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"kvasir/kvroute/kvevents/recorded"
	"kvasir/sim"
	"kvasir/zmtp"
)

// shared is a holding that a test may look into while it listens.
type shared struct {
	mu sync.Mutex
	*holding
}

func (s *shared) Stored(e *Stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding.Stored(e)
}

func (s *shared) Removed(e *Removed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding.Removed(e)
}

func (s *shared) Cleared(c Cleared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding.Cleared(c)
}

// Prompts of shared beginnings, with and without a salt, on a pool so small that it evicts: the engine finds as many
// blocks cached as its events said.
func TestSimulatedEngineFindsWhatItSaid(t *testing.T) {
	const size = 16
	engine, err := sim.NewServer(sim.Options{Name: "w", Model: "m", BlockSize: size, Blocks: 64, MaxModelLen: 1024,
		Speedup: 1000, Events: true})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer engine.Close()
	web, events, replay := listenAt(t, ":0"), listenAt(t, ":0"), listenAt(t, ":0")
	serving.Go(func() { serve(t, engine.Serve, web) })
	serving.Go(func() { serve(t, engine.ServeEvents, events) })
	serving.Go(func() { serve(t, engine.ServeReplay, replay) })
	defer http.DefaultClient.CloseIdleConnections()

	known := &shared{holding: newHolding()}
	s, _ := listenTo(t, Source{"tcp://" + events.Addr().String(), "tcp://" + replay.Addr().String(), ""}, known, hasty(t))
	salts := []string{"", "tenant"}
	hits := 0
	for i := range 40 {
		prompt := make([]uint32, 40+i*37%300)
		for at := range prompt {
			prompt[at] = uint32(97 + i%3 + at%7)
		}
		salt := salts[i%2]
		known.mu.Lock()
		want := min(known.overlap(salt, prompt, size), (len(prompt)-1)/size) * size
		known.mu.Unlock()
		if got := recorded.Cached(t, web.Addr().String(), map[string]any{"model": "m", "prompt": prompt, "max_tokens": 20}, salt); got != want {
			t.Errorf("request %d: %d tokens of %d found cached, the events said %d", i, got, len(prompt), want)
		}
		hits += want
		settled(t, s, "tcp://"+replay.Addr().String())
	}
	if st := s.Stats(); hits == 0 || st.Removed == 0 || st.Lost+st.Malformed+st.Clears > 0 || known.strangers > 0 {
		t.Errorf("%d tokens hit, %d strangers, %+v", hits, known.strangers, st)
	}
}

// settled waits until a subscriber has heard all that an idle engine can give again.
func settled(t *testing.T, s *Subscriber, replay string) {
	t.Helper()
	c, err := zmtp.Dial(t.Context(), replay, "DEALER")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tell(c, nil, number(0))
	var m zmtp.Message
	for next := uint64(0); ; next++ {
		if ok, err := c.Read(&m, patience); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if bytes.Equal(m.Frame(m.Len()-2), end) {
			eventually(t, "all is heard", func() bool { return s.Stats().Next == next })
			return
		}
	}
}

// Messages of one event each, as many as there can be, over TCP into a counting sink. Each op is 10,000 of them.
func BenchmarkWire(b *testing.B) {
	for _, tokens := range []int{16, 512} {
		b.Run(fmt.Sprintf("%d tokens", tokens), func(b *testing.B) {
			const burst = 10_000
			e := &engine{Publisher: sim.NewPublisher("", 2*burst, 2*burst)}
			ln, again := listenAt(b, ":0"), listenAt(b, ":0")
			e.events, e.replay = ln.Addr().String(), again.Addr().String()
			e.serving.Go(func() { serve(b, e.Serve, ln) })
			e.serving.Go(func() { serve(b, e.ServeReplay, again) })
			defer e.stop()
			s, stop := listenTo(b, e.source(), nothing{}, Options{})
			defer stop()
			done := live(b, s, e)
			payload := storingRun(tokens/16, 16)
			b.ReportAllocs()
			b.SetBytes(int64(burst * len(payload)))
			for b.Loop() {
				for range burst {
					e.Publish(payload)
				}
				done += burst
				eventually(b, "all are taken", func() bool { return s.Stats().Next == done })
			}
			st := s.Stats()
			if st.Lost > 0 || st.Malformed > 0 {
				b.Errorf("%+v", st)
			}
			b.ReportMetric(float64(b.N)*burst/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(st.Replayed), "replayed")
		})
	}
}
