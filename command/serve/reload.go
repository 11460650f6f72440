// Reload: how a new configuration takes over, whoever asked for it.

package serve

import (
	"maps"

	"kvasir/command/wiring"
	"kvasir/config"
)

// reload reads everything again and swaps it in. SIGHUP, a changed file and
// POST /reload come here, one at a time. A configuration that cannot be used
// changes nothing; the proxy tells of it in the log, a metric and /readyz.
func (s *server) reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.notify.reloading()
	defer s.notify.ready()
	g, read, err := s.layers.Load()
	// Files that were read count as read even if they are bad, so that the
	// watcher calls again only when they change once more.
	watched := maps.Clone(s.read)
	maps.Copy(watched, read)
	if err == nil {
		err = s.take(g)
	}
	if err != nil {
		s.read = watched
		s.watcher.set(watched)
		s.proxy.ReloadFailed(err)
		s.reloaded.note(err, nil)
		return err
	}
	s.read = read
	s.watcher.set(read)
	restart := config.NeedRestart(s.started, g.Config)
	s.proxy.ReloadDone(restart)
	s.reloaded.note(nil, restart)
	return nil
}

// take swaps a generation in.
func (s *server) take(g *config.Generation) error {
	monitor := s.monitor
	if !watchAlike(&g.Config.GPU, &s.current.Config.GPU) {
		monitor = startMonitor(s.log, &g.Config.GPU, s.monitor)
	}
	settings, err := s.settings(g, monitor)
	if err == nil {
		err = s.trace(g)
	}
	if err == nil {
		s.discovery.Follow(wiring.Sources(g))
		s.discovery.Settle(settlePatience)
		if err = s.apply(settings, s.proxy.Apply); err != nil {
			s.discovery.Follow(wiring.Sources(s.current))
			_ = s.trace(s.current) // it could be, before
		}
	}
	if err != nil {
		if monitor != s.monitor {
			closeMonitor(monitor)
		}
		return err
	}
	if monitor != s.monitor {
		closeMonitor(s.monitor)
		s.monitor = monitor
	}
	if s.tls != nil && g.TLS != nil {
		s.tls.now.Store(g.TLS)
	}
	if s.kedaTLS != nil && g.KEDA != nil {
		s.kedaTLS.now.Store(g.KEDA)
	}
	setLogLevel(g.Config.Log.Level)
	s.shutdown.drain.Store(&g.Config.Server.Drain)
	s.current = g
	s.inForce.Store(g)
	return nil
}

// trace has traces go where a generation says. Until there is a collector nobody looks at requests.
func (s *server) trace(g *config.Generation) error {
	for _, text := range g.Tracing.Ignored {
		s.log.Warn().Msg(text)
	}
	o := wiring.Tracing(g, s.version)
	if err := s.tracing.Apply(o); err != nil {
		return err
	}
	if o != nil && !s.observed {
		s.proxy.Observe(s.tracing.Observe)
		s.observed = true
	}
	return nil
}

// filesChanged is reload for the watcher, which has nobody to give the error to.
func (s *server) filesChanged() { _ = s.reload() }
