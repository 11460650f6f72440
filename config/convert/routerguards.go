// Semantic Router's guards, thresholds and cache to ours.

package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvasir/classify"
)

func (r *router) readGuards() {
	g := &r.d.guards
	category := r.first(path("global", "model_catalog", "modules", "classifier", "domain"), path("classifier", "category_model"))
	if n, ok := category.get("threshold").within(0.001, 1); ok {
		g.category, g.categoryAt = n, category.get("threshold")
	}
	guard := r.first(path("global", "model_catalog", "modules", "prompt_guard"), path("prompt_guard"))
	pii := r.first(path("global", "model_catalog", "modules", "classifier", "pii"), path("classifier", "pii_model"))
	r.attacks(g, guard)
	r.personalGuard(g, pii)
	if n, ok := guard.get("threshold").within(0.001, 1); ok && g.jailbreakAbove == 0 && g.jailbreak != "off" {
		g.jailbreakAbove = n
	}
	if n, ok := pii.get("threshold").within(0.001, 1); ok && g.piiAbove == 0 && g.pii != "off" {
		g.piiAbove = n
	}
	if g.jailbreak == "off" {
		g.jailbreakAbove = 0
	}
	if g.pii == "off" {
		g.piiAbove = 0
	}
	r.high(g.jailbreakAt, g.jailbreakAbove)
	r.high(g.piiAt, g.piiAbove)
	for _, m := range []*value{category, guard, pii} {
		m.quiet("threshold", "model_id", "model_ref", "use_cpu", "use_modernbert", "use_mmbert_32k", "enabled",
			"category_mapping_path", "jailbreak_mapping_path", "pii_mapping_path", "use_vllm")
	}
}

// high notes a threshold by which less is found than by our own.
func (r *router) high(at *value, threshold float64) {
	if threshold > usual {
		r.doc.note(at, fmt.Sprintf("the threshold is taken over, but was of another classifier, and is above Kvasir's own, %g: less is found. Leave it out unless you have tried it with kvasir explain", usual))
	}
}

// usual is the threshold of our guards, unless the configuration has another.
const usual = 0.7

// attacks: since v0.3 only decisions act on them, before that the guard does.
func (r *router) attacks(g *guards, guard *value) {
	if g.jailbreakAt == nil {
		g.jailbreakAt = guard
	}
	switch {
	case r.shape == shapeV03 && g.jailbreak == "" && r.asks(classify.KindJailbreak):
		g.jailbreak, g.jailbreakComment = "annotate", "decisions say what follows"
	case r.shape == shapeV03 && g.jailbreak == "":
		g.jailbreak, g.jailbreakComment = "off", "no decision asks for attacks"
		if guard.get("enabled").is(false) {
			r.doc.note(guard, "is enabled, but no decision asks for attacks, so nothing follows from it there, and it is off here; set classify.jailbreak.action: block")
		}
	case g.jailbreak != "": // a decision switches it on
		g.jailbreakComment = "since a decision has it on"
		if !guard.get("enabled").is(r.shape == shapeV01) {
			r.doc.note(r.first(path("decisions"), path("categories")), "the guard against attacks is on for all requests here, not for some decisions alone")
		}
	case guard.get("enabled").is(r.shape == shapeV01):
		g.jailbreak = "block"
		if !guard.there() {
			g.jailbreakComment = "the default of Semantic Router"
		}
	default:
		g.jailbreak, g.jailbreakComment = "off", "not enabled there"
	}
}

// personalGuard: where no decision denies any, none is looked for.
func (r *router) personalGuard(g *guards, pii *value) {
	switch {
	case g.pii != "":
	case r.asks(classify.KindPII):
		g.pii, g.piiComment = "annotate", "decisions say what follows"
	default:
		g.pii, g.piiComment = "off", "no decision denies personal data"
	}
	if g.piiAt == nil {
		g.piiAt = pii
	}
}

