// Semantic Router's endpoints and models to workers and models.

package convert

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvasir/wording"
)

func hostPort(host string, port int) string {
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

// durationOf is a duration in seconds, as 300s or a plain number of them.
func durationOf(v *value) float64 {
	text := v.text()
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < time.Millisecond || d > 24*time.Hour {
		v.doc.note(v, "is no duration from 1ms to 24h, so it is left out")
		return 0
	}
	return d.Seconds()
}

// A modelReader takes over the endpoints and the models.
type modelReader struct{ file *router }

// read makes workers and models of what the file has of them.
func (r modelReader) read() {
	if r.file.shape == shapeFlat {
		r.flatModels()
	} else {
		for _, m := range r.file.root.get("providers", "models").items() {
			r.provider(m)
		}
		r.adapters()
	}
	standard := r.file.defaults().get("default_model")
	if name := standard.text(); name != "" {
		if m := r.file.modelNamed(standard, name); m != nil {
			m.standard = true
		}
	}
}

// flatModels reads vllm_endpoints and model_config.
func (r modelReader) flatModels() {
	type endpoint struct {
		name, url string
		at        *value
		used      bool
	}
	var endpoints []*endpoint
	for _, e := range r.file.root.get("vllm_endpoints").items() {
		url := r.endpointURL(e)
		if url == "" {
			e.done()
			continue
		}
		endpoints = append(endpoints, &endpoint{name: e.get("name").text(), url: url, at: e})
		e.quiet("name", "type")
	}
	r.weights(r.file.root.get("vllm_endpoints").items())
	for _, c := range r.file.root.get("model_config").entries() {
		m := r.file.d.modelFor(c, c.key)
		if m == nil {
			c.done()
			continue
		}
		m.reasoning = r.file.familyOf(c.get("reasoning_family"))
		r.pricing(m, c.get("pricing"))
		preferred := c.get("preferred_endpoints").texts()
		var headers []header
		if s := r.file.d.secret(c.get("access_key"), c.key+"_KEY"); s != "" {
			headers = []header{{"Authorization", "Bearer " + s}}
		}
		for _, name := range preferred {
			if !slices.ContainsFunc(endpoints, func(e *endpoint) bool { return e.name == name }) {
				r.file.doc.note(c.get("preferred_endpoints"), "there is no usable endpoint "+wording.Quote(name))
			}
		}
		for _, e := range endpoints {
			if len(preferred) > 0 && !slices.Contains(preferred, e.name) {
				continue
			}
			e.used = true
			w := r.file.d.workerFor(e.at, e.name, e.url, headers)
			w.serves(c.key)
			for _, lora := range c.get("loras").items() {
				r.adapter(w, lora)
			}
		}
	}
	for _, e := range endpoints {
		if !e.used {
			r.file.d.workerFor(e.at, e.name, e.url, nil) // it is asked for its models
		}
	}
}

// pricing of all models is in one currency here, that of the first.
func (r modelReader) pricing(m *model, v *value) {
	if !v.there() {
		return
	}
	currency := either(v.get("currency").text(), "USD")
	if r.file.d.currency == "" {
		r.file.d.currency = currency
	}
	if currency != r.file.d.currency {
		v.drop("is in another currency than the first price, " + wording.Quote(r.file.d.currency) + "; there is one here, metrics.currency")
		return
	}
	r.file.d.priced(m, v.get("prompt_per_1m"), v.get("completion_per_1m"), v.get("cached_input_per_1m"), 1)
}

// adapter is one of LoRA, which engines serve as a model of its own.
func (r modelReader) adapter(w *worker, lora *value) {
	if name := lora.get("name").text(); name != "" && r.file.d.modelFor(lora, name) != nil {
		w.serves(name)
	}
	lora.quiet("description")
}

// adapters reads those of routing.modelCards, whose workers have the model of the card.
func (r modelReader) adapters() {
	for _, card := range r.file.root.get("routing", "modelCards").items() {
		name := card.get("name").text()
		for _, lora := range card.get("loras").items() {
			for _, w := range r.file.d.workers {
				if slices.Contains(w.models, either(r.file.real[name], name)) {
					r.adapter(w, lora)
				}
			}
		}
	}
}

// endpointURL is the address of an element of vllm_endpoints; "" where it has none that could be
// asked, which is noted.
func (r modelReader) endpointURL(e *value) string {
	address, port := e.get("address").text(), 0
	if p, ok := e.get("port").within(1, 65535); ok {
		port = int(p)
	}
	scheme := either(strings.ToLower(e.get("protocol").text()), "http") + "://"
	if strings.Contains(address, "://") || port == 0 {
		return r.address(e.get("address"), scheme, address)
	}
	return r.address(e.get("address"), scheme, hostPort(address, port))
}

// address is the URL of a worker; the scheme is for one that has none.
func (r modelReader) address(at *value, scheme, raw string) string {
	if raw == "" {
		return ""
	}
	if !strings.Contains(raw, "://") {
		raw = scheme + raw
	}
	url, err := baseURL(raw)
	if err != nil {
		r.file.doc.note(at, "can be no worker's address: "+err.Error())
		return ""
	}
	return url
}

// foreign are providers whose API has other routes than OpenAI's.
var foreign = []string{"azure-openai", "azure", "bedrock", "vertex", "vertex-ai", "vertex_ai", "gemini"}

// provider reads an element of providers.models.
func (r modelReader) provider(p *value) {
	name := p.get("name").text()
	if name == "" {
		p.drop("has no name, so it is left out")
		return
	}
	serves := either(p.get("provider_model_id").text(), name)
	m := r.file.d.modelFor(p, serves)
	if m == nil {
		p.done()
		return
	}
	if serves != name {
		r.file.real[name] = serves
		r.file.d.alias(p, name, serves)
	}
	m.reasoning = r.file.familyOf(p.get("reasoning_family"))
	r.pricing(m, p.get("pricing"))
	if format := p.get("api_format").text(); format != "" && format != "openai" {
		r.file.doc.note(p.get("api_format"), "Kvasir asks every worker in OpenAI's form; this backend must take that at /v1/chat/completions")
	}
	refs := append(slices.Clip(p.get("backend_refs").items()), p.get("endpoints").items()...)
	r.weights(refs)
	for _, b := range refs {
		r.backend(b, p, serves)
	}
}

// weights notes endpoints of one model that shall get different shares.
func (r modelReader) weights(refs []*value) {
	weights := map[string]bool{}
	for _, b := range refs {
		weights[either(b.get("weight").text(), "1")] = true
	}
	if len(weights) > 1 {
		r.file.doc.note(refs[0].get("weight"), "Kvasir has no weights of workers: it places each request where it is answered first, by load and by what is cached")
	}
}

// backend makes a worker of one of a model's backends.
func (r modelReader) backend(b, p *value, model string) {
	name := b.get("name").text()
	if provider := strings.ToLower(b.get("provider").text()); slices.Contains(foreign, provider) || b.has("api_version") && provider != "openai" {
		b.drop("this provider's API has other routes than OpenAI's, so it can be no worker; put a server before it that speaks OpenAI's API")
		return
	}
	b.quiet("type", "weight")
	scheme := either(strings.ToLower(b.get("protocol").text()), "http") + "://"
	at := b.get("endpoint")
	if b.has("base_url") {
		at = b.get("base_url")
	}
	url := r.address(at, scheme, at.text())
	if url == "" {
		if !at.there() {
			r.file.doc.note(b, "is left out: it has no address")
		}
		b.done()
		return
	}
	if p := b.get("chat_path").text(); p != "" && strings.TrimPrefix(p, "/v1") != "/chat/completions" {
		r.file.doc.note(b.get("chat_path"), "Kvasir asks every worker at the routes of OpenAI's API, under its url")
	}
	r.file.d.workerFor(b, name, url, r.backendHeaders(b, p, either(name, model))).serves(model)
}

// backendHeaders are the key and other headers that go to a backend.
func (r modelReader) backendHeaders(b, p *value, owner string) (headers []header) {
	key := ""
	switch {
	case b.has("api_key_env"):
		if name := b.get("api_key_env").text(); variableOf("${"+name+"}") != "" {
			key = r.file.d.variable(b.get("api_key_env"), name)
		} else {
			r.file.doc.note(b.get("api_key_env"), "is no name of a variable, so this worker gets no key")
		}
		b.quiet("api_key")
	case b.has("api_key"):
		key = r.file.d.secret(b.get("api_key"), owner+"_KEY")
	default:
		key = r.file.d.secret(p.get("access_key"), p.get("name").text()+"_KEY")
	}
	if key != "" {
		prefix := "Bearer "
		if b.has("auth_prefix") || b.has("auth_header") && !strings.EqualFold(b.get("auth_header").text(), "authorization") {
			prefix = strings.TrimSpace(b.get("auth_prefix").text())
			if strings.ContainsAny(prefix, " \t") || looksSecret(prefix) {
				r.file.doc.note(b.get("auth_prefix"), "is more than one word, so it is not copied: it may be a part of the key; put it into the variable")
				prefix = ""
			}
			if prefix != "" {
				prefix += " "
			}
		}
		headers = append(headers, header{either(b.get("auth_header").text(), "Authorization"), prefix + key})
	}
	b.quiet("auth_header", "auth_prefix")
	for _, h := range b.get("extra_headers").entries() {
		headers = append(headers, header{h.key, r.file.d.headerValue(h, owner)})
	}
	return headers
}
