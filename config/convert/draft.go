// The draft: what was found for our configuration, until it is written.

package convert

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"kvasir/classify"
	"kvasir/config"
	"kvasir/upstream"
	"kvasir/wording"
)

// A draft is our configuration in the making. What is empty is left to its default, and not
// written.
type draft struct {
	doc     *doc
	program string

	listen    string
	listenAt  *value
	firstByte float64 // seconds
	timeoutAt *value
	retries   float64
	retriesAt *value

	keys      []clientKey
	workers   []*worker
	models    []*model
	policy    string
	policyAt  *value
	guards    guards
	signals   []signal
	decisions []decision
	order     string
	cache     cache
	currency  string
	variables []string
	addresses []string             // those of variables that hold a URL
	secrets   map[ownSecret]string // our variables for those that stand in the file itself
	ownNames  map[string]int       // of these variables, with the number that was last put behind each

	byName        map[string]*model
	workerNames   names
	signalNames   names
	decisionNames names
}

// An ownSecret is one that stands in the file itself, and whose it is.
type ownSecret struct{ owner, secret string }

// A clientKey is one that clients show.
type clientKey struct {
	name, sum string // sum: SHA-256 in hex, or a variable with it
	at        *value
}

// A worker is one engine.
type worker struct {
	name, url   string
	models      []string
	headers     []header
	maxRequests int
	any         bool // it is asked for its models
	at          *value
}

// A header goes with every request to a worker; its value names variables.
type header struct{ name, value string }

// A model is what is said of a name.
type model struct {
	name      string
	standard  bool
	fallback  []string
	reasoning string
	price     price
	at        *value
}

// A price is what a million tokens of a model cost; what is 0 is not written.
type price struct{ prompt, completion, cached float64 }

// guards are what is judged in every request. A threshold of 0 is not written.
type guards struct {
	category         float64
	categoryAt       *value
	jailbreak        string // the action
	jailbreakAbove   float64
	jailbreakAt      *value
	pii              string
	piiAbove         float64
	piiAllow         []string // nil: not written
	piiAt            *value
	jailbreakComment string
	piiComment       string
}

// A signal is one that users make. Exactly one of its kinds is set.
type signal struct {
	options classify.SignalOptions
	at      *value
}

// A decision is what follows where a condition holds.
type decision struct {
	name, about  string
	when         *classify.Condition // nil: always
	priority     int
	all          bool // it applies to requests that name a model, too
	alias        bool // it stands for another name of a model
	model        string
	reasoning    string
	prompt       string
	insert       bool
	piiAllow     []string // nil: not written
	cacheOff     bool
	cacheAbove   float64
	refuse       string
	maxTokens    int
	maxChoices   int
	at           *value
	piiAllowsAny bool // every type may pass
}

// cache is where answers are kept.
type cache struct {
	store      string
	threshold  float64
	ttl        float64 // seconds
	maxEntries float64
	milvus     *milvus
	comment    string
	at         *value
}

// milvus is the store of cache.store: milvus.
type milvus struct {
	address, collection, token string
}

// workerFor is the worker at a URL with these headers, made if there is none yet.
func (d *draft) workerFor(at *value, name, url string, headers []header) *worker {
	for _, w := range d.workers {
		if w.url == url && slices.Equal(w.headers, headers) {
			return w
		}
	}
	w := &worker{name: d.workerName(name, url), url: url, headers: headers, at: at}
	d.workers = append(d.workers, w)
	return w
}

func (w *worker) serves(model string) {
	if !slices.Contains(w.models, model) {
		w.models = append(w.models, model)
	}
}

