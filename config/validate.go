// Validation: what no single key shows: missing, doubled and contradicting values.

package config

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"kvasir/upstream"
	"kvasir/wording"
)

// fill gives names to workers and simulated engines that have none, and
// writes URLs without the slash at their end.
func (c *Config) fill() {
	for i := range c.Workers {
		w := &c.Workers[i]
		if bare := strings.TrimRight(w.URL, "/"); hostPort(bare) != "" {
			w.URL = bare
		}
		if w.Name == "" {
			w.Name = hostPort(w.URL)
		}
	}
	for i := range c.Simulate {
		if c.Simulate[i].Name == "" {
			c.Simulate[i].Name = fmt.Sprintf("sim-%d", i)
		}
	}
}

// hostPort is a worker's default name: the host and port of its URL.
func hostPort(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), map[string]string{"https": "443"}[u.Scheme]+map[string]string{"http": "80"}[u.Scheme])
}

// validate finds what is wrong with a configuration whose values are each
// right on their own. It opens no file.
func (c *Config) validate() []conflict {
	v := &validation{}
	v.server(&c.Server)
	v.keys(c.Keys)
	v.workers(c)
	v.discovery(c.Discovery)
	v.peers(&c.Peers)
	v.models(c)
	v.routing(&c.Routing)
	v.classify(c)
	v.caching(&c.Cache)
	v.gpus(c)
	v.planner(c)
	v.metrics(&c.Metrics)
	v.tracing(&c.Tracing)
	if len(c.Workers) == 0 && len(c.Simulate) == 0 && len(c.Discovery) == 0 && len(v.found) == 0 {
		v.add("no worker to ask: add one to workers, or to simulate to try things out", "workers", "simulate")
	}
	return v.found
}

type validation struct{ found []conflict }

func (v *validation) add(text string, paths ...string) {
	v.found = append(v.found, conflict{paths: paths, text: text})
}

// once notes a value that must be unique and was there before. seen maps values
// to the path at which they were first seen.
func (v *validation) once(seen map[string]string, value, path, text string) {
	if first, ok := seen[value]; ok {
		v.found = append(v.found, conflict{paths: []string{path}, text: text, first: first})
		return
	}
	seen[value] = path
}

// bodiesAtLeast is for how many bodies of the largest size there must be memory
// at least: a single one takes half as much again while its buffer grows, and it
// may be held compressed as well.
const bodiesAtLeast = 3

// LeastBodyMemory is the least memory, in bytes, that request bodies may take
// together, or one large body could not be taken.
func (s *Server) LeastBodyMemory() Size { return bodiesAtLeast * s.MaxBody }

func (v *validation) server(s *Server) {
	if s.Listen == "" {
		v.add("is empty; the OpenAI API needs an address, such as 127.0.0.1:8080", "server.listen")
	} else if err := CheckListen(s.Listen); err != nil {
		v.add(err.Error(), "server.listen")
	}
	if s.Admin != "" {
		if err := CheckListen(s.Admin); err != nil {
			v.add(err.Error(), "server.admin")
		} else if sameListen(s.Listen, s.Admin) {
			v.add(fmt.Sprintf("%s is server.listen's address, too", wording.Quote(s.Admin)), "server.admin", "server.listen")
		}
	}
	if s.BodyMemory > 0 && s.BodyMemory < s.LeastBodyMemory() {
		v.add(fmt.Sprintf("must be at least three times server.max_body, %s, or one large body could not be taken; 0 chooses a size", s.LeastBodyMemory()), "server.body_memory", "server.max_body")
	}
	for i, origin := range s.CORS {
		if err := checkOrigin(origin); err != nil {
			v.add(err.Error(), fmt.Sprintf("server.cors[%d]", i))
		}
	}
	v.hosts("server.hosts", s.Hosts, true)
	v.hosts("server.admin_hosts", s.AdminHosts, false)
	v.pair("server.tls", s.TLS.Cert, s.TLS.Key)
	if s.TLS.ClientCA != "" && s.TLS.Cert == "" {
		v.add("asks clients for certificates, but server.tls.cert is empty", "server.tls.client_ca")
	}
}

