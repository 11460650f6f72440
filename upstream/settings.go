// A worker as the configuration names it.

package upstream

import (
	"crypto/tls"
	"maps"
	"net"
	"net/url"
	"slices"

	"kvasir/kvroute"
)

// Settings is one engine replica as the configuration names it. It is plain data,
// and never changed after it was handed over.
type Settings struct {
	Name        string
	URL         string   // http or https, with an optional base path
	Engine      string   // one of EngineNames; "": found out
	Role        string   // both, prefill, decode
	Models      []string // empty: asked at /v1/models
	MaxRequests int      // 0: no limit
	Headers     map[string]string
	TLS         *tls.Config // of an https worker; nil: the system's roots
	TLSName     string      // identifies TLS for comparison between generations
	KVEvents    string      // where its KV events are published, tcp://host:port or ipc://path; "": asked of it
	KVReplay    string      // where missed ones are asked again; "": asked of it, or not at all
	GPUs        []string    // NVML indices or UUIDs of the GPUs that it runs on; empty: found out
	Instance    string      // what x-worker-instance-id may call it besides its name
	Source      string      // of discovery, that found it; "": the configuration names it

	Facts kvroute.EngineFacts // of an engine that does not say them itself, as its source knows them
}

// Same says whether o is the same worker: what is known of it, and its connections,
// are as good for o. MaxRequests, GPUs and Source may change while it runs.
func (s *Settings) Same(o *Settings) bool {
	return s.Name == o.Name && s.URL == o.URL && s.Engine == o.Engine && s.Role == o.Role &&
		s.TLSName == o.TLSName && s.KVEvents == o.KVEvents && s.KVReplay == o.KVReplay && s.Instance == o.Instance && s.Facts == o.Facts &&
		slices.Equal(s.Models, o.Models) && maps.Equal(s.Headers, o.Headers)
}

// Address is where the worker's server listens, host:port; "" where the URL is none.
func (s *Settings) Address() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return hostPort(u)
}

// hostPort is the host and the port of a URL, the scheme's own port where it names
// none.
func hostPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}
