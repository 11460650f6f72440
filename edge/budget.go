// The budget of bodies: how much memory they may take together, and the buffer of each.

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
	// smallBody is up to which size a body may use all of the budget. Larger ones
	// leave a quarter of it, so that a crowd of large bodies does not shut out
	// ordinary prompts.
	smallBody = 64 << 10

	// A body's buffer grows by a factor of 4 up to fastGrowth, which saves copies,
	// and by 2 above: it is never more than 4 times what has come.
	fastGrowth = 256 << 10
)

// ErrNoRoom is the error of a body for which the budget has no memory left.
var ErrNoRoom = errors.New("no memory left for bodies")

// NoRoom is what the client hears of ErrNoRoom.
func NoRoom() *openai.Error {
	return &openai.Error{
		Status: 503, Type: "server_error", Code: "overloaded", RetryAfter: 2 * time.Second,
		Message: "the gateway holds as many request bodies as it has memory for (server.body_memory); try again later, or send a smaller body",
	}
}

// A Budget bounds the memory of all bodies in flight, both as they came and unpacked,
// in bytes. The first buffer of a body, 4 KiB, is not counted: a connection costs more
// than that. It is a prometheus.Collector of its own metrics.
type Budget struct {
	limit   atomic.Int64
	held    atomic.Int64
	refused atomic.Uint64 // bodies for which there was no room
}

// SetLimit says how many bytes bodies may take from now on.
func (g *Budget) SetLimit(bytes int64) { g.limit.Store(bytes) }

// Held is how many bytes bodies take now.
func (g *Budget) Held() int64 { return g.held.Load() }

// take counts n more bytes, of a body or made of one; false: there is no room for
// them.
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

// A body is the bytes of one request's body. It grows as they come.
type body struct {
	budget  *Budget
	most    int64  // bytes that it may have
	buf     []byte // of wire.TakeBuffer
	n       int    // bytes in it
	unread  bool   // nobody wants its bytes
	gone    int64  // bytes that were dropped
	charged int64  // of the budget, for what was made of it
}

func (b *body) bytes() []byte { return b.buf[:b.n] }

// charge counts n bytes for what was made of the body, until it is let go.
func (b *body) charge(budget *Budget, n int64) bool {
	if !budget.take(n) {
		return false
	}
	b.budget, b.charged = budget, b.charged+n
	return true
}

// letGo frees the body. Nobody may use its bytes after.
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

// counted is how much of the budget a buffer takes.
func counted(buf []byte) int64 {
	if len(buf) <= wire.SmallBuffer {
		return 0
	}
	return int64(len(buf))
}

// room makes place for at least one byte more.
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

// Collect reads them.
func (g *Budget) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(bodyBytes, prometheus.GaugeValue, float64(g.held.Load()))
	ch <- prometheus.MustNewConstMetric(bodyLimit, prometheus.GaugeValue, float64(g.limit.Load()))
	ch <- prometheus.MustNewConstMetric(bodyRefusals, prometheus.CounterValue, float64(g.refused.Load()))
}
