// Descriptors: some are kept from clients, for workers, probes and the admin listener.

package proxy

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/upstream"
)

const (
	// LeastFiles is the least limit of open files to serve with.
	LeastFiles = 256

	// Descriptors that clients leave: for listeners, files and the cache, and for
	// probes, KV events and replays of each worker.
	ownDescriptors    = 64
	workerDescriptors = 4

	// evictIdle is how long a client's connection must have lain quiet between two
	// requests before it may be closed to make place for another.
	evictIdle  = 10 * time.Second
	evictEvery = 250 * time.Millisecond

	shortageStays = time.Minute // a reason in /readyz
)

// descriptors are the connections of clients that may be open at once, and what
// is told when there are too few. A client needs a second descriptor while it is
// answered, the worker's: so clients get half of what the limit of open files
// leaves, and a connection to a worker can always be made.
type descriptors struct {
	most    atomic.Int64 // client connections; 0: not bounded
	limit   uint64       // of open files; 0: not known
	clients atomic.Int64

	shortAccepting atomic.Uint64
	shortDialling  atomic.Uint64
	last           atomic.Int64 // shortage, Unix nanoseconds; 0: none yet
}

// LimitFiles tells how many files the process may have open, at least LeastFiles.
// It is called before Apply.
func (p *Proxy) LimitFiles(limit uint64) { p.descriptors.limit = min(limit, 1<<40) }

// share settles what clients may take beside so many workers.
func (d *descriptors) share(workers int) {
	if d.limit > 0 {
		own := min(uint64(ownDescriptors+workerDescriptors*workers), d.limit/2)
		d.most.Store(int64(d.limit-own) / 2)
	}
}

// closeIdle closes the kept connections of all workers: no descriptor is left, and
// each client has one coming.
func (p *Proxy) closeIdle() {
	for _, b := range p.state.Load().ordered {
		b.Conns.CloseIdle()
	}
}

// admin is how many connections the admin listener takes at once, so that they
// do not take what is kept for it and for workers.
func (d *descriptors) admin() int {
	return int(max(d.most.Load()/8, ownDescriptors/2))
}

// full says that no client more may be taken.
func (d *descriptors) full() bool {
	most := d.most.Load()
	return most > 0 && d.clients.Load() >= most
}

func (d *descriptors) noteShort(n *atomic.Uint64) {
	n.Add(1)
	d.last.Store(time.Now().UnixNano())
}

// reasons say that descriptors ran short a short while ago.
func (d *descriptors) reasons(now time.Time) []string {
	last := d.last.Load()
	if last == 0 || now.Sub(time.Unix(0, last)) > shortageStays {
		return nil
	}
	return []string{fmt.Sprintf("file descriptors run short: %d client connections are open, at most %d are taken under the limit of %d open files; raise it (ulimit -n)",
		d.clients.Load(), d.most.Load(), d.limit)}
}

// whyDescriptors is the reason of a failure for want of descriptors.
const whyDescriptors = "descriptors"

func noDescriptors() *upstream.Failure {
	return &upstream.Failure{
		Err:    unavailable("the gateway has no file descriptor left for a connection to a worker; try again later, and raise its limit of open files", time.Second),
		Reason: whyDescriptors,
	}
}

// waitForPlace waits until another client may be taken. Clients that lie idle
// make place.
func (l *clientListener) waitForPlace() error {
	d := l.descriptors
	if d == nil || !d.full() {
		return nil
	}
	var evicted time.Time
	for d.full() {
		if l.closed.Load() {
			return net.ErrClosed
		}
		if now := time.Now(); now.Sub(evicted) >= evictEvery {
			evicted = now
			d.noteShort(&d.shortAccepting)
			l.evict(now, d.most.Load()/8+1)
		}
		time.Sleep(acceptAgain)
	}
	return nil
}

// evict closes up to n connections that lie idle between two requests.
func (l *clientListener) evict(now time.Time, n int64) {
	l.watch.each(func(c *clientConn) {
		until := c.idle.Load()
		if n == 0 || until <= 0 || time.Unix(0, until).Sub(now) > keepIdle-evictIdle || !c.idle.CompareAndSwap(until, evicted) {
			return
		}
		n--
		_ = c.raw.Close()
	})
}

// evicted is what idle holds of a connection that is closed to make place.
const evicted = -1

// waitIdle fills c between two requests; an eviction may end it.
func (c *clientConn) waitIdle() error {
	until := c.readBy.UnixNano()
	c.idle.Store(until)
	err := c.fill()
	if !c.idle.CompareAndSwap(until, 0) {
		return net.ErrClosed
	}
	return err
}

// A descriptorCollector reads the metrics of descriptors when they are asked for.
type descriptorCollector struct{ p *Proxy }

var (
	clientConns      = prometheus.NewDesc("kvasir_client_connections", "Connections of clients that are open.", nil, nil)
	clientConnsLimit = prometheus.NewDesc("kvasir_client_connections_limit", "How many of them are taken under the limit of open files; 0: not bounded.", nil, nil)
	shortages        = prometheus.NewDesc("kvasir_descriptor_shortages_total", "Times that file descriptors ran short: accepting waited, or a worker could not be dialled.", []string{"at"}, nil)
)

// Describe names the metrics.
func (descriptorCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- clientConns
	ch <- clientConnsLimit
	ch <- shortages
}

// Collect reads them.
func (c descriptorCollector) Collect(ch chan<- prometheus.Metric) {
	d := &c.p.descriptors
	ch <- prometheus.MustNewConstMetric(clientConns, prometheus.GaugeValue, float64(d.clients.Load()))
	ch <- prometheus.MustNewConstMetric(clientConnsLimit, prometheus.GaugeValue, float64(d.most.Load()))
	ch <- prometheus.MustNewConstMetric(shortages, prometheus.CounterValue, float64(d.shortAccepting.Load()), "accept")
	ch <- prometheus.MustNewConstMetric(shortages, prometheus.CounterValue, float64(d.shortDialling.Load()), "dial")
}
