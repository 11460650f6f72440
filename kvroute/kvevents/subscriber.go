// The subscriber: connects, reads, and keeps what the sink hears whole.

package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"kvasir/zmtp"
)

// Source is where one engine, or one data-parallel rank of it, publishes: addresses as ZeroMQ writes them,
// tcp://host:port or ipc://path. Engines that connect to a central subscriber instead of waiting for one are not
// served.
type Source struct {
	Events string // the PUB socket
	Replay string // the ROUTER socket that gives messages again; empty where the engine has none
	Topic  string // what the first frame must begin with; empty for everything
}

// Options change what is seldom changed. A zero field means its default.
type Options struct {
	// Report hears what goes wrong, from Run's goroutine: connections that fail, gaps that cannot be repaired,
	// messages that cannot be read (the 1st, 2nd, 4th, 8th ...). An outage is reported once, when it begins.
	Report func(error)

	RetryMin time.Duration // pause after the first failure to connect, doubled with each; default 100 ms
	RetryMax time.Duration // and at most; default 5 s
	Patience time.Duration // without a connection for this long, the sink hears Cleared; default 30 s
	Quiet    time.Duration // when nothing came for this long after messages, ask whether one was missed; default 1 s
	Recheck  time.Duration // but after the first time not more often than this: it costs the engine a look through all that it keeps; default 30 s
	Stall    time.Duration // the replay socket must answer, and go on answering, within this; default 5 s
}

// Subscriber listens to one source. Make it with New and run it once.
type Subscriber struct {
	source  Source
	sink    Sink
	options Options

	// Of Run's goroutine.
	decoder Decoder
	order   order
	lostAt  time.Time // when the connection was lost; zero while there is one, and after Patience
	failing bool      // the outage has been reported
	damages uint64    // messages that could not be read
	unasked bool      // messages came since the last question whether one was missed
	askedAt time.Time // when that was; zero on a new connection

	mu    sync.Mutex // guards stats
	stats Stats
}

