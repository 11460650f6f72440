// Restart: which changes of a configuration wait for a restart.

package config

import "reflect"

// NeedRestart names the keys that differ from what runs and cannot change
// under it.
func NeedRestart(started, now *Config) []string {
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
