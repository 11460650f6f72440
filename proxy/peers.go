// Peers: the other Kvasirs before the same workers: what they are told of ours, and what is said of them.

package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvasir/discovery"
	"kvasir/kvroute"
)

// tellPeers says which workers are served now, by what all Kvasirs call them.
func (s *state) tellPeers() {
	if s.settings.Peers == nil {
		return
	}
	workers := make(map[string]*kvroute.Worker, len(s.ordered))
	for i, b := range s.ordered {
		workers[discovery.Canonical(s.settings.Workers[i].URL)] = b.Worker.Worker
	}
	s.settings.Peers.SetWorkers(workers)
}

// peerReasons say why other Kvasirs are not heard.
func (s *Settings) peerReasons() []string {
	if s.Peers == nil {
		return nil
	}
	if problem := s.Peers.Status().Problem; problem != "" {
		return []string{"peers: " + problem + "; each replica places by what it knows itself"}
	}
	return nil
}

// A peerCollector reads how it goes with other Kvasirs when it is asked for.
type peerCollector struct{ p *Proxy }

var (
	peersConnected = sourceDesc("kvasir_peers_connected", "1 while NATS is there.")
	peersKnown     = sourceDesc("kvasir_peers_known", "Other Kvasirs that are known.")
	peersLegs      = sourceDesc("kvasir_peers_legs_active", "Legs of requests that other Kvasirs are known to have under way.")
	peersAway      = sourceDesc("kvasir_peers_worker_requests_active", "Requests that other Kvasirs have under way at the worker.", "worker")
	peersMessages  = sourceDesc("kvasir_peers_messages_total", "Messages between Kvasirs.", "direction")
	peersBytes     = sourceDesc("kvasir_peers_bytes_total", "Bytes of messages between Kvasirs.", "direction")
	peersDropped   = sourceDesc("kvasir_peers_dropped_total", "What was not shared, by why: queue, nats, slow.", "why")
	peersBad       = sourceDesc("kvasir_peers_bad_messages_total", "Messages of others that were not taken, by why: malformed, version.", "why")
	peersGaps      = sourceDesc("kvasir_peers_gaps_total", "Times that messages of another Kvasir were missing.")
	peersSnapshots = sourceDesc("kvasir_peers_snapshots_total", "Snapshots that were sent.")
	peersUnknown   = sourceDesc("kvasir_peers_unknown_worker_total", "Legs that other Kvasirs placed at workers that are not known here.")
)

// Describe and Collect are prometheus.Collector.
func (peerCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		peersConnected, peersKnown, peersLegs, peersAway, peersMessages, peersBytes, peersDropped, peersBad, peersGaps, peersSnapshots, peersUnknown,
	} {
		out <- d
	}
}

func (c peerCollector) Collect(out chan<- prometheus.Metric) {
	s := c.p.state.Load()
	if s == nil || s.settings.Peers == nil {
		return
	}
	st := s.settings.Peers.Status()
	to := told(out)
	connected := 1.0
	if st.Problem != "" {
		connected = 0
	}
	to.gauge(peersConnected, connected)
	to.gauge(peersKnown, float64(len(st.Peers)))
	to.gauge(peersLegs, float64(st.Legs))
	for _, b := range s.ordered {
		to.gauge(peersAway, float64(b.Away()), b.Name())
	}
	to.counter(peersMessages, st.In, "in")
	to.counter(peersMessages, st.Out, "out")
	to.counter(peersBytes, st.InBytes, "in")
	to.counter(peersBytes, st.OutBytes, "out")
	to.counter(peersDropped, st.Dropped, "queue")
	to.counter(peersDropped, st.Unserved, "nats")
	to.counter(peersDropped, st.Slow, "slow")
	to.counter(peersBad, st.Malformed, "malformed")
	to.counter(peersBad, st.Foreign, "version")
	to.counter(peersGaps, st.Gaps)
	to.counter(peersSnapshots, st.Snapshots)
	to.counter(peersUnknown, st.Ignored)
}