// hosts wants names of hosts, or * where that is allowed.
func (v *validation) hosts(path string, names []string, wildcard bool) {
	for i, name := range names {
		if wildcard && name == "*" {
			continue
		}
		if err := checkHost(name); err != nil {
			v.add(err.Error(), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// pair wants a certificate and its key both or neither.
func (v *validation) pair(path string, cert, key Path) {
	if cert != "" && key == "" {
		v.add("has no key; set "+path+".key", path+".cert")
	}
	if key != "" && cert == "" {
		v.add("has no certificate; set "+path+".cert", path+".key")
	}
}

func (v *validation) keys(keys []APIKey) {
	names, sums := map[string]string{}, map[string]string{}
	for i, k := range keys {
		path := fmt.Sprintf("keys[%d]", i)
		if k.Name == "" {
			v.add("is missing; it stands for the key in logs", path+".name")
		} else {
			v.name(path+".name", k.Name, "this")
			v.once(names, k.Name, path+".name", "is the name of another key")
		}
		switch {
		case k.SHA256 != "" && k.KeyFile != "":
			v.add("is set together with sha256; set only one of the two", path+".key_file")
		case k.SHA256 == "" && k.KeyFile == "":
			v.add("is missing; give the SHA-256 of the key in hex, or key_file", path+".sha256")
		case k.SHA256 != "":
			if _, err := hex.DecodeString(k.SHA256); err != nil || len(k.SHA256) != 64 {
				v.add(fmt.Sprintf("must be 64 hex digits, is %d characters that are not; make it with: printf %%s KEY | sha256sum", len(k.SHA256)), path+".sha256")
				continue
			}
			v.once(sums, strings.ToLower(k.SHA256), path+".sha256", "is the SHA-256 of another key")
		}
		v.modelNames(path+".models", k.Models, true)
	}
}

func (v *validation) workers(c *Config) {
	names := map[string]string{}
	canAnswer := false
	for i, w := range c.Workers {
		path := fmt.Sprintf("workers[%d]", i)
		canAnswer = canAnswer || w.Role != "prefill"
		if err := CheckURL(w.URL); err != nil {
			v.add(err.Error(), path+".url")
		}
		if w.Name != "" {
			v.name(path+".name", w.Name, wording.Quote(w.Name))
			v.once(names, w.Name, path+".name", fmt.Sprintf("%s is the name of another worker", wording.Quote(w.Name)))
		}
		v.modelNames(path+".models", w.Models, false)
		v.workerHeaders(path, &w)
		v.kvEvents(path, &w)
		v.pair(path+".tls", w.TLS.Cert, w.TLS.Key)
		if w.TLS != (PeerTLS{}) && strings.HasPrefix(w.URL, "http://") {
			v.add("has no effect on a worker whose url begins with http://", path+".tls")
		}
		if w.TLS.Insecure && w.TLS.CA != "" {
			v.add("turns off the check that tls.ca is for; set only one of the two", path+".tls.insecure")
		}
	}
	for i, s := range c.Simulate {
		path := fmt.Sprintf("simulate[%d]", i)
		canAnswer = canAnswer || s.Role != "prefill"
		v.name(path+".name", s.Name, wording.Quote(s.Name))
		v.once(names, s.Name, path+".name", fmt.Sprintf("%s is the name of another worker", wording.Quote(s.Name)))
		v.modelNames(path+".model", []string{s.Model}, false)
		if text := s.tooLong(); text != "" {
			v.add(text, path+".max_model_len", path+".blocks")
		}
	}
	for i, w := range c.Workers {
		if path := fmt.Sprintf("workers[%d].instance", i); w.Instance != "" {
			v.name(path, w.Instance, wording.Quote(w.Instance))
			v.once(names, w.Instance, path, fmt.Sprintf("%s is already the name of another worker, or of this one", wording.Quote(w.Instance)))
		}
	}
	if !canAnswer && len(c.Workers)+len(c.Simulate) > 0 && len(c.Discovery) == 0 {
		v.add("every worker has the role prefill, so none can answer", "workers", "simulate")
	}
}

// kvEvents wants addresses that can be connected to.
func (v *validation) kvEvents(path string, w *Worker) {
	if w.KVEvents == "" && w.KVReplay != "" {
		v.add("repeats what kv_events missed; set kv_events, too", path+".kv_replay")
	}
	for _, at := range [...]struct{ key, address string }{{".kv_events", w.KVEvents}, {".kv_replay", w.KVReplay}} {
		if at.address == "" {
			continue
		}
		if err := checkZMQ(at.address); err != nil {
			v.add(err.Error(), path+at.key)
		}
	}
	if w.KVEvents != "" && w.KVEvents == w.KVReplay {
		v.add("is the address of kv_events, too; engines use one more port for it", path+".kv_replay")
	}
}

// routing wants no key to be set that the policy does not look at.
func (v *validation) routing(r *Routing) {
	knownKeys.child("routing").values(reflect.ValueOf(*r), func(k *Key, value any) {
		if len(k.policies) == 0 || slices.Contains(k.policies, r.Policy) || value == k.value {
			return
		}
		what := "is a weight of policy " + k.policies[0]
		if len(k.policies) > 1 {
			what = "is of the policies " + wording.List(k.policies, "and")
		}
		v.add(fmt.Sprintf("%s, but the policy is %s", what, r.Policy), k.path, "routing.policy")
	})
}

// ownHeaders are set by the proxy itself, for each request.
var ownHeaders = []string{"Host", "Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Keep-Alive",
	"Proxy-Connection", "Te", "Trailer", "Upgrade", "Expect", "X-Request-Id"}

func (v *validation) workerHeaders(path string, w *Worker) {
	key := knownKeys.child("workers").Elem.child("headers")
	v.headers(path+".headers.", key, w.Headers, func(name, at string) {
		if name == "authorization" && w.KeyFile != "" {
			v.add("is also sent by key_file; set only one of the two", at)
		}
	})
}

// headers finds what is wrong with headers that are sent to a peer; key is theirs. more looks at each
// good one, whose name it gets in lower case.
func (v *validation) headers(path string, key *Key, headers map[string]string, more func(name, at string)) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		at := path + key.shown(name)
		same := strings.ToLower(name)
		switch {
		case name == "" || strings.Trim(name, tokenChars) != "":
			v.add("is no header name", at)
		case slices.ContainsFunc(ownHeaders, func(h string) bool { return strings.EqualFold(h, name) }):
			v.add("is set by Kvasir itself", at)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) || strings.TrimSpace(value) != value:
			v.add("has control characters, or blanks at its ends", at)
		case seen[same]:
			v.add("is there twice in another case", at)
		default:
			more(same, at)
		}
		seen[same] = true
	}
}

func (v *validation) models(c *Config) {
	names := map[string]string{}
	known := map[string]bool{}
	theDefault := ""
	for i, m := range c.Models {
		path := fmt.Sprintf("models[%d]", i)
		known[m.Name] = true
		v.modelNames(path+".name", []string{m.Name}, false)
		if m.Name != "" {
			v.once(names, m.Name, path+".name", fmt.Sprintf("%s is described twice", wording.Quote(m.Name)))
		}
		if cached := m.Price.Cached; -1 < cached && cached < 0 {
			v.add(fmt.Sprintf("is %v; -1 is the price of the others, anything else a price of its own, from 0", cached), path+".price.cached")
		}
		if m.Default && theDefault != "" {
			v.found = append(v.found, conflict{paths: []string{path + ".default"}, text: "is the second default model", first: theDefault})
		} else if m.Default {
			theDefault = path + ".default"
		}
	}
	for _, w := range c.Workers {
		for _, m := range w.Models {
			known[m] = true
		}
	}
	for _, s := range c.Simulate {
		known[s.Model] = true
	}
	for _, d := range c.Discovery {
		for _, m := range d.Models {
			known[m] = true
		}
	}
	v.fallbacks(c.Models, known)
}

func (v *validation) fallbacks(models []Model, known map[string]bool) {
	next := map[string][]string{}
	for _, m := range models {
		next[m.Name] = m.Fallback
	}
	for i, m := range models {
		for j, f := range m.Fallback {
			path := fmt.Sprintf("models[%d].fallback[%d]", i, j)
			switch {
			case f == m.Name:
				v.add("is the model itself", path)
			case !known[f]:
				names := slices.Sorted(maps.Keys(known))
				v.add(fmt.Sprintf("%s is not a model of this configuration%s; add it to models, or to the models of a worker", wording.Quote(f), strings.TrimSuffix(wording.DidYouMean(f, names), "?")), path)
			case leadsTo(next, f, m.Name, map[string]bool{}):
				v.add(fmt.Sprintf("%s falls back to %s again", wording.Quote(f), wording.Quote(m.Name)), path)
			}
		}
	}
}

// leadsTo follows fallbacks from one model and says whether they reach another.
func leadsTo(next map[string][]string, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(next[from], func(m string) bool { return leadsTo(next, m, to, seen) })
}

// modelNames wants names that a client can ask for. MoM and auto stand for
// "you choose"; only a key's list may hold them.
func (v *validation) modelNames(path string, names []string, choose bool) {
	for i, name := range names {
		at := path
		if strings.HasSuffix(path, "models") {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if err := upstream.CheckModel(name); err != nil && !(choose && upstream.IsChosen(name)) {
			v.add(err.Error(), at)
		}
	}
}

// tokenChars may stand in an HTTP header's name (RFC 9110, 5.6.2).
const tokenChars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// name wants a name that can be sent in a header and stand in a log line and
// a metric: a token, or a host and port. shown is how the message calls it.
func (v *validation) name(path, name, shown string) {
	if bad := strings.Trim(name, tokenChars+":/[]@"); bad != "" || len(name) > 128 {
		v.add(fmt.Sprintf("%s cannot stand in a header: at most 128 letters, digits and - . _ : / @", shown), path)
	}
}

// metrics checks the currency, which becomes a label.
func (v *validation) metrics(m *Metrics) {
	if m.Currency == "" || len(m.Currency) > 16 || strings.ContainsFunc(m.Currency, func(r rune) bool { return r <= ' ' || r > '~' }) {
		v.add("is "+wording.Quote(m.Currency)+"; name a currency, such as USD, in at most 16 letters", "metrics.currency")
	}
}
