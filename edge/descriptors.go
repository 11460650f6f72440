// Descriptors: how many connections clients may have open, so that some descriptors are left for everything else.

package edge

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// LeastFiles is the least limit of open files to serve with.
	LeastFiles = 256

	// Descriptors that clients leave: for listeners, files and the cache, and for
	// probes, KV events and replays of each worker.
	ownDescriptors    = 64
	workerDescriptors = 4

	shortageStays = time.Minute // as a reason in /readyz
)

// Descriptors bounds the connections that clients may have open at once, and keeps
// count of the times that descriptors ran short. A client needs a second descriptor
// while it is answered, for the connection to a worker. So clients get half of what
// the limit of open files leaves, and a connection to a worker can always be made.
// It is a prometheus.Collector of its own metrics.
type Descriptors struct {
	most    atomic.Int64 // client connections; 0: not bounded
	limit   uint64       // of open files; 0: not known
	clients atomic.Int64

	shortAccepting atomic.Uint64
	shortDialling  atomic.Uint64
	last           atomic.Int64 // shortage, Unix nanoseconds; 0: none yet
}

// SetLimit says how many files the process may have open, at least LeastFiles. It is
// called before Share.
func (d *Descriptors) SetLimit(files uint64) { d.limit = min(files, 1<<40) }

// Share settles how many connections clients may have beside this many workers.
func (d *Descriptors) Share(workers int) {
	if d.limit > 0 {
		own := min(uint64(ownDescriptors+workerDescriptors*workers), d.limit/2)
		d.most.Store(int64(d.limit-own) / 2)
	}
}

// Admin is how many connections the admin listener takes at once, so that they do
// not use up what is kept for it and for workers.
func (d *Descriptors) Admin() int {
	return int(max(d.most.Load()/8, ownDescriptors/2))
}

// NoteUndialled counts a connection to a worker that could not be made for want of a
// descriptor.
func (d *Descriptors) NoteUndialled() { d.noteShort(&d.shortDialling) }

func (d *Descriptors) noteShort(n *atomic.Uint64) {
	n.Add(1)
	d.last.Store(time.Now().UnixNano())
}

// full says that no further client may be taken.
func (d *Descriptors) full() bool {
	most := d.most.Load()
	return most > 0 && d.clients.Load() >= most
}

// Reasons is what /readyz says, in words, if descriptors ran short within the last
// minute.
func (d *Descriptors) Reasons(now time.Time) []string {
	last := d.last.Load()
	if last == 0 || now.Sub(time.Unix(0, last)) > shortageStays {
		return nil
	}
	return []string{fmt.Sprintf("file descriptors run short: %d client connections are open, at most %d are taken under the limit of %d open files; raise it (ulimit -n)",
		d.clients.Load(), d.most.Load(), d.limit)}
}

var (
	clientConns      = prometheus.NewDesc("kvasir_client_connections", "Connections of clients that are open.", nil, nil)
	clientConnsLimit = prometheus.NewDesc("kvasir_client_connections_limit", "How many of them are taken under the limit of open files; 0: not bounded.", nil, nil)
	shortages        = prometheus.NewDesc("kvasir_descriptor_shortages_total", "Times that file descriptors ran short: accepting waited, or a worker could not be dialled.", []string{"at"}, nil)
)

// Describe names the metrics.
func (d *Descriptors) Describe(ch chan<- *prometheus.Desc) {
	ch <- clientConns
	ch <- clientConnsLimit
	ch <- shortages
}

// Collect reads them.
func (d *Descriptors) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(clientConns, prometheus.GaugeValue, float64(d.clients.Load()))
	ch <- prometheus.MustNewConstMetric(clientConnsLimit, prometheus.GaugeValue, float64(d.most.Load()))
	ch <- prometheus.MustNewConstMetric(shortages, prometheus.CounterValue, float64(d.shortAccepting.Load()), "accept")
	ch <- prometheus.MustNewConstMetric(shortages, prometheus.CounterValue, float64(d.shortDialling.Load()), "dial")
}
