// Semantic Router's decisions, or the categories that decided before there were any, to ours.

package convert

import (
	"cmp"
	"slices"
	"strings"

	"kvasir/wording"
)

// A piiPolicy is which personal data may pass where a decision is taken.
type piiPolicy struct {
	on      bool
	allowed []string
}

// A decisionReader takes over the decisions, whose rules ask for signals.
type decisionReader struct {
	file    *router
	signals *signalReader
}

func (r decisionReader) read() {
	r.file.d.order = "priority"
	strategy := r.file.first(path("routing", "strategy"), path("global", "router", "strategy"), path("strategy"))
	if s := strategy.text(); s != "" && s != "priority" {
		r.file.doc.note(strategy, "Kvasir takes the decision with the highest priority, or the first; it does not compare confidences")
	}
	var policies []piiPolicy
	before := len(r.file.d.decisions)
	list := r.file.decisions()
	switch {
	case list.there():
		for _, v := range list.items() {
			if p, ok := r.decision(v); ok {
				policies = append(policies, p)
			}
		}
	case r.file.shape == shapeFlat:
		r.file.d.order = ""
		for _, v := range r.file.root.get("categories").items() {
			if p, ok := r.category(v); ok {
				policies = append(policies, p)
			}
		}
	}
	if len(r.file.d.decisions) == 0 {
		r.file.d.order = ""
	}
	r.personalData(r.file.d.decisions[before:], policies)
}

// personalData: the guard denies every type as soon as one decision is to deny any. Others allow what
// they did, and one more allows what passes where none of them holds. Requests that name a model meet
// the same decisions there, but none here, so in them only what each of the policies allows may pass.
func (r decisionReader) personalData(decisions []decision, policies []piiPolicy) {
	g := &r.file.d.guards
	if !slices.ContainsFunc(policies, func(p piiPolicy) bool { return p.on }) && !r.aModelDenies() {
		return
	}
	g.pii, g.piiAllow, g.piiComment = "block", r.everywhereAllowed(policies), "what each of the decisions that deny personal data allows; they allow the rest"
	for i, p := range policies {
		d := &decisions[i]
		if p.on {
			d.piiAllow = p.allowed
			if len(d.piiAllow) == 0 {
				d.piiAllow = nil
			}
		} else if d.refuse == "" {
			d.piiAllowsAny = true
		}
	}
	at := r.file.first(path("decisions"), path("categories"), path("routing", "decisions"))
	r.file.doc.note(at, "in Kvasir no decision applies to a request that names its model. In such a request only personal data of the types in classify.pii.allow pass: those that every policy of the file allows")
	last := r.file.last(decision{name: "otherwise", about: "where no other decision holds"})
	if p := r.standardPolicy(); p.on {
		last.piiAllow = p.allowed
		if len(last.piiAllow) == 0 {
			last.piiAllow = nil
		}
		return
	}
	last.piiAllowsAny = true
	r.file.doc.note(at, "personal data pass in requests that match no decision, as they do in Semantic Router; to block them, remove the decision "+wording.Quote(last.name))
}

// everywhereAllowed are the types that every policy allows which denies any.
func (r decisionReader) everywhereAllowed(policies []piiPolicy) []string {
	all := append(slices.Clone(policies), r.standardPolicy())
	for _, m := range r.file.root.get("model_config").entries() {
		all = append(all, r.modelPolicy(m.key))
	}
	allowed, first := []string{}, true
	for _, p := range all {
		switch {
		case !p.on:
		case first:
			allowed, first = append(allowed, p.allowed...), false
		default:
			allowed = slices.DeleteFunc(allowed, func(t string) bool { return !slices.Contains(p.allowed, t) })
		}
	}
	return allowed
}

// standardPolicy is that of the model that answers where no category is found. Decisions have their
// own policies, and nothing is denied where none holds.
func (r decisionReader) standardPolicy() piiPolicy {
	if r.file.decisions().there() {
		return piiPolicy{}
	}
	return r.modelPolicy(r.file.defaults().get("default_model").text())
}

// aModelDenies says whether any model has a policy, which counts where no decision is there.
func (r decisionReader) aModelDenies() bool {
	return r.file.shape == shapeFlat && !r.file.decisions().there() && slices.ContainsFunc(r.file.root.get("model_config").entries(), func(m *value) bool {
		return r.modelPolicy(m.key).on
	})
}

