// Certificate: the TLS of a listener, renewed without a restart.

package serve

import (
	"crypto/tls"
	"sync/atomic"
)

// A listenerTLS is the TLS of a listener whose certificates change under it:
// each handshake takes the newest.
type listenerTLS struct{ now atomic.Pointer[tls.Config] }

// config is what the listener is given; it stays the same for its whole life.
func (l *listenerTLS) config(protocol string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{protocol},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return l.now.Load(), nil
		},
	}
}
