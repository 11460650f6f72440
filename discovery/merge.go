// Merging: the workers of the configuration and of all sources, each address once.

package discovery

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"kvasir/upstream"
	"kvasir/wording"
)

// Found is the workers that one source knows.
type Found struct {
	Source  string
	Workers []Worker
}

// Merged is who is served.
type Merged struct {
	Workers   []upstream.Settings
	Conflicts []string // what sources do not agree about, each a sentence; bounded
	Disagree  int      // how many conflicts there are
}

// maxConflicts bounds what is told of conflicts.
const maxConflicts = 20

// Merge puts the workers of the sources after those of the configuration.
//
//  1. Workers are the same when their URLs are; behind a frontend of Dynamo, when their
//     instances are as well. One of the configuration wins, and is not changed by what a
//     source says of it.
//  2. Of sources, the earlier in the configuration wins, within one the earlier worker.
//     If they say different things, that is a conflict.
//  3. No two workers have one name. The later of two is called by its host and port, or
//     by its URL, and that is a conflict.
func Merge(own []upstream.Settings, found []Found) Merged {
	m := merging{byPlace: map[string]*Worker{}, names: map[string]bool{}, addresses: map[string]string{}}
	m.Workers = slices.Clone(own)
	for i := range own {
		m.byPlace[placeOf(&own[i])] = nil
		m.names[own[i].Name] = true
		if own[i].Instance != "" {
			m.names[own[i].Instance] = true
		}
	}
	for _, f := range found {
		for i := range f.Workers {
			m.address(&f.Workers[i].Settings)
		}
	}
	for _, f := range found {
		for i := range f.Workers {
			m.add(&f.Workers[i], f.Source)
		}
	}
	if more := m.Disagree - len(m.Conflicts); more > 0 {
		m.Conflicts = append(m.Conflicts, fmt.Sprintf("and %d more", more))
	}
	return m.Merged
}

type merging struct {
	Merged
	byPlace map[string]*Worker // nil: it is of the configuration
	names   map[string]bool    // names and instances

	// addresses are the places of workers by the names that they have if others take theirs: nobody
	// else is called so, or whoever may describe a worker could have another one left out.
	addresses map[string]string
}

func (m *merging) address(s *upstream.Settings) {
	at := placeOf(s)
	for _, name := range []string{hostPort(s.URL), at} {
		if _, taken := m.addresses[name]; !taken {
			m.addresses[name] = at
		}
	}
}

// isFree says whether the worker at a place may be called so.
func (m *merging) isFree(name, at string) bool {
	whose, address := m.addresses[name]
	return !m.names[name] && (!address || whose == at)
}

func (m *merging) conflict(format string, args ...any) {
	if m.Disagree++; len(m.Conflicts) < maxConflicts {
		m.Conflicts = append(m.Conflicts, fmt.Sprintf(format, args...))
	}
}

func (m *merging) add(w *Worker, source string) {
	at := placeOf(&w.Settings)
	if first, taken := m.byPlace[at]; taken {
		if first != nil && !equal(&first.Settings, &w.Settings) {
			m.conflict("%s and %s do not agree about %s (%s); the first one holds", first.From, w.From, w.URL, difference(&first.Settings, &w.Settings))
		}
		return
	}
	m.byPlace[at] = w
	s := w.Settings
	s.Source = source
	for _, name := range []string{w.Name, hostPort(w.URL), at} {
		if s.Name = name; m.isFree(name, at) {
			break
		}
	}
	if !m.isFree(s.Name, at) {
		m.conflict("%s: every name for %s is another worker's; it is left out", w.From, w.URL)
		return
	}
	if s.Name != w.Name {
		m.conflict("%s: %s is the name of another worker; the one at %s is called %s", w.From, wording.Quote(w.Name), w.URL, wording.Quote(s.Name))
	}
	if s.Engine == "dynamo" && s.Instance != "" && !m.isFree(s.Instance, at) {
		m.conflict("%s: the instance %s of the worker at %s is how another one is called; it is left out", w.From, wording.Quote(s.Instance), w.URL)
		return // its frontend would not know whom to ask
	}
	m.names[s.Name] = true
	if s.Instance != "" && !m.isFree(s.Instance, at) {
		m.conflict("%s: the instance %s of the worker at %s is how another one is called; it has none", w.From, wording.Quote(s.Instance), w.URL)
		s.Instance = ""
	}
	if s.Instance != "" {
		m.names[s.Instance] = true
	}
	m.Workers = append(m.Workers, s)
}

// difference names what two descriptions of a worker do not agree in.
func difference(a, b *upstream.Settings) string {
	var in []string
	for _, d := range []struct {
		differs bool
		what    string
	}{
		{a.Name != b.Name, "name"},
		{a.Engine != b.Engine, "engine"},
		{a.Role != b.Role, "role"},
		{!slices.Equal(a.Models, b.Models), "models"},
		{a.MaxRequests != b.MaxRequests, "max_requests"},
	} {
		if d.differs {
			in = append(in, d.what)
		}
	}
	if len(in) == 0 {
		return "their other keys differ"
	}
	return wording.List(in, "and")
}

// placeOf tells workers apart.
func placeOf(s *upstream.Settings) string {
	at := canonical(s.URL)
	if s.Engine == "dynamo" && s.Instance != "" {
		at += "#" + s.Instance
	}
	return at
}

// canonical is a URL as two ways of writing it are compared: the host in lower case, with
// its port, and no slash at the end.
func canonical(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Scheme + "://" + strings.ToLower(hostPort(raw)) + strings.TrimRight(u.EscapedPath(), "/")
}

// Canonical is the URL by which a worker is the same one, however it was written.
func Canonical(raw string) string { return canonical(raw) }

// hostPort is the host and port of a URL, which a worker is called without a name of its own.
func hostPort(raw string) string {
	s := upstream.Settings{URL: raw}
	return s.Address()
}

// urlOf is the URL of a worker at a host.
func urlOf(scheme, host string, port int) string {
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(host, fmt.Sprint(port))}
	return u.String()
}
