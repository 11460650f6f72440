// LiteLLM: the configuration of its proxy to ours.

package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"kvasir/wording"
)

// A proxy is a file of LiteLLM on its way into a draft.
type proxy struct {
	doc  *doc
	d    *draft
	root *value

	groups map[string]string // what workers call the model of a group, by the group's name
}

func fromLiteLLM(doc *doc, root *value, d *draft) error {
	if !root.has("model_list") && !root.has("router_settings") && !root.has("litellm_settings") {
		return unlike(doc, "LiteLLM", []string{"model_list", "router_settings", "litellm_settings"}, root)
	}
	doc.lost = liteLost
	p := &proxy{doc: doc, d: d, root: root, groups: map[string]string{}}
	for _, v := range root.get("model_list").items() {
		p.deployment(v)
	}
	p.aliases()
	p.fallbacks()
	p.settings()
	p.masterKey()
	p.cache()
	d.guards.jailbreak, d.guards.jailbreakComment = "off", "there is none in the file"
	d.guards.pii, d.guards.piiComment = "off", "there is none in the file"
	p.noWorker()
	return nil
}

// A provider is one that LiteLLM names before a model, and whose API is OpenAI's.
type provider struct {
	name, url, key string // url: where it is unless api_base says it, "": nowhere; key: the variable with its key
}

var providers = []provider{
	{"openai", "https://api.openai.com", "OPENAI_API_KEY"},
	{"text-completion-openai", "https://api.openai.com", "OPENAI_API_KEY"},
	{"hosted_vllm", "", ""}, {"openai_like", "", ""}, {"custom_openai", "", ""}, {"custom", "", ""},
	{"litellm_proxy", "", ""}, {"lm_studio", "", ""}, {"llamafile", "", ""}, {"xinference", "", ""}, {"vllm", "", ""},
	{"ollama", "http://localhost:11434", ""}, {"ollama_chat", "http://localhost:11434", ""},
	{"groq", "https://api.groq.com/openai", "GROQ_API_KEY"},
	{"together_ai", "https://api.together.xyz", "TOGETHERAI_API_KEY"},
	{"mistral", "https://api.mistral.ai", "MISTRAL_API_KEY"},
	{"deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"},
	{"openrouter", "https://openrouter.ai/api", "OPENROUTER_API_KEY"},
	{"fireworks_ai", "https://api.fireworks.ai/inference", "FIREWORKS_AI_API_KEY"},
	{"nvidia_nim", "https://integrate.api.nvidia.com", "NVIDIA_NIM_API_KEY"},
	{"xai", "https://api.x.ai", "XAI_API_KEY"},
}

// others are providers whose API is not OpenAI's, or not at its paths.
var others = []string{"azure", "azure_ai", "azure_text", "anthropic", "anthropic_text", "bedrock", "sagemaker", "sagemaker_chat", "vertex_ai",
	"vertex_ai_beta", "gemini", "palm", "cohere", "cohere_chat", "replicate", "huggingface", "databricks", "watsonx", "ai21", "nlp_cloud",
	"aleph_alpha", "petals", "voyage", "perplexity", "cloudflare", "predibase", "clarifai", "oobabooga", "triton", "maritalk", "jina_ai",
	"deepinfra", "cerebras", "sambanova", "github", "github_copilot", "baseten", "snowflake", "auto_router"}

// providerOf parts the name of a model from its provider. other is one that speaks another API.
func providerOf(name, custom string) (of provider, model, other string) {
	prefix, rest, found := strings.Cut(name, "/")
	if custom != "" {
		prefix, found = custom, true
		rest = strings.TrimPrefix(name, custom+"/")
	}
	if i := slices.IndexFunc(providers, func(p provider) bool { return p.name == prefix }); found && i >= 0 {
		return providers[i], rest, ""
	}
	if found && (custom != "" || slices.Contains(others, prefix)) {
		return provider{}, rest, prefix
	}
	if found {
		return provider{}, name, "" // a name with a slash of its own
	}
	return providers[0], name, ""
}

