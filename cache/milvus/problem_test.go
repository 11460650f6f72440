// The problems reported for faulty servers.

package milvus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kvasir/cache"
)

// certificate returns a self-signed certificate.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

func overTLS(c tls.Certificate) grpc.ServerOption {
	return grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{c}}))
}

// silent accepts connections and never sends a byte.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		var kept []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			kept = append(kept, conn)
		}
		for _, conn := range kept {
			_ = conn.Close() // the store has already closed the connection
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // once
		group.Wait()
	})
	return listener.Addr().String()
}

// nobody is an address on which nobody listens. It is fixed, because a port that was free a
// moment ago may be another test's by now.
const nobody = "127.0.0.1:1"

func TestProblem(t *testing.T) {
	t.Parallel()
	known, pool := certificate(t, "milvus.test")
	says := func(s *commonpb.Status) *double {
		return &double{connect: func(metadata.MD) *commonpb.Status { return s }}
	}
	fails := func(code codes.Code, text string) *double {
		return &double{refuse: func() error { return status.Error(code, text) }}
	}
	token := &double{connect: func(md metadata.MD) *commonpb.Status {
		if strings.Join(md["authorization"], "") == "cm9vdDpNaWx2dXM=" { // root:Milvus
			return &commonpb.Status{}
		}
		return &commonpb.Status{Code: 1800, Reason: "user hasn't authenticated"}
	}}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	for name, c := range map[string]struct {
		options Options
		words   string
	}{
		"nobody there":   {Options{Address: nobody}, "does not listen: start it, or correct cache.milvus.address"},
		"no such host":   {Options{Address: "kvasir.invalid:19530"}, "cache.milvus.address"},
		"silent":         {Options{Address: silent(t)}, "does not answer"},
		"wrong token":    {Options{Address: token.serve(t), Token: "root:wrong"}, "does not accept the token: correct cache.milvus.token (user hasn't authenticated)"},
		"no token":       {Options{Address: token.serve(t)}, "does not accept the token"},
		"older refusal":  {Options{Address: fails(codes.Unauthenticated, "auth check failure").serve(t)}, "does not accept the token: correct cache.milvus.token (auth check failure)"},
		"not permitted":  {Options{Address: says(&commonpb.Status{Code: 1401, Reason: "privilege not permitted"}).serve(t)}, "does not permit this"},
		"no database":    {Options{Address: says(&commonpb.Status{Code: 800, Reason: "database not found[database=x]"}).serve(t) + "/x"}, "has no such database: make it, or correct what stands after the /"},
		"other refusal":  {Options{Address: says(&commonpb.Status{ErrorCode: commonpb.ErrorCode_UnexpectedError, Reason: "proxy is\nnot healthy"}).serve(t)}, "refuses: proxy is not healthy"},
		"no Milvus":      {Options{Address: fails(codes.Unimplemented, "unknown service").serve(t)}, "is no Milvus"},
		"web server":     {Options{Address: web.Listener.Addr().String()}, "it may be no Milvus"},
		"TLS for plain":  {Options{Address: new(double).serve(t), TLS: &tls.Config{RootCAs: pool, ServerName: "milvus.test"}}, "does not speak TLS: remove cache.milvus.tls"},
		"plain for TLS":  {Options{Address: new(double).serve(t, overTLS(known))}, "cache.milvus.tls if it speaks TLS"},
		"unknown issuer": {Options{Address: new(double).serve(t, overTLS(known)), TLS: &tls.Config{ServerName: "milvus.test"}}, "unknown authority: name it in cache.milvus.tls.ca"},
		"other name":     {Options{Address: new(double).serve(t, overTLS(known)), TLS: &tls.Config{RootCAs: pool, ServerName: "other.test"}}, "not good for it: correct cache.milvus.tls"},
		"good":           {Options{Address: token.serve(t), Token: "root:Milvus"}, ""},
		"good TLS":       {Options{Address: new(double).serve(t, overTLS(known)), TLS: &tls.Config{RootCAs: pool, ServerName: "milvus.test"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, c.options)
			defer func() {
				if t.Failed() {
					t.Logf("the problem is %q", s.Stats().Problem)
				}
			}()
			eventually(t, func() bool {
				p := s.Stats().Problem
				return c.words == "" && p == "" || c.words != "" && strings.Contains(p, c.words)
			})
			if c.words == "" {
				return
			}
			if p, host, _ := strings.Cut(s.Stats().Problem, " "); p == "" || host == "" || strings.Contains(s.Stats().Problem, "\n") {
				t.Errorf("the problem is %q", s.Stats().Problem)
			}
			if _, err := s.Equal(cache.Scope{}, nil, time.Time{}); !errors.Is(err, cache.ErrUnavailable) {
				t.Errorf("a lookup: %v", err)
			}
		})
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	for _, c := range []struct {
		options Options
		words   string
	}{
		{Options{}, "host:port"},
		{Options{Address: "localhost"}, "host:port"},
		{Options{Address: ":19530"}, "host:port"},
		{Options{Address: "localhost:"}, "host:port"},
		{Options{Address: "user:password@localhost:19530"}, "host:port"},
		{Options{Address: "localhost:19530", Collection: "my-cache"}, "my-cache"},
		{Options{Address: "localhost:19530", Collection: strings.Repeat("a", 201)}, "letters"},
	} {
		if s, err := Open(c.options); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%+v: %v, %v", c.options, s, err)
		}
	}
}

func TestWordsAreShort(t *testing.T) {
	s := &Store{o: Options{Address: "a:1"}}
	said := s.words(&refusal{code: 5, reason: strings.Repeat("é\n\xff", 10000)})
	if len(said) > 2*longestReason || strings.Contains(said, "\n") {
		t.Errorf("%d bytes: %q", len(said), said)
	}
	if said := s.words(context.DeadlineExceeded); !strings.Contains(said, "does not answer in time") {
		t.Error(said)
	}
}