// modelPolicy is which personal data a model may be sent, in the files before there were decisions.
func (r decisionReader) modelPolicy(name string) piiPolicy {
	v := r.file.root.get("model_config", name, "pii_policy")
	return piiPolicy{on: v.there() && !v.get("allow_by_default").is(false), allowed: r.file.types(v.get("pii_types_allowed"))}
}

// decision reads one; ok is false where it is left out.
func (r decisionReader) decision(v *value) (piiPolicy, bool) {
	name := v.get("name").text()
	d := decision{name: name, about: v.get("description").text(), at: v}
	if n, ok := v.get("priority").within(-1e9, 1e9); ok {
		d.priority = int(n)
	}
	if tier, ok := v.get("tier").within(0, 1000); ok && tier > 0 {
		d.priority -= int(tier) * 1_000_000
		r.file.doc.note(v.get("tier"), "Kvasir has no tiers, so the priority is lowered by a million for each")
	}
	when, always, why := r.signals.condition(v.get("rules"), 0)
	if why != "" {
		v.drop("the decision " + wording.Quote(name) + " is left out: " + why)
		return piiPolicy{}, false
	}
	if !always {
		d.when = when
	}
	r.answerBy(&d, v.get("modelRefs").items())
	var p piiPolicy
	for _, plugin := range v.get("plugins").items() {
		r.plugin(&d, &p, plugin)
	}
	r.refuses(&d, v)
	if r.file.shape == shapeV03 && d.cacheAbove == 0 && !d.cacheOff && !hasPlugin(v, "semantic-cache", "semantic_cache", "response_cache") {
		d.cacheOff = d.refuse == ""
	}
	r.file.d.decide(d)
	return p, true
}

// refuses lets a decision that refuses do so to requests that name a model, too, as plugins do there.
// One without a condition would refuse all of these, even those that another decision takes there.
func (r decisionReader) refuses(d *decision, v *value) {
	switch {
	case d.refuse == "":
	case d.when != nil:
		d.all = true
	default:
		r.file.doc.note(v, "applies to requests that leave the model to Kvasir. In Semantic Router it also answers those that name a model and match no other decision")
	}
}

func hasPlugin(v *value, names ...string) bool {
	return slices.ContainsFunc(v.get("plugins").items(), func(p *value) bool { return slices.Contains(names, p.get("type").text()) })
}

// answerBy takes the first of the models that a decision names.
func (r decisionReader) answerBy(d *decision, refs []*value) {
	if len(refs) == 0 {
		return
	}
	ref := refs[0]
	name := either(ref.get("lora_name").text(), ref.get("model").text())
	ref.quiet("model", "weight", "score", "reasoning_description")
	m := r.file.modelNamed(ref, name)
	if m != nil {
		d.model = m.name
	}
	if lora := ref.get("lora_name"); lora.text() != "" {
		base := r.file.modelNamed(ref, ref.get("model").text())
		if m != nil && base != nil && m.reasoning == "" {
			m.reasoning = base.reasoning
		}
		for _, w := range r.file.d.workers {
			if base != nil && m != nil && slices.Contains(w.models, base.name) {
				w.serves(m.name)
			}
		}
	}
	r.think(d, ref, m)
	for _, other := range refs[1:] {
		other.drop("a decision has one model here; this one is not asked. models[].fallback names those to ask when the first cannot answer")
	}
}

// efforts are those that a decision may ask for.
var efforts = []string{"minimal", "low", "medium", "high", "xhigh"}

func (r decisionReader) think(d *decision, ref *value, m *model) {
	use, effort := ref.get("use_reasoning"), ref.get("reasoning_effort")
	standard := r.file.defaults().get("default_reasoning_effort").text()
	wanted := either(effort.text(), standard)
	if m == nil || m.reasoning == "" || use.text() == "" {
		if use.is(false) && m != nil {
			r.file.doc.note(use, "the model has no family of reasoning, so Kvasir cannot switch its thinking on; set models[].reasoning")
		}
		return
	}
	switch {
	case !use.is(false):
		d.reasoning = "false"
	case strings.HasPrefix(m.reasoning, "gpt") && slices.Contains(efforts, wanted):
		d.reasoning = wanted
	default:
		d.reasoning = "true"
	}
}

