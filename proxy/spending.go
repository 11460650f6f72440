// Spending: requests and tokens by key, and what tokens cost.

package proxy

import (
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/openai/answer"
)

// A Price is what a million tokens of a model cost.
type Price struct {
	Prompt, Completion float64
	Cached             float64 // of the prompt's that the worker had cached; -1: as others of it
}

// isSet says whether the configuration names a price.
func (p *Price) isSet() bool { return p.Prompt > 0 || p.Completion > 0 || p.Cached > 0 }

// of is what the tokens cost.
func (p *Price) of(u answer.Usage) float64 {
	prompt, cached := float64(max(u.Prompt, 0)), float64(min(max(u.Cached, 0), max(u.Prompt, 0)))
	price := p.Cached
	if price < 0 {
		price = p.Prompt
	}
	return ((prompt-cached)*p.Prompt + cached*price + float64(max(u.Completion, 0))*p.Completion) / 1e6
}

// What became of the requests of a key.
const (
	keyAnswered = iota
	keyLimited
	keyBlocked
	keyFailed
	keyResults
)

var keyResultNames = [keyResults]string{keyAnswered: "answered", keyLimited: "limited", keyBlocked: "blocked", keyFailed: "failed"}

// A keyMeter is the counters of one key, which are there from when the configuration names it until
// it does no more.
type keyMeter struct {
	tenant                     *tenantMeter
	requests                   [keyResults]prometheus.Counter
	prompt, completion, cached prometheus.Counter
}

// A tenantMeter is what the requests of one tenant cost.
type tenantMeter struct {
	name  string
	costs known[costLabels, costMeter]

	mu   sync.Mutex // held while costs grow
	left bool       // no key has the tenant any more: what is counted now is not shown
}

type costLabels struct{ model, currency string }

type costMeter struct{ spent, saved prometheus.Counter }

// spending is what keys and tenants use. Both have at most maxNames names.
type spending struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	cost     *prometheus.CounterVec
	saved    *prometheus.CounterVec

	savedPrompt, savedCompletion prometheus.Counter

	nobody  *tenantMeter          // of requests without a key
	keys    map[keyName]*keyMeter // these two change with Proxy.applying held
	tenants map[string]*tenantMeter
}

type keyName struct{ key, tenant string }

func newSpending(f making) *spending {
	tokens := f.counters("kvasir_cache_saved_tokens_total", "Tokens of answers that the cache gave again, as the worker that made them counted.", "type")
	return &spending{
		requests: f.counters("kvasir_key_requests_total", "Requests by key, and what became of them.", "key", "tenant", "result"),
		tokens:   f.counters("kvasir_key_tokens_total", "Tokens by key, as workers counted them.", "key", "tenant", "type"),
		cost:     f.counters("kvasir_cost_total", "What the tokens of workers cost, in units of the currency.", "model", "tenant", "currency"),
		saved:    f.counters("kvasir_cache_saved_cost_total", "What answers of the cache would have cost, in units of the currency.", "model", "tenant", "currency"),

		savedPrompt: tokens.WithLabelValues("prompt"), savedCompletion: tokens.WithLabelValues("completion"),
		nobody: &tenantMeter{}, keys: map[keyName]*keyMeter{}, tenants: map[string]*tenantMeter{},
	}
}

// follow gives the keys of a configuration their counters, in its order, and drops those of keys
// and tenants that it does not name. It is called with Proxy.applying held.
func (s *spending) follow(keys []Key, ring *keyring) {
	named, tenants := map[keyName]*keyMeter{}, map[string]*tenantMeter{}
	for i := range keys {
		k := &keys[i]
		name := keyName{k.Name, tenantLabel(k)}
		if _, ok := named[name]; !ok && len(named) >= maxNames {
			name = keyName{otherName, otherName}
		}
		if named[name] == nil {
			named[name] = s.meterOf(name)
		}
		tenants[name.tenant] = named[name].tenant
		ring.byDigest[k.SHA256].meter.Store(named[name])
	}
	for name := range s.keys {
		if named[name] == nil {
			s.drop(name)
		}
	}
	for name, t := range s.tenants {
		if tenants[name] == nil {
			s.leave(t)
			delete(s.tenants, name)
		}
	}
}

