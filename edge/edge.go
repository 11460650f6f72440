// The server that clients connect to, and what it refuses before a request reaches a route.

// Package edge is the client's side of HTTP: it takes connections, notices clients that leave,
// reads heads strictly and bodies within a budget, and passes on complete requests. It knows
// nothing about what serves them.
//
//	watcher, err := edge.NewWatcher()
//	server := &edge.Server{Handler: routes, Limits: limits, Budget: &budget, Stranger: stranger, Refuse: refuse, ...}
//	ln := &edge.Listener{Listener: tcp, Watcher: watcher, Descriptors: &descriptors}
//	err = service.Serve(server.HTTP(), ln)
//
// A handler finds the connection of its client behind RequestCtx.Conn:
//
//	conn := ctx.Conn().(*edge.Conn)
//	conn.Bind(worker)                  // is closed when the client leaves
//	conn.Send(reply, now)              // past fasthttp
//	conn.Answered()                    // so that fasthttp's own reply is dropped
//	edge.Forget(ctx)                   // the body, if the answer streams for long
package edge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai"
	"kvasir/wire"
)

const (
	headLimit = 32 << 10 // bytes of a request head; a longer one gets 431

	// strangersBody is how many bytes of a body are read from a client without a valid key:
	// enough that the client reads the reply, too few to be worth an attack.
	strangersBody = 64 << 10
)

// A Server configures the server that clients connect to. Set all fields before calling HTTP, and
// do not change them afterwards.
type Server struct {
	Handler fasthttp.RequestHandler // serves complete requests
	Limits  func() Limits           // the current limits; called once per request
	Budget  *Budget                 // memory for request bodies

	// Stranger returns the error for a request without a valid key; nil: the key is valid, or
	// none is required. Only a little of a stranger's body is read.
	Stranger func(*fasthttp.RequestCtx) *openai.Error

	// Refuse answers a request that could not be read. No route sees the request, and the
	// connection is closed after the reply.
	Refuse func(*fasthttp.RequestCtx, *openai.Error)

	Unlogged func(*fasthttp.RequestCtx)                // notes a request for which the Handler did not call Logged
	Panicked func(ctx *fasthttp.RequestCtx, fault any) // answers for a Handler that panicked
	Faulty   func()                                    // counts an error of fasthttp's own
}

// Limits bound how much of one request is read, and for how long.
type Limits struct {
	Header  time.Duration // until the head is complete; fixed when serving begins
	Body    time.Duration // until the body is complete
	MaxBody int64         // bytes of the body
}

// HTTP returns a fasthttp server made strict. checkRequest refuses the malformed requests that
// fasthttp accepts (found by h1spec and in fasthttp's own issues), errors have OpenAI's form, and
// no bytes of a request get into fasthttp's log.
func (s *Server) HTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.serve,
		ErrorHandler:                 s.unreadable,
		HeaderReceived:               s.headReceived,
		ExpectHandler:                s.expected,
		ReadTimeout:                  s.Limits().Header,
		IdleTimeout:                  keepIdle,
		ReadBufferSize:               headLimit,
		ReduceMemoryUsage:            true, // no read buffer is held while an answer streams
		DisablePreParseMultipartForm: true, // forms are read by ourselves
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Logger:                       Quiet(s.Faulty),
		TCPKeepalive:                 true,
		Concurrency:                  1 << 20,
	}
}

// headReceived sets the timeout for the body that follows, and leaves reading it to Receive.
func (s *Server) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	LeaveBody(h)
	return fasthttp.RequestConfig{ReadTimeout: s.Limits().Body}
}

// expected answers a client that asks (Expect: 100-continue) before it sends its body.
func (s *Server) expected(ctx *fasthttp.RequestCtx) int {
	limit := s.Limits().MaxBody
	body, _ := framingOf(ctx.Request.Header.RawHeaders())
	refusal := s.Stranger(ctx)
	if refusal == nil && body.Left() > limit {
		refusal = maxBodyExceeded(limit)
	}
	if refusal == nil {
		return fasthttp.StatusContinue
	}
	s.refuse(ctx, refusal)
	return refusal.Status
}

