// Connections: one server of etcd at a time, and what is wrong where none answers.

// Package etcd is what Kvasir needs of etcd: the keys under some prefixes, listed and then
// watched, and one key that is kept there while somebody stands behind it.
//
//	var l etcd.List
//	conn, err := etcd.Try(ctx, options, func(c *etcd.Conn) (err error) {
//		l, err = c.List(ctx, []string{"kvasir/workers/"}, 4096)
//		return err
//	})
//	w := conn.Watch(ctx, []string{"kvasir/workers/"}, l.Revision+1)
//	for changes := range w.C { ... }
//	// w.Err() says why it ended: list again
//
// It speaks etcd's protocol itself, by the messages of etcd's own module. The client of
// etcd resumes a watch by the number of a revision when a connection was lost, and says
// nothing of it: an etcd that came back without its data, or with older ones, goes unseen.
// Here whatever breaks a watch ends it.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// patience is how long one call may take. A server that has lost the others answers
	// after about as long.
	patience = 4 * time.Second

	// A connection on which nothing comes is asked after aliveAfter, and given up after
	// aliveWithin more. etcd refuses clients that ask more often than each five seconds.
	aliveAfter  = 10 * time.Second
	aliveWithin = 5 * time.Second

	// maxMessage bounds what one answer may have, in bytes: a page of the largest values
	// that an etcd takes by default, and some more.
	maxMessage = page*(3<<19) + 1<<20
)

// Options are how etcd is reached.
type Options struct {
	Endpoints      []string // URLs of its servers, http or https
	User, Password string   // "": none
	TLS            *tls.Config
	TLSName        string // the same exactly when TLS is; see config.Credentials
}

// Same says whether both reach the same etcd in the same way.
func (o *Options) Same(p *Options) bool {
	return slices.Equal(o.Endpoints, p.Endpoints) && o.User == p.User && o.Password == p.Password && o.TLSName == p.TLSName
}

// A Conn is a connection to one server.
type Conn struct {
	conn *grpc.ClientConn
	at   string // host:port
	bare bool   // it speaks TLS, and we show no certificate
	kv   pb.KVClient
	auth *token
}

// Try connects to the servers in an order by chance, and returns the first connection with
// which do succeeds. An error that another server would give as well ends the search.
func Try(ctx context.Context, o *Options, do func(*Conn) error) (*Conn, error) {
	var failed []error
	for _, i := range rand.Perm(len(o.Endpoints)) {
		c, err := o.dial(o.Endpoints[i])
		if err != nil {
			return nil, err
		}
		if err = c.authenticate(ctx, o); err == nil {
			err = do(c)
		}
		if err == nil {
			return c, nil
		}
		c.Close()
		if c.bare && isBroken(err) {
			err = fmt.Errorf("%w; it may speak no TLS, or want a certificate of ours (tls.cert)", err)
		}
		failed = append(failed, fmt.Errorf("etcd at %s: %w", c.at, err))
		if ctx.Err() != nil || !ofServer(err) {
			return nil, failed[len(failed)-1]
		}
	}
	// In one order, so that the same trouble has the same text.
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return nil, errors.Join(failed...)
}

// Address is the host and port of a server's URL.
func Address(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	if u.Port() == "" {
		return u.Host + ":2379"
	}
	return u.Host
}

// dial makes a connection, which is opened by the first call.
func (o *Options) dial(endpoint string) (*Conn, error) {
	c := &Conn{at: Address(endpoint), auth: &token{}}
	creds := insecure.NewCredentials()
	if strings.HasPrefix(endpoint, "https:") {
		creds = credentials.NewTLS(o.TLS)
		c.bare = o.TLS == nil || len(o.TLS.Certificates) == 0
	}
	// Not by a proxy of the environment: these are for the world outside.
	conn, err := grpc.NewClient("passthrough:///"+c.at, grpc.WithTransportCredentials(creds), grpc.WithNoProxy(),
		grpc.WithPerRPCCredentials(c.auth), grpc.WithDisableServiceConfig(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: aliveAfter, Timeout: aliveWithin}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", endpoint, err)
	}
	c.conn, c.kv = conn, pb.NewKVClient(conn)
	return c, nil
}

