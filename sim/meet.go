// The two legs of SGLang's hand-over, from the room where they meet to the end.

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// meetInRoom performs one side of SGLang's hand-over.
func meetInRoom(ctx context.Context, s *Server, c *completion, j *job) error {
	return each(ctx, len(j.tickets), func(ctx context.Context, i int) error {
		if c.transfer.holds() {
			return hostRoom(ctx, s, c, j, i)
		}
		return visitRoom(ctx, s, c, j, i)
	})
}

// hostRoom is the prefill side of one room: it waits for the decode leg, computes, and waits
// until that leg has fetched every block. It computes nothing if the decode leg does not come.
func hostRoom(ctx context.Context, s *Server, c *completion, j *job, i int) error {
	id := c.rooms[i].id
	m, err := s.rooms.enter(id, hereIn)
	if err != nil {
		s.die()
		return engineDead
	}
	defer s.rooms.leave(id, m, hereIn)
	late := time.NewTimer(s.options.BootstrapTimeout)
	defer late.Stop()
	select {
	case <-m.joined:
	case <-late.C:
		return roomFailure("Prefill bootstrap failed for request rank=0 req.rid='%s' req.bootstrap_room=%d", c.id, id,
			roomTimedOut(s, id, "Bootstrapping"))
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.driver.submit(j, i, []Request{j.requests[i]}); err != nil {
		return &failure{http.StatusInternalServerError, "InternalServerError", err.Error(), ""}
	}
	t := &j.tickets[i]
	if err := awaitVisitor(ctx, s, m, t.ended); err != nil {
		s.driver.drop(t)
		return hostFailure(s, err, c.id, id)
	}
	m.answer, _ = json.Marshal(served{ask{s.engineID, t.handle, intsOf(t.held)}, t.sequence.Cached}) // plain values
	close(m.ready)
	if err := awaitVisitor(ctx, s, m, t.lease.over); err != nil {
		if errors.Is(err, errLeft) {
			s.driver.drop(t)
		}
		return hostFailure(s, err, c.id, id)
	}
	if t.lease.expired {
		return hostFailure(s, errLeft, c.id, id)
	}
	return nil
}

// served tells a decode leg where the blocks that it came for are.
type served struct {
	ask
	Cached int `json:"cached"`
}

func intsOf(ids []int32) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

// errLeft: the decode leg went away.
var errLeft = errors.New("the decode leg left")

// awaitVisitor waits for next, which the host of a room needs, and gives up on any event after
// which next can no longer come.
func awaitVisitor(ctx context.Context, s *Server, m *meeting, next <-chan struct{}) error {
	select {
	case <-next:
		return nil
	case <-m.left:
		return errLeft
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hostFailure returns the error of a host whose guest left; other errors stay unchanged.
func hostFailure(s *Server, err error, rid string, id int64) error {
	if !errors.Is(err, errLeft) {
		return err
	}
	return roomFailure("Prefill transfer failed for request rank=0 req.rid='%s' req.bootstrap_room=%d", rid, id,
		"Failed to send kv chunk of "+strconv.FormatInt(id, 10))
}

// visitRoom is the decode side of one room: it waits for free blocks, joins the host, waits
// there, and fetches. If the prefill leg failed or was cancelled, it is not told and waits until
// its timeout (SGLang's issue 28651).
func visitRoom(ctx context.Context, s *Server, c *completion, j *job, i int) error {
	t, r := &j.tickets[i], c.rooms[i]
	if _, taken := s.visiting.LoadOrStore(r.id, true); taken {
		s.die()
		return engineDead
	}
	defer s.visiting.Delete(r.id)
	select {
	case <-t.room:
	case <-ctx.Done():
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, s.options.BootstrapTimeout)
	defer cancel()
	answer, err := joinRoom(limited, s, r)
	switch {
	case err != nil && ctx.Err() != nil:
		quitRoom(s, r)
		return ctx.Err()
	case err != nil && limited.Err() != nil:
		quitRoom(s, r)
		return roomFailure("Decode transfer failed for request rank=0 decode_req.req.rid='%s' decode_req.req.bootstrap_room=%d",
			c.id, r.id, roomTimedOut(s, r.id, "WaitingForInput"))
	case err != nil:
		return roomFailure("Decode handshake failed for request rank=0 decode_req.req.rid='%s' decode_req.req.bootstrap_room=%d",
			c.id, r.id, "Could not fetch prefill parallel info from bootstrap_addr: "+net.JoinHostPort(r.host, strconv.Itoa(r.port)))
	}
	var got served
	if json.Unmarshal(answer, &got) != nil || len(got.Blocks) > maxAskBlock {
		return transferFailed
	}
	from := &transfer{source: source{got.Engine, got.Request, r.host, r.port}, blocks: got.Blocks}
	t.remote = got.Cached
	if err := loadBlocks(ctx, s, c, t, i, from); err != nil && ctx.Err() == nil {
		return roomFailure("Decode transfer failed for request rank=0 decode_req.req.rid='%s' decode_req.req.bootstrap_room=%d",
			c.id, r.id, "Failed to get kvcache from prefill instance, it might be dead")
	} else if err != nil {
		s.release(from.source)
		return err
	}
	s.release(from.source)
	return nil
}

// quitRoom tells a room's host that its guest has left.
func quitRoom(s *Server, r room) {
	ctx, cancel := context.WithTimeout(s.closed, time.Second)
	defer cancel()
	_, _ = s.say(ctx, source{"", strconv.FormatInt(r.id, 10), r.host, r.port}, sideLeave, nil) // if it is not heard, the lease expires
}

// joinRoom joins a room's host and waits until the blocks are ready. If the host cannot be
// reached, it does not retry: it returns the error when TransferTimeout has passed.
func joinRoom(ctx context.Context, s *Server, r room) ([]byte, error) {
	begin := time.Now()
	answer, err := s.say(ctx, source{"", strconv.FormatInt(r.id, 10), r.host, r.port}, sideJoin, nil)
	if errors.Is(err, errUnreachable) {
		_ = wait(ctx, s.options.TransferTimeout-time.Since(begin))
	}
	return answer, err
}

// roomTimedOut returns SGLang's message for a leg that timed out.
func roomTimedOut(s *Server, id int64, state string) string {
	return fmt.Sprintf("Request %d timed out after %.1fs in KVPoll.%s", id, s.options.BootstrapTimeout.Seconds(), state)
}

// roomFailure returns SGLang's error for a leg: status 500, which is also its type.
func roomFailure(format, rid string, id int64, reason string) *failure {
	return &failure{http.StatusInternalServerError, "500",
		fmt.Sprintf(format, rid, id) + fmt.Sprintf(" with exception KVTransferError(bootstrap_room=%d): %s", id, reason), ""}
}
