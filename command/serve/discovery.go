// Discovery: workers that are found while Kvasir runs, taken over as a reload takes the configuration's.

package serve

import (
	"slices"
	"time"

	"kvasir/command/wiring"
	"kvasir/discovery"
	"kvasir/proxy"
)

// settlePatience is how long a start, or a reload, waits for the first look of sources:
// one that is slower comes in later, as if it had changed.
const settlePatience = 2 * time.Second

// startDiscovery starts the sources that the configuration names.
func (s *server) startDiscovery() {
	s.discovery = discovery.Start(discovery.Options{Log: s.log, Changed: s.foundChanged})
	s.discovery.Follow(wiring.Sources(s.current))
	s.discovery.Settle(settlePatience)
}

// apply makes the settings, and whatever the sources have found, what is served, by
// Apply or ApplyWorkers of the proxy. s.reloading is held.
func (s *server) apply(settings *proxy.Settings, take func(*proxy.Settings) error) error {
	all := wiring.WithFound(settings, s.discovery)
	if err := take(all); err != nil {
		return err
	}
	s.settled = settings
	for _, c := range all.Conflicts {
		if !slices.Contains(s.conflicts, c) {
			s.log.Warn().Str("problem", c).Msg("sources of workers do not agree")
		}
	}
	s.conflicts = all.Conflicts
	return nil
}

// foundChanged serves what the sources have found now, under the configuration as it was
// taken last. Connections, streams and what is known of all other workers stay.
func (s *server) foundChanged() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.settled == nil {
		return // the start comes to it
	}
	if err := s.apply(s.settled, s.proxy.ApplyWorkers); err != nil {
		s.log.Error().Str("problem", err.Error()).Msg("workers that were found are not taken; those before stay")
	}
}

// foundWorkers is how many workers all sources know.
func (s *server) foundWorkers() (n int) {
	for _, src := range s.discovery.Status() {
		n += src.Workers
	}
	return n
}
