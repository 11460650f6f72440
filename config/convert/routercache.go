// Semantic Router's cache to ours.

package convert

import (
	"slices"
	"strconv"
	"strings"
)

// A cacheReader takes over the cache: where answers are kept, and from which similarity they answer.
type cacheReader struct{ file *router }

func (r cacheReader) read() {
	c := &r.file.d.cache
	v := r.file.first(path("global", "stores", "response_cache"), path("global", "stores", "semantic_cache"), path("response_cache"), path("semantic_cache"))
	c.at = v
	cached := slices.ContainsFunc(r.file.d.decisions, func(d decision) bool { return !d.alias && !d.cacheOff && d.refuse == "" })
	switch {
	case !v.get("enabled").is(r.file.shape != shapeFlat):
		c.comment = "not enabled in the file"
	case r.file.shape == shapeV03 && !cached:
		c.comment = "no decision of the file uses it"
	}
	if c.comment != "" {
		c.store = "off"
		for i := range r.file.d.decisions {
			r.file.d.decisions[i].cacheOff, r.file.d.decisions[i].cacheAbove = false, 0
		}
		v.done()
		return
	}
	if r.file.shape == shapeV03 { // only decisions that have it are cached
		for i := range r.file.d.decisions {
			d := &r.file.d.decisions[i]
			d.cacheOff = d.cacheOff || d.alias || d.at == nil && !d.all // one of ours
		}
		r.file.last(decision{name: "uncached", about: "where no other decision holds, and for requests that name a model", all: true, cacheOff: true})
	}
	c.threshold, _ = v.get("similarity_threshold").within(0.001, 1)
	if c.threshold == 0 {
		c.threshold, _ = r.file.root.get("bert_model", "threshold").within(0.001, 1)
	}
	if c.threshold == 0 && r.file.shape != shapeFlat {
		c.threshold = 0.8 // what Semantic Router takes
	}
	if c.threshold > 0 || len(r.file.d.decisions) > 0 {
		r.file.doc.note(v, "thresholds of the cache are kept, but Kvasir's score is another one: whether two questions mean the same, not how near they are; docs/cache.md says what each threshold finds")
	}
	c.ttl, _ = v.get("ttl_seconds").within(1, 87600*3600)
	c.maxEntries, _ = v.get("max_entries").within(1, 100_000_000)
	r.store(c, v)
	v.quiet("redis", "valkey", "qdrant", "use_hnsw", "hnsw_m", "hnsw_ef_construction", "embedding_model", "mode", "scope")
	if policy := v.get("eviction_policy").text(); policy != "" && policy != "lru" {
		r.file.doc.note(v.get("eviction_policy"), "the entries that were least used go first here")
	}
}

// store is where the entries are kept.
func (r cacheReader) store(c *cache, v *value) {
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
			r.file.doc.note(v, "the file with Milvus' settings is not read; put the address into cache.milvus.address")
		}
		if connection.get("auth", "enabled").is(false) {
			password := r.file.d.secret(connection.get("auth", "password"), "MILVUS_PASSWORD")
			m.token = strings.ReplaceAll(connection.get("auth", "username").text(), "${", "$${") + ":" + password
		}
		connection.get("auth").done()
		connection.get("tls").quiet("enabled")
		c.milvus = m
		v.quiet("backend_config_path", "max_memory_entries")
		c.comment = r.file.d.from(v.get("backend_type"))
	default:
		c.store = "embedded"
		r.file.doc.note(v.get("backend_type"), "Kvasir keeps answers in the process or in Milvus, not in "+strconv.Quote(oneLine(backend)))
		v.quiet(backend, "backend_config_path")
	}
}
