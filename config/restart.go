// Restart: which changes of a configuration wait for a restart.

package config

import "reflect"

// NeedRestart names the keys that differ from what runs and cannot change
// under it.
func NeedRestart(started, now *Config) []string {
	changed := knownKeys.waiting(reflect.ValueOf(*started), reflect.ValueOf(*now))
	if (started.Server.TLS.Cert == "") != (now.Server.TLS.Cert == "") {
		changed = append(changed, "server.tls")
	}
	return changed
}

// waiting are the keys under k that differ between a and b and are not taken
// over by a reload.
func (k *Key) waiting(a, b reflect.Value) (changed []string) {
	for i, c := range k.Children {
		switch {
		case c.restart:
			if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				changed = append(changed, c.path)
			}
		case c.Kind == KindGroup:
			changed = append(changed, c.waiting(a.Field(i), b.Field(i))...)
		}
	}
	return changed
}
