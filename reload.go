// Reload: the one way in which a new configuration takes over, whoever asked for it.
package main

import (
	"maps"
	"reflect"
)

// reload reads everything again and swaps it in. SIGHUP, a changed file and
// POST /reload come here, one at a time. A configuration that cannot be used
// changes nothing; the proxy tells of it in the log, a metric and /readyz.
func (s *server) reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	g, read, err := s.layers.load()
	// What was read counts even if it is bad: only its next change is news.
	watched := maps.Clone(s.read)
	maps.Copy(watched, read)
	if err == nil {
		err = s.take(g)
	}
	if err != nil {
		s.read = watched
		s.watcher.set(watched)
		s.proxy.ReloadFailed(err)
		return err
	}
	s.read = read
	s.watcher.set(read)
	s.proxy.ReloadDone(needRestart(s.started, g.config))
	return nil
}

// take swaps a generation in.
func (s *server) take(g *generation) error {
	monitor := s.monitor
	if !g.config.GPU.watchesLike(&s.current.config.GPU) {
		monitor = startMonitor(s.log, &g.config.GPU, s.monitor)
	}
	settings, err := s.settings(g, monitor)
	if err == nil {
		err = s.proxy.Apply(settings)
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
	if s.tls != nil && g.tls != nil {
		s.tls.now.Store(g.tls)
	}
	setLogLevel(g.config.Log.Level)
	s.ending.drain.Store(&g.config.Server.Drain)
	s.current = g
	return nil
}

// filesChanged is reload for the watcher, which has nobody to answer.
func (s *server) filesChanged() { _ = s.reload() }

// needRestart names the keys that differ from what runs and cannot change
// under it.
func needRestart(started, now *Config) []string {
	changed := restartKeys(reflect.ValueOf(*started), reflect.ValueOf(*now), "")
	if (started.Server.TLS.Cert == "") != (now.Server.TLS.Cert == "") {
		changed = append(changed, "server.tls")
	}
	return changed
}

// restartKeys walks two configs along the tag restart.
func restartKeys(a, b reflect.Value, path string) []string {
	var changed []string
	for i := range a.NumField() {
		f := a.Type().Field(i)
		here := join(path, f.Tag.Get("koanf"))
		switch {
		case f.Tag.Get("restart") == "yes":
			if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				changed = append(changed, here)
			}
		case f.Type.Kind() == reflect.Struct:
			changed = append(changed, restartKeys(a.Field(i), b.Field(i), here)...)
		}
	}
	return changed
}
