// How fast the whole chain is, from an engine's publisher to the index, and what it allocates.

package holdings

import (
	"testing"

	"github.com/tinylib/msgp/msgp"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// A stream writes what a full engine says: each message stores a run of a prompt's blocks, and before it removes as
// many, one in each event, as vLLM does.
type stream struct {
	run    int      // blocks
	held   []uint64 // handles, the oldest first
	last   uint64
	prompt int // messages of the prompt under way
}

const (
	benchTokens = 16
	benchHeld   = 16384 // blocks of the engine
	benchPrompt = 8     // messages
)

// message is the next message, and how many events are in it.
func (s *stream) message() (payload []byte, events int) {
	removes := max(len(s.held)+s.run-benchHeld, 0)
	b := msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), 1)
	b = msgp.AppendArrayHeader(b, uint32(removes+1))
	for range removes {
		b = msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(b, 4), "type"), "BlockRemoved")
		b = msgp.AppendUint64(msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), 1), s.held[0])
		b = msgp.AppendString(msgp.AppendString(b, "medium"), "GPU")
		b = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
		s.held = s.held[1:]
	}
	first := s.last + 1
	b = msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(b, 11), "type"), "BlockStored")
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), uint32(s.run))
	for range s.run {
		s.last++
		b = msgp.AppendUint64(b, 1<<63+s.last)
		s.held = append(s.held, 1<<63+s.last)
	}
	b = msgp.AppendString(b, "parent_block_hash")
	if s.prompt%benchPrompt == 0 {
		b = msgp.AppendNil(b)
	} else {
		b = msgp.AppendUint64(b, 1<<63+first-1)
	}
	s.prompt++
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "token_ids"), uint32(s.run*benchTokens))
	for i := range s.run * benchTokens {
		b = msgp.AppendUint32(b, uint32(first)*2654435761>>14+uint32(i))
	}
	b = msgp.AppendInt(msgp.AppendString(b, "block_size"), benchTokens)
	b = msgp.AppendNil(msgp.AppendString(b, "lora_id"))
	b = msgp.AppendString(msgp.AppendString(b, "medium"), "GPU")
	b = msgp.AppendNil(msgp.AppendString(b, "lora_name"))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "extra_keys"), uint32(s.run))
	for range s.run {
		b = msgp.AppendNil(b)
	}
	b = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	b = msgp.AppendString(msgp.AppendString(b, "kv_cache_spec_kind"), "full_attention")
	return msgp.AppendInt(b, 0), removes + 1
}

// messages are n of them, and the events in them all.
func (s *stream) messages(n int) (list [][]byte, events int) {
	for range n {
		payload, k := s.message()
		list = append(list, payload)
		events += k
	}
	return list, events
}

// From a publisher over TCP through decoding into the index, as fast as it can be taken, with the publisher on the same
// cores. One op is 2,000 messages.
func BenchmarkChain(b *testing.B) {
	for _, c := range []struct {
		name string
		run  int
	}{{"1 block", 1}, {"4 blocks", 4}, {"32 blocks", 32}} {
		b.Run(c.name, func(b *testing.B) {
			const burst = 2000
			publisher := sim.NewPublisher("", 4*burst, 4*burst)
			e := &engine{}
			e.events, e.replay = e.serve(b, "", publisher.Serve), e.serve(b, "", publisher.ServeReplay)
			defer e.serving.Wait()
			defer publisher.Close()
			p := newPlace(0)
			o := p.options()
			o.Subscriber = kvevents.Options{}
			l := New(o)
			defer l.Close()
			if err := l.Follow([]Source{e.source()}); err != nil {
				b.Fatal(err)
			}
			s := &stream{run: c.run}
			sent := uint64(0)
			say := func(list [][]byte) {
				for _, payload := range list {
					publisher.Publish(payload)
				}
				sent += uint64(len(list))
				eventually(b, "all are taken", func() bool { f := l.Status(); return f[0].Next == sent })
			}
			for len(s.held) < benchHeld { // an engine that is full
				list, _ := s.messages(burst)
				say(list)
			}
			total, blocks := 0, 0
			for b.Loop() {
				b.StopTimer()
				list, events := s.messages(burst)
				total += events
				blocks += 2 * burst * c.run
				b.StartTimer()
				say(list)
			}
			f := l.Status()[0]
			if f.Lost+f.Malformed+f.Kinds[Orphan]+f.Kinds[RemoveUnknown] > 0 || f.Held < benchHeld {
				b.Errorf("%+v, %q", f, p.said())
			}
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(blocks)/b.Elapsed().Seconds(), "blocks/s")
			b.ReportMetric(float64(f.Replayed), "replayed")
		})
	}
}

// Without the wire: decoding and the index alone.
func BenchmarkDecodeIntoIndex(b *testing.B) {
	x := newBench(b, 0)
	s := &stream{run: 4}
	var d kvevents.Decoder
	for len(s.held) < benchHeld {
		payload, _ := s.message()
		if _, err := d.Decode(payload, x.sink); err != nil {
			b.Fatal(err)
		}
	}
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		list, n := s.messages(1000)
		events += n
		b.StartTimer()
		for _, payload := range list {
			if _, err := d.Decode(payload, x.sink); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// Events of a full engine allocate the memory of the runs that they begin or
// extend, and nothing else: four blocks come with each message.
func TestEventsAllocateLittle(t *testing.T) {
	x := newBench(t, 0)
	s := &stream{run: 4}
	var d kvevents.Decoder
	feed := func(payload []byte) {
		if _, err := d.Decode(payload, x.sink); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 * benchHeld / 4 {
		payload, _ := s.message()
		feed(payload)
	}
	list, _ := s.messages(1001)
	next := 0
	if n := testing.AllocsPerRun(1000, func() { feed(list[next]); next++ }); n > 4 {
		t.Errorf("%v allocations for a message", n)
	}
	if held := x.sink.cache.Held(); held < benchHeld || held > benchHeld+benchPrompt*4 {
		t.Errorf("%d blocks are held", held)
	}
	if o := x.index.Find(nil, kvindex.AppendNames(nil, 0, nil, benchTokens)); len(o) > 0 {
		t.Errorf("an empty prompt is found: %v", o)
	}
}
