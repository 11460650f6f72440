// Live: what changes, told to all open pages once a second.

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/record"
	"kvasir/proxy/respond"
	"kvasir/proxy/roster"
)

const (
	tick           = time.Second
	mostWatchers   = 200
	mostUnread     = 4  // seconds that a watcher may be behind
	mostRequestsBy = 50 // tick; more are only counted
)

// A hub makes one snapshot a second for all who watch. While nobody does it does nothing.
type hub struct {
	page *Page

	mu       sync.Mutex // guards all below
	watchers map[*watcher]bool
	closed   bool
	ends     chan struct{} // of the goroutine that ticks; nil: none runs
	ticking  sync.WaitGroup

	workers map[string][]byte // each as JSON, as it was told last, by name
	order   []string          // of the names
	seq     uint64            // of the last request that was told of
	recent  [5]reading        // of the last seconds
	ticks   int
	last    []byte // the last overview event
}

// A watcher is one open page.
type watcher struct {
	stream stream
	frames chan []byte   // with their framing; shared by all watchers, and never changed
	lost   chan struct{} // closed when it is too far behind, or at the end
}

// tooMany is the error for one more page than may watch.
func tooMany(most int) *openai.Error {
	return &openai.Error{
		Status: 503, Type: "server_error", Code: "overloaded", RetryAfter: 5 * time.Second,
		Message: fmt.Sprintf("%d pages watch already; close one of them", most),
	}
}

// serveLive is GET /api/live.
func (p *Page) serveLive(ctx *fasthttp.RequestCtx) {
	s, refused := openStream(ctx)
	if refused != nil {
		respond.Error(ctx, refused)
		return
	}
	w, first, refused := p.live.join(s)
	if refused != nil {
		respond.Error(ctx, refused)
		return
	}
	defer p.live.leave(w)
	err := s.head(ctx, fasthttp.StatusOK, []byte("Content-Type: text/event-stream; charset=utf-8\r\n"))
	if err == nil {
		err = s.send(first)
	}
	for gone := s.conn.WhenGone(); err == nil; {
		select {
		case frame := <-w.frames:
			err = s.send(frame)
		case <-w.lost:
			s.end()
			return
		case <-gone:
			return
		}
	}
}

// join adds a watcher. first is what it is told at once: everything.
func (h *hub) join(s stream) (w *watcher, first []byte, refused *openai.Error) {
	// The others are for probes and metrics.
	most := min(mostWatchers, h.page.options.Connections()/2)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, nil, &openai.Error{Status: 503, Type: "server_error", Message: "This Kvasir is stopping"}
	case len(h.watchers) >= most:
		return nil, nil, tooMany(most)
	}
	if h.ends == nil {
		h.begin()
	}
	w = &watcher{stream: s, frames: make(chan []byte, mostUnread), lost: make(chan struct{})}
	h.watchers[w] = true
	all := make([]json.RawMessage, 0, len(h.order))
	for _, name := range h.order {
		all = append(all, h.workers[name])
	}
	events := appendEvent(bytes.Clone(h.last), "workers", workersEvent{all, []string{}})
	return w, appendChunk(nil, events), nil
}

// leave takes a watcher back, and lets the goroutine end behind the last one.
func (h *hub) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
	if len(h.watchers) == 0 && h.ends != nil {
		close(h.ends)
		h.ends = nil
	}
}

// begin starts to tick. It is called with mu held.
func (h *hub) begin() {
	h.watchers, h.workers, h.order = map[*watcher]bool{}, nil, nil
	h.seq = h.page.kept.last()
	for i := range h.recent {
		h.recent[i] = h.page.series.before()
	}
	_ = h.look(time.Now(), 0)
	h.ends = make(chan struct{})
	h.ticking.Add(1)
	go h.run(h.ends)
}

func (h *hub) run(ends <-chan struct{}) {
	defer h.ticking.Done()
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case <-ends:
			return
		case now := <-every.C:
			h.tell(ends, now)
		}
	}
}