// deployment makes a worker of an element of model_list.
func (p *proxy) deployment(v *value) {
	group := v.get("model_name").text()
	params := v.get("litellm_params")
	of, model, other := providerOf(params.get("model").text(), params.get("custom_llm_provider").text())
	switch {
	case other != "":
		v.drop("the API of " + wording.Quote(other) + " is not OpenAI's, so it can be no worker; put a server before it that speaks OpenAI's API")
		return
	case group == "" || model == "":
		v.drop("names no model, so it is left out")
		return
	}
	url := p.address(params, of)
	if url == "" {
		if !params.has("api_base") && !params.has("base_url") {
			p.doc.note(v, "is left out: it has no api_base, where its model could be asked")
		}
		v.done()
		return
	}
	w := p.d.workerFor(v, strings.TrimSuffix(group, "/*"), url, p.headers(params, of, group))
	if n, ok := params.get("max_parallel_requests").within(1, 1_000_000); ok {
		w.maxRequests = int(n)
	}
	defer v.quiet("model_info")
	if strings.Contains(model, "*") || strings.Contains(group, "*") {
		w.any = true
		if group != "*" && group != model {
			p.doc.note(v.get("model_name"), "stands for every model of the worker; clients must ask by the worker's own names of its models")
		}
		return
	}
	p.member(v, w, group, model)
}

// member adds a deployment to its group: the first one answers, others when it cannot.
func (p *proxy) member(v *value, w *worker, group, model string) {
	m := p.d.modelFor(v, model)
	if m == nil {
		return
	}
	w.serves(model)
	for _, at := range []*value{v.get("litellm_params"), v.get("model_info")} {
		p.d.priced(m, at.get("input_cost_per_token"), at.get("output_cost_per_token"), at.get("cache_read_input_token_cost"), 1e6)
	}
	first, known := p.groups[group]
	switch {
	case !known:
		p.groups[group] = model
	case first != model:
		p.fallback(v, first, model)
		p.doc.note(v, "load is not spread over models of different names: this one is asked when "+wording.Quote(first)+" cannot answer. Start both engines with one name (--served-model-name) to spread it")
	}
}

// address is where a deployment is asked.
func (p *proxy) address(params *value, of provider) string {
	base := params.either("api_base", "base_url")
	raw := base.text()
	if raw == "" {
		return of.url
	}
	if name := variableOf(raw); name != "" {
		p.doc.note(base, "the address comes from the environment; it must be without /v1")
		return p.d.addressVariable(base, name)
	}
	url, err := baseURL(raw)
	if err != nil {
		p.doc.note(base, "can be no worker's address: "+err.Error())
		return ""
	}
	return url
}

func (p *proxy) headers(params *value, of provider, group string) (headers []header) {
	key := p.d.secret(params.get("api_key"), group+"_KEY")
	if key == "" && of.key != "" && !params.has("api_base") && !params.has("base_url") && !params.has("api_key") {
		key = p.d.variable(params, of.key)
	}
	if key != "" {
		headers = append(headers, header{"Authorization", "Bearer " + key})
	}
	if organization := params.get("organization"); organization.there() {
		headers = append(headers, header{"OpenAI-Organization", p.d.headerValue(organization, group)})
	}
	for _, h := range params.either("extra_headers", "headers").entries() {
		headers = append(headers, header{h.key, p.d.headerValue(h, group)})
	}
	return headers
}

// aliases are names of groups that workers do not know, and other names of groups.
func (p *proxy) aliases() {
	named := map[string]bool{}
	for _, v := range p.root.get("model_list").items() {
		group := v.get("model_name").text()
		if named[group] {
			continue
		}
		named[group] = true
		if serves := p.groups[group]; serves != "" && serves != group {
			if p.d.knows(group) {
				p.doc.note(v.get("model_name"), "a worker has another model of this name; clients get that one")
			} else {
				p.d.alias(v.get("model_name"), group, serves)
			}
		}
	}
	for _, a := range p.root.get("router_settings", "model_group_alias").entries() {
		group := a
		if a.has("model") {
			group = a.get("model")
			a.quiet("hidden")
		}
		if model := p.groups[group.text()]; model != "" {
			p.d.alias(a, a.key, model)
		} else {
			p.doc.note(a, "names a group that the file does not have, so it is left out")
		}
	}
}

