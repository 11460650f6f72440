// The page: what it shows of this server.

package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"sync"
	"time"

	"kvasir/command/listener"
	"kvasir/config"
	"kvasir/openai"
	"kvasir/page"
	"kvasir/proxy/roster"
)

// startPage starts the page of the admin listener, and has it told of requests.
func (s *server) startPage() *page.Page {
	p := s.proxy
	shown := page.New(&page.Options{
		Version: s.version, Readiness: p.Readiness, Busy: p.Busy, Connections: p.AdminConnections, Workers: s.roster, Drain: p.DrainWorker,
		Thresholds: s.thresholds, Cache: p.Cache, CacheStore: s.started.Cache.Store,
		Explain: p.ExplainRecord, Configuration: s.configuration, Ask: s.askAPI,
	})
	p.Observe(shown.Observe)
	return shown
}

// roster is the workers, with those of `simulate` named as such.
func (s *server) roster(now time.Time) []roster.Worker {
	all := s.proxy.Roster(now)
	for i := range all {
		for _, e := range s.engines.Workers {
			if all[i].Name == e.Name {
				all[i].Source = "simulate"
			}
		}
	}
	return all
}

func (s *server) thresholds() page.Thresholds {
	o := s.proxy.Guarding()
	return page.Thresholds{
		Category: o.Category.Threshold, Attack: o.Jailbreak.Threshold, AttackAction: o.Jailbreak.Action.String(),
		PII: o.PII.Threshold, PIIAction: o.PII.Action.String(),
	}
}

// noCertificate is why a request cannot be tried where clients have to show a certificate. It is not sent another way
// either: whoever reaches the page would be let past what the API asks of everybody else.
var noCertificate = &openai.Error{
	Status: http.StatusNotImplemented, Type: "invalid_request_error", Code: "client_certificate_needed",
	Message: "The API asks each client for a certificate (server.tls.client_ca), and the page has none to show. Send the request yourself with yours, as by curl --cert FILE --key FILE; Explain works without",
}

// askAPI sends a request to the API of this server, as one of its clients.
func (s *server) askAPI(ctx context.Context, path string, header http.Header, body []byte) (*http.Response, error) {
	scheme, conf := "http", (*tls.Config)(nil)
	if s.tls != nil {
		if s.tls.now.Load().ClientAuth == tls.RequireAndVerifyClientCert {
			return nil, noCertificate
		}
		// It is asked over the host itself, where its certificate may name no such host.
		scheme, conf = "https", &tls.Config{InsecureSkipVerify: true}
	}
	addr := s.api.Addr().String()
	if s.api.Addr().Network() == "unix" {
		addr = "unix:" + addr
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	return listener.Client(addr, conf).Do(req)
}

// mostReloads bounds how many reloads are remembered.
const mostReloads = 20

// reloads are the last ones. The zero value has none.
type reloads struct {
	mu   sync.Mutex // guards last
	last []reloadNote
}

// A reloadNote is how one reload went.
type reloadNote struct {
	Time    roster.Time `json:"time"`
	Taken   bool        `json:"taken"`
	Error   string      `json:"error,omitempty"`
	Restart []string    `json:"restart"` // keys that have changed and wait for a restart
}

func (r *reloads) note(err error, restart []string) {
	n := reloadNote{Time: roster.Time{Time: time.Now()}, Taken: err == nil, Restart: append([]string{}, restart...)}
	if err != nil {
		n.Error = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == mostReloads {
		r.last = slices.Delete(r.last, 0, 1)
	}
	r.last = append(r.last, n)
}

// list has the newest first.
func (r *reloads) list() []reloadNote {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := append([]reloadNote{}, r.last...)
	slices.Reverse(all)
	return all
}

// configurationAnswer is what GET /api/config answers.
type configurationAnswer struct {
	File    string         `json:"file"`
	Values  []config.Value `json:"values"`
	Reloads []reloadNote   `json:"reloads"` // the newest first
}

func (s *server) configuration() any {
	name := s.layers.Name()
	if s.layers.File == "" {
		name = "built in"
	}
	return configurationAnswer{File: name, Values: s.inForce.Load().Values(), Reloads: s.reloaded.list()}
}
