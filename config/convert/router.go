// Semantic Router: which of its three shapes a file has, and where each part stands in it.

package convert

import (
	"fmt"
	"slices"
	"strings"

	"kvasir/classify"
	"kvasir/wording"
)

// The shapes of Semantic Router's files. The router itself read one with everything at the top
// until 2026; its command line reads one with a version, which is the only one since v0.3.
const (
	shapeFlat = ""     // vllm_endpoints, model_config, categories, decisions
	shapeV01  = "v0.1" // providers, signals, decisions
	shapeV03  = "v0.3" // providers, routing, global
)

// routerKeys tell a file of Semantic Router, by shape.
var routerKeys = map[string][]string{
	shapeFlat: {"vllm_endpoints", "model_config", "categories", "keyword_rules", "decisions", "semantic_cache", "prompt_guard", "classifier"},
	shapeV01:  {"providers", "signals", "decisions"},
	shapeV03:  {"providers", "routing", "global"},
}

// A router is a file of Semantic Router on its way into a draft.
type router struct {
	doc   *doc
	d     *draft
	root  *value
	shape string

	families map[string]string // Kvasir's family of reasoning, by theirs
	real     map[string]string // what a worker calls a model, by the file's name for it
}

func fromSemanticRouter(doc *doc, root *value, d *draft) error {
	shape := root.get("version").text()
	if !root.has("version") {
		shape = shapeWithout(root)
	}
	keys, ok := routerKeys[shape]
	if !ok {
		return fmt.Errorf("%s:%d: version %s of Semantic Router's configuration is not known; those that are: v0.1, v0.3, and files without a version",
			doc.name, root.get("version").line(), wording.Quote(shape))
	}
	if !slices.ContainsFunc(keys, func(k string) bool { return root.has(k) }) || root.has("model_list") || root.has("workers") || root.has("apiVersion") {
		return unlike(doc, "Semantic Router", keys, root)
	}
	doc.lost = routerLost
	r := &router{doc: doc, d: d, root: root, shape: shape, families: map[string]string{}, real: map[string]string{}}
	r.listeners()
	r.readFamilies()
	modelReader{r}.read()
	signals := readSignals(r)
	decisionReader{r, signals}.read()
	guardReader{r}.read()
	cacheReader{r}.read()
	r.noWorker()
	return nil
}

// shapeWithout is the shape of a file that does not say its version.
func shapeWithout(root *value) string {
	switch {
	case root.has("routing"):
		return shapeV03
	case root.has("providers"), root.has("signals"):
		return shapeV01
	}
	return shapeFlat
}

// first is the first of several places that is there, each a path; if none is, the last.
func (r *router) first(paths ...[]string) (v *value) {
	for _, path := range paths {
		if v = r.root.get(path...); v.there() {
			return v
		}
	}
	return v
}

func path(keys ...string) []string { return keys }

// defaults has default_model, default_reasoning_effort and reasoning_families.
func (r *router) defaults() *value {
	switch r.shape {
	case shapeV03:
		return r.root.get("providers", "defaults")
	case shapeV01:
		return r.root.get("providers")
	}
	return r.root
}

// signalsOf are those of a kind, by its name since v0.1 and the one before.
func (r *router) signalsOf(kind, flat string) []*value {
	switch r.shape {
	case shapeV03:
		return r.root.get("routing", "signals", kind).items()
	case shapeV01:
		return r.root.get("signals", kind).items()
	}
	return r.root.get(flat).items()
}

func (r *router) decisions() *value {
	if r.shape == shapeV03 {
		return r.root.get("routing", "decisions")
	}
	return r.root.get("decisions")
}