// fallbacks: one list for a model that is down and for a prompt that is too long for it.
func (p *proxy) fallbacks() {
	for _, section := range []string{"router_settings", "litellm_settings"} {
		for _, key := range []string{"fallbacks", "context_window_fallbacks"} {
			for _, e := range p.root.get(section, key).items() {
				for _, from := range e.entries() {
					p.chain(from, from.key)
				}
			}
		}
	}
	for _, section := range []string{"router_settings", "litellm_settings"} {
		standard := p.root.get(section, "default_fallbacks")
		for _, m := range p.d.models {
			if len(m.fallback) == 0 && standard.there() {
				p.chain(standard, m.name)
			}
		}
	}
}

func (p *proxy) chain(list *value, from string) {
	asked := either(p.groups[from], from)
	if !p.d.knows(asked) {
		list.drop("is for a model that the file does not have, so it is left out")
		return
	}
	for _, to := range list.items() {
		name := to.text()
		target := either(p.groups[name], name)
		if !p.d.knows(target) {
			p.doc.note(to, "the file has no model "+wording.Quote(name)+", so it is left out")
			continue
		}
		p.fallback(to, asked, target)
	}
}

// fallback adds one, unless it would lead back.
func (p *proxy) fallback(at *value, from, to string) {
	m := p.d.modelFor(at, from)
	if m == nil || from == to || slices.Contains(m.fallback, to) {
		return
	}
	if p.leads(to, from, map[string]bool{}) {
		p.doc.note(at, wording.Quote(to)+" falls back to "+wording.Quote(from)+" already, so this one is left out")
		return
	}
	m.fallback = append(m.fallback, to)
}

// leads says whether fallbacks lead from one model to another.
func (p *proxy) leads(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	m := p.d.byName[from]
	return m != nil && slices.ContainsFunc(m.fallback, func(next string) bool { return p.leads(next, to, seen) })
}

// settings of both sections: those of the router come first.
func (p *proxy) settings() {
	router, lite := p.root.get("router_settings"), p.root.get("litellm_settings")
	for _, at := range []*value{router.get("num_retries"), lite.get("num_retries")} {
		if n, ok := at.number(); ok && n >= 0 && p.d.retriesAt == nil {
			p.d.retries, p.d.retriesAt = min(n, 10), at
		}
	}
	for _, at := range []*value{router.get("timeout"), lite.get("request_timeout")} {
		if at.there() && variableOf(at.text()) == "" && p.d.timeoutAt == nil {
			p.d.firstByte, p.d.timeoutAt = durationOf(at), at
		}
	}
	switch strategy := router.get("routing_strategy"); strategy.text() {
	case "":
	case "least-busy":
		p.d.policy, p.d.policyAt = "least_loaded", strategy
	default:
		p.doc.note(strategy, "Kvasir places each request where it is answered first, by load and by what is cached; docs/routing.md has other policies")
	}
}

// masterKey is one that clients show.
func (p *proxy) masterKey() {
	at := p.root.get("general_settings", "master_key")
	text := at.text()
	if text == "" {
		return
	}
	key := clientKey{name: "master", at: at}
	if name := variableOf(text); name != "" {
		key.sum = p.d.variable(at, name+"_SHA256")
		p.doc.note(at, "Kvasir stores only the SHA-256 of a key; set it by: export "+name+`_SHA256="$(printf %s "$`+name+`" | sha256sum | cut -d' ' -f1)"`)
	} else {
		sum := sha256.Sum256([]byte(text))
		key.sum = hex.EncodeToString(sum[:])
		p.doc.note(at, "the key itself stands in the file. The result has its SHA-256, from which a short key can be guessed: give clients a long one")
	}
	p.d.keys = append(p.d.keys, key)
}

