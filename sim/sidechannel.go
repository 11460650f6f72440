// The side channel between simulated engines: it replaces NIXL's reads of another engine's
// memory.

package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A simulated engine has no KV to transfer. Instead it transfers one number per block, which
// identifies the tokens up to the block's end, so that the reader can check that the block still
// holds what it should. The transfer uses HTTP on a separate port, opened when the first request
// is held:
//
//	POST /kvasir-sim/read  {"engine_id":E,"request_id":R,"blocks":[1,2]}  ->  200 {"contents":[1234,0]}
//	POST /kvasir-sim/free  {"engine_id":E,"request_id":R}                 ->  204
//	POST /kvasir-sim/beat  {"engine_id":E,"request_id":R}                 ->  204
//	POST /kvasir-sim/join  {"engine_id":"","request_id":ROOM}             ->  200 when the prefill is done (rooms.go)
//	POST /kvasir-sim/leave the same, when nobody waits for that any more  ->  204
//
// A read names blocks, not a request, like a read of memory. 409: another engine id; 400: any
// other error.

// ask is the body of a decode worker's request on the side channel.
type ask struct {
	Engine  string `json:"engine_id"`
	Request string `json:"request_id"`
	Blocks  []int  `json:"blocks,omitempty"`
}

const (
	maxAsk      = 8 << 20 // bytes of an ask, and of its answer
	maxAskID    = 1 << 10 // bytes of an id
	maxAskBlock = 1 << 18 // blocks of one read: 4 million tokens in blocks of 16
)

// decodeAsk reads an ask, strictly.
func decodeAsk(body []byte) (a ask, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return ask{}, fmt.Errorf("cannot read message: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return ask{}, errors.New("cannot read message: bytes after its end")
	}
	if len(a.Engine) > maxAskID || len(a.Request) > maxAskID || len(a.Blocks) > maxAskBlock {
		return ask{}, errors.New("cannot read message: too large")
	}
	return a, nil
}

// decodeContents reads the answer to a read of n blocks.
func decodeContents(body []byte, n int) ([]uint64, error) {
	var answer struct {
		Contents []uint64 `json:"contents"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("cannot read contents: %w", err)
	}
	if len(answer.Contents) != n {
		return nil, fmt.Errorf("cannot read contents: %d blocks, asked for %d", len(answer.Contents), n)
	}
	return answer.Contents, nil
}

// openSide opens the side channel, unless it is open, and returns its address.
func (s *Server) openSide() (host string, port int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sideAt != nil {
		return s.sideAt.IP.String(), s.sideAt.Port, nil
	}
	if s.closing {
		return "", 0, http.ErrServerClosed
	}
	ln, err := net.Listen("tcp", s.options.SideChannel)
	if err != nil {
		return "", 0, fmt.Errorf("cannot open the side channel: %w", err)
	}
	s.sideAt = ln.Addr().(*net.TCPAddr)
	s.goroutines.Go(func() { _ = s.side.Serve(ln) })
	return s.sideAt.IP.String(), s.sideAt.Port, nil
}

// serveSide answers the asks of other engines.
func (s *Server) serveSide(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", Fingerprint)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsk))
	if err != nil {
		abort()
	}
	a, err := decodeAsk(body)
	switch {
	case r.Method != http.MethodPost || err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Path == sideJoin && s.hosts():
		s.serveJoin(r.Context(), w, a)
	case r.URL.Path == sideLeave && s.hosts():
		s.serveLeave(w, a)
	case a.Engine != s.engineID:
		w.WriteHeader(http.StatusConflict)
	case r.URL.Path == sideRead:
		contents, ok := s.driver.read(a.Blocks)
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write(contents)
	case r.URL.Path == sideFree:
		s.driver.free(a.Request)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == sideBeat:
		s.driver.extend(a.Request)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

const (
	sideRead  = "/kvasir-sim/read"
	sideFree  = "/kvasir-sim/free"
	sideBeat  = "/kvasir-sim/beat"
	sideJoin  = "/kvasir-sim/join"
	sideLeave = "/kvasir-sim/leave"
)

// read answers a read; ok is false if there is no such block.
func (d *driver) read(blocks []int) (answer []byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer = append(make([]byte, 0, 16+20*len(blocks)), `{"contents":[`...)
	for i, id := range blocks {
		if id < 1 || id > d.engine.options.Blocks {
			return nil, false
		}
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = strconv.AppendUint(answer, d.engine.Content(id), 10)
	}
	return append(answer, "]}"...), true
}

// free ends a lease.
func (d *driver) free(handle string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leases.free(d.engine, handle)
	ring(d.work)
}

// extend keeps a lease alive.
func (d *driver) extend(handle string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leases.extend(handle, d.now())
}

// errUnreachable is wrapped by errors that mean that nothing answers on a side channel. An error
// for a refusal does not wrap it.
var errUnreachable = errors.New("nothing answers")

// say sends an ask to the source's side channel and returns the body of the answer.
func (s *Server) say(ctx context.Context, to source, path string, blocks []int) ([]byte, error) {
	body, err := json.Marshal(ask{to.engine, to.request, blocks})
	if err != nil {
		return nil, err
	}
	url := "http://" + net.JoinHostPort(to.host, strconv.Itoa(to.port)) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot ask engine %q: %w", to.engine, err)
	}
	reply, err := s.client.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("cannot ask engine %q: %w: %w", to.engine, errUnreachable, err)
	}
	defer reply.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(reply.Body, maxAsk))
	if err != nil {
		return nil, fmt.Errorf("cannot ask engine %q: %w: %w", to.engine, errUnreachable, err)
	}
	if reply.StatusCode >= 300 {
		return nil, fmt.Errorf("cannot ask engine %q: it says %s", to.engine, reply.Status)
	}
	return answer, nil
}

// release tells a source that its blocks are no longer needed. It also works for a request whose
// client is gone.
func (s *Server) release(to source) {
	ctx, cancel := context.WithTimeout(s.closed, time.Second)
	defer cancel()
	_, _ = s.say(ctx, to, sideFree, nil) // if it is not heard, the lease expires
}
