// The HTTP server: routes, life and death.

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Server is one simulated worker behind HTTP. Make it with NewServer; it is safe for concurrent
// use.
type Server struct {
	options  Options
	dialect  *dialect
	driver   *driver
	http     http.Server
	side     http.Server    // other engines fetch KV from it
	client   http.Transport // connects to the side channels of other engines
	engineID string         // new with each start

	rooms    rooms    // used on a prefill worker of SGLang
	visiting sync.Map // used on a decode worker of SGLang: ids of the rooms that its requests are in

	responses responses // conversations of /v1/responses

	alive context.Context // cancelled when the engine dies
	kill  context.CancelFunc
	dead  <-chan struct{} // alive.Done()
	dying sync.Once

	closed     context.Context // parent of every request's context; cancelled by Close
	close      context.CancelFunc
	goroutines sync.WaitGroup // the driver, Serve calls and connections

	mu       sync.Mutex // guards the fields below
	closing  bool
	sideAt   *net.TCPAddr // nil until the first request is held
	eventsAt string       // where KV events are published, in an engine's format; empty: not published
	replayAt string
}

// NewServer makes a worker and starts its engine, which is idle until a request arrives. The
// caller must Close it.
func NewServer(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("cannot make simulated worker %q: %w", o.Name, err)
	}
	s := &Server{options: o, dialect: dialects[o.Engine], driver: newDriver(o), engineID: newEngineID()}
	s.closed, s.close = context.WithCancel(context.Background())
	s.alive, s.kill = context.WithCancel(context.Background())
	s.dead = s.alive.Done()
	s.client.DisableKeepAlives = true
	s.listen(&s.http, s.handle)
	s.listen(&s.side, s.serveSide)
	if s.hosts() { // decode legs may arrive first
		if _, _, err := s.openSide(); err != nil {
			s.close()
			return nil, fmt.Errorf("cannot make simulated worker %q: %w", o.Name, err)
		}
	}
	s.goroutines.Go(func() { s.driver.run(s.closed) })
	return s, nil
}

// listen initialises one of the worker's HTTP servers.
func (s *Server) listen(h *http.Server, handle http.HandlerFunc) {
	*h = http.Server{
		Handler:           handle,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Second, // vLLM's
		ConnState:         s.countConnection,
		// net/http does not notice that a client leaves if it has pipelined bytes; closing the
		// server must still end its request.
		BaseContext: func(net.Listener) context.Context { return s.closed },
	}
}

// Serve answers connections of ln until Close, or until a request kills the engine (death.go),
// and then returns nil. It closes ln. It may be called for several listeners, each in its own
// goroutine.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ln.Close()
	}
	s.goroutines.Add(1)
	s.mu.Unlock()
	defer s.goroutines.Done()
	err := s.http.Serve(ln)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("cannot serve simulated worker %q: %w", s.options.Name, err)
}

// Close ends the worker as a kill would: streams are cut, and requests under way get no reply. It
// returns when all its goroutines have ended. Calling it twice is fine.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	s.mu.Unlock()
	var err error
	if first {
		s.close()
		err = errors.Join(s.http.Close(), s.side.Close())
		if s.driver.publisher != nil {
			s.driver.publisher.Close()
		}
	}
	s.goroutines.Wait()
	return err
}

// countConnection makes Close wait for connections. A new connection is counted inside Serve,
// which is itself counted.
func (s *Server) countConnection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.goroutines.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.goroutines.Done()
	}
}

// route is the one method of a path and its handler.
type route struct {
	method string
	serve  func(*Server, http.ResponseWriter, *http.Request)
}