// Close ends the connection, and whatever runs on it.
func (c *Conn) Close() { _ = c.conn.Close() }

// A token is what a user's calls show. It is written once, before others read it.
type token struct{ value string }

// GetRequestMetadata is part of credentials.PerRPCCredentials.
func (t *token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if t.value == "" {
		return nil, nil
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: t.value}, nil
}

// RequireTransportSecurity is part of credentials.PerRPCCredentials: etcd's own client
// shows its token over plain connections, too.
func (t *token) RequireTransportSecurity() bool { return false }

// authenticate gets the user's token. It is good for minutes, and for as long as a stream
// that was opened with it; a call that is refused for it is a failure as any other, after
// which one connects anew.
func (c *Conn) authenticate(ctx context.Context, o *Options) error {
	if o.User == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got, err := pb.NewAuthClient(c.conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: o.User, Password: o.Password})
	switch {
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
		return nil // whoever asks is let in
	case err != nil:
		return plain(err)
	}
	c.auth.value = got.Token
	return nil
}

// withLeader has a server that has lost the others say so, instead of saying nothing.
func withLeader(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
}

// A failure is an error of etcd or of the way to it, in words that stay the same from one
// try to the next.
type failure struct {
	text string
	code codes.Code
	of   error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.of }

// ofServer says whether another server may do better.
func ofServer(err error) bool {
	var f *failure
	if !errors.As(err, &f) {
		return false
	}
	switch f.code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.Canceled:
		return true
	}
	return false
}

// isBroken says whether a connection was closed behind its handshake. That is how a server
// of TLS 1.3 refuses one without a certificate; it also says so, but that is often not read.
func isBroken(err error) bool {
	for _, text := range []string{"tls: certificate required", "tls: bad certificate", "broken pipe", "connection reset", "EOF"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// known are errors of etcd, and what to do about them.
var known = []struct{ err, text string }{
	{rpctypes.ErrorDesc(rpctypes.ErrGRPCAuthFailed), "the user or the password is wrong"},
	{rpctypes.ErrorDesc(rpctypes.ErrGRPCUserEmpty), "it wants a user; set user and password_file"},
	{rpctypes.ErrorDesc(rpctypes.ErrGRPCPermissionDenied), "the user may not do this; grant its role the prefix"},
	{rpctypes.ErrorDesc(rpctypes.ErrGRPCInvalidAuthToken), "the user's token is not valid any more"},
	{rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader), "it has no leader"},
}

// plain makes an error of gRPC one that people read: without the layers that it went
// through, and without the port of our side, which is another one each time.
func plain(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return &failure{err.Error(), codes.Unknown, err}
	}
	text := s.Message()
	for _, k := range known {
		if strings.HasPrefix(text, k.err) {
			return &failure{k.text, s.Code(), rpctypes.Error(err)}
		}
	}
	switch s.Code() {
	case codes.DeadlineExceeded:
		text = "no answer in time"
	case codes.Unimplemented:
		text = "it is no etcd, or one older than 3.4"
	}
	if _, quoted, ok := strings.Cut(text, "desc = "); ok {
		if inner, err := strconv.Unquote(strings.TrimSpace(quoted)); err == nil {
			text = inner
		}
	}
	for _, layer := range []string{"transport: ", "Error while dialing: ", "authentication handshake failed: ", "etcdserver: "} {
		text = strings.TrimPrefix(text, layer)
	}
	if strings.HasPrefix(text, "dial ") || strings.Contains(text, "->") {
		if i := strings.LastIndex(text, ": "); i >= 0 {
			text = text[i+2:]
		}
	}
	if _, alert, ok := strings.Cut(text, "remote error: "); ok {
		text = alert
	}
	if strings.HasPrefix(text, "error reading server preface") || strings.HasPrefix(text, "connection closed before server preface") {
		text = "it speaks no HTTP/2, or TLS where http:// stands"
	}
	return &failure{text, s.Code(), rpctypes.Error(err)}
}
