// The subscriber against a publisher over TCP: what it holds in the end is what the engine holds.

package kvevents

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/zmtp"
)

// publish stores the blocks from first to last, one message each.
func (e *engine) publish(first, last uint64) {
	for h := first; h <= last; h++ {
		e.Publish(storing(h))
	}
}

func TestLearnsWhatWasStoredBefore(t *testing.T) {
	e := startEngine(t, ":0", ":0", 1000)
	e.publish(0, 99)
	e.Publish(removing(50))
	e.Publish(storing(50))
	ear := newEar()
	s, _ := listenTo(t, e.source(), ear, hasty(t))
	ear.holds(t, 0, 99)
	base := live(t, s, e)
	e.publish(100, 199)
	ear.holds(t, 0, 199)
	ear.hasHeard(t)
	eventually(t, "the counters agree", func() bool {
		st := s.Stats()
		return st.Messages == base+100 && st.Replayed >= 102 && st.Next == base+100 && st.BlocksStored == 201
	})
	if st := s.Stats(); st.Lost+st.Malformed+st.Failures+st.Restarts > 0 {
		t.Errorf("%+v", st)
	}
}

func TestWithoutReplayLearnsFromNowOn(t *testing.T) {
	e := startEngine(t, ":0", "", 1000)
	e.publish(0, 9)
	ear := newEar()
	s, _ := listenTo(t, e.source(), ear, hasty(t))
	live(t, s, e)
	e.publish(10, 19)
	ear.holds(t, 10, 19)
	ear.hasHeard(t)
	if st := s.Stats(); st.LastAt.IsZero() || st.Lag > patience || st.Lost > 0 {
		t.Errorf("%+v", st)
	}
}

func TestGapIsRepaired(t *testing.T) {
	e := startEngine(t, ":0", ":0", 1000)
	l := startLossy(t, e.events)
	ear := newEar()
	source := e.source()
	source.Events = "tcp://" + l.address
	o := hasty(t)
	o.Quiet = time.Hour // or the gaps are found before they show
	s, _ := listenTo(t, source, ear, o)
	base := live(t, s, e)
	l.drop(base+5, base+6, base+7, base+20, base+48)
	before := s.Stats().Replayed
	e.publish(0, 49)
	ear.holds(t, 0, 49)
	ear.hasHeard(t)
	eventually(t, "the last message is counted", func() bool { return s.Stats().Next == base+50 })
	// A replay gives all that there is by then, so that one of the later gaps may never show.
	if st := s.Stats(); st.Gaps == 0 || st.Lost > 0 || st.Replayed < before+5 || st.Messages != base+50 {
		t.Errorf("%+v", st)
	}
}

// The last messages of a burst are lost: nothing comes after them that shows it.
func TestLostTailIsFound(t *testing.T) {
	e := startEngine(t, ":0", ":0", 1000)
	l := startLossy(t, e.events)
	ear := newEar()
	source := e.source()
	source.Events = "tcp://" + l.address
	s, _ := listenTo(t, source, ear, hasty(t))
	base := live(t, s, e)
	l.drop(base+8, base+9)
	before := s.Stats().Replayed
	e.publish(0, 9)
	ear.holds(t, 0, 9)
	ear.hasHeard(t)
	eventually(t, "the counters agree", func() bool { return s.Stats().Replayed >= before+2 })
	if st := s.Stats(); st.Lost > 0 {
		t.Errorf("%+v", st)
	}
}