// vllmRoutes are the paths of vLLM.
var vllmRoutes = map[string]route{
	"/v1/chat/completions":      {http.MethodPost, (*Server).serveChat},
	"/v1/completions":           {http.MethodPost, (*Server).serveCompletion},
	"/v1/responses":             {http.MethodPost, (*Server).serveResponses},
	"/v1/messages":              {http.MethodPost, (*Server).serveMessages},
	"/v1/messages/count_tokens": {http.MethodPost, (*Server).serveCountTokens},
	"/v1/embeddings":            {http.MethodPost, (*Server).serveEmbeddings},
	"/rerank":                   {http.MethodPost, (*Server).serveRerank},
	"/v1/rerank":                {http.MethodPost, (*Server).serveRerank},
	"/v2/rerank":                {http.MethodPost, (*Server).serveRerank},
	"/score":                    {http.MethodPost, (*Server).serveScore},
	"/v1/score":                 {http.MethodPost, (*Server).serveScore},
	"/v1/models":                {http.MethodGet, serveModels},
	"/tokenize":                 {http.MethodPost, serveTokenize},
	"/detokenize":               {http.MethodPost, serveDetokenize},
	"/health":                   {http.MethodGet, serveNothing},
	"/ping":                     {http.MethodGet, serveNothing},
	"/version":                  {http.MethodGet, serveVersion},
	"/metrics":                  {http.MethodGet, serveMetrics},
	"/kv_event_sources":         {http.MethodGet, serveSources},
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", Fingerprint)
	w.Header().Set("Vary", "Origin") // as vLLM's
	if s.isDead() {
		if r.URL.Path == "/health" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.refuse(w, engineDead)
		return
	}
	route, ok := s.dialect.routes[r.URL.Path]
	if !ok && slices.Contains(absentRoutes, r.URL.Path) {
		serveAbsent(s, w, r)
		return
	}
	if !ok {
		writeFailure(w, detail(http.StatusNotFound, "Not Found"))
		return
	}
	if r.Method != route.method {
		w.Header().Set("Allow", route.method)
		writeFailure(w, detail(http.StatusMethodNotAllowed, "Method Not Allowed"))
		return
	}
	route.serve(s, w, r)
}

func (s *Server) serveChat(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, readChat, s.dialect.failure)
}

func (s *Server) serveCompletion(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, readPrompts, s.dialect.failure)
}

// complete serves a completion on any route: read reads the request, and failure is the body of
// the route's errors.
func (s *Server) complete(w http.ResponseWriter, r *http.Request,
	read func(*dialect, Options, *fields, string) *completion, failure func(*failure) []byte,
) {
	fields := readBody(w, r)
	fault, err := s.fault(r)
	fault.failure = failure
	if err != nil {
		fields.fail(refuse(err.Error(), "x-sim-fault"))
	}
	if fault.before(r.Context(), w) {
		return
	}
	var c *completion
	if fields.failure == nil {
		c = read(s.dialect, s.options, fields, r.Header.Get("X-Request-Id"))
	}
	if fields.failure != nil {
		writeJSON(w, fields.failure.status, failure(fields.failure))
		return
	}
	c.failure = failure
	s.serve(w, r, c, fault)
}

// fault reads the request's fault, if faults are allowed.
func (s *Server) fault(r *http.Request) (fault, error) {
	if !s.options.Faults {
		return fault{}, nil
	}
	return readFault(r.Header.Get("x-sim-fault"))
}

// maxBody bounds a request body in bytes; vLLM itself accepts 20 MB and more.
const maxBody = 64 << 20

// readBody reads and decodes a JSON body. It reads the whole body even if it refuses it, because
// only then does net/http notice a client that leaves.
func readBody(w http.ResponseWriter, r *http.Request) *fields {
	body := make([]byte, 0, min(max(r.ContentLength, 511), 1<<20)+1)
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	for {
		n, err := limited.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF:
			if !jsonType(r.Header.Get("Content-Type")) {
				return &fields{failure: &failure{http.StatusBadRequest, "Bad Request",
					"1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", ""}}
			}
			return decodeFields(body)
		case errors.As(err, new(*http.MaxBytesError)):
			return &fields{failure: detail(http.StatusRequestEntityTooLarge, "Request Entity Too Large")}
		case err != nil:
			abort() // the client left in the middle of its body
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}

// refuse replies with a failure in the engine's format.
func (s *Server) refuse(w http.ResponseWriter, f *failure) {
	writeJSON(w, f.status, s.dialect.failure(f))
}

// writeFailure replies with a failure of the framework, which is the same for all engines.
func writeFailure(w http.ResponseWriter, f *failure) { writeJSON(w, f.status, f.body()) }

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
