// KV events of the simulated engine: the blocks that a pass stored and removed, in vLLM's format,
// and the sockets that publish them.

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// idle is how long a connection of the event sockets waits before it checks again; nothing else
// happens then.
const idle = time.Hour

// medium is the only tier of the simulated engine: there is no host memory or disk behind its
// pool.
const medium = "GPU"

// eventWriter turns passes into payloads as vLLM 0.32 writes them: a batch is an array, its
// events are maps. Removes come before stores; a remove has one block, a store has a run of
// blocks of one sequence.
type eventWriter struct {
	blockSize int
	events    []byte // events of the batch being written
}

// payload returns the batch of a pass that ended at now; nil: the pass stored and removed
// nothing. The caller owns it.
func (w *eventWriter) payload(p *Pass, now time.Time) []byte {
	if len(p.Removed)+len(p.Stored) == 0 {
		return nil
	}
	w.events = w.events[:0]
	count := uint32(len(p.Removed))
	for _, hash := range p.Removed {
		w.removed(hash)
	}
	for run := p.Stored; len(run) > 0; count++ {
		n := 1
		for n < len(run) && run[n].Sequence == run[0].Sequence && run[n].Index == run[0].Index+n {
			n++
		}
		w.stored(run[0].Sequence, run[0].Index, n)
		run = run[n:]
	}
	b := make([]byte, 0, len(w.events)+24)
	b = msgp.AppendArrayHeader(b, 3)
	b = msgp.AppendFloat64(b, float64(now.UnixNano())/1e9)
	b = msgp.AppendArrayHeader(b, count)
	b = append(b, w.events...)
	return msgp.AppendInt(b, 0) // data-parallel rank
}

func (w *eventWriter) removed(hash uint64) {
	b := msgp.AppendMapHeader(w.events, 4)
	b = msgp.AppendString(msgp.AppendString(b, "type"), "BlockRemoved")
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), 1)
	b = appendHash(b, hash)
	b = msgp.AppendString(msgp.AppendString(b, "medium"), medium)
	w.events = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
}

// stored writes n blocks of a sequence from index first on.
func (w *eventWriter) stored(s *Sequence, first, n int) {
	b := msgp.AppendMapHeader(w.events, 11)
	b = msgp.AppendString(msgp.AppendString(b, "type"), "BlockStored")
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), uint32(n))
	for i := first; i < first+n; i++ {
		b = appendHash(b, s.Hash(i))
	}
	b = msgp.AppendString(b, "parent_block_hash")
	if first > 0 {
		b = appendHash(b, s.Hash(first-1))
	} else {
		b = msgp.AppendNil(b)
	}
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "token_ids"), uint32(n*w.blockSize))
	t := s.Owner.(*ticket)
	for at := first * w.blockSize; at < (first+n)*w.blockSize; at++ {
		b = msgp.AppendUint32(b, t.token(at))
	}
	b = msgp.AppendInt(msgp.AppendString(b, "block_size"), w.blockSize)
	b = msgp.AppendNil(msgp.AppendString(b, "lora_id"))
	b = msgp.AppendString(msgp.AppendString(b, "medium"), medium)
	b = msgp.AppendNil(msgp.AppendString(b, "lora_name"))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "extra_keys"), uint32(n))
	for i := first; i < first+n; i++ {
		if i == 0 && t.salt != "" {
			b = msgp.AppendString(msgp.AppendArrayHeader(b, 1), t.salt)
		} else {
			b = msgp.AppendNil(b)
		}
	}
	b = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	w.events = msgp.AppendString(msgp.AppendString(b, "kv_cache_spec_kind"), "full_attention")
}

// appendHash writes a hash in nine bytes, as engines do, however small it is.
func appendHash(b []byte, hash uint64) []byte {
	if hash > 1<<32 {
		return msgp.AppendUint64(b, hash)
	}
	return append(b, 0xcf, 0, 0, 0, 0, byte(hash>>24), byte(hash>>16), byte(hash>>8), byte(hash))
}

// token returns the token at a position of the prompt followed by its answer.
func (t *ticket) token(at int) uint32 {
	if at < len(t.prompt) {
		return t.prompt[at]
	}
	return t.answer[at-len(t.prompt)]
}

var errNoEvents = errors.New("Options.Events is off")

// ServeEvents publishes the engine's KV events to subscribers at ln, a ZeroMQ PUB socket over
// TCP, until Close, and then returns nil. It closes ln. Options.Events must be set. Like Serve,
// it blocks: call it in a goroutine.
func (s *Server) ServeEvents(ln net.Listener) error {
	return s.serveEvents(ln, &s.eventsAt, (*Publisher).Serve)
}

// ServeReplay sends missed events again to clients at ln, a ZeroMQ ROUTER socket. Otherwise it is
// like ServeEvents.
func (s *Server) ServeReplay(ln net.Listener) error {
	return s.serveEvents(ln, &s.replayAt, (*Publisher).ServeReplay)
}

// Announce sets the addresses of the event and replay sockets before they are served, so that a
// client that asks a new worker at once gets them. ServeEvents and ServeReplay set them, too.
func (s *Server) Announce(events, replay net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventsAt, s.replayAt = announced(events), announced(replay)
}

// announced formats a listening address as an engine does.
func announced(at net.Addr) string {
	if at == nil {
		return ""
	}
	_, port, _ := net.SplitHostPort(at.String())
	return "tcp://*:" + port
}

func (s *Server) serveEvents(ln net.Listener, at *string, serve func(*Publisher, net.Listener) error) error {
	if s.driver.publisher == nil {
		ln.Close()
		return fmt.Errorf("cannot publish KV events of simulated worker %q: %w", s.options.Name, errNoEvents)
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ln.Close()
	}
	*at = announced(ln.Addr())
	s.goroutines.Add(1)
	s.mu.Unlock()
	defer s.goroutines.Done()
	return serve(s.driver.publisher, ln)
}

// Holds returns how many leading blocks of a prompt are in the engine's prefix cache, and how
// many blocks the cache has in all: a listener to its events should arrive at the same numbers.
func (s *Server) Holds(prompt []uint32, salt string) (leading, all int) {
	hashes := appendHashes(nil, hashString(hashString(0, s.options.Model), salt), prompt, s.options.BlockSize)
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	pool := &s.driver.engine.pool
	for leading < len(hashes) && pool.find(hashes[leading]) != 0 {
		leading++
	}
	return leading, pool.cached.n
}

// serveSources returns where events are published, as vLLM's GET /kv_event_sources does.
func serveSources(s *Server, w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	events, replay := s.eventsAt, s.replayAt
	s.mu.Unlock()
	if events == "" {
		writeFailure(w, detail(http.StatusNotFound, "Not Found"))
		return
	}
	source := map[string]any{
		"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": events, "replay_endpoint": nil,
		"buffer_steps": s.options.EventBuffer, "hwm": s.options.EventBuffer, "max_queue_size": s.options.EventBuffer,
		"topic": s.options.EventTopic,
	}
	if replay != "" {
		source["replay_endpoint"] = replay
	}
	body, _ := json.Marshal(map[string]any{"0": source}) // cannot fail: plain values
	writeJSON(w, http.StatusOK, body)
}
