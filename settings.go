// Settings: a checked Config, and the files it names, to what the proxy is told.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvasir/cache/milvus"
	"kvasir/proxy"
)

// maxSecretFile bounds a key_file, in bytes.
const maxSecretFile = 16 << 10

// A generation is one configuration with everything that was read for it. It
// is never changed; a reload makes the next one.
type generation struct {
	config   *Config
	settings *proxy.Settings // without simulated engines
	tls      *serverTLS      // nil: server.tls is off
	milvus   milvus.Options  // of cache.store: milvus
}

// load reads all layers and all files they name. It says what it read, also
// when that cannot be used; the error is of type problems.
func (l *layers) load() (*generation, contents, error) {
	data, read, err := l.bytes()
	if err != nil {
		return nil, read, err
	}
	cfg, at, bad := l.merge(data)
	b := &builder{config: cfg, files: read}
	g := &generation{config: cfg, settings: b.settings(), tls: b.serverTLS(), milvus: b.milvus()}
	if bad = bad.with(b.found, at); len(bad) > 0 {
		return nil, read, bad
	}
	return g, read, nil
}

// A builder reads the files that a Config names and notes those it cannot use.
type builder struct {
	config *Config
	files  contents // what was read
	found  []conflict
}

func (b *builder) add(path string, err error) {
	b.found = append(b.found, conflict{paths: []string{path}, text: err.Error()})
}

func (b *builder) settings() *proxy.Settings {
	c := b.config
	s := &proxy.Settings{
		MaxBody:      int64(c.Server.MaxBody),
		BodyMemory:   int64(c.Server.BodyMemory),
		Timeouts:     proxy.Timeouts(c.Server.Timeouts),
		CORS:         c.Server.CORS,
		Hosts:        c.Server.Hosts,
		AdminHosts:   c.Server.AdminHosts,
		Retry:        proxy.Retry(c.Server.Retry),
		ReplyHeaders: c.Headers.Kvasir,
		VSRHeaders:   c.Headers.VSR,
		Classify:     c.classifyOptions(),
		Guards:       c.guards(),
		CacheOptions: proxy.CacheOptions{MaxTemperature: c.Cache.MaxTemperature, ToolCalls: c.Cache.ToolCalls, ScopeHeaders: lowerCase(c.Cache.ScopeHeaders)},
		Keys:         b.keys(),
		Routing: proxy.Routing{
			Policy:           c.Routing.Policy,
			Queue:            c.Routing.Queue != "off",
			MaxQueued:        c.Routing.MaxQueued,
			QueueTimeout:     c.Routing.QueueTimeout,
			PrefillLoadScale: c.Routing.PrefillLoadScale,
			OverlapCredit:    proxy.OverlapCredit(c.Routing.OverlapCredit),
			Temperature:      c.Routing.Temperature,
			Disaggregate:     c.Routing.Disaggregate,
			Overrides:        c.Routing.Overrides,
		},
		GPU: proxy.GPU{Interval: c.GPU.Interval, Effects: c.GPU.effects()},
	}
	for i := range c.Workers {
		s.Workers = append(s.Workers, b.worker(i))
	}
	for i := range c.Models {
		s.Models = append(s.Models, b.model(i))
	}
	return s
}

func lowerCase(names []string) (lower []string) {
	for _, name := range names {
		lower = append(lower, strings.ToLower(name))
	}
	return lower
}

func (b *builder) keys() []proxy.Key {
	var keys []proxy.Key
	seen := map[[sha256.Size]byte]string{}
	for i, k := range b.config.Keys {
		key := proxy.Key{
			Name: k.Name, Tenant: k.Tenant, Isolate: k.Isolate, Models: k.Models,
			RequestsPerMinute: k.RequestsPerMinute, TokensPerMinute: k.TokensPerMinute,
		}
		path := fmt.Sprintf("keys[%d].sha256", i)
		if k.KeyFile != "" {
			path = fmt.Sprintf("keys[%d].key_file", i)
			secret, err := b.secret(k.KeyFile)
			if err != nil {
				b.add(path, err)
				continue
			}
			key.SHA256 = sha256.Sum256([]byte(secret))
		} else if sum, err := hex.DecodeString(k.SHA256); err != nil || copy(key.SHA256[:], sum) != len(key.SHA256) {
			continue // validate says so
		}
		if first, ok := seen[key.SHA256]; ok {
			b.found = append(b.found, conflict{paths: []string{path}, text: "is the key of another entry", first: first})
		}
		seen[key.SHA256] = path
		keys = append(keys, key)
	}
	return keys
}

// model checks that a tokenizer's directory has one. What is wrong inside it is
// told when it is read, and placement does without it: requests go on.
func (b *builder) model(i int) proxy.Model {
	c := b.config.Models[i]
	path := fmt.Sprintf("models[%d].tokenizer", i)
	key := knownKeys.find("models").elem.child("tokenizer")
	if dir := string(c.Tokenizer); !slices.Contains(key.words, dir) {
		if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
			b.add(path, fmt.Errorf("%s is no directory with a tokenizer.json%s", quote(dir), didYouMean(filepath.Base(dir), key.words)))
		}
	}
	return proxy.Model{
		Name: c.Name, Default: c.Default, Fallback: c.Fallback,
		Tokenizer: string(c.Tokenizer), Reasoning: c.Reasoning,
	}
}

func (b *builder) worker(i int) proxy.Worker {
	c := b.config.Workers[i]
	path := fmt.Sprintf("workers[%d]", i)
	w := proxy.Worker{
		Name: c.Name, URL: c.URL, Engine: c.Engine, Role: c.Role,
		Models: c.Models, MaxRequests: c.MaxRequests, Headers: maps.Clone(c.Headers),
		KVEvents: c.KVEvents, KVReplay: c.KVReplay, GPUs: c.GPUs, Instance: c.Instance,
	}
	if c.KeyFile != "" {
		secret, err := b.secret(c.KeyFile)
		if err != nil {
			b.add(path+".key_file", err)
		}
		if w.Headers == nil {
			w.Headers = map[string]string{}
		}
		w.Headers["Authorization"] = "Bearer " + secret
	}
	w.TLS, w.TLSName = b.workerTLS(path+".tls", c.TLS)
	return w
}

// secret is the content of a key_file without the end of its line.
func (b *builder) secret(path filePath) (string, error) {
	// Messages leave the path out: it may be the key itself.
	data, err := b.readBytes(path, maxSecretFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the file: %w", err)
	}
	secret := strings.TrimRight(string(data), "\r\n")
	switch {
	case secret == "":
		return "", errors.New("the file is empty")
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the file must hold one line of visible ASCII: the key and nothing else")
	}
	return secret, nil
}

// read reads a file of at most limit bytes.
func (b *builder) read(path filePath, limit int64) ([]byte, error) {
	data, err := b.readBytes(path, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read file %q: %w", path, err)
	}
	return data, nil
}

// readBytes is read with errors that do not name the file. It remembers what
// was read.
func (b *builder) readBytes(path filePath, limit int64) ([]byte, error) {
	data, err := readBounded(string(path))
	b.files[string(path)] = sha256.Sum256(data)
	if err != nil && strings.Contains(string(path), "~/") {
		return nil, fmt.Errorf("%w; ~ means nothing here, write ${HOME}", bare(err))
	}
	if err != nil {
		return nil, bare(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %s", size(limit))
	}
	return data, nil
}