// plugin takes over what one does; one that is not enabled does nothing.
func (r decisionReader) plugin(d *decision, p *piiPolicy, v *value) {
	kind := v.get("type").text()
	c := v.get("configuration")
	if c.has("enabled") && !c.get("enabled").is(true) && kind != "pii" && !strings.Contains(kind, "cache") {
		v.done()
		return
	}
	switch kind {
	case "system_prompt":
		d.prompt = c.get("system_prompt").text()
		mode := c.get("mode").text()
		d.insert = d.prompt != "" && (mode == "insert" || mode == "" && r.file.shape == shapeV03)
	case "semantic-cache", "semantic_cache", "response_cache":
		r.pluginCache(d, c)
	case "pii":
		p.on = c.get("enabled").is(false)
		p.allowed = r.file.types(c.get("pii_types_allowed"))
		if p.on {
			r.file.scale(c.get("threshold"), "the threshold is the same for all decisions here, classify.pii.threshold")
		}
		c.quiet("threshold")
	case "jailbreak":
		r.file.d.guards.jailbreak = "block"
		r.file.scale(c.get("threshold"), "the threshold is the same for all decisions here, classify.jailbreak.threshold")
	case "fast_response":
		if d.refuse = c.get("message").text(); d.refuse == "" {
			r.file.doc.note(v, "has no message, so no request is answered with one")
		}
	case "request_params":
		n, _ := c.get("max_tokens_limit").within(1, 16_777_216)
		d.maxTokens = int(n)
		n, _ = c.get("max_n").within(1, 1024)
		d.maxChoices = int(n)
		if !c.get("strip_unknown").is(false) {
			c.quiet("strip_unknown")
		}
	default:
		text, ok := pluginsLost[kind]
		if !ok {
			text = "has no counterpart"
		}
		v.drop("the plugin " + wording.Quote(kind) + " " + text)
	}
}

func (r decisionReader) pluginCache(d *decision, c *value) {
	if !c.get("enabled").is(false) {
		d.cacheOff = true
		c.done()
		return
	}
	d.cacheAbove, _ = c.get("similarity_threshold").within(0.001, 1)
	if mode := c.get("mode").text(); mode == "exact" {
		d.cacheAbove = 1
	}
}

// category reads one that decides by itself: the files before there were decisions.
func (r decisionReader) category(v *value) (piiPolicy, bool) {
	name := v.get("name").text()
	scores := slices.Clone(v.get("model_scores").items())
	if len(scores) == 0 {
		return piiPolicy{}, false
	}
	when, why := r.signals.leaf("domain", name)
	if why != "" {
		v.drop("the category is left out: " + why)
		return piiPolicy{}, false
	}
	slices.SortStableFunc(scores, func(a, b *value) int {
		x, _ := a.get("score").number()
		y, _ := b.get("score").number()
		return cmp.Compare(y, x)
	})
	d := decision{name: name, about: v.get("description").text(), when: when, at: v}
	r.answerBy(&d, scores)
	if v.get("system_prompt_enabled").is(true) {
		d.prompt = v.get("system_prompt").text()
	}
	v.quiet("system_prompt")
	d.insert = d.prompt != "" && v.get("system_prompt_mode").text() == "insert"
	d.cacheOff = !v.get("semantic_cache_enabled").is(true)
	if above, ok := v.get("semantic_cache_similarity_threshold").within(0.001, 1); ok && !d.cacheOff {
		d.cacheAbove = above
	}
	if v.get("jailbreak_enabled").is(false) {
		r.file.d.guards.jailbreak = "block"
	}
	r.file.scale(v.get("jailbreak_threshold"), "the threshold is the same for all decisions here, classify.jailbreak.threshold")
	r.file.scale(v.get("pii_threshold"), "the threshold is the same for all decisions here, classify.pii.threshold")
	p := r.modelPolicy(scores[0].get("model").text())
	if v.has("pii_enabled") {
		p.on = v.get("pii_enabled").is(false) && p.on
	}
	r.file.d.decide(d)
	return p, true
}
