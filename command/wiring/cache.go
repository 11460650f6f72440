// Cache: the store of the cache that a configuration asks for, and the cache on it.

package wiring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"kvasir/cache"
	"kvasir/cache/embedded"
	"kvasir/cache/milvus"
	"kvasir/cache/verify"
	"kvasir/classify"
	"kvasir/config"
)

// OpenStore opens the store that a configuration asks for; nil when the cache
// is off. A Milvus that cannot be reached is no error, a file that cannot be
// used is one.
func OpenStore(log zerolog.Logger, g *config.Generation) (cache.Store, error) {
	c := &g.Config.Cache
	if c.Store == "off" {
		return nil, nil
	}
	version, err := EmbeddingVersion(g.Config)
	if err != nil {
		return nil, fmt.Errorf("classify.embedding.model: %w", err)
	}
	if c.Store == "milvus" {
		s, err := milvus.Open(milvusOptions(g, version))
		if err != nil {
			return nil, fmt.Errorf("cache.milvus: %w", err)
		}
		return s, nil
	}
	s, err := embedded.Open(embedded.Options{
		Path: string(c.Path), Embedding: version, MaxEntries: c.MaxEntries, MaxBytes: int64(c.MaxBytes),
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

// EmbeddingVersion names what embeddings are made with.
func EmbeddingVersion(c *config.Config) (string, error) {
	return classify.EmbeddingVersion(config.OwnModel(c.Classify.Embedding.Model, nil, ""))
}

// milvusOptions are what cache.milvus asks for.
func milvusOptions(g *config.Generation, version string) milvus.Options {
	c := &g.Config.Cache.Milvus
	o := milvus.Options{
		Address: c.Address, Collection: c.Collection, Token: c.Token, Timeout: c.Timeout,
		TLS: g.Milvus.TLS, Version: version,
	}
	if c.KeyFile != "" {
		o.Token = g.Milvus.Secret
	}
	return o
}

// Cache is the cache on a store that is open; without a store it compares questions and keeps none.
func Cache(c *config.Cache, store cache.Store) (*cache.Cache, error) {
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

// Connected waits until nothing is wrong with a store. When ctx ends before, the
// error says what is wrong.
func Connected(ctx context.Context, s cache.Store) error {
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
