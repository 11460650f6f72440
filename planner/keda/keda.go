// The service: how many workers are wanted, as KEDA asks an external scaler.

// Package keda answers KEDA as an external scaler (externalscaler.proto), over gRPC: how many workers of a role the
// planner wants. KEDA scales to that.
//
//	s := keda.New(tlsConfig)
//	go s.Serve(listener)
//	s.Tell(report) // after each plan
package keda

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"kvasir/kvroute"
	"kvasir/planner"
)

// What is taken from whoever reaches the listener: KEDA keeps one connection, with a stream for each trigger.
const (
	mostConnections = 64
	mostStreams     = 256     // of a connection
	mostBytes       = 1 << 16 // of a request
	mostHeader      = 1 << 14 // of its metadata in HTTP/2
	handshake       = 10 * time.Second
	mostIdle        = 5 * time.Minute // of a connection that nothing is asked on; KEDA asks every 30 s, and dials again
)

// A Server answers KEDA.
type Server struct {
	grpc *grpc.Server

	mu     sync.Mutex // guards below
	report *planner.Report
	told   chan struct{} // closed when there is another report
	closed bool
}

// New returns a server, with TLS unless the configuration is nil.
func New(conf *tls.Config) *Server {
	s := &Server{told: make(chan struct{})}
	options := []grpc.ServerOption{
		grpc.ForceServerCodec(codec{}), grpc.MaxRecvMsgSize(mostBytes), grpc.MaxConcurrentStreams(mostStreams), grpc.MaxHeaderListSize(mostHeader),
		grpc.ConnectionTimeout(handshake), grpc.WaitForHandlers(true),
		// One that is gone without a word is found out, and one that asks for signs of life all the time is not answered.
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: mostIdle, Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if conf != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(conf)))
	}
	s.grpc = grpc.NewServer(options...)
	s.grpc.RegisterService(&service, s)
	return s
}

// Serve answers on a listener until Close.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(netutil.LimitListener(l, mostConnections)); !errors.Is(err, grpc.ErrServerStopped) { // before it began
		return err
	}
	return nil
}

// Close ends all connections, and waits for what was being answered.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.told)
	}
	s.mu.Unlock()
	s.grpc.Stop()
}

// Tell has a report answered with, which is not changed any more.
func (s *Server) Tell(r *planner.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.report = r
	close(s.told)
	s.told = make(chan struct{})
}

// now is the report, and what is closed when there is another one.
func (s *Server) now() (r *planner.Report, told <-chan struct{}, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report, s.told, s.closed
}

// service is what externalscaler.proto says of it.
var service = grpc.ServiceDesc{
	ServiceName: "externalscaler.ExternalScaler",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		method("IsActive", false, func(r *planner.Report, q *request) (any, error) {
			n, _, err := wanted(r, q)
			return active(n > 0), err
		}),
		method("GetMetricSpec", false, func(r *planner.Report, q *request) (any, error) {
			// One worker is one replica, whether there is a plan yet or not.
			role, err := roleOf(r, q)
			return &amount{metricOf(role), 1}, err
		}),
		method("GetMetrics", true, func(r *planner.Report, q *request) (any, error) {
			n, role, err := wanted(r, q)
			if err == nil && q.metric != "" && q.metric != metricOf(role) {
				err = status.Errorf(codes.NotFound, "there is no metric %.100q; that of role %s is %s", q.metric, role, metricOf(role))
			}
			return &amount{metricOf(role), n}, err
		}),
	},
	Streams:  []grpc.StreamDesc{{StreamName: "StreamIsActive", Handler: streamIsActive, ServerStreams: true}},
	Metadata: "externalscaler.proto",
}

func method(name string, inner bool, answer func(*planner.Report, *request) (any, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(server any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		q := &request{inner: inner}
		if err := decode(q); err != nil {
			return nil, err
		}
		r, _, _ := server.(*Server).now()
		reply, err := answer(r, q)
		if err != nil {
			return nil, err
		}
		return reply, nil
	}}
}

// streamIsActive says at once whether any worker is wanted, and again whenever that changes.
func streamIsActive(server any, stream grpc.ServerStream) error {
	q := &request{}
	if err := stream.RecvMsg(q); err != nil {
		return err
	}
	said, is := false, false
	for {
		r, told, closed := server.(*Server).now()
		if closed {
			return status.Error(codes.Unavailable, "Kvasir ends")
		}
		n, _, err := wanted(r, q)
		if status.Code(err) == codes.InvalidArgument || status.Code(err) == codes.NotFound {
			return err
		}
		if err == nil && (!said || is != (n > 0)) {
			said, is = true, n > 0
			if err := stream.SendMsg(active(is)); err != nil {
				return err
			}
		}
		select {
		case <-told:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// wanted is how many workers are, of the role that is asked for.
func wanted(r *planner.Report, q *request) (int, kvroute.Role, error) {
	role, err := roleOf(r, q)
	if err != nil {
		return 0, role, err
	}
	if r == nil || r.Wanted == nil {
		return 0, role, status.Error(codes.Unavailable, "there is no plan yet")
	}
	if r.Apart != (role != kvroute.Both) {
		planned := "role both, or no role: the workers do both"
		if r.Apart {
			planned = "role prefill or decode: there are workers of their own for both"
		}
		return 0, role, status.Errorf(codes.InvalidArgument, "no number is planned for role %s; ask for %s", role, planned)
	}
	return *r.Wanted.Of(role), role, nil
}

// roleOf is the role that a trigger's metadata asks for, of the model that is planned for.
func roleOf(r *planner.Report, q *request) (kvroute.Role, error) {
	role, err := kvroute.ParseRole(q.metadata["role"])
	if err != nil {
		return role, status.Errorf(codes.InvalidArgument, "metadata role is %.100q; it is both, prefill or decode", q.metadata["role"])
	}
	model := q.metadata["model"]
	switch {
	case model == "" || r == nil || model == r.Model:
		return role, nil
	case r.Model == "":
		return role, status.Errorf(codes.NotFound, "Kvasir plans for all models together, not for %.100q; set planner.model, or leave model out", model)
	}
	return role, status.Errorf(codes.NotFound, "Kvasir plans for model %.100q, not for %.100q", r.Model, model)
}

func metricOf(role kvroute.Role) string { return fmt.Sprintf("kvasir-workers-%s", role) }
