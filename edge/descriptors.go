// Descriptors: a limit on client connections that keeps file descriptors for everything else.

package edge

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// LeastFiles is the lowest limit of open files with which the process can serve.
	LeastFiles = 256

	// Descriptors kept from clients: ownDescriptors for listeners, files and the cache, and some
	// per worker for probes, KV events and replays.
	ownDescriptors    = 64
	workerDescriptors = 4

	shortageStays = time.Minute // as a reason in /readyz
)

// Descriptors bounds the connections that clients may have open at once, and counts how often
// descriptors ran short. While a client is answered it needs a second descriptor, for the
// connection to a worker. So clients get half of the descriptors that remain under the limit of
// open files, and a connection to a worker can always be made. It is the prometheus.Collector of
// its own metrics.
type Descriptors struct {
	most    atomic.Int64 // client connections; 0: no bound
	limit   uint64       // of open files; 0: unknown
	clients atomic.Int64

	shortAccepting atomic.Uint64
	shortDialling  atomic.Uint64
	last           atomic.Int64 // time of the last shortage, Unix nanoseconds; 0: none yet
}

// SetLimit sets how many files the process may have open, at least LeastFiles. Call it before
// Share.
func (d *Descriptors) SetLimit(files uint64) { d.limit = min(files, 1<<40) }

// Share computes how many connections clients may have when there are this many workers.
func (d *Descriptors) Share(workers int) {
	if d.limit > 0 {
		own := min(uint64(ownDescriptors+workerDescriptors*workers), d.limit/2)
		d.most.Store(int64(d.limit-own) / 2)
	}
}

// Admin returns how many connections the admin listener may accept at once, so that they do not
// use up the descriptors kept for it and for workers.
func (d *Descriptors) Admin() int {
	return int(max(d.most.Load()/8, ownDescriptors/2))
}

// NoteUndialled counts a connection to a worker that failed for want of a descriptor.
func (d *Descriptors) NoteUndialled() { d.noteShort(&d.shortDialling) }

func (d *Descriptors) noteShort(n *atomic.Uint64) {
	n.Add(1)
	d.last.Store(time.Now().UnixNano())
}

// full reports that no further client may be accepted.
func (d *Descriptors) full() bool {
	most := d.most.Load()
	return most > 0 && d.clients.Load() >= most
}

// Reasons returns the text for /readyz if descriptors ran short within the last minute.
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

// Collect reports their current values.
func (d *Descriptors) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(clientConns, prometheus.GaugeValue, float64(d.clients.Load()))
	ch <- prometheus.MustNewConstMetric(clientConnsLimit, prometheus.GaugeValue, float64(d.most.Load()))
	ch <- prometheus.MustNewConstMetric(shortages, prometheus.CounterValue, float64(d.shortAccepting.Load()), "accept")
	ch <- prometheus.MustNewConstMetric(shortages, prometheus.CounterValue, float64(d.shortDialling.Load()), "dial")
}
