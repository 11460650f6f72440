// Tests of what needs no etcd: names and words. Everything else is tested against a real one, in e2e.

package etcd

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestPlain: errors as they come, and what people read.
func TestPlain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code      codes.Code
		text      string
		want      string
		elsewhere bool // another server may do better
	}{
		{codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused"`, "connection refused", true},
		{codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"`, "tls: failed to verify certificate: x509: certificate signed by unknown authority", true},
		{codes.Unavailable, `connection error: desc = "error reading server preface: read tcp 127.0.0.1:50000->127.0.0.1:2379: read: connection reset by peer"`, "connection reset by peer", true},
		{codes.Unavailable, `connection error: desc = "error reading server preface: http2: frame too large"`, "it speaks no HTTP/2, or TLS where http:// stands", true},
		{codes.Unavailable, `connection error: desc = "error reading server preface: remote error: tls: certificate required"`, "tls: certificate required", true},
		{codes.Unavailable, `error reading from server: read tcp 127.0.0.1:50000->127.0.0.1:2379: read: connection timed out`, "connection timed out", true},
		{codes.Unavailable, "etcdserver: no leader", "it has no leader", true},
		{codes.Unavailable, "etcdserver: request timed out", "request timed out", true},
		{codes.DeadlineExceeded, "context deadline exceeded", "no answer in time", true},
		{codes.PermissionDenied, "etcdserver: permission denied", "the user may not do this; grant its role the prefix", false},
		{codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password", "the user or the password is wrong", false},
		{codes.Unimplemented, "unknown service etcdserverpb.KV", "it is no etcd, or one older than 3.4", false},
	} {
		err := plain(status.Error(c.code, c.text))
		if err.Error() != c.want || ofServer(err) != c.elsewhere {
			t.Errorf("%s is %q, of the server %v; want %q, %v", c.text, err, ofServer(err), c.want, c.elsewhere)
		}
	}
	if err := plain(rpctypes.ErrGRPCCompacted); !IsCompacted(err) || ofServer(err) {
		t.Errorf("%v is no compaction", err)
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"a/": "a0", "v1/mdc/ns/": "v1/mdc/ns0", "a\xff": "b", "\xff\xff": "\x00"} {
		if got := after(prefix); got != want {
			t.Errorf("after %q comes %q, want %q", prefix, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"http://10.0.0.1:2379": "10.0.0.1:2379", "https://etcd.example": "etcd.example:2379", "http://[::1]:1/": "[::1]:1", "http://[::1]": "[::1]:2379",
	} {
		if got := Address(endpoint); got != want {
			t.Errorf("%s is at %s, want %s", endpoint, got, want)
		}
	}
}

// TestTryEnds: whoever stops waits for no server.
func TestTryEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	_, err := Try(ctx, &Options{Endpoints: []string{"http://192.0.2.1:2379", "http://192.0.2.2:2379"}}, func(c *Conn) error {
		_, err := c.List(ctx, []string{"a/"}, 1)
		return err
	})
	if err == nil || time.Since(began) > patience {
		t.Errorf("it took %v and gave %v", time.Since(began), err)
	}
}