func (r *router) readCache() {
	c := &r.d.cache
	v := r.first(path("global", "stores", "response_cache"), path("global", "stores", "semantic_cache"), path("response_cache"), path("semantic_cache"))
	c.at = v
	cached := slices.ContainsFunc(r.d.decisions, func(d decision) bool { return !d.alias && !d.cacheOff && d.refuse == "" })
	switch {
	case !v.get("enabled").is(r.shape != shapeFlat):
		c.comment = "not enabled there"
	case r.shape == shapeV03 && !cached:
		c.comment = "no decision has it"
	}
	if c.comment != "" {
		c.store = "off"
		for i := range r.d.decisions {
			r.d.decisions[i].cacheOff, r.d.decisions[i].cacheAbove = false, 0
		}
		v.done()
		return
	}
	if r.shape == shapeV03 { // only decisions that have it are cached
		for i := range r.d.decisions {
			d := &r.d.decisions[i]
			d.cacheOff = d.cacheOff || d.alias || d.at == nil && !d.all // one of ours
		}
		r.last(decision{name: "uncached", about: "where no other decision holds, and for requests that name a model", all: true, cacheOff: true})
	}
	c.threshold, _ = v.get("similarity_threshold").within(0.001, 1)
	if c.threshold == 0 {
		c.threshold, _ = r.root.get("bert_model", "threshold").within(0.001, 1)
	}
	if c.threshold == 0 && r.shape != shapeFlat {
		c.threshold = 0.8 // what Semantic Router takes
	}
	if c.threshold > 0 || len(r.d.decisions) > 0 {
		r.doc.note(v, "thresholds of the cache are taken over, but mean another score here: whether two questions mean the same, not how near they are; docs/cache.md has what each finds")
	}
	c.ttl, _ = v.get("ttl_seconds").within(1, 87600*3600)
	c.maxEntries, _ = v.get("max_entries").within(1, 100_000_000)
	r.store(c, v)
	v.quiet("redis", "valkey", "qdrant", "use_hnsw", "hnsw_m", "hnsw_ef_construction", "embedding_model", "mode", "scope")
	if policy := v.get("eviction_policy").text(); policy != "" && policy != "lru" {
		r.doc.note(v.get("eviction_policy"), "the entries that were least used go first here")
	}
}

// store is where the entries are kept.
func (r *router) store(c *cache, v *value) {
	switch backend := either(v.get("backend_type").text(), "memory"); backend {
	case "memory":
		c.store = "embedded"
	case "milvus", "hybrid":
		c.store = "milvus"
		connection := v.get("milvus", "connection")
		m := &milvus{address: "127.0.0.1:19530"}
		if host := connection.get("host").text(); strings.ContainsAny(host, "@/? ") {
			connection.get("host").drop("is no host name; put the address into cache.milvus.address")
			connection.get("port").done()
		} else if host != "" {
			port, ok := connection.get("port").within(1, 65535)
			if !ok {
				port = 19530
			}
			m.address = hostPort(host, int(port))
			if db := connection.get("database").text(); db != "" && db != "default" {
				m.address += "/" + db
			}
			if connection.get("tls", "enabled").is(false) {
				m.address = "https://" + m.address
			}
		} else {
			r.doc.note(v, "the file of Milvus is not read; put its address into cache.milvus.address")
		}
		if connection.get("auth", "enabled").is(false) {
			password := r.d.secret(connection.get("auth", "password"), "MILVUS_PASSWORD")
			m.token = strings.ReplaceAll(connection.get("auth", "username").text(), "${", "$${") + ":" + password
		}
		connection.get("auth").done()
		connection.get("tls").quiet("enabled")
		c.milvus = m
		v.quiet("backend_config_path", "max_memory_entries")
		c.comment = r.d.from(v.get("backend_type"))
	default:
		c.store = "embedded"
		r.doc.note(v.get("backend_type"), "Kvasir keeps answers in the process or in Milvus, not in "+strconv.Quote(oneLine(backend)))
		v.quiet(backend, "backend_config_path")
	}
}
