// Recipients: whom an answer is for.

package proxy

import (
	"io"
	"sync/atomic"

	"kvasir/edge"
)

// Recipients are whom the answer to one request is for: its own client, and the
// followers of the coalesced call that it leads, if it leads one. A worker goes
// on while one of them is left, unless everything stops.
type recipients struct {
	client   *edge.Conn
	leader   *coalesceLeader // nil: the request leads no call
	stopping *atomic.Bool    // running requests are ended
}

// bind names the connection to a worker that is closed when no recipient is left;
// false when none is left now.
func (r *recipients) bind(c io.Closer) bool {
	if r.leader == nil {
		return r.client.Bind(c)
	}
	r.leader.Bind(c)
	return r.client.Bind(r) || r.leader.LoseClient(false)
}

// unbind takes the connection back: from now on nobody else closes it. False
// when it was closed.
func (r *recipients) unbind() bool {
	held := r.client.Unbind()
	if r.leader != nil {
		return r.leader.Unbind()
	}
	return held
}

// Close is what the client's connection calls when the client is lost, or
// everything ends: it stops the worker, unless followers wait for the answer.
func (r *recipients) Close() error {
	r.loseClient()
	return nil
}

// loseClient says that the request's own client is lost. It returns true where
// the request goes on for its followers.
func (r *recipients) loseClient() (goesOn bool) {
	return r.leader != nil && r.leader.LoseClient(r.stopping.Load())
}

// lost says whether nobody is left to be answered.
func (r *recipients) lost() bool {
	return r.client.Gone() && (r.leader == nil || !r.leader.Orphaned())
}

// hasFollowers says whether others wait for more of the answer.
func (r *recipients) hasFollowers() bool { return r.leader != nil && r.leader.HasFollowers() }

// heartbeat tells followers that a worker is at it, though nothing has come.
func (r *recipients) heartbeat() {
	if r.leader != nil {
		r.leader.Heartbeat()
	}
}

// dropFollowers sends the followers on their own way: the answer will not be for them.
func (r *recipients) dropFollowers() {
	if r.leader != nil {
		r.leader.Abandon()
	}
}