// tell tells all watchers what is new. Who has not read the last seconds is dropped: nobody waits
// for them.
func (h *hub) tell(ends <-chan struct{}, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ends != ends {
		return // the last watcher has left meanwhile
	}
	frame := appendChunk(nil, h.look(now, mostRequestsBy))
	for w := range h.watchers {
		select {
		case w.frames <- frame:
		default:
			h.drop(w)
		}
	}
}

// drop ends a watcher, also one that waits for its browser to read.
func (h *hub) drop(w *watcher) {
	delete(h.watchers, w)
	close(w.lost)
	_ = w.stream.conn.SetWriteDeadline(time.Unix(1, 0))
}

// close ends all streams, also those whose browser does not read. Those who serve them end by
// themselves.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for w := range h.watchers {
		h.drop(w)
	}
	if h.ends != nil {
		close(h.ends)
		h.ends = nil
	}
	h.mu.Unlock()
	h.ticking.Wait()
}

// A liveOverview is the event `overview`.
type liveOverview struct {
	Sample // of the last five seconds, with what is under way now
	Condition
	Queued int `json:"queued"`
}

type workersEvent struct {
	Workers []json.RawMessage `json:"workers"`
	Gone    []string          `json:"gone"`
}

// look is what is new: the events of one second. It is called with mu held.
func (h *hub) look(now time.Time, requests int) (events []byte) {
	p := h.page
	from := &h.recent[h.ticks%len(h.recent)]
	h.ticks++
	var to reading
	p.series.sum(&to, now)
	sample := between(from, &to)
	*from = to
	workers := p.options.Workers(now)
	standing := p.standing(workers)
	sample.InFlight, sample.Queue = standing.InFlight, standing.Queued
	events = appendEvent(nil, "overview", liveOverview{sample, standing.Condition, standing.Queued})
	h.last = bytes.Clone(events)
	if changed := h.lookAtWorkers(workers); len(changed.Workers)+len(changed.Gone) > 0 {
		events = appendEvent(events, "workers", changed)
	}
	return h.appendRequests(events, requests)
}

// lookAtWorkers says which workers are shown otherwise than before.
func (h *hub) lookAtWorkers(workers []roster.Worker) workersEvent {
	e := workersEvent{[]json.RawMessage{}, []string{}}
	before := h.workers
	h.workers, h.order = make(map[string][]byte, len(workers)), nil
	for _, w := range workers {
		is, err := json.Marshal(w)
		if err != nil {
			panic("BUG: a worker is no JSON: " + err.Error())
		}
		h.order = append(h.order, w.Name)
		h.workers[w.Name] = is
		if !bytes.Equal(before[w.Name], is) {
			e.Workers = append(e.Workers, is)
		}
	}
	for name := range before {
		if h.workers[name] == nil {
			e.Gone = append(e.Gone, name)
		}
	}
	slices.Sort(e.Gone)
	return e
}

// appendRequests appends the requests that have ended since, the newest most of them, the oldest
// first, and how many others there were.
func (h *hub) appendRequests(events []byte, most int) []byte {
	var list []Short
	newest := h.page.kept.last()
	h.page.kept.each(newest+1, func(seq uint64, r *record.Record) bool {
		if seq > h.seq && len(list) < most {
			list = append(list, shortOf(seq, r))
		}
		return seq > h.seq && len(list) < most
	})
	for i := range slices.Backward(list) {
		events = appendEvent(events, "request", &list[i])
	}
	if skipped := newest - h.seq - uint64(len(list)); skipped > 0 && most > 0 {
		events = appendEvent(events, "skipped", map[string]uint64{"count": skipped})
	}
	h.seq = newest
	return events
}

// appendEvent appends a server-sent event.
func appendEvent(dst []byte, name string, value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic("BUG: an event is no JSON: " + err.Error())
	}
	dst = append(append(append(dst, "event: "...), name...), "\ndata: "...)
	return append(append(dst, data...), "\n\n"...)
}
