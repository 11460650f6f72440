// Problem: what is wrong with a Milvus, as text for people: where, what, and what to do.

package milvus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kvasir/cache"
)

// Codes of Milvus 2.3 and later, from its merr package; Milvus Lite reports some of them by the
// codes of the older enumeration instead.
const (
	codeNoCollection  = 100
	codeNotLoaded     = 101
	codeNoIndex       = 700
	codeNoDatabase    = 800
	codeNotKnown      = 1400 // who asks is not known: a wrong user or key
	codeNotPermitted  = 1401
	codeNoToken       = 1800
	legacyNoColl      = 4
	legacyNoIndex     = 11
	legacyPermission  = 3
	longestReason     = 300 // bytes of a server's message that are shown
	tokenKey, tlsKeys = "cache.milvus.token", "cache.milvus.tls"
)

// isFinal reports whether the server would refuse the same call again.
func isFinal(err error) bool {
	var r *refusal
	return errors.As(err, &r) && !r.passes
}

// isMissing reports whether the collection or index does not exist.
func isMissing(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.code == codeNoCollection || r.code == codeNoIndex || r.legacy == legacyNoColl || r.legacy == legacyNoIndex)
}

// isLost reports whether the collection has been dropped, or a restart has unloaded it.
func isLost(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.code == codeNoCollection || r.code == codeNotLoaded || r.legacy == legacyNoColl || r.legacy == codeNotLoaded)
}

// asStoreError maps an error to the errors of package cache.
func asStoreError(err error) error {
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return cache.ErrTimeout
	case codes.Unavailable, codes.Canceled:
		return cache.ErrUnavailable
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return cache.ErrTimeout
	}
	return fmt.Errorf("cannot ask Milvus: %w", err)
}

// words returns what an error means and what to do about it.
func (s *Store) words(err error) string {
	at := "Milvus at " + s.o.Address
	var m *mismatch
	var r *refusal
	switch {
	case errors.As(err, &m):
		return fmt.Sprintf("the collection %s of %s is not one of this cache: %s; it is left as it is: name another cache.milvus.collection, or drop it", s.name, at, m.how)
	case errors.As(err, &r):
		return refusalWords(at, r)
	}
	said := status.Convert(err).Message()
	switch code := status.Code(err); {
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return at + " does not accept the token: correct " + tokenKey + " (" + short(said) + ")"
	case code == codes.Unimplemented:
		return "what answers at " + s.o.Address + " is no Milvus, or one older than 2.3 (" + short(said) + ")"
	}
	return at + " " + connectionWords(said, isTimeout(err))
}

func isTimeout(err error) bool {
	return status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

func refusalWords(at string, r *refusal) string {
	switch {
	case r.code == codeNoDatabase:
		return at + " has no such database: make it, or correct what stands after the / of cache.milvus.address (" + short(r.reason) + ")"
	case r.code == codeNotKnown || r.code == codeNoToken:
		return at + " does not accept the token: correct " + tokenKey + " (" + short(r.reason) + ")"
	case r.code == codeNotPermitted || r.legacy == legacyPermission:
		return at + " does not permit this to the token's user: grant it, or change " + tokenKey + " (" + short(r.reason) + ")"
	}
	return at + " refuses: " + short(r.reason)
}

// Words of the network and TLS libraries, the more specific ones first.
var connectionSigns = []struct{ sign, meaning string }{
	{"first record does not look like a TLS handshake", "does not speak TLS: remove " + tlsKeys},
	{"x509: certificate signed by unknown authority", "has a certificate of an unknown authority: name it in " + tlsKeys + ".ca"},
	{"x509: ", "has a certificate that is not good for it: correct " + tlsKeys},
	{"remote error: tls: certificate required", "wants a certificate of this side: set " + tlsKeys + ".cert and .key"},
	{"tls: ", "cannot agree on TLS: correct " + tlsKeys},
	{"connection refused", "does not listen: start it, or correct cache.milvus.address"},
	{"no such host", "has a name that is not known: correct cache.milvus.address"},
	{"no route to host", "cannot be reached: mend the network, or correct cache.milvus.address"},
	{"network is unreachable", "cannot be reached: mend the network, or correct cache.milvus.address"},
	{"i/o timeout", "does not answer: see whether it hangs, or whether something drops its packets"},
	// The client library says this when it has waited too long for the server's first bytes.
	{"use of closed network connection", "does not answer: see whether it hangs, or whether something drops its packets"},
	{"connection reset", "hangs up: see its log, and set " + tlsKeys + " if it speaks TLS"},
	{"server preface: EOF", "hangs up at once: set " + tlsKeys + " if it speaks TLS; it may be no Milvus"},
	{"server preface", "does not speak gRPC: set " + tlsKeys + " if it speaks TLS; it may be no Milvus"},
	{"frame too large", "does not speak gRPC: set " + tlsKeys + " if it speaks TLS; it may be no Milvus"},
	{"unexpected HTTP status code", "is a web server, no Milvus: correct cache.milvus.address"},
	{"EOF", "hangs up: see its log"},
}

func connectionWords(said string, timeout bool) string {
	for _, c := range connectionSigns {
		if strings.Contains(said, c.sign) {
			return c.meaning + " (" + short(said) + ")"
		}
	}
	if timeout {
		return "does not answer in time: see whether it hangs or is overloaded (" + short(said) + ")"
	}
	return "cannot be used: " + short(said)
}

// short shortens a server's message to one line.
func short(said string) string {
	said = strings.Join(strings.Fields(strings.ToValidUTF8(said, "?")), " ")
	if len(said) > longestReason {
		said = strings.ToValidUTF8(said[:longestReason], "") + "..."
	}
	return said
}

func (s *Store) setTrouble(words string)   { s.trouble.Store(&words) }
func (s *Store) writeTrouble(words string) { s.unwritten.Store(&words) }

// problem returns the first problem that keeps the store from working, for Stats.
func (s *Store) problem(now time.Time) string {
	if s.session.Load() == nil {
		return *s.trouble.Load()
	}
	if state := s.breaker.state(now); state != stateClosed {
		why, failures := s.breaker.last()
		return fmt.Sprintf("%d lookups in a row have failed, each after at most %v, and the breaker is %s: %s", failures, s.o.Timeout, state, why)
	}
	if words := *s.unwritten.Load(); words != "" {
		return fmt.Sprintf("%d entries wait to be written: %s", s.queue.len(), words)
	}
	return ""
}