// New makes a subscriber that does nothing before Run.
func New(source Source, sink Sink, o Options) (*Subscriber, error) {
	if _, _, err := zmtp.Split(source.Events); err != nil {
		return nil, fmt.Errorf("cannot subscribe to KV events: %w", err)
	}
	if source.Replay != "" {
		if _, _, err := zmtp.Split(source.Replay); err != nil {
			return nil, fmt.Errorf("cannot have KV events replayed: %w", err)
		}
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	o.RetryMin = orDefault(o.RetryMin, 100*time.Millisecond)
	o.RetryMax = max(o.RetryMin, orDefault(o.RetryMax, 5*time.Second))
	o.Patience = orDefault(o.Patience, 30*time.Second)
	o.Quiet = orDefault(o.Quiet, time.Second)
	o.Recheck = orDefault(o.Recheck, 30*time.Second)
	o.Stall = orDefault(o.Stall, 5*time.Second)
	return &Subscriber{source: source, sink: sink, options: o}, nil
}

func orDefault(d, standard time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return standard
}

// Run listens until ctx is over. Its goroutine is the only one that calls the sink, and no other is left when it
// returns.
func (s *Subscriber) Run(ctx context.Context) {
	pause := s.options.RetryMin
	for ctx.Err() == nil {
		began := time.Now()
		connected, err := s.session(ctx)
		if ctx.Err() != nil {
			break
		}
		if connected {
			s.lostAt = time.Now()
			if s.lostAt.Sub(began) > s.options.RetryMax { // or a peer that hangs up at once is called in a loop
				pause = s.options.RetryMin
			}
		}
		s.count(func(st *Stats) { st.Failures++; st.Connected = false })
		if !s.failing {
			s.failing = true
			s.options.Report(err)
		}
		s.rest(ctx, pause/2+rand.N(pause/2+1))
		pause = min(2*pause, s.options.RetryMax)
	}
	s.count(func(st *Stats) { st.Connected = false })
}

// rest waits before the next try. What is known about an engine that nobody hears any more is forgotten meanwhile.
func (s *Subscriber) rest(ctx context.Context, pause time.Duration) {
	end := time.Now().Add(pause)
	if !s.lostAt.IsZero() {
		if limit := s.lostAt.Add(s.options.Patience); !limit.After(end) {
			sleep(ctx, time.Until(limit))
			if ctx.Err() != nil {
				return
			}
			s.lostAt = time.Time{}
			if s.order.known {
				s.clear(Silent)
			}
			s.order = order{}
		}
	}
	sleep(ctx, time.Until(end))
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// session is the life of one connection. connected says whether it came to one.
func (s *Subscriber) session(ctx context.Context) (connected bool, err error) {
	conn, err := zmtp.Dial(ctx, s.source.Events, "SUB")
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.Subscribe(s.source.Topic); err != nil {
		return false, fmt.Errorf("cannot subscribe at %q: %w", s.source.Events, err)
	}
	s.failing, s.lostAt = false, time.Time{}
	s.count(func(st *Stats) { st.Connections++; st.Connected = true })
	s.resume(ctx)
	err = s.listen(ctx, conn)
	return true, fmt.Errorf("lost the connection to %q: %w", s.source.Events, err)
}

// listen takes messages until the connection ends.
func (s *Subscriber) listen(ctx context.Context, conn *zmtp.Conn) error {
	var m zmtp.Message
	s.unasked, s.askedAt = true, time.Time{} // a message may have passed between the first replay and the subscription
	for {
		ok, err := conn.Read(&m, s.options.Quiet)
		switch {
		case err != nil:
			return err
		case ok:
			s.receive(ctx, &m)
		case s.unasked && s.source.Replay != "" && s.order.known && time.Since(s.askedAt) >= s.options.Recheck:
			// Publishers drop messages for who is slow, and the last ones of a burst leave no gap to see.
			s.unasked, s.askedAt = false, time.Now()
			if err := s.replay(ctx, false); err != nil && ctx.Err() == nil {
				s.options.Report(err)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// resume makes up for what passed while there was no connection. See replay for how a restarted engine is found out.
func (s *Subscriber) resume(ctx context.Context) {
	s.order.heard = 0
	if s.source.Replay == "" {
		if s.order.known {
			s.clear(Unsure)
		}
		s.order = order{}
		return
	}
	s.order.known = true // a first connection asks for everything since 0
	if err := s.replay(ctx, true); err != nil && ctx.Err() == nil {
		s.options.Report(err)
		if s.order.has {
			s.clear(Unsure)
		}
		s.order = order{}
	}
}

var (
	errFrames = errors.New("want three frames, a topic, eight bytes and a payload")
	errNumber = errors.New("the sequence number is beyond 2^63")
)

// receive deals with one live message.
func (s *Subscriber) receive(ctx context.Context, m *zmtp.Message) {
	if m.Len() != 3 || len(m.Frame(1)) != 8 {
		s.malformed(errFrames)
		return
	}
	seq, payload := binary.BigEndian.Uint64(m.Frame(1)), m.Frame(2)
	if seq > endMark/2 {
		s.malformed(errNumber)
		return
	}
	s.unasked = true
	what := s.order.live(seq)
	if what == restart {
		s.restarted()
		what = s.order.live(seq)
	}
	if what == gap {
		s.count(func(st *Stats) { st.Gaps++ })
		if s.source.Replay != "" {
			err := s.replay(ctx, false)
			if ctx.Err() != nil {
				return // too soon to say what is lost
			}
			if err != nil {
				s.options.Report(err)
			}
		}
		if what = s.order.live(seq); what == gap {
			s.lost(seq)
			what = take
		}
	}
	if what != take {
		s.order.heard = max(s.order.heard, seq+1)
		s.count(func(st *Stats) { st.Doubles++ })
		return
	}
	batch := s.apply(seq, payload)
	s.order.heard = s.order.next
	now := time.Now()
	s.count(func(st *Stats) {
		st.LastAt = now
		if made := time.Duration(batch.Time * 1e9); batch.Time > 0 && batch.Time < 1<<33 {
			st.Lag = max(now.Sub(time.Unix(0, int64(made))), 0)
		}
	})
}

// apply gives a message's events to the sink and notes that it was taken.
func (s *Subscriber) apply(seq uint64, payload []byte) Batch {
	batch, err := s.decoder.Decode(payload, s.sink)
	if err != nil {
		s.damaged(fmt.Errorf("message %d of %q: %w", seq, s.source.Events, err))
	}
	s.order.taken(seq, payload)
	s.count(func(st *Stats) { st.Messages++ })
	return batch
}

// lost gives up the messages before seq, which is taken next.
func (s *Subscriber) lost(seq uint64) {
	missing := seq - s.order.next
	s.options.Report(fmt.Errorf("lost %d messages of KV events from %q: what this worker holds is learnt anew",
		missing, s.source.Events))
	s.count(func(st *Stats) { st.Lost += missing })
	s.clear(Gap)
}

// restarted forgets an engine that counts from 0 again.
func (s *Subscriber) restarted() {
	s.clear(Restarted)
	s.decoder.groups = groups{}
	s.order.over()
	s.count(func(st *Stats) { st.Restarts++ })
}

func (s *Subscriber) clear(why Reason) {
	s.sink.Cleared(Cleared{Unknown, why})
	s.count(func(st *Stats) { st.Clears++ })
}

func (s *Subscriber) malformed(err error) {
	s.decoder.Counts.Malformed++
	s.count(func(*Stats) {})
	s.damaged(fmt.Errorf("cannot read a message of KV events from %q: %w", s.source.Events, err))
}

// damaged reports the first, second, fourth, eighth ... message that cannot be read: an engine whose messages have
// changed sends nothing else.
func (s *Subscriber) damaged(err error) {
	if s.damages++; bits.OnesCount64(s.damages) == 1 {
		s.options.Report(err)
	}
}
