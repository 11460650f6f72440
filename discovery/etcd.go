// Kind etcd: a key for each worker, which whoever stands behind it keeps there by a lease.

package discovery

import (
	"fmt"
	"net/url"
	"strings"

	"kvasir/discovery/etcd"
	"kvasir/upstream"
	"kvasir/wording"
)

// maxServers bounds the servers of one etcd; clusters have three, five or seven.
const maxServers = 16

var etcdKind = kind{
	name:  "etcd",
	keys:  []string{"endpoints", "prefix", "user", "password_file"},
	label: func(e *Entry) string { return e.Prefix + " at " + etcd.Address(e.Etcd.Endpoints[0]) },
	check: checkEtcd,
	run:   runEtcd,
}

func checkEtcd(e *Entry) (key, wrong string) {
	if wrong := checkServers(e.Etcd.Endpoints); wrong != "" {
		return "endpoints", wrong
	}
	switch {
	case e.Prefix == "":
		return "prefix", "is empty, so every key of etcd would be a worker; name that of their keys, such as kvasir/workers/"
	case !strings.HasSuffix(e.Prefix, "/"):
		return "prefix", "must end with /, did you mean " + wording.Quote(e.Prefix+"/") + "?"
	}
	return "", ""
}

// checkServers wants URLs of servers of etcd.
func checkServers(endpoints []string) (wrong string) {
	switch {
	case len(endpoints) == 0:
		return "is missing; give the URLs of etcd's servers, such as [http://10.0.0.1:2379]"
	case len(endpoints) > maxServers:
		return fmt.Sprintf("has %d servers, more than %d", len(endpoints), maxServers)
	}
	for _, e := range endpoints {
		if wrong := CheckServer(e); wrong != "" {
			return wrong
		}
	}
	return ""
}

// CheckServer says what is wrong with the URL of a server of etcd; "": nothing.
func CheckServer(endpoint string) (wrong string) {
	if _, authority, ok := strings.Cut(endpoint, "://"); ok && strings.Contains(authority, "@") {
		return "must not hold a user or password; there are user and password_file" // without quoting them
	}
	u, err := url.Parse(endpoint)
	switch {
	case !strings.Contains(endpoint, "://") && !strings.ContainsAny(endpoint, " /") && endpoint != "":
		return wording.Quote(endpoint) + " has no scheme, did you mean " + wording.Quote("http://"+endpoint) + "?"
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":"):
		return wording.Quote(endpoint) + " is no URL such as http://10.0.0.1:2379"
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return wording.Quote(endpoint) + " has more than a host and a port"
	}
	return ""
}

func runEtcd(src *source) {
	f := &follower[upstream.Settings]{
		src: src, most: maxWorkers,
		prefixes: func(e *Entry) []string { return []string{e.Prefix} },
	}
	f.keys = newKeyTable(func(key string, value []byte) (upstream.Settings, error) {
		w, err := f.entry.ReadWorker(value)
		if rest := strings.TrimPrefix(key, f.entry.Prefix); err == nil && w.Name != rest && w.Name != hostPort(w.URL) {
			// etcd may grant each worker its own key: it must not take another's name by it.
			err = fmt.Errorf("name: must be the rest of the key, %s, or be left out", wording.Quote(rest))
		}
		return w, err
	})
	f.found = func() (r report) {
		at := " at " + etcd.Address(f.entry.Etcd.Endpoints[0])
		r.bad = f.keys.all(func(key string, w *upstream.Settings) {
			r.workers = append(r.workers, Worker{Settings: *w, From: key + at})
		})
		return r
	}
	f.run()
}