func TestUnrepairedGapClears(t *testing.T) {
	for _, row := range []struct {
		name, replay string
		first        uint64 // of what is known in the end
	}{
		{"the replay has the last five only", ":0", 16}, // of 20 messages, when the 20th shows the gap
		{"no replay", "", 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := startEngine(t, ":0", row.replay, 5)
			l := startLossy(t, e.events)
			ear := newEar()
			source := e.source()
			source.Events = "tcp://" + l.address
			o := hasty(t)
			o.Quiet = time.Hour
			s, _ := listenTo(t, source, ear, o)
			base := live(t, s, e)
			e.publish(0, 9)
			ear.holds(t, 0, 9)
			already := len(ear.why()) // five is few: the start may have been missed too
			for seq := base + 10; seq < base+20; seq++ {
				l.drop(seq)
			}
			lost := s.Stats().Lost
			e.publish(10, 20)
			ear.holds(t, row.first, 20)
			ear.hasHeard(t, slices.Repeat([]Reason{Gap}, already+1)...)
			if st := s.Stats(); st.Lost-lost != row.first-10 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestCutConnection(t *testing.T) {
	e := startEngine(t, ":0", ":0", 1000)
	l := startLossy(t, e.events)
	ear := newEar()
	source := e.source()
	source.Events = "tcp://" + l.address
	s, _ := listenTo(t, source, ear, hasty(t))
	live(t, s, e)
	last := uint64(0)
	for round := range uint64(3) {
		eventually(t, "it connects again", func() bool {
			l.cut() // what there is; a new connection may not have reached the engine yet
			e.publish(last, last+1)
			last += 2
			return s.Stats().Connections > round+1
		})
	}
	ear.holds(t, 0, last-1)
	ear.hasHeard(t)
	if st := s.Stats(); st.Lost > 0 || st.Failures < 3 || st.Clears > 0 {
		t.Errorf("%+v", st)
	}
}

// Nobody can say what was missed: everything is forgotten, then learnt anew.
func TestCutConnectionWithoutReplay(t *testing.T) {
	e := startEngine(t, ":0", "", 1000)
	l := startLossy(t, e.events)
	ear := newEar()
	s, _ := listenTo(t, Source{Events: "tcp://" + l.address}, ear, hasty(t))
	live(t, s, e)
	e.publish(0, 9)
	ear.holds(t, 0, 9)
	eventually(t, "it connects again", func() bool { l.cut(); return s.Stats().Connections > 1 })
	live(t, s, e)
	e.publish(100, 109)
	ear.holds(t, 100, 109)
	why := ear.why()
	if len(why) == 0 || slices.ContainsFunc(why, func(r Reason) bool { return r != Unsure }) {
		t.Errorf("forgot because of %v", why)
	}
}

// The engine is started anew at the same addresses, and has published less, as much or more than before when it is
// found again.
func TestRestart(t *testing.T) {
	for _, again := range []uint64{0, 3, 10, 25} {
		e := startEngine(t, ":0", ":0", 1000)
		ear := newEar()
		s, stop := listenTo(t, e.source(), ear, hasty(t))
		e.publish(0, 9)
		ear.holds(t, 0, 9)
		connected(t, s)
		e.stop()
		eventually(t, "the end is noticed", func() bool { return !s.Stats().Connected })
		next := startEngine(t, "127.0.0.1:0", e.replay, 1000) // the replay socket is back first, and the new one is found
		next.publish(100, 99+again)
		ln := listenAt(t, e.events)
		next.serving.Go(func() { serve(t, next.Serve, ln) })
		ear.holds(t, 100, 99+again)
		next.publish(100+again, 199)
		ear.holds(t, 100, 199)
		ear.hasHeard(t, Restarted)
		if st := s.Stats(); st.Restarts != 1 || st.Lost > 0 {
			t.Errorf("%+v", st)
		}
		stop()
		next.stop()
	}
}

// A forwarder in between hides that the engine was started anew: only the numbers show it.
func TestNumbersGoBackInOneConnection(t *testing.T) {
	address := acting(t, "PUB", func(c *zmtp.Conn, _ int) {
		for seq := range uint64(5) {
			tell(c, nil, number(seq), storing(seq))
		}
		for seq := range uint64(3) {
			tell(c, nil, number(seq), storing(100+seq))
		}
		untilClosed(c)
	})
	ear := newEar()
	s, _ := listenTo(t, Source{Events: address}, ear, hasty(t))
	ear.holds(t, 100, 102)
	ear.hasHeard(t, Restarted)
	eventually(t, "the last message is counted", func() bool { return s.Stats().Next == 3 })
	if st := s.Stats(); st.Restarts != 1 || st.Messages != 8 {
		t.Errorf("%+v", st)
	}
}

// Replay sockets differ, drop messages and fall silent.
func TestReplaysOfAllKinds(t *testing.T) {
	for _, row := range []struct {
		name     string
		play     func(c *zmtp.Conn, turn int, from uint64)
		failures uint64
		first    uint64 // of the blocks up to 9 that are known in the end
		why      []Reason
	}{
		{"three frames", func(c *zmtp.Conn, _ int, from uint64) {
			for seq := from; seq < 9; seq++ {
				tell(c, nil, number(seq), storing(seq))
			}
			tell(c, nil, end, nil)
		}, 0, 0, nil},
		{"four frames, older ones too", func(c *zmtp.Conn, _ int, _ uint64) {
			for seq := range uint64(9) {
				tell(c, nil, []byte("topic"), number(seq), storing(seq))
			}
			tell(c, nil, nil, end, nil)
		}, 0, 0, nil},
		{"a hole, filled when asked again", func(c *zmtp.Conn, turn int, from uint64) {
			for seq := from; seq < 9; seq++ {
				if turn > 1 || seq != 4 {
					tell(c, nil, nil, number(seq), storing(seq))
				}
			}
			tell(c, nil, nil, end, nil)
		}, 1, 0, nil},
		{"breaks off, goes on when asked again", func(c *zmtp.Conn, _ int, from uint64) {
			for seq := from; seq < min(from+3, 9); seq++ {
				tell(c, nil, nil, number(seq), storing(seq))
			}
			if from+3 >= 9 {
				tell(c, nil, nil, end, nil)
			}
		}, 2, 0, nil},
		{"has the last ones only", func(c *zmtp.Conn, _ int, from uint64) {
			for seq := max(from, 6); seq < 9; seq++ {
				tell(c, nil, nil, number(seq), storing(seq))
			}
			tell(c, nil, nil, end, nil)
		}, 0, 6, []Reason{Gap}},
		{"has nothing", func(c *zmtp.Conn, _ int, _ uint64) { tell(c, nil, nil, end, nil) }, 0, 9, []Reason{Gap}},
		{"silent", func(c *zmtp.Conn, _ int, _ uint64) { untilClosed(c) }, 1, 9, []Reason{Gap}},
		{"other frames", func(c *zmtp.Conn, _ int, _ uint64) { tell(c, []byte("hello")); untilClosed(c) }, 1, 9, []Reason{Gap}},
		{"other numbers", func(c *zmtp.Conn, _ int, _ uint64) {
			tell(c, nil, number(1<<63+5), storing(5))
			untilClosed(c)
		}, 1, 9, []Reason{Gap}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel() // some wait for the end of Stall, which must be more than a busy machine needs for an answer
			replay := acting(t, "ROUTER", func(c *zmtp.Conn, turn int) {
				from, ok := asked(t, c)
				if !ok {
					return
				}
				if turn == 0 { // at the start: there is nothing yet
					tell(c, nil, nil, end, nil)
					return
				}
				row.play(c, turn, from)
			})
			events := acting(t, "PUB", func(c *zmtp.Conn, _ int) {
				tell(c, nil, number(0), storing(0))
				tell(c, nil, number(9), storing(9))
				untilClosed(c)
			})
			ear := newEar()
			o := hasty(t)
			o.Quiet, o.Stall = time.Hour, time.Second
			s, _ := listenTo(t, Source{Events: events, Replay: replay}, ear, o)
			ear.holds(t, row.first, 9)
			ear.hasHeard(t, row.why...)
			eventually(t, "the last message is counted", func() bool { return s.Stats().Next == 10 })
			if st := s.Stats(); st.Failures != row.failures || st.Gaps != 1 || st.Messages+st.Lost != 10 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// What a replay gave comes live as well when it was under way: it counts once.
func TestDoublesAreDropped(t *testing.T) {
	replay := acting(t, "ROUTER", func(c *zmtp.Conn, _ int) {
		from, _ := asked(t, c)
		for seq := from; seq < 5; seq++ {
			tell(c, nil, nil, number(seq), storing(seq))
		}
		tell(c, nil, nil, end, nil)
	})
	events := acting(t, "PUB", func(c *zmtp.Conn, _ int) {
		for seq := uint64(2); seq < 8; seq++ {
			tell(c, nil, number(seq), storing(seq))
		}
		untilClosed(c)
	})
	ear := newEar()
	o := hasty(t)
	o.Quiet = time.Hour
	s, _ := listenTo(t, Source{Events: events, Replay: replay}, ear, o)
	ear.holds(t, 0, 7)
	ear.hasHeard(t)
	if st := s.Stats(); st.Doubles != 3 || st.Replayed != 5 || st.Gaps > 0 {
		t.Errorf("%+v", st)
	}
}

func TestBadMessages(t *testing.T) {
	events := acting(t, "PUB", func(c *zmtp.Conn, _ int) {
		tell(c, nil, number(0), storing(0))
		tell(c, []byte("two frames"), number(1))
		tell(c, nil, []byte("7 bytes"), storing(1))
		tell(c, nil, number(1<<63+1), storing(1))
		tell(c, nil, number(1), []byte("no msgpack"))
		tell(c, nil, number(2), storing(2))
		untilClosed(c)
	})
	var mu sync.Mutex
	var reports []string
	o := hasty(t)
	o.Report = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, err.Error())
	}
	ear := newEar()
	s, stop := listenTo(t, Source{Events: events}, ear, o)
	ear.holds(t, 2, 2)
	ear.hasHeard(t, Damaged)
	stop()
	if st := s.Stats(); st.Malformed != 4 || st.Messages != 3 || st.Connected {
		t.Errorf("%+v", st)
	}
	all := strings.Join(reports, "\n")
	if len(reports) != 3 || !strings.Contains(all, "want three frames") || !strings.Contains(all, "message 1 of") {
		t.Errorf("reported:\n%s", all) // the first, second and fourth
	}
}

func TestTopic(t *testing.T) {
	e := startEngine(t, ":0", ":0", 1000) // publishes as kv@w1@m
	ear, deaf := newEar(), newEar()
	source := e.source()
	source.Topic = "kv@w1"
	s, _ := listenTo(t, source, ear, hasty(t))
	source.Topic, source.Replay = "kv@w2", ""
	other, _ := listenTo(t, source, deaf, hasty(t))
	connected(t, s)
	connected(t, other)
	last := uint64(0)
	eventually(t, "messages come live", func() bool {
		e.publish(last, last)
		last++
		return !s.Stats().LastAt.IsZero()
	})
	ear.holds(t, 0, last-1)
	deaf.holds(t, 1, 0)
}

// Nobody hears the engine any more: what is known about it is forgotten after a while, once, and learnt anew.
func TestSilence(t *testing.T) {
	e := startEngine(t, ":0", ":0", 1000)
	l := startLossy(t, e.events)
	source := e.source()
	source.Events = "tcp://" + l.address
	ear := newEar()
	o := hasty(t)
	o.Patience = 20 * time.Millisecond
	s, _ := listenTo(t, source, ear, o)
	e.publish(0, 9)
	ear.holds(t, 0, 9)
	l.ln.Close()
	eventually(t, "it is forgotten", func() bool { l.cut(); return len(ear.why()) > 0 })
	ear.hasHeard(t, Silent)
	failures := s.Stats().Failures
	eventually(t, "it goes on trying", func() bool { return s.Stats().Failures > failures+5 })
	ear.hasHeard(t, Silent)
	back := listenAt(t, l.address)
	e.serving.Go(func() { serve(t, e.Serve, back) })
	ear.holds(t, 0, 9)
	ear.hasHeard(t, Silent)
}

// The sink is slower than the engine for a while: the publisher drops messages, and what is known in the end is true.
func TestSlowSink(t *testing.T) {
	const total = 60_000
	e := startEngine(t, ":0", ":0", 100)
	ear := newEar()
	s, _ := listenTo(t, e.source(), ear, hasty(t))
	first := live(t, s, e)
	ear.slow(true)
	e.publish(first, total-1)
	ear.slow(false)
	eventually(t, "the last message is taken", func() bool { return s.Stats().Next == total })
	if st := s.Stats(); st.Messages+st.Lost != total || st.Lost == 0 {
		t.Errorf("%+v", st)
	}
	ear.mu.Lock()
	defer ear.mu.Unlock()
	for h := uint64(total - 100); h < total; h++ {
		if ear.blocks[h] != 1 {
			t.Fatalf("block %d is held %d times", h, ear.blocks[h])
		}
	}
	for _, why := range ear.reasons {
		if why != Gap {
			t.Errorf("forgot because of %v", why)
		}
	}
}

// Run ends at once, whatever it waits for. TestMain sees what is left behind.
func TestRunEnds(t *testing.T) {
	mute := func(int) string { // accepts, and says nothing
		ln := listenAt(t, ":0")
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				serving.Go(func() {
					_, _ = conn.Read(make([]byte, 1))
					_, _ = conn.Read(make([]byte, 1000))
					_, _ = conn.Read(make([]byte, 1000))
					conn.Close()
				})
			}
		})
		t.Cleanup(func() { ln.Close(); serving.Wait() })
		return "tcp://" + ln.Addr().String()
	}
	closed := listenAt(t, ":0")
	closed.Close()
	nobody := "tcp://" + closed.Addr().String()
	pub := func(c *zmtp.Conn, _ int) { untilClosed(c) }
	for name, source := range map[string]Source{
		"nobody there":        {Events: nobody},
		"no handshake":        {Events: mute(0)},
		"nothing comes":       {Events: acting(t, "PUB", pub)},
		"no replay handshake": {Events: acting(t, "PUB", pub), Replay: mute(1)},
		"no replay answer":    {Events: acting(t, "PUB", pub), Replay: acting(t, "ROUTER", pub)},
	} {
		s, err := New(source, newEar(), Options{RetryMin: time.Hour, Patience: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		began := time.Now()
		s.Run(ctx)
		cancel()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v to end", name, took)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, row := range []struct {
		source Source
		want   string
	}{
		{Source{}, `cannot subscribe to KV events: cannot read address "": want tcp://host:port or ipc://path`},
		{Source{Events: "tcp://*:5557"}, "names no host or no port"},
		{Source{Events: "tcp://h:1", Replay: "h:2"}, `cannot have KV events replayed: cannot read address "h:2"`},
	} {
		if _, err := New(row.source, newEar(), Options{}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v", row.source, err)
		}
	}
}

func TestReceiveAllocatesNothing(t *testing.T) {
	const runs = 2000
	var wire []byte
	for seq := range uint64(runs + 2) {
		wire = zmtp.AppendMessage(wire, []byte("kv"), number(seq), storingRun(4, 16))
	}
	address := acting(t, "PUB", func(c *zmtp.Conn, _ int) {
		if err := c.WriteEncoded(wire); err != nil {
			t.Error(err)
		}
		untilClosed(c)
	})
	s, err := New(Source{Events: address}, nothing{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := zmtp.Dial(t.Context(), address, "SUB")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var m zmtp.Message
	n := testing.AllocsPerRun(runs, func() {
		if ok, err := c.Read(&m, patience); !ok || err != nil {
			t.Fatal(ok, err)
		}
		s.receive(t.Context(), &m)
	})
	if n > 0 || s.Stats().Messages != runs+1 {
		t.Errorf("%v allocations a message, %d messages", n, s.Stats().Messages)
	}
}

func TestOverUnixSockets(t *testing.T) {
	dir := t.TempDir()
	e := startEngine(t, ":0", "", 1000)
	ln, err := net.Listen("unix", dir+"/replay")
	if err != nil {
		t.Fatal(err)
	}
	e.serving.Go(func() { serve(t, e.ServeReplay, ln) })
	e.publish(0, 9)
	ear := newEar()
	listenTo(t, Source{Events: "tcp://" + e.events, Replay: "ipc://" + dir + "/replay"}, ear, hasty(t))
	ear.holds(t, 0, 9)
}

// The question whether a message was missed is asked when a connection has become quiet, and then seldom.
func TestAsksSeldom(t *testing.T) {
	var mu sync.Mutex
	asks := 0
	replay := acting(t, "ROUTER", func(c *zmtp.Conn, _ int) {
		if _, ok := asked(t, c); ok {
			mu.Lock()
			asks++
			mu.Unlock()
			tell(c, nil, nil, end, nil)
		}
	})
	more := make(chan uint64)
	events := acting(t, "PUB", func(c *zmtp.Conn, _ int) {
		for seq := range more {
			tell(c, nil, number(seq), storing(seq))
		}
		untilClosed(c)
	})
	ear := newEar()
	o := hasty(t)
	o.Quiet, o.Recheck = time.Millisecond, time.Hour
	listenTo(t, Source{Events: events, Replay: replay}, ear, o)
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return asks
	}
	eventually(t, "it asks at the start, and once when nothing comes", func() bool { return count() == 2 })
	for seq := range uint64(50) { // looked for once a millisecond: between two there is quiet enough
		more <- seq
		ear.holds(t, 0, seq)
	}
	close(more)
	if count() != 2 {
		t.Errorf("asked %d times", count())
	}
}
