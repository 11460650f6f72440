// Missed messages, asked for again at the engine's replay socket.

package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"kvasir/zmtp"
)

// endMark is the sequence number, -1, of the message that ends a replay.
const endMark = math.MaxUint64

// errHole says that a replay left messages out: its socket drops what a reader is too slow for, as publishers do.
var errHole = errors.New("messages are missing in the replay")

// replay asks for all messages from the next one on and takes them. After a lost connection (prove) the one before is
// asked for too, where there is one: a process that does not know it, or has another under its number, is not the one
// that we listened to.
// A replay that breaks off is asked for again from where it broke off, as long as each try brings something.
func (s *Subscriber) replay(ctx context.Context, prove bool) error {
	for {
		before, restarts := s.order.next, s.stats.Restarts
		err := s.askReplay(ctx, prove)
		if err == nil {
			return nil
		}
		s.count(func(st *Stats) { st.Failures++ })
		if ctx.Err() != nil || s.order.next == before && s.stats.Restarts == restarts {
			return fmt.Errorf("cannot have KV events replayed by %q: %w", s.source.Replay, err)
		}
	}
}

// askReplay asks once and reads the answer to its end.
func (s *Subscriber) askReplay(ctx context.Context, prove bool) error {
	conn, err := zmtp.Dial(ctx, s.source.Replay, "DEALER")
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for again := true; again; {
		from, proof := s.order.next, prove && s.order.has
		if proof {
			from--
		}
		if err := conn.Write(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
			return err
		}
		if again, err = s.readReplay(conn, proof); err != nil {
			return err
		}
	}
	return nil
}

// readReplay takes the messages of one answer. With proof, the first of them is the last one taken, from the same
// process; it says again when that is not so: then the engine is a new process, whose messages are wanted from 0.
//
// A message has an empty frame, a topic that some engines leave out, a sequence number and a payload.
func (s *Subscriber) readReplay(conn *zmtp.Conn, proof bool) (again bool, err error) {
	var m zmtp.Message
	proven, foreign, first := !proof, false, true
	wait := s.options.Stall
	for {
		ok, err := conn.Read(&m, wait)
		if err != nil {
			return false, err
		}
		if !ok {
			if conn.Buffered() {
				continue // a command
			}
			return false, fmt.Errorf("nothing came for %v", wait)
		}
		// A socket that drops what a reader is too slow for drops the end as well: libzmq's default is to keep 1,000
		// messages. An answer comes in one go, so that a pause means that; asking again does no harm.
		wait = min(s.options.Stall, 200*time.Millisecond)
		n := m.Len()
		if n < 3 || n > 4 || len(m.Frame(0)) != 0 || len(m.Frame(n-2)) != 8 {
			return false, errors.New("the answer is not the one of a replay socket")
		}
		seq, payload := binary.BigEndian.Uint64(m.Frame(n-2)), m.Frame(n-1)
		switch {
		case seq == endMark:
			if foreign || !proven {
				s.restarted()
				return true, nil
			}
			return false, nil
		case seq > endMark/2:
			return false, errNumber
		case foreign:
			continue
		case !proven && seq == s.order.next-1:
			proven = s.order.same(payload)
			foreign = !proven
		case seq < s.order.next:
			// older than asked for
		case seq > s.order.next && !first:
			return false, errHole
		default:
			if seq > s.order.next && (s.order.has || s.order.next > 0) {
				s.lost(seq)
			}
			proven = true
			s.apply(seq, payload)
			s.count(func(st *Stats) { st.Replayed++ })
		}
		first = false
	}
}
