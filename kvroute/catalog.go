// Catalog: which workers serve which model, rebuilt when a worker says something new.

package kvroute

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// A Served is a model name that requests may ask for, and who answers it.
type Served struct {
	Name string

	// MaxModelLen is the smallest that a worker of the model states, in tokens:
	// any of them may get the request. 0: none states one.
	MaxModelLen int

	Workers []string // names, in the order of the configuration
}

// catalog is an immutable index of what the workers of a pool serve.
type catalog struct {
	version uint64 // of the line when this was built
	served  map[string]*served
	names   []string // of served, sorted
	unsure  []string // names of workers that have not said what they serve
}

type served struct {
	Served
	workers []*Worker
	turn    atomic.Uint64 // of round_robin

	prefills    []*Worker // that may compute prompts for those of workers of role Decode
	prefillTurn atomic.Uint64
	decodes     bool // there are such

	drained []string // names of workers that serve the model and are left out
}

// Models returns what the workers serve together, sorted by name.
func (p *Pool) Models() []Served {
	c := p.catalog()
	list := make([]Served, 0, len(c.served))
	for _, name := range c.names {
		list = append(list, c.served[name].Served)
	}
	return list
}

// ServedNames are the names of Models. They are not sure while a worker has yet to say what it
// serves.
func (p *Pool) ServedNames() (names []string, sure bool) {
	c := p.catalog()
	return slices.Clone(c.names), len(c.unsure) == 0
}

// First is the first model by name that a worker which is well serves; none is: the first one that
// any serves, or "".
func (p *Pool) First(now time.Time) string {
	c := p.catalog()
	for _, name := range c.names {
		for _, w := range c.served[name].workers {
			if w.well(now) {
				return name
			}
		}
	}
	if len(c.names) == 0 {
		return ""
	}
	return c.names[0]
}

// well says whether the worker may be asked, whatever it has to do.
func (w *Worker) well(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health.state(now).TakesRequests()
}

// Serves says whether a worker is known to serve the model, up or not.
func (p *Pool) Serves(model string) bool {
	_, ok := p.catalog().served[model]
	return ok
}

// find returns who serves the model: one worker at least, since policies pick one.
func (p *Pool) find(model string) (*served, error) {
	c := p.catalog()
	if s := c.served[model]; s != nil {
		if len(s.workers) == 0 { // all are drained
			return nil, ErrNoWorker
		}
		return s, nil
	}
	if len(c.unsure) > 0 {
		return nil, &UnsureError{Workers: c.unsure}
	}
	return nil, ErrUnknownModel
}

// catalog returns the index, made anew if a worker's models changed.
func (p *Pool) catalog() *catalog {
	if c := p.known.Load(); c != nil && c.version == p.line.version.Load() {
		return c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// The version is read before the models: what changes in between is seen
	// as a change by the next caller.
	version := p.line.version.Load()
	c := p.known.Load()
	if c == nil || c.version != version {
		c = newCatalog(p.options.Workers, version)
		p.known.Store(c)
	}
	return c
}

func newCatalog(workers []*Worker, version uint64) *catalog {
	c := &catalog{version: version, served: make(map[string]*served)}
	for _, w := range workers {
		if !w.takesRequests() {
			continue
		}
		models, known := w.Models()
		if !known {
			c.unsure = append(c.unsure, w.name)
		}
		for _, m := range models {
			c.add(w, m)
		}
	}
	for _, w := range workers {
		if !w.takesRequests() {
			models, _ := w.Models()
			for _, m := range models {
				c.addPrefill(w, m)
			}
		}
	}
	c.names = slices.Sorted(maps.Keys(c.served))
	return c
}

// addPrefill notes that w computes prompts of m, if somebody answers them.
func (c *catalog) addPrefill(w *Worker, m Model) {
	s := c.served[m.Name]
	switch {
	case s == nil || slices.Contains(s.prefills, w):
	case w.Draining():
		s.drained = append(s.drained, w.name)
	default:
		s.prefills = append(s.prefills, w)
	}
}

func (c *catalog) add(w *Worker, m Model) {
	s := c.served[m.Name]
	if s == nil {
		s = &served{Served: Served{Name: m.Name}}
		c.served[m.Name] = s
	}
	if w.Draining() {
		s.drained = append(s.drained, w.name)
		return
	}
	if m.MaxModelLen > 0 && (s.MaxModelLen == 0 || m.MaxModelLen < s.MaxModelLen) {
		s.MaxModelLen = m.MaxModelLen
	}
	if slices.Contains(s.workers, w) { // an engine that lists a name twice
		return
	}
	s.workers = append(s.workers, w)
	s.decodes = s.decodes || w.role == Decode
	s.Workers = append(s.Workers, w.name)
}
