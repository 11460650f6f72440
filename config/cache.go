// Cache: what no single key shows of the cache and its store.

package config

import (
	"fmt"
	"strings"

	"kvasir/cache/milvus"
)

// leavePath drops a cache.path that comes from the environment where the store
// keeps no file. The container image sets one for everybody, so that it is no
// mistake of someone whose file chooses Milvus; in the file itself it is one.
func (c *Cache) leavePath(at place) {
	if c.Store != "embedded" && at.layer == layerVariable {
		c.Path = ""
	}
}

// caching finds what is wrong with the cache.
func (v *validation) caching(c *Cache) {
	v.scopeHeaders(c.ScopeHeaders)
	m := &c.Milvus
	if c.Store != "milvus" {
		return
	}
	if c.Path != "" {
		v.add("is the file of the embedded store; Milvus keeps its own", "cache.path", "cache.store")
	}
	if milvus.CheckAddress(m.Address) != nil {
		v.add("must be host:port of a Milvus server, such as 127.0.0.1:19530; /database may follow", "cache.milvus.address")
	}
	if !milvus.IsCollection(m.Collection) {
		v.add("must begin with a letter or _ and have at most 200 letters, digits and _", "cache.milvus.collection")
	}
	if m.Token != "" && m.KeyFile != "" {
		v.add("is set together with token; set only one of the two", "cache.milvus.key_file")
	}
	v.pair("cache.milvus.tls", m.TLS.Cert, m.TLS.Key)
	if m.TLS.Insecure && m.TLS.CA != "" {
		v.add("turns off the check that tls.ca is for; set only one of the two", "cache.milvus.tls.insecure")
	}
}

// scopeHeaders wants names of headers, each once. A misspelled name would keep
// no two tenants apart.
func (v *validation) scopeHeaders(names []string) {
	seen := map[string]string{}
	for i, name := range names {
		at := fmt.Sprintf("cache.scope_headers[%d]", i)
		switch {
		case name == "":
			v.add("is missing", at)
		case strings.Trim(name, tokenChars) != "":
			v.add("is no header name", at)
		default:
			v.once(seen, strings.ToLower(name), at, "is there twice")
		}
	}
}
