// Discovery: the sources of workers, and who is served of what they find.

package wiring

import (
	"kvasir/config"
	"kvasir/discovery"
	"kvasir/proxy"
)

// Sources are the sources of workers that a configuration names.
func Sources(g *config.Generation) []discovery.Entry {
	entries := make([]discovery.Entry, len(g.Config.Discovery))
	for i := range g.Config.Discovery {
		c := &g.Config.Discovery[i]
		e := c.Entry()
		shown := g.Sources[i] // to its workers
		if len(c.Endpoints) > 0 {
			e.Etcd.TLS, e.Etcd.TLSName, e.Etcd.Password = shown.TLS, shown.TLSName, shown.Password
			shown.TLS, shown.TLSName = nil, ""
		}
		e.Worker = worker(&config.Worker{Engine: c.Engine, Role: c.Role, Models: c.Models, MaxRequests: c.MaxRequests}, &shown)
		e.Read = func(file string, data []byte) ([]proxy.Worker, map[string][32]byte, error) {
			f, err := g.ReadWorkers(c, file, data)
			if err != nil {
				return nil, f.Read, err
			}
			workers := make([]proxy.Worker, len(f.Workers))
			for i := range f.Workers {
				workers[i] = worker(&f.Workers[i], &f.Credentials[i])
			}
			return workers, f.Read, nil
		}
		e.ReadWorker = func(value []byte) (proxy.Worker, error) {
			w, err := config.ReadWorker(c, value)
			return worker(&w, &config.Credentials{Secret: shown.Secret}), err
		}
		entries[i] = e
	}
	return entries
}

// WithFound is the settings with what the sources have found among the workers.
func WithFound(s *proxy.Settings, set *discovery.Set) *proxy.Settings {
	all := *s
	m := discovery.Merge(s.Workers, set.Found())
	all.Workers, all.Conflicts, all.Disagree, all.Sources = m.Workers, m.Conflicts, m.Disagree, set.Status
	return &all
}