// workerName makes a name that may stand in a header, and that no other worker has.
func (d *draft) workerName(name, raw string) string {
	if name = plainName(name); name == "" {
		if u, err := url.Parse(raw); err == nil {
			name = plainName(u.Host)
		}
	}
	if name == "" {
		name = "worker"
	}
	return d.workerNames.unique(name)
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._:/@-]+`)

// plainName is a name with nothing in it that a header may not have.
func plainName(name string) string {
	name = strings.Trim(unfit.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 64)]
}

// names are those that are taken, with the number that was last put behind each.
type names map[string]int

// unique takes name, or name with the first number behind it that is free.
func (n *names) unique(name string) string {
	if *n == nil {
		*n = names{}
	}
	free := name
	for last, taken := (*n)[name]; taken; _, taken = (*n)[free] {
		last++
		free = fmt.Sprintf("%s-%d", name, last)
		(*n)[name] = last
	}
	(*n)[free] = max((*n)[free], 1)
	return free
}

// modelFor is what is said of a model, made if nothing is yet; nil where it can be no name of one,
// which is noted.
func (d *draft) modelFor(at *value, name string) *model {
	if m := d.byName[name]; m != nil {
		return m
	}
	if err := upstream.CheckModel(name); err != nil {
		d.doc.note(at, "this model's name "+err.Error())
		return nil
	}
	m := &model{name: name, at: at}
	if d.byName == nil {
		d.byName = map[string]*model{}
	}
	d.models, d.byName[name] = append(d.models, m), m
	return m
}

// priced takes what a million tokens of a model cost from three places, each times a scale.
func (d *draft) priced(m *model, prompt, completion, cached *value, scale float64) {
	for _, p := range []struct {
		at *value
		to *float64
	}{{prompt, &m.price.prompt}, {completion, &m.price.completion}, {cached, &m.price.cached}} {
		if n, ok := p.at.within(0, 1e9/scale); ok && *p.to == 0 {
			*p.to = math.Round(n*scale*1e6) / 1e6
		}
	}
}

// knows says whether there is a model of this name.
func (d *draft) knows(name string) bool { return d.byName[name] != nil }

// decide adds a decision, under a name that no other has.
func (d *draft) decide(dec decision) {
	if dec.name = plainName(dec.name); dec.name == "" {
		dec.name = "decision"
	}
	dec.name = d.decisionNames.unique(dec.name)
	d.decisions = append(d.decisions, dec)
}

// alias lets clients ask for a model by another name, by a decision that stands before all others.
func (d *draft) alias(at *value, from, to string) {
	if upstream.CheckModel(from) != nil {
		d.doc.note(at, wording.Quote(from)+" cannot be another name of a model here; clients have to ask for "+wording.Quote(to))
		return
	}
	name := d.decisionNames.unique("alias-" + plainName(from))
	first := slices.IndexFunc(d.decisions, func(o decision) bool { return !o.alias })
	if first < 0 {
		first = len(d.decisions)
	}
	d.decisions = slices.Insert(d.decisions, first, decision{name: name, all: true, alias: true, model: to, at: at,
		about: "another name of the model", when: is(classify.KindModel, from)})
}

// is is the condition that a signal has one of these values.
func is(kind classify.Kind, values ...string) *classify.Condition {
	return &classify.Condition{Is: []classify.Is{{Kind: kind, Values: values}}}
}

// baseURL is the address of a worker as ours has it: without /v1 and the route behind it.
func baseURL(raw string) (string, error) {
	bare := strings.TrimRight(raw, "/")
	for _, end := range []string{"/chat/completions", "/completions", "/v1"} {
		bare = strings.TrimRight(strings.TrimSuffix(bare, end), "/")
	}
	return strings.ReplaceAll(bare, "${", "$${"), config.CheckURL(bare)
}

// secret is how the result names a secret that stands at a place: by the variable that the file
// names, or by one named after owner where the secret itself stands there. It is "" where nothing
// is there that could be one.
func (d *draft) secret(at *value, owner string) string {
	text := strings.TrimSpace(at.text())
	if text == "" || slices.Contains(noSecrets, strings.ToLower(text)) {
		return ""
	}
	if name := variableOf(text); name != "" {
		return d.variable(at, name)
	}
	name := strings.ToUpper(strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(owner, "_"), "_"))
	if name == "" || name[0] >= '0' && name[0] <= '9' || strings.HasPrefix(name, "KVASIR_") {
		name = "KEY_" + name
	}
	name = d.ownVariable(name, text)
	d.doc.note(at, "a secret stands here itself; it is not copied: put it into the environment variable "+name+", or into a file (key_file)")
	return d.variable(at, name)
}

// ownVariable is name, or name with a number where it stands for another secret already.
func (d *draft) ownVariable(name, secret string) string {
	own := ownSecret{name, secret}
	if known := d.secrets[own]; known != "" {
		return known
	}
	if d.secrets == nil {
		d.secrets, d.ownNames = map[ownSecret]string{}, map[string]int{}
	}
	free := name
	for d.ownNames[free] > 0 || slices.Contains(d.variables, free) {
		d.ownNames[name] = max(d.ownNames[name], 1) + 1
		free = fmt.Sprintf("%s_%d", name, d.ownNames[name])
	}
	d.ownNames[free] = max(d.ownNames[free], 1)
	d.secrets[own] = free
	return free
}

// noSecrets are what stands for no key at all, where one has to be given.
var noSecrets = []string{"none", "null", "empty", "dummy", "fake", "fake-key", "not-needed", "no-key", "-"}

// variable is a reference to a variable of the environment.
func (d *draft) variable(at *value, name string) string {
	if strings.HasPrefix(name, "KVASIR_") {
		d.doc.note(at, "variables that begin with KVASIR_ set keys of Kvasir; give this one another name, here "+name[len("KVASIR_"):])
		name = "X_" + name[len("KVASIR_"):]
	}
	if !slices.Contains(d.variables, name) {
		d.variables = append(d.variables, name)
	}
	return "${" + name + "}"
}

// addressVariable is a reference to a variable that holds a URL.
func (d *draft) addressVariable(at *value, name string) string {
	if !slices.Contains(d.addresses, name) {
		d.addresses = append(d.addresses, name)
	}
	return d.variable(at, name)
}

var reference = regexp.MustCompile(`^(?:os\.environ/|\$\{?)([A-Za-z_][A-Za-z0-9_]{0,127})\}?$`)

// variableOf is the variable that a value names in the way of either program; "": it names none.
func variableOf(text string) string {
	if m := reference.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// looksSecret says whether a text may be a credential, whatever it is called: a scheme and what
// follows it, or one long word of letters and digits.
func looksSecret(text string) bool {
	return schemed.MatchString(text) || strings.HasPrefix(text, "sk-") ||
		len(text) >= 20 && !strings.ContainsAny(text, " \t,;:") && strings.ContainsAny(text, "0123456789") && strings.ContainsFunc(text, unicode.IsLetter)
}

var schemed = regexp.MustCompile(`(?i)^(bearer|basic|token|apikey|digest)\s`)

// headerValue is the value of a header; one that may be a secret, by the header's name or by itself, is
// taken from the environment.
func (d *draft) headerValue(h *value, owner string) string {
	name := strings.ToLower(h.key)
	for _, word := range []string{"auth", "key", "token", "secret", "password", "cookie", "credential", "signature"} {
		if strings.Contains(name, word) {
			return either(d.secret(h, owner+"_"+h.key), "-")
		}
	}
	if name := variableOf(h.text()); name != "" {
		return d.variable(h, name)
	}
	if looksSecret(h.text()) {
		return either(d.secret(h, owner+"_"+h.key), "-")
	}
	return strings.ReplaceAll(h.text(), "${", "$${")
}