// serve refuses requests that no route should see, and confines a panic to its request.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	defer func() {
		if fault := recover(); fault != nil {
			s.Panicked(ctx, fault)
		}
	}()
	if err := checkRequest(&ctx.Request.Header); err != nil {
		s.refuse(ctx, err)
		return
	}
	conn, ok := ctx.Conn().(*Conn)
	if ok {
		conn.logged, conn.sent = false, 0
	}
	defer Forget(ctx)
	limit := s.Limits().MaxBody
	stranger := s.Stranger(ctx)
	if stranger != nil {
		limit = min(limit, strangersBody)
	}
	if err := Receive(ctx, s.Budget, limit, stranger != nil); err != nil {
		s.unreadable(ctx, err)
		return
	}
	s.Handler(ctx)
	if ok && !conn.logged {
		s.Unlogged(ctx)
	}
}

// checkRequest closes the gaps of fasthttp's parser: two readers of one message
// must not be able to disagree about where it ends.
func checkRequest(h *fasthttp.RequestHeader) *openai.Error {
	switch proto := h.Protocol(); {
	case !bytes.Equal(proto, []byte("HTTP/1.1")) && !bytes.Equal(proto, []byte("HTTP/1.0")):
		return &openai.Error{Status: 505, Type: "invalid_request_error", Message: "Only HTTP/1.1 and HTTP/1.0 are supported"}
	case !isMethod(h.Method()):
		return openai.Invalid("", "The request method is not valid")
	}
	return checkRequestHead(h.RawHeaders())
}

// isMethod reports whether b is a token (RFC 9110, 9.1).
func isMethod(b []byte) bool {
	for _, c := range b {
		if !header.IsToken(c) {
			return false
		}
	}
	return len(b) > 0
}

// unreadable answers a request whose head or body could not be read. The error's text
// may quote the request, so it is not passed on.
func (s *Server) unreadable(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var refusal *openai.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		if refusal = s.Stranger(ctx); refusal == nil {
			refusal = maxBodyExceeded(s.Limits().MaxBody)
		}
	case errors.Is(err, ErrNoRoom):
		refusal = NoRoom()
	case errors.As(err, &small):
		refusal = &openai.Error{Status: 431, Type: "invalid_request_error", Message: "The request head is larger than 32 KiB; send fewer or shorter headers"}
	case wire.IsTimeout(err):
		refusal = &openai.Error{Status: 408, Type: "invalid_request_error", Message: "The request did not arrive in time; send it faster, or raise server.timeouts"}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		refusal = openai.Invalid("", "The connection ended before the request did")
	default:
		refusal = openai.Invalid("", "The request is not valid HTTP/1.1")
	}
	s.refuse(ctx, refusal)
}

func (s *Server) refuse(ctx *fasthttp.RequestCtx, refusal *openai.Error) {
	s.Refuse(ctx, refusal)
	CloseBehind(ctx)
}

// CloseBehind makes the server close the connection after the reply, because later bytes on it
// cannot be trusted. The client may still be sending, so it gets time to read the reply.
func CloseBehind(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(*Conn); ok {
		c.linger.Store(true)
	}
}

// TooLarge returns the 413 error for a body of more than limit bytes. setting is the
// configuration key of that limit; "": it has none.
func TooLarge(limit int64, setting string) *openai.Error {
	if setting != "" {
		setting = " (" + setting + ")"
	}
	return &openai.Error{
		Status: 413, Type: "invalid_request_error", Code: "request_too_large",
		Message: "The request body is larger than " + sizeText(limit) + setting,
	}
}

func maxBodyExceeded(limit int64) *openai.Error { return TooLarge(limit, "server.max_body") }

// sizeText formats a number of bytes as the configuration does.
func sizeText(n int64) string {
	for _, unit := range [...]struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d%s", n/unit.size, unit.name)
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// Quiet is a logger for fasthttp. Its lines may contain bytes of requests, so it only counts
// them, by calling the function.
type Quiet func()

// Printf counts a line.
func (q Quiet) Printf(string, ...any) { q() }