func (p *proxy) cache() {
	c, lite := &p.d.cache, p.root.get("litellm_settings")
	params := lite.get("cache_params")
	if !lite.get("cache").is(false) {
		c.store, c.comment = "off", "LiteLLM caches only where litellm_settings.cache is true"
		params.done()
		return
	}
	c.store, c.at = "embedded", lite.get("cache")
	c.ttl, _ = params.get("ttl").within(1, 87600*3600)
	c.threshold, _ = params.get("similarity_threshold").within(0.001, 1)
	if kind := params.get("type").text(); strings.Contains(kind, "semantic") {
		p.doc.note(params.get("similarity_threshold"), "is kept, but Kvasir's score is another one: whether two questions mean the same, not how near they are")
	} else {
		p.doc.note(c.at, "the cache answers the same question in other words, too; docs/cache.md says when")
		if kind != "" && kind != "local" {
			p.doc.note(params.get("type"), "Kvasir keeps answers in the process or in Milvus")
		}
	}
}

// noWorker puts a worker to be filled in where the file has none.
func (p *proxy) noWorker() {
	if len(p.d.workers) == 0 {
		p.doc.note(p.root, "the file has no model with a usable worker; put your worker's address in place of http://127.0.0.1:8000")
		p.d.workers = []*worker{{name: "worker", url: "http://127.0.0.1:8000"}}
	}
}

// liteLost says what of LiteLLM's files has no counterpart.
var liteLost = []lost{
	{"model_list litellm_params", "parameters of requests are the client's here; a decision can cap max_tokens, max_temperature and max_choices"},
	{"model_list litellm_params rpm", noLimits}, {"model_list litellm_params tpm", noLimits}, {"model_list rpm", noLimits}, {"model_list tpm", noLimits},
	{"model_list litellm_params timeout", "timeouts are of all workers alike: server.timeouts"},
	{"model_list litellm_params stream_timeout", "timeouts are of all workers alike: server.timeouts"},
	{"model_list litellm_params weight", "Kvasir has no weights of workers: it places each request where it is answered first, by load and by what is cached"},
	{"model_list litellm_params order", "Kvasir has no order of workers; models[].fallback names what is asked when a model cannot answer"},
	{"model_list litellm_params drop_params", ""},
	{"litellm_settings drop_params", "parameters reach the worker as the client sent them"},
	{"litellm_settings set_verbose", ""}, {"litellm_settings json_logs", ""}, {"litellm_settings telemetry", ""},
	{"litellm_settings callbacks", noCallbacks}, {"litellm_settings success_callback", noCallbacks}, {"litellm_settings failure_callback", noCallbacks},
	{"litellm_settings cache_params", "Kvasir keeps answers in the process or in Milvus"},
	{"litellm_settings content_policy_fallbacks", "a refusal of a model is an answer here, not a reason to ask another one"},
	{"router_settings content_policy_fallbacks", "a refusal of a model is an answer here, not a reason to ask another one"},
	{"router_settings redis_host", noRedis}, {"router_settings redis_port", noRedis}, {"router_settings redis_password", noRedis}, {"router_settings redis_url", noRedis},
	{"router_settings allowed_fails", "a worker that fails is left out and tried again by itself"},
	{"router_settings cooldown_time", "a worker that fails is left out and tried again by itself"},
	{"router_settings enable_pre_call_checks", ""},
	{"general_settings", "is of LiteLLM's database and users, which Kvasir has not; list the keys of clients in keys"},
	{"general_settings pass_through_endpoints", "Kvasir passes on the routes of OpenAI's API alone"},
	{"environment_variables", "set these in the environment of Kvasir"},
	{"include", "other files are not read; import each, or put them into one"},
	{"guardrails", "Kvasir guards against attacks and personal data itself: classify.jailbreak.action and classify.pii.action, which are off in the result"},
	{"mcp_servers", "Kvasir serves no tools"},
	{"finetune_settings", "these routes are not served"},
	{"files_settings", "these routes are not served"},
}

const (
	noLimits    = "limits stand with the keys of clients: keys[].requests_per_minute and tokens_per_minute; workers[].max_requests bounds what runs at once"
	noCallbacks = "metrics are at /metrics of the admin listener, each request is a line of the log"
	noRedis     = "several Kvasirs hear of each other by NATS (peers), not by Redis"
)
