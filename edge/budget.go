// The memory budget that all request bodies share, and the buffer of one body.

package edge

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/wire"
)

const (
	// smallBody, in bytes: a request for this much memory or less may use the whole budget.
	// Larger requests leave a quarter of it free, so that many large bodies do not shut out
	// ordinary prompts.
	smallBody = 64 << 10

	// A body's buffer grows by a factor of 4 up to fastGrowth, which saves copies, and by 2
	// above. It never exceeds 4 times the bytes received.
	fastGrowth = 256 << 10
)

// ErrNoRoom is returned for a body when the budget has no memory left.
var ErrNoRoom = errors.New("no memory left for bodies")

// NoRoom is the error that the client receives for ErrNoRoom.
func NoRoom() *openai.Error {
	return &openai.Error{
		Status: 503, Type: "server_error", Code: "overloaded", RetryAfter: 2 * time.Second,
		Message: "the memory for request bodies is full (server.body_memory); try again later, or send a smaller body",
	}
}

// A Budget bounds the memory, in bytes, of all bodies in flight, both as received and
// decompressed. The first buffer of a body, 4 KiB, is not counted: a connection costs more than
// that. A Budget is the prometheus.Collector of its own metrics.
type Budget struct {
	limit   atomic.Int64
	held    atomic.Int64
	refused atomic.Uint64 // bodies refused for want of memory
}

// SetLimit sets how many bytes all bodies together may take from now on.
func (g *Budget) SetLimit(bytes int64) { g.limit.Store(bytes) }

// Held returns how many bytes all bodies together take now.
func (g *Budget) Held() int64 { return g.held.Load() }

// take reserves n more bytes, for a body or for data derived from one. It returns false, and
// reserves nothing, when the budget has no room for them.
func (g *Budget) take(n int64) bool {
	limit := g.limit.Load()
	if n > smallBody {
		limit -= limit / 4
	}
	if g.held.Add(n) > limit {
		g.held.Add(-n)
		g.refused.Add(1)
		return false
	}
	return true
}

func (g *Budget) give(n int64) { g.held.Add(-n) }

// A body holds the bytes of one request's body. It grows as they arrive.
type body struct {
	budget  *Budget
	most    int64  // bytes allowed
	buf     []byte // from wire.TakeBuffer
	n       int    // bytes of buf in use
	unread  bool   // the bytes are dropped as they arrive
	gone    int64  // bytes dropped so far
	charged int64  // bytes reserved from the budget for data derived from the body
}

func (b *body) bytes() []byte { return b.buf[:b.n] }

// charge reserves n bytes for data derived from the body, until letGo. It returns false when the
// budget has no room for them.
func (b *body) charge(budget *Budget, n int64) bool {
	if !budget.take(n) {
		return false
	}
	b.budget, b.charged = budget, b.charged+n
	return true
}

// letGo frees the body and returns its memory to the budget. Its bytes must not be used
// afterwards.
func (b *body) letGo() {
	if b.charged > 0 {
		b.budget.give(b.charged)
	}
	if b.buf != nil {
		b.giveBack(b.buf)
	}
	*b = body{}
}

func (b *body) giveBack(buf []byte) {
	if n := counted(buf); n > 0 {
		b.budget.give(n)
	}
	wire.GiveBuffer(buf)
}

// counted returns how many bytes of the budget a buffer takes.
func counted(buf []byte) int64 {
	if len(buf) <= wire.SmallBuffer {
		return 0
	}
	return int64(len(buf))
}

// room makes space for at least one more byte.
func (b *body) room() error {
	if b.n < len(b.buf) {
		return nil
	}
	size := int64(wire.SmallBuffer)
	switch has := int64(len(b.buf)); {
	case has > fastGrowth:
		size = 2 * has
	case has > 0:
		size = 4 * has
	}
	size = wire.BufferSize(min(size, b.most))
	if size > wire.SmallBuffer && !b.budget.take(size) {
		return ErrNoRoom
	}
	bigger := wire.TakeBuffer(int(size))
	if b.buf != nil {
		copy(bigger, b.buf)
		b.giveBack(b.buf)
	}
	b.buf = bigger
	return nil
}

// Write appends p.
func (b *body) Write(p []byte) (int, error) {
	if b.gone+int64(b.n+len(p)) > b.most {
		return 0, fasthttp.ErrBodyTooLarge
	}
	for rest := p; len(rest) > 0; {
		if err := b.room(); err != nil {
			return 0, err
		}
		n := copy(b.buf[b.n:], rest)
		b.n += n
		rest = rest[n:]
	}
	return len(p), nil
}

var (
	bodyBytes    = prometheus.NewDesc("kvasir_body_bytes", "Memory of request bodies in flight, as they came and unpacked.", nil, nil)
	bodyLimit    = prometheus.NewDesc("kvasir_body_limit_bytes", "server.body_memory, or what it is by default.", nil, nil)
	bodyRefusals = prometheus.NewDesc("kvasir_bodies_refused_total", "Request bodies refused with 503 because there was no memory for them.", nil, nil)
)

// Describe names the metrics.
func (g *Budget) Describe(ch chan<- *prometheus.Desc) {
	ch <- bodyBytes
	ch <- bodyLimit
	ch <- bodyRefusals
}

// Collect reports their current values.
func (g *Budget) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(bodyBytes, prometheus.GaugeValue, float64(g.held.Load()))
	ch <- prometheus.MustNewConstMetric(bodyLimit, prometheus.GaugeValue, float64(g.limit.Load()))
	ch <- prometheus.MustNewConstMetric(bodyRefusals, prometheus.CounterValue, float64(g.refused.Load()))
}
