// Sources: where the ranks of an engine publish their KV events.

package upstream

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvevents"
)

// askSources finds out where the engine's ranks publish their events, by the
// configuration or by asking. No source and no error: they publish nowhere.
func (w *Worker) askSources(ctx context.Context, f *facts) ([]holdings.Source, error) {
	if w.Settings.KVEvents != "" {
		return configuredSources(w.Settings, f.Ranks)
	}
	ask := w.dialect().sources
	if ask == nil {
		return nil, nil
	}
	told, err := ask(ctx, w, f)
	return w.ownSources(told), err
}

// ownSources are the sources that lie on the worker's own host. The others are dropped:
// a worker must not be able to make Kvasir connect to other hosts. Where the events
// really are elsewhere, workers[].kv_events names the address.
func (w *Worker) ownSources(told []holdings.Source) []holdings.Source {
	own := told[:0]
	elsewhere := false
	for _, s := range told {
		if !w.isOwn(s.Events) {
			elsewhere = true
			continue
		}
		if s.Replay != "" && !w.isOwn(s.Replay) {
			elsewhere, s.Replay = true, ""
		}
		own = append(own, s)
	}
	w.heard.elsewhere.Store(elsewhere)
	return own
}

// isOwn says whether an address is on the worker's own host. Its host must be written
// as in the worker's URL, or both must be loopback: no name is looked up.
func (w *Worker) isOwn(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host, own := u.Hostname(), w.hostname()
	return strings.EqualFold(host, own) || isLoopbackHost(host) && isLoopbackHost(own)
}

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// configuredSources are the sources by workers[].kv_events and kv_replay: these are
// rank 0's, and each further rank has the next port.
func configuredSources(s Settings, ranks int) ([]holdings.Source, error) {
	first := kvevents.Source{Events: s.KVEvents, Replay: s.KVReplay}
	sources := []holdings.Source{{Rank: 0, Source: first}}
	for rank := 1; rank < ranks; rank++ {
		s, err := first.Rank(rank)
		if err != nil {
			return nil, err
		}
		sources = append(sources, holdings.Source{Rank: rank, Source: s})
	}
	return sources, nil
}

// readSources reads where ranks publish, in the form of vLLM's /kv_event_sources.
func readSources(body []byte, host string) ([]holdings.Source, error) {
	ranks, found, err := kvevents.ReadSources(body, host)
	if err != nil {
		return nil, err
	}
	var sources []holdings.Source
	for i, rank := range ranks {
		if rank >= maxRanks {
			return nil, fmt.Errorf("cannot read /kv_event_sources: data-parallel rank %d", rank)
		}
		sources = append(sources, holdings.Source{Rank: rank, Source: found[i]})
	}
	return sources, nil
}
