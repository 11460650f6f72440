// Caching: the cache of a Config, its store and what it tells equal questions by.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"kvasir/cache"
	"kvasir/cache/embedded"
	"kvasir/cache/milvus"
	"kvasir/cache/verify"
	"kvasir/classify"
)

// openStore opens the store that a configuration asks for; nil when the cache
// is off. A Milvus that cannot be reached is no error, a file that cannot be
// used is one.
func openStore(log zerolog.Logger, g *generation) (cache.Store, error) {
	c := &g.config.Cache
	switch c.Store {
	case "off":
		return nil, nil
	case "milvus":
		s, err := milvus.Open(g.milvus)
		if err != nil {
			return nil, fmt.Errorf("cache.milvus: %w", err)
		}
		return s, nil
	}
	s, err := embedded.Open(embedded.Options{
		Path: string(c.Path), Embedding: classify.EmbeddingVersion(), MaxEntries: c.MaxEntries, MaxBytes: int64(c.MaxBytes),
	})
	if err != nil {
		return nil, fmt.Errorf("cache.path: %w", err)
	}
	if c.Path != "" {
		tellOpened(log, string(c.Path), s.Opened())
	}
	return s, nil
}

// tellOpened says what a file held, as a warning where something of it is lost.
func tellOpened(log zerolog.Logger, path string, o embedded.Opened) {
	e := log.Info()
	if o.Corrupt > 0 || o.Foreign != 0 {
		e = log.Warn()
	}
	e.Str("path", path).Int("entries", o.Entries).Int("expired", o.Expired).Int("of_other_weights", o.Foreign).
		Int("corrupt", o.Corrupt).Int64("torn_bytes", o.Cut).Msg("cache opened")
}

// milvus is what cache.milvus asks for, with the files that it names.
func (b *builder) milvus() milvus.Options {
	c := &b.config.Cache
	if c.Store != "milvus" {
		return milvus.Options{}
	}
	o := milvus.Options{
		Address: c.Milvus.Address, Collection: c.Milvus.Collection, Token: c.Milvus.Token, Timeout: c.Milvus.Timeout,
		Version: classify.EmbeddingVersion(),
	}
	if c.Milvus.KeyFile != "" {
		secret, err := b.secret(c.Milvus.KeyFile)
		if err != nil {
			b.add("cache.milvus.key_file", err)
		}
		o.Token = secret
	}
	o.TLS, _ = b.workerTLS("cache.milvus.tls", c.Milvus.TLS)
	return o
}

// on returns the cache on a store that is open.
func (c *cacheConfig) on(store cache.Store) (*cache.Cache, error) {
	v, err := verify.Embedded()
	if err != nil {
		return nil, fmt.Errorf("cannot read the embedded weights: %w", err)
	}
	o := cache.Options{Store: store, Verifier: v, Threshold: c.Threshold, TTL: c.TTL}
	if c.Store == "milvus" {
		o.Timeout = c.Milvus.Timeout
	}
	return cache.New(o), nil
}

// leavePath drops a cache.path of the environment where the store keeps no
// file: an image sets one for everybody, and whoever chooses Milvus in a file
// has not meant it. In the file itself it is a mistake.
func (c *cacheConfig) leavePath(at place) {
	if c.Store != "embedded" && at.layer == layerVariable {
		c.Path = ""
	}
}

// caching finds what is wrong with the cache.
func (v *validation) caching(c *cacheConfig) {
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
		v.add("stands beside token; there is one of the two", "cache.milvus.key_file")
	}
	v.pair("cache.milvus.tls", m.TLS.Cert, m.TLS.Key)
	if m.TLS.Insecure && m.TLS.CA != "" {
		v.add("skips the check that tls.ca is for; there is one of the two", "cache.milvus.tls.insecure")
	}
}

// scopeHeaders wants names of headers, each once. What is a slip of the pen tells
// tenants apart that nobody has.
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

// checkStore is check --live for the cache: what it is, or why it is not.
func checkStore(ctx context.Context, g *generation) (what string, err error) {
	s, err := openStore(zerolog.Nop(), g)
	if s == nil || err != nil {
		return "off", err
	}
	defer func() { _ = s.Close() }()
	if g.config.Cache.Store != "milvus" {
		return "embedded", nil
	}
	if err := connected(ctx, s); err != nil {
		return "", err
	}
	return "Milvus at " + g.config.Cache.Milvus.Address, nil
}

// connected waits until nothing is wrong with a store, and says what is when
// the time is over.
func connected(ctx context.Context, s cache.Store) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for problem := s.Stats().Problem; problem != ""; problem = s.Stats().Problem {
		select {
		case <-ctx.Done():
			return errors.New(problem)
		case <-look.C:
		}
	}
	return nil
}
