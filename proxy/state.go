// State: what one generation of the configuration came to be.

package proxy

import (
	"time"

	"kvasir/classify"
	"kvasir/kvroute"
	"kvasir/proxy/hardware"
	"kvasir/proxy/tokens"
	"kvasir/upstream"
)

// A state is one immutable generation. Requests keep the one they began under.
type state struct {
	settings   *Settings
	pool       *kvroute.Pool
	backends   map[*kvroute.Worker]*backend
	ordered    []*backend        // in the order of the settings
	instances  map[string]string // names of workers by what clients may call them
	keys       *keyring
	budget     *kvroute.Budget
	models     map[string]Model // what the configuration says of a name
	classifier *classify.Classifier
	deciding   *classify.Classifier // of texts on the admin listener
	handsOver  bool                 // there is a prefill worker
	standard   string               // what MoM and auto stand for; "": the first model that a worker which is well serves
}

// isAutoModel recognises the names that leave the choice to us.
func isAutoModel(name string) bool { return name == "MoM" || name == "auto" }

// Apply makes the settings the ones that new requests are served under.
// Connections to workers that are named as before stay; requests under way
// keep what they began with.
func (p *Proxy) Apply(s *Settings) error {
	p.applying.Lock()
	defer p.applying.Unlock()
	return p.apply(s, p.state.Load(), renewed)
}

// ApplyWorkers is Apply for settings that differ from those that are served in nothing but
// the workers, and what is said of where these come from. The classifiers stay, with the
// texts that they have judged already, which Apply makes anew: 12 MB, and every prompt of
// a conversation judged again.
func (p *Proxy) ApplyWorkers(s *Settings) error {
	p.applying.Lock()
	defer p.applying.Unlock()
	old := p.state.Load()
	judging := kept
	if old == nil {
		judging = renewed
	}
	if err := p.apply(s, old, judging); err != nil {
		return err
	}
	p.metrics.found.Inc()
	return nil
}

// apply is Apply after the old state; judging gives the classifiers of the next one.
func (p *Proxy) apply(s *Settings, old *state, judging func(next, old *state) error) error {
	next := &state{
		settings: s,
		backends: make(map[*kvroute.Worker]*backend, len(s.Workers)),
		models:   make(map[string]Model, len(s.Models)),

		instances: make(map[string]string, len(s.Workers)),
	}
	for _, m := range s.Models {
		next.models[m.Name] = m
		if m.Default {
			next.standard = m.Name
		}
	}
	var workers []*kvroute.Worker
	before := old.byName()
	for _, w := range s.Workers {
		b, err := p.backendFor(before[w.Name], old, w, s.Timeouts)
		if err != nil {
			return err
		}
		b.SetDraining(p.drained[w.Name])
		next.backends[b.Worker.Worker] = b
		next.ordered = append(next.ordered, b)
		next.instances[w.Name] = w.Name
		if w.Instance != "" {
			next.instances[w.Instance] = w.Name
		}
		workers = append(workers, b.Worker.Worker)
		next.handsOver = next.handsOver || b.Role() == kvroute.Prefill
	}
	if err := judging(next, old); err != nil {
		return err
	}
	o := s.Routing.PoolOptions
	o.Workers, o.CentralQueue = workers, s.Routing.Queue
	if s.Peers != nil {
		o.News = s.Peers.Tell
	}
	if old != nil {
		o.After = old.pool
	}
	next.pool = kvroute.NewPool(o)
	for i, w := range workers { // nothing can fail from here on
		w.SetMaxRequests(s.Workers[i].MaxRequests)
		next.ordered[i].SetSource(s.Workers[i].Source)
	}
	next.budget = newBudget(s)
	var ring *keyring
	if old != nil {
		ring = old.keys
		next.budget = old.budgetFor(s)
	}
	if p.accounts == nil && s.Peers != nil {
		p.accounts = newAccounts(p, s.Peers)
	}
	next.keys = newKeyring(s.Keys, ring, p.accounts)
	p.metrics.spending.follow(s.Keys, next.keys)
	p.watchAll(next)
	p.bodies.SetLimit(s.BodyMemory)
	p.descriptors.Share(len(s.Workers))
	p.state.Store(next)
	p.accounts.keep(next.keys)
	next.pool.Start()
	next.tellPeers()
	p.tokenizers.Follow(next.wantsTokens())
	p.hardware.Follow(&s.GPU, next.onGPUs())
	p.noteUnserved()
	if old != nil {
		old.retire(next)
		p.metrics.forget(old, next)
	}
	return nil
}

