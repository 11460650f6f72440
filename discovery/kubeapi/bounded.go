// Bounded: replies that are read as a whole.

package kubeapi

import (
	"fmt"
	"io"
	"net/http"
)

// bounded has the bodies of replies end with an error after so many bytes.
type bounded struct {
	http.RoundTripper
	most int64
}

// RoundTrip asks.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		reply.Body = &boundedBody{reply.Body, b.most + 1, b.most}
	}
	return reply, err
}

// WrappedRoundTripper is how client-go finds the connections that are to be closed.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }

type boundedBody struct {
	io.ReadCloser
	left, most int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the reply has more than %d bytes", b.most)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