// listeners: the first one is where clients ask.
func (r *router) listeners() {
	for i, l := range r.root.get("listeners").items() {
		if i > 0 {
			l.drop("Kvasir has one address for clients, so only the first listener is taken over")
			continue
		}
		port, ok := l.get("port").within(1, 65535)
		if ok {
			r.d.listen, r.d.listenAt = hostPort(either(l.get("address").text(), "0.0.0.0"), int(port)), l
		}
		if text := l.get("timeout").text(); text != "" {
			r.d.firstByte, r.d.timeoutAt = durationOf(l.get("timeout")), l.get("timeout")
		}
		l.quiet("name")
	}
}

// readFamilies finds the family of ours that switches thinking in the same way.
func (r *router) readFamilies() {
	for _, f := range r.defaults().get("reasoning_families").entries() {
		kind, parameter := f.get("type").text(), f.get("parameter").text()
		switch {
		case kind == "chat_template_kwargs" && parameter == "enable_thinking":
			r.families[f.key] = "qwen3"
		case kind == "chat_template_kwargs" && parameter == "thinking":
			r.families[f.key] = "deepseek"
		case kind == "reasoning_effort" && f.key == "gpt-oss", kind == "reasoning_effort" && f.key == "gpt_oss":
			r.families[f.key] = "gpt-oss"
		case kind == "reasoning_effort", kind == "top_level_reasoning_effort":
			r.families[f.key] = "gpt"
		default:
			r.doc.note(f, "Kvasir cannot switch thinking in this way, so the engine decides whether these models think. The families that it can switch are qwen3, deepseek, gpt-oss and gpt")
		}
	}
}

// familyOf is ours of a family that a model names.
func (r *router) familyOf(v *value) string {
	name := v.text()
	if name == "" {
		return ""
	}
	if f := r.families[name]; f != "" {
		return f
	}
	if slices.Contains([]string{"qwen3", "deepseek", "gpt-oss", "gpt"}, name) {
		return name
	}
	r.doc.note(v, "this family of reasoning is not known here, so decisions do not switch the model's thinking")
	return ""
}

// modelNamed is the model that the file calls so, which need not be described in it.
func (r *router) modelNamed(at *value, name string) *model {
	return r.d.modelFor(at, either(r.real[name], name))
}

// last adds a decision below all others.
func (r *router) last(d decision) *decision {
	for _, other := range r.d.decisions {
		d.priority = min(d.priority, other.priority-1)
	}
	r.d.decide(d)
	return &r.d.decisions[len(r.d.decisions)-1]
}

// types are ours of the types of personal data in a list.
func (r *router) types(v *value) []string {
	list := []string{}
	for _, e := range v.items() {
		name := strings.ToUpper(e.text())
		if len(name) > 2 && name[1] == '-' {
			name = name[2:] // B-US_SSN
		}
		switch {
		case !known(classify.KindPII, name):
			r.doc.note(e, wording.Quote(name)+" is no type of personal data here"+wording.DidYouMean(name, classify.Values(classify.KindPII)))
		case !slices.Contains(list, name):
			list = append(list, name)
		}
	}
	return list
}

// scale notes a threshold that cannot be taken over.
func (r *router) scale(v *value, text string) {
	if v.text() != "" {
		r.doc.note(v, text+", so it is left out; try it with kvasir explain")
	}
}

// noWorker puts a worker to be filled in where the file names none, and says which models none has.
func (r *router) noWorker() {
	d := r.d
	if len(d.workers) == 0 {
		r.doc.note(r.root, "the file has no endpoint that can be a worker; put your worker's address in place of http://127.0.0.1:8000")
		d.workers = []*worker{{name: "worker", url: "http://127.0.0.1:8000"}}
		for _, m := range d.models {
			d.workers[0].serves(m.name)
		}
		return
	}
	if slices.ContainsFunc(d.workers, func(w *worker) bool { return len(w.models) == 0 }) {
		return // it is asked for its models
	}
	for _, m := range d.models {
		if !slices.ContainsFunc(d.workers, func(w *worker) bool { return slices.Contains(w.models, m.name) }) {
			r.doc.note(m.at, "no endpoint serves the model "+wording.Quote(m.name)+"; add it to the models of a worker")
		}
	}
}