// renewed makes the classifiers that the settings ask for.
func renewed(next, old *state) (err error) {
	o := &next.settings.Classify
	if next.classifier, err = classifierFor(old, o); err != nil {
		return err
	}
	next.deciding, err = next.classifier.With(withoutBlocks(*o))
	return err
}

// kept has the classifiers of the old state go on.
func kept(next, old *state) error {
	next.classifier, next.deciding = old.classifier, old.deciding
	return nil
}

// has says whether there is a worker of that name.
func (s *state) has(name string) bool {
	_, ok := s.instances[name]
	return ok
}

// classifierFor makes the classifier of a configuration. The embedding stays what it was at the start: the cache keeps
// what was made with it.
func classifierFor(old *state, o *classify.Options) (*classify.Classifier, error) {
	if old == nil {
		return classify.New(*o)
	}
	return old.classifier.Renew(*o)
}

// peers are the workers, in the order of the settings.
func (s *state) peers() []*upstream.Worker {
	all := make([]*upstream.Worker, len(s.ordered))
	for i, b := range s.ordered {
		all[i] = b.Worker
	}
	return all
}

// wantsTokens is what is served, as the sources of tokens have to know it.
func (s *state) wantsTokens() *tokens.Served {
	t := &tokens.Served{Wanted: s.prices(), Pool: s.pool, Workers: s.peers(), Tokenizers: make(map[string]string, len(s.models))}
	for _, m := range s.settings.Models {
		if t.Tokenizers[m.Name] == "" {
			t.Tokenizers[m.Name] = m.Tokenizer
		}
	}
	return t
}

// onGPUs are the workers as their GPUs are looked at.
func (s *state) onGPUs() []hardware.Worker {
	all := make([]hardware.Worker, len(s.ordered))
	for i, own := range s.settings.GPUWorkers() {
		all[i] = hardware.Worker{Live: s.ordered[i].Worker.Worker, Own: own, URL: s.settings.Workers[i].URL}
	}
	return all
}

// withoutBlocks has every guard on and none that ends the judging: who asks
// about a text on the admin listener wants to know everything.
func withoutBlocks(o classify.Options) classify.Options {
	o.Jailbreak.Action, o.PII.Action, o.PII.All = classify.Annotate, classify.Annotate, true
	return o
}

func (s *state) budgetFor(next *Settings) *kvroute.Budget {
	if s.settings.Retry.Budget == next.Retry.Budget {
		return s.budget
	}
	return newBudget(next)
}

// newBudget is Linkerd's shape of a retry budget.
func newBudget(s *Settings) *kvroute.Budget {
	return kvroute.NewBudget(s.Retry.Budget, 3, 20)
}

// byName are the backends by the names of their workers; none of no state.
func (s *state) byName() map[string]*backend {
	if s == nil {
		return nil
	}
	all := make(map[string]*backend, len(s.ordered))
	for _, b := range s.ordered {
		all[b.Name()] = b
	}
	return all
}

// backendFor is before, the old generation's backend of that name, when nothing about it
// has changed.
func (p *Proxy) backendFor(before *backend, old *state, w Worker, t Timeouts) (*backend, error) {
	if before != nil && before.Settings.Same(&w) && old.settings.Timeouts.dials(t) {
		return before, nil
	}
	if before != nil && before.Settings.URL != w.URL {
		before = nil // another server
	}
	b, err := newBackend(w, &t)
	if err != nil {
		return nil, err
	}
	b.Conns.Spare = p.closeIdle
	if before != nil && len(w.Models) == 0 && len(before.Settings.Models) == 0 {
		// Until it answers again it is taken to serve what it served before, so that requests need
		// not wait for that.
		if models, known := before.Models(); known {
			b.SetModels(models)
		}
	}
	return b, nil
}

// dials says whether connections are made and written under the same clocks.
func (t Timeouts) dials(o Timeouts) bool { return t.Connect == o.Connect && t.Write == o.Write }

// retire lets go of what only the old generation had.
func (s *state) retire(next *state) {
	for w, b := range s.backends {
		if next == nil || next.backends[w] != b {
			b.retire()
		}
	}
}

// defaultModel is what MoM and auto stand for.
func (s *state) defaultModel() string {
	if s.standard != "" {
		return s.standard
	}
	if first := s.pool.First(time.Now()); first != "" {
		return first
	}
	if len(s.settings.Models) > 0 {
		return s.settings.Models[0].Name
	}
	return "auto"
}

// serves says whether the model is one that could be had here: without it, the
// names that clients make up would each get counters of their own.
func (s *state) serves(model string) bool {
	_, named := s.models[model]
	return named || s.pool.Serves(model)
}