// drop drops the series of a key, each by all its labels: a look for those that have some of them
// goes through all series, and a configuration may drop a thousand keys at once.
func (s *spending) drop(name keyName) {
	for _, result := range keyResultNames {
		s.requests.DeleteLabelValues(name.key, name.tenant, result)
	}
	for _, kind := range [...]string{"prompt", "completion", "cached"} {
		s.tokens.DeleteLabelValues(name.key, name.tenant, kind)
	}
	delete(s.keys, name)
}

// tenantLabel is whom a key belongs to.
func tenantLabel(k *Key) string {
	if k.Tenant == "" {
		return k.Name
	}
	return k.Tenant
}

func (s *spending) meterOf(name keyName) *keyMeter {
	if m := s.keys[name]; m != nil {
		return m
	}
	t := s.tenants[name.tenant]
	if t == nil {
		t = &tenantMeter{name: name.tenant}
		s.tenants[name.tenant] = t
	}
	m := &keyMeter{
		tenant: t,
		prompt: s.tokens.WithLabelValues(name.key, name.tenant, "prompt"), completion: s.tokens.WithLabelValues(name.key, name.tenant, "completion"),
		cached: s.tokens.WithLabelValues(name.key, name.tenant, "cached"),
	}
	for i, result := range keyResultNames {
		m.requests[i] = s.requests.WithLabelValues(name.key, name.tenant, result)
	}
	s.keys[name] = m
	return m
}

// leave drops the series of a tenant. Requests that are under way come too late for them.
func (s *spending) leave(t *tenantMeter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
	if costs := t.costs.all.Load(); costs != nil {
		for of := range *costs {
			s.cost.DeleteLabelValues(of.model, t.name, of.currency)
			s.saved.DeleteLabelValues(of.model, t.name, of.currency)
		}
	}
}

// costOf are the counters of what a tenant pays for a model.
func (s *spending) costOf(t *tenantMeter, of costLabels) *costMeter {
	if m := t.costs.get(of); m != nil {
		return m
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return &costMeter{prometheus.NewCounter(prometheus.CounterOpts{Name: "left"}), prometheus.NewCounter(prometheus.CounterOpts{Name: "left"})}
	}
	return t.costs.put(of, &costMeter{s.cost.WithLabelValues(of.model, t.name, of.currency), s.saved.WithLabelValues(of.model, t.name, of.currency)})
}

// note counts what a request has used.
func (s *spending) note(x *exchange) {
	f := &x.facts
	tenant, key := s.nobody, (*keyMeter)(nil)
	if x.plan.key != nil {
		key = x.plan.key.meter.Load()
		tenant = key.tenant
		key.requests[keyResultOf(f)].Inc()
	}
	if f.cache.result == cacheHit {
		s.savedPrompt.Add(float64(max(f.saved.Prompt, 0)))
		s.savedCompletion.Add(float64(max(f.saved.Completion, 0)))
		if price := x.price(); price.isSet() {
			s.costOf(tenant, x.costLabels()).saved.Add(price.of(f.saved))
		}
		return
	}
	if f.usage == answer.NoUsage || x.backend == nil {
		return
	}
	if key != nil {
		key.prompt.Add(float64(max(f.usage.Prompt, 0)))
		key.completion.Add(float64(max(f.usage.Completion, 0)))
		key.cached.Add(float64(max(f.usage.Cached, 0)))
	}
	if price := x.price(); price.isSet() {
		f.priced, f.cost = true, price.of(f.usage)
		s.costOf(tenant, x.costLabels()).spent.Add(f.cost)
	}
}

// price is that of the model that answered.
func (x *exchange) price() Price { return x.plan.state.models[x.plan.model].Price }

func (x *exchange) costLabels() costLabels {
	return costLabels{x.plan.model, x.plan.state.settings.Currency}
}

// keyResultOf is what became of a key's request.
func keyResultOf(f *facts) int {
	switch {
	case f.why == "":
		return keyAnswered
	case f.why == "rate_limit_exceeded":
		return keyLimited
	case f.why == "blocked":
		return keyBlocked
	}
	return keyFailed
}

// billionths rounds what the log says of a cost.
func billionths(cost float64) float64 { return math.Round(cost*1e9) / 1e9 }
